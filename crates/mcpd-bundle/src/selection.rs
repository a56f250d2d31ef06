//! Selection of files: what is served and helper files beside it go in; hidden files, backups,
//! keys and what the caller leaves out do not, unless they are named.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Ends of names that private keys and files with variables have.
const SECRET_ENDS: [&str; 8] = [
    ".pem",
    ".key",
    ".p12",
    ".pfx",
    ".kdbx",
    ".jks",
    ".env",
    ".keystore",
];

/// Beginnings of names that private keys and credentials have.
const SECRET_BEGINNINGS: [&str; 6] = [
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "credentials",
    "secrets.",
];

/// Decision which files of a directory go into a bundle. Paths are absolute.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    served: BTreeSet<PathBuf>,
    left_out: BTreeMap<PathBuf, String>,
    included: BTreeSet<PathBuf>,
}

/// Decision about one entry.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict<'a> {
    Take,
    /// A directory without a file that goes in, except for one that is named.
    Descend,
    LeaveOut(&'a str),
}

impl Selection {
    /// Takes a file that is served, whatever its name.
    pub fn serve(&mut self, file: impl Into<PathBuf>) {
        self.served.insert(file.into());
    }

    /// Leaves out a file, or a directory with everything in it.
    pub fn leave_out(&mut self, path: impl Into<PathBuf>, reason: impl Into<String>) {
        self.left_out.insert(path.into(), reason.into());
    }

    /// Takes a file or a directory that would be left out.
    pub fn include(&mut self, path: impl Into<PathBuf>) {
        self.included.insert(path.into());
    }

    /// Decides about an entry.
    pub(crate) fn verdict(&self, root: &Path, path: &Path) -> Verdict<'_> {
        if self.included.contains(path) {
            return Verdict::Take;
        }
        let Some(reason) = self.reason_against(root, path) else {
            return Verdict::Take;
        };
        match self.included.iter().any(|named| named.starts_with(path)) {
            true => Verdict::Descend,
            false => Verdict::LeaveOut(reason),
        }
    }

    /// Returns why an entry stays out, if it does.
    fn reason_against(&self, root: &Path, path: &Path) -> Option<&str> {
        if let Some(reason) = private_name(path) {
            return Some(reason);
        }
        let above = path.ancestors().take_while(|path| *path != root);
        for above in above {
            if self.included.contains(above) {
                break;
            }
            if let Some(reason) = self.left_out.get(above) {
                return Some(reason);
            }
        }
        let is_served = self.served.contains(path) || path.is_dir();
        secret_name(path).filter(|_| !is_served)
    }
}

/// Returns why no file of this name is for others.
fn private_name(path: &Path) -> Option<&'static str> {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    if name.starts_with(b".") {
        Some("hidden: the name begins with a dot")
    } else if name.starts_with(b"#") || name.ends_with(b"~") || name.ends_with(b".swp") {
        Some("file left behind by an editor, judging by the name")
    } else if name == b"mcpd.toml" {
        Some("configuration of this machine; the bundle has one of its own")
    } else {
        None
    }
}

/// Returns why a helper file may be a secret, judging by its name.
fn secret_name(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    let is_secret = SECRET_ENDS.iter().any(|end| name.ends_with(end))
        || SECRET_BEGINNINGS
            .iter()
            .any(|beginning| name.starts_with(beginning));
    is_secret.then_some("it may be a secret, judging by its name")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(selection: &Selection, path: &str) -> String {
        match selection.verdict(Path::new("/r"), Path::new(path)) {
            Verdict::Take => "take".to_owned(),
            Verdict::Descend => "descend".to_owned(),
            Verdict::LeaveOut(reason) => reason.to_owned(),
        }
    }

    #[test]
    fn named_files_go_in_and_their_neighbours_do_not() {
        let mut selection = Selection::default();
        selection.leave_out("/r/lib", "ignored");
        selection.include("/r/lib/inner/a.py");
        assert_eq!(verdict(&selection, "/r/lib"), "descend");
        assert_eq!(verdict(&selection, "/r/lib/inner"), "descend");
        assert_eq!(verdict(&selection, "/r/lib/inner/a.py"), "take");
        assert_eq!(verdict(&selection, "/r/lib/inner/b.py"), "ignored");
        assert_eq!(verdict(&selection, "/r/other.py"), "take");
        selection.include("/r/lib");
        assert_eq!(verdict(&selection, "/r/lib/inner/b.py"), "take");
        assert!(verdict(&selection, "/r/lib/.git").starts_with("hidden"));
    }

    #[test]
    fn names_of_secrets_stay_out_unless_served_or_named() {
        let mut selection = Selection::default();
        selection.serve("/r/credentials");
        for name in [
            ".env",
            "prod.env",
            "tls.PEM",
            "id_ed25519",
            "secrets.yml",
            "x~",
        ] {
            assert_ne!(verdict(&selection, &format!("/r/{name}")), "take", "{name}");
        }
        assert_eq!(verdict(&selection, "/r/credentials"), "take");
        selection.include("/r/tls.PEM");
        assert_eq!(verdict(&selection, "/r/tls.PEM"), "take");
        assert_eq!(verdict(&selection, "/r/keyboard.py"), "take");
    }
}
