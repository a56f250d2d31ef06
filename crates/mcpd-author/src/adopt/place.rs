//! Places of drafts: beside a script, or in a directory of tools beside a small script that runs
//! the program. No file that is there is changed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::Draft;
use crate::new_file;
use crate::shell::quoted;

impl Draft {
    /// Writes the sidecar beside the program, and returns its path.
    ///
    /// # Errors
    ///
    /// The program is no file of the user, or the sidecar is there or can't be written.
    pub fn write_beside(&self) -> anyhow::Result<PathBuf> {
        let Some(script) = &self.beside else {
            bail!(
                "write `{}`: it needs a script that runs it; name the directory: `--write DIR`",
                self.name
            );
        };
        self.write_sidecar(script)
    }

    /// Writes the sidecar into a directory, with a script that runs the program, and returns its
    /// path.
    ///
    /// # Errors
    ///
    /// The name is no name of a file, or a file is there or can't be written.
    pub fn write_into(&self, directory: &Path) -> anyhow::Result<PathBuf> {
        check_name(&self.name)?;
        let program = directory.join(&self.name);
        let sidecar = self.write_sidecar(&program)?;
        // A sidecar without its program would be a fault, and in the way of another try.
        new_file::create(&program, &wrapper_text(self), true)
            .inspect_err(|_| drop(fs::remove_file(&sidecar)))
            .with_context(|| format!("create `{}`", program.display()))?;
        Ok(sidecar)
    }

    fn write_sidecar(&self, program: &Path) -> anyhow::Result<PathBuf> {
        let mut path = program.as_os_str().to_owned();
        path.push(".mcpd.toml");
        let path = PathBuf::from(path);
        new_file::create(&path, &self.sidecar.text, false)
            .with_context(|| format!("create `{}`", path.display()))?;
        Ok(path)
    }
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
    let command = quoted(words);
    let directory = draft
        .directory
        .as_ref()
        .map_or_else(String::new, |directory| {
            let directory = directory.to_string_lossy();
            format!("{} || exit\n", quoted(["cd", "--", &directory]))
        });
    format!("#!/bin/sh\n{directory}exec {command} \"$@\" </dev/null\n")
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
