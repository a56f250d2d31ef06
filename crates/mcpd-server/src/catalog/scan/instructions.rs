//! Instructions of a root: the file `INSTRUCTIONS.md` at its top, which tells models how to use
//! its tools together.

use std::io::{ErrorKind, Read as _};
use std::path::Path;

use super::{PassOverKind, PassedOver, UnusableFile};
use crate::catalog::walk::Walked;
use crate::support::regular_file;

/// Name of the file with instructions at the top of a root.
pub const INSTRUCTIONS: &str = "INSTRUCTIONS.md";

/// Maximum length of the file, in bytes. Many clients put all of it into every conversation.
const MAX_BYTES: usize = 16 * 1024;

/// Reads the file at the top of `root` (canonical) into `walked`. Blocks.
pub(super) fn add(root: &Path, walked: &mut Walked) {
    let file = root.join(INSTRUCTIONS);
    // A file system may have no right to execute, and mark every file as a program.
    walked.scripts.retain(|_, script| script.file != file);
    match read(root, &file) {
        Ok(None) => {}
        Ok(Some(text)) => {
            let passed = PassedOver::new(
                file.clone(),
                PassOverKind::Ignored,
                "instructions of the server",
            );
            walked.passed_over.insert(file, passed);
            walked.instructions = Some(Ok(text));
        }
        Err(reason) => walked.instructions = Some(Err(UnusableFile::new(file, reason))),
    }
}

/// Returns the text of the file, unless there is none.
///
/// # Errors
///
/// Returns why the file is not used.
fn read(root: &Path, file: &Path) -> Result<Option<String>, String> {
    match file.canonicalize() {
        Ok(target) if !target.starts_with(root) => {
            return Err("link to a target outside of the root".to_owned());
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        // The root is a file, and nothing is below it.
        Err(error) if error.kind() == ErrorKind::NotADirectory => return Ok(None),
        Err(error) => return Err(error.to_string()),
    }
    let opened = regular_file::open(file).map_err(|error| error.to_string())?;
    let opened = opened.ok_or("not a regular file")?;
    let mut bytes = Vec::new();
    let mut part = opened.take(MAX_BYTES as u64 + 1);
    part.read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() > MAX_BYTES {
        return Err(format!(
            "longer than the {MAX_BYTES} bytes that instructions may have"
        ));
    }
    let text = String::from_utf8(bytes).map_err(|_| "not UTF-8".to_owned())?;
    if let Some(hidden) = text.chars().find(|char| mcpd_scriptspec::is_hidden(*char)) {
        return Err(format!(
            "contains the hidden character U+{:04X}",
            u32::from(hidden)
        ));
    }
    let text = text.trim();
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[track_caller]
    fn check(content: &[u8], expected: Result<Option<&str>, &str>) {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        fs::write(root.join(INSTRUCTIONS), content).unwrap();
        let read = read(&root, &root.join(INSTRUCTIONS));
        let read = read.as_ref().map(Option::as_deref);
        assert_eq!(read.map_err(String::as_str), expected);
    }

    #[test]
    fn instructions_are_trimmed_text() {
        check(
            b"# Shop\n\nLook first.\n",
            Ok(Some("# Shop\n\nLook first.")),
        );
        check(b" \n", Ok(None));
        let longest = "x".repeat(MAX_BYTES);
        check(longest.as_bytes(), Ok(Some(&longest)));
    }

    #[test]
    fn unfit_instructions_are_refused_with_a_reason() {
        let long = "x".repeat(MAX_BYTES + 1);
        check(
            long.as_bytes(),
            Err("longer than the 16384 bytes that instructions may have"),
        );
        check(b"\xff", Err("not UTF-8"));
        check(
            "a\u{202e}b".as_bytes(),
            Err("contains the hidden character U+202E"),
        );
    }

    #[cfg(unix)]
    #[test]
    fn instructions_outside_of_the_root_are_refused() {
        let outside = tempfile::NamedTempFile::new().unwrap();
        fs::write(&outside, "Secret").unwrap();
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        std::os::unix::fs::symlink(outside.path(), root.join(INSTRUCTIONS)).unwrap();
        let read = read(&root, &root.join(INSTRUCTIONS));
        assert_eq!(read.unwrap_err(), "link to a target outside of the root");
        assert_eq!(
            super::read(outside.path(), &outside.path().join(INSTRUCTIONS)),
            Ok(None)
        );
    }
}
