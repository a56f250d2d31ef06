//! Parser of cases: the script's output and the calls.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Entries of a directory, sorted.
pub(crate) fn children(directory: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths
}

/// One case.
pub(crate) struct Case {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    /// Name and content of a file.
    pub(crate) file: (String, Vec<u8>),
    pub(crate) calls: Vec<String>,
}

impl Case {
    #[track_caller]
    pub(crate) fn read(text: &str) -> Self {
        let (prose, rest) = text.split_once('\n').unwrap();
        assert!(
            prose.ends_with('.') && !prose.starts_with("--"),
            "a case opens with a sentence"
        );
        let mut case = Self {
            stdout: Vec::new(),
            stderr: Vec::new(),
            file: Default::default(),
            calls: Vec::new(),
        };
        let mut section = "";
        for line in rest.split_inclusive('\n') {
            let header = line.trim_end().strip_prefix("-- ");
            if let Some(header) = header.and_then(|header| header.strip_suffix(" --")) {
                section = header;
                continue;
            }
            let (name, is_escaped) = match section.strip_suffix(" escaped") {
                Some(name) => (name, true),
                None => (section, false),
            };
            let bytes = if is_escaped {
                unescape(line)
            } else {
                line.as_bytes().to_vec()
            };
            match name {
                "stdout" => case.stdout.extend(bytes),
                "stderr" => case.stderr.extend(bytes),
                _ if let Some(file) = name.strip_prefix("file ") => {
                    file.clone_into(&mut case.file.0);
                    case.file.1.extend(bytes);
                }
                "arguments" if !line.trim().is_empty() => {
                    case.calls
                        .push(String::from_utf8(bytes).unwrap().trim().to_owned());
                }
                _ => assert!(line.trim().is_empty(), "{line:?} in section {section:?}"),
            }
        }
        case
    }
}

/// Decodes `\xHH` to a byte, and `<<3*text>>` to `texttexttext`.
#[track_caller]
fn unescape(line: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = line;
    while let Some(char) = rest.chars().next() {
        if let Some(escape) = rest.strip_prefix("\\x") {
            bytes.push(u8::from_str_radix(&escape[..2], 16).unwrap());
            rest = &escape[2..];
        } else if let Some((repetition, after)) = rest
            .strip_prefix("<<")
            .and_then(|rest| rest.split_once(">>"))
        {
            let (count, text) = repetition.split_once('*').unwrap();
            bytes.extend(text.repeat(count.parse().unwrap()).bytes());
            rest = after;
        } else {
            bytes.extend(&rest.as_bytes()[..char.len_utf8()]);
            rest = &rest[char.len_utf8()..];
        }
    }
    bytes
}
