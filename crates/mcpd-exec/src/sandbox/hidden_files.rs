//! Search for hidden files that a failed program complains of. A program only says that it may
//! not read a file, or has not found one; nothing it prints says that a setting would show the
//! file.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::Sandbox;

/// Number of words that are examined, from the end: each may cost a look at the file system.
const MAX_WORDS: usize = 256;
/// Number of files that are reported.
const MAX_FILES: usize = 4;

impl Sandbox {
    /// Returns files that are hidden from a process and named in its output `text`: paths,
    /// absolute or below `directory`, and names of programs found in `search`, a value of `PATH`.
    /// It accesses the file system, so it must not run on an async worker.
    #[must_use]
    pub fn find_hidden(
        &self,
        text: &str,
        directory: &Path,
        search: Option<&OsStr>,
    ) -> Vec<PathBuf> {
        let directories: Vec<_> = search
            .map(std::env::split_paths)
            .into_iter()
            .flatten()
            .collect();
        let places = |word: &str| -> Vec<PathBuf> {
            match word.contains('/') || word.starts_with('.') {
                true => vec![directory.join(word)],
                false => directories.iter().map(|place| place.join(word)).collect(),
            }
        };
        let is_lacking = |path: &PathBuf| {
            let real = || path.canonicalize().ok();
            let is_hidden = |path: &Path| self.hidden_by(path).is_some();
            path.symlink_metadata().is_ok()
                && (is_hidden(path) || real().is_some_and(|path| is_hidden(&path)))
        };
        let mut found: Vec<PathBuf> = Vec::new();
        let words = text.rsplit(is_between).filter(|word| !word.is_empty());
        for word in words.take(MAX_WORDS) {
            let word = word.trim_end_matches('.');
            let lacking = places(word).into_iter().find(is_lacking);
            found.extend(lacking.filter(|path| !found.contains(path)));
            if found.len() == MAX_FILES {
                break;
            }
        }
        found.reverse();
        found
    }
}

/// Returns whether a character stands between words, or around a path in a message.
fn is_between(char: char) -> bool {
    char.is_whitespace() || char.is_control() || ":;,'\"`‘’“”()[]{}<>=".contains(char)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;

    use super::*;
    use crate::sandbox::Level;

    #[test]
    fn hidden_files_are_found_in_the_output_of_programs() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().canonicalize().unwrap();
        for file in [".agent/token", ".tools/bin/run", "notes"] {
            let file = home.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        let mut sandbox = Sandbox::none();
        sandbox.level = Level::Guarded;
        sandbox.homes.push(home.clone());
        let shown = home.display();
        let tools = home.join(".tools/bin");
        let find_with = |text: &str, search| {
            let found = sandbox.find_hidden(text, &home, search);
            let below = found
                .iter()
                .map(|path| path.strip_prefix(&home).unwrap().to_owned());
            below.collect::<Vec<_>>()
        };
        let find = |text: &str| find_with(text, None);
        let token = [PathBuf::from(".agent/token")];
        assert_eq!(
            find(&format!("cat: {shown}/.agent/token: Permission denied")),
            token
        );
        assert_eq!(find("cat: .agent/token: Permission denied\nfailed"), token);
        let python =
            format!("PermissionError: [Errno 13] Permission denied: '{shown}/.agent/token'");
        assert_eq!(find(&python), token);
        let missing = "env: ‘run’: No such file or directory";
        assert_eq!(
            find_with(missing, Some(tools.as_os_str())),
            [PathBuf::from(".tools/bin/run")]
        );
        let nothing: [PathBuf; 0] = [];
        assert_eq!(
            find(&format!(
                "{shown}/notes: {shown}/.other/x: failed to run it"
            )),
            nothing
        );
    }
}
