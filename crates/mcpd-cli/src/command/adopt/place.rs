//! Places of drafts: beside a script, or in a directory of tools beside a small script that runs
//! the program. No file that is there is changed.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::Draft;
use crate::output;

/// Writes the sidecar into `directory`, or beside the script if that is empty.
pub(super) fn write(draft: &Draft, directory: &str) -> anyhow::Result<()> {
    let (program, wrapper) = match (directory, &draft.beside) {
        ("", Some(script)) => (script.clone(), None),
        ("", None) => bail!(
            "write `{}`: it needs a script that runs it; name the directory: `--write DIR`",
            draft.name
        ),
        (directory, _) => {
            check_name(&draft.name)?;
            let program = Path::new(directory).join(&draft.name);
            (program, Some(wrapper_text(draft)))
        }
    };
    let mut sidecar = program.clone().into_os_string();
    sidecar.push(".mcpd.toml");
    let sidecar = PathBuf::from(sidecar);
    create(&sidecar, &draft.sidecar.text, false)?;
    if let Some(text) = wrapper {
        // A sidecar without its program would be a fault, and in the way of another try.
        create(&program, &text, true).inspect_err(|_| drop(fs::remove_file(&sidecar)))?;
    }
    output::write_text(&format!("created {}\n", sidecar.display()))
}

/// Rejects a name that is no plain file name: it comes from a file of another author, and would
/// lead out of the directory, hide the script, or be an option of a command.
fn check_name(name: &str) -> anyhow::Result<()> {
    let is_plain = |char: char| !char.is_control() && !matches!(char, '/' | '\\');
    if name.is_empty() || name.starts_with(['.', '-']) || !name.chars().all(is_plain) {
        bail!(
            "write `{}`: the name of a tool has no slashes or control characters, and begins with neither `.` nor `-`",
            name.escape_debug()
        );
    }
    Ok(())
}

/// A script that runs the program without input: mcpd gives scripts their options there, which
/// the program would take for its data.
fn wrapper_text(draft: &Draft) -> String {
    let words = draft.program.iter().map(String::as_str);
    let command = output::shell_command(words);
    let directory = draft
        .directory
        .as_ref()
        .map_or_else(String::new, |directory| {
            let directory = directory.to_string_lossy();
            format!(
                "{} || exit\n",
                output::shell_command(["cd", "--", &directory])
            )
        });
    format!("#!/bin/sh\n{directory}exec {command} \"$@\" </dev/null\n")
}

/// Creates a file; one that is there is never overwritten.
fn create(path: &Path, text: &str, is_executable: bool) -> anyhow::Result<()> {
    let action = || format!("create `{}`", path.display());
    if let Some(parent) = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        fs::create_dir_all(parent).with_context(action)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if is_executable {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o777);
    }
    let mut file = options.open(path).with_context(action)?;
    file.write_all(text.as_bytes()).with_context(action)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_that_is_no_plain_file_name_is_rejected() {
        for name in ["", "..", "../x", "a/b", "a\\b", ".x", "-x", "a\nb"] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        for name in ["greet", "a.b", "a-b", "größe", "a b"] {
            check_name(name).unwrap();
        }
    }
}
