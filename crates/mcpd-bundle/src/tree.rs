//! Files of a directory: the walk that finds those of a bundle, and refuses links that leave the
//! directory. Reads directory entries only, no content.

use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use crate::BundleError;
use crate::selection::{Selection, Verdict};

/// Depth at which directories are not entered; the same as for scripts.
const MAX_DEPTH: usize = 16;

/// Maximum number of files of one directory.
const MAX_FILES: usize = 20_000;

/// Maximum size of all files of one directory, in bytes.
const MAX_SIZE: u64 = 1 << 30;

/// Files of a directory, for a bundle.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Tree {
    /// Files in the order of their paths.
    pub files: Vec<TreeFile>,
    /// Entries that are not for the bundle, in the order of their paths.
    pub left_out: Vec<LeftOut>,
}

/// File of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeFile {
    /// Path below the directory, with `/` as its separator.
    pub path: String,
    /// File behind all links.
    pub file: PathBuf,
    /// Size in bytes.
    pub size: u64,
    /// It may be executed.
    pub is_executable: bool,
}

/// File that is not for the bundle, or a directory with everything in it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// Path below the directory, with `/` as its separator.
    pub path: String,
    /// Reason, as a sentence fragment.
    pub reason: String,
}

impl Tree {
    /// Finds the selected files below `root`, which must be canonical. A link to a file inside
    /// becomes a copy of it.
    ///
    /// # Errors
    ///
    /// A directory can't be read, a selected link leaves the directory or leads nowhere, a
    /// selected entry is neither a file nor a directory, or there are too many.
    pub fn read(root: &Path, selection: &Selection) -> Result<Self, BundleError> {
        let root = root
            .canonicalize()
            .map_err(BundleError::of_file("read", root))?;
        let mut tree = Self::default();
        let mut size = 0;
        let mut walk = WalkDir::new(&root)
            .min_depth(1)
            .max_depth(MAX_DEPTH)
            .follow_links(true)
            .sort_by_file_name()
            .into_iter();
        while let Some(entry) = walk.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => match tree.fault(&root, selection, &error) {
                    Some(fault) => return Err(fault),
                    None => continue,
                },
            };
            let path = entry.path();
            let is_directory = entry.file_type().is_dir();
            match selection.verdict(&root, path) {
                Verdict::LeaveOut(reason) => {
                    tree.leave_out(&root, path, reason);
                    if is_directory {
                        walk.skip_current_dir();
                    }
                    continue;
                }
                Verdict::Descend | Verdict::Take => {}
            }
            check_link(&root, &entry)?;
            if is_directory {
                if entry.depth() == MAX_DEPTH {
                    return Err(kind(path, "too many directories are above it"));
                }
                continue;
            }
            let file = tree_file(&root, &entry)?;
            size += file.size;
            tree.files.push(file);
            check_bounds(tree.files.len(), size)?;
        }
        Ok(tree)
    }

    fn leave_out(&mut self, root: &Path, path: &Path, reason: &str) {
        self.left_out.push(LeftOut {
            path: shown_below(root, path),
            reason: reason.to_owned(),
        });
    }

    /// Error of an entry, unless it is left out anyway.
    fn fault(
        &mut self,
        root: &Path,
        selection: &Selection,
        error: &walkdir::Error,
    ) -> Option<BundleError> {
        let path = error.path().unwrap_or(root);
        if let Verdict::LeaveOut(reason) = selection.verdict(root, path) {
            self.leave_out(root, path, reason);
            return None;
        }
        Some(match error.io_error() {
            Some(_) if path.is_symlink() => kind(path, "it is a broken link"),
            Some(reason) => kind(path, &format!("not readable: {reason}")),
            None => kind(path, "the link leads back to a directory above it"),
        })
    }
}

fn kind(path: &Path, reason: &str) -> BundleError {
    BundleError::Kind {
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}

/// Checks that a link stays inside the directory.
fn check_link(root: &Path, entry: &DirEntry) -> Result<(), BundleError> {
    if !entry.path_is_symlink() {
        return Ok(());
    }
    let path = entry.path();
    let target = path
        .canonicalize()
        .map_err(BundleError::of_file("read", path))?;
    match target.starts_with(root) {
        true => Ok(()),
        false => Err(BundleError::LinkOut {
            path: path.to_owned(),
            target,
        }),
    }
}

fn tree_file(root: &Path, entry: &DirEntry) -> Result<TreeFile, BundleError> {
    let path = entry.path();
    if !entry.file_type().is_file() {
        return Err(kind(path, "it is neither a file nor a directory"));
    }
    let relative = path.strip_prefix(root).unwrap_or(path);
    if relative.to_str().is_none() {
        return Err(kind(path, "the name is not UTF-8"));
    }
    let file = path
        .canonicalize()
        .map_err(BundleError::of_file("read", path))?;
    let metadata = file
        .metadata()
        .map_err(BundleError::of_file("read", &file))?;
    Ok(TreeFile {
        path: shown_below(root, path),
        is_executable: is_executable(&metadata),
        size: metadata.len(),
        file,
    })
}

/// Path below the directory, with `/` as its separator.
fn shown_below(root: &Path, path: &Path) -> String {
    let relative = path.strip_prefix(root).unwrap_or(path).to_string_lossy();
    relative.replace(std::path::MAIN_SEPARATOR, "/")
}

fn check_bounds(files: usize, size: u64) -> Result<(), BundleError> {
    let what = if files > MAX_FILES {
        format!("more than {MAX_FILES} files")
    } else if size > MAX_SIZE {
        format!("more than {} MiB of files", MAX_SIZE >> 20)
    } else {
        return Ok(());
    };
    Err(BundleError::TooLarge { what })
}

#[cfg(unix)]
fn is_executable(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o111 != 0
}

/// Clients on other systems need the permission, and there is no other sign of it here.
#[cfg(not(unix))]
fn is_executable(_: &std::fs::Metadata) -> bool {
    true
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn tree() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("lib/deep")).unwrap();
        for name in [
            "greet",
            "lib/helper.py",
            "lib/deep/.env",
            "notes~",
            "x.test.toml",
        ] {
            fs::write(root.join(name), name).unwrap();
        }
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(root.join("greet"), executable).unwrap();
        (directory, root)
    }

    #[test]
    fn helpers_go_in_and_private_files_stay_out() {
        let (_directory, root) = tree();
        let mut selection = Selection::default();
        selection.leave_out(root.join("x.test.toml"), "test cases");
        symlink("../greet", root.join("lib/alias")).unwrap();
        symlink("/etc/passwd", root.join(".#lock")).unwrap();
        symlink("/nowhere", root.join(".dangling")).unwrap();
        let tree = Tree::read(&root, &selection).unwrap();
        let files: Vec<_> = tree
            .files
            .iter()
            .map(|file| (&*file.path, file.is_executable))
            .collect();
        assert_eq!(
            files,
            [
                ("greet", true),
                ("lib/alias", true),
                ("lib/helper.py", false)
            ]
        );
        let left_out: Vec<_> = tree.left_out.iter().map(|one| &*one.path).collect();
        assert_eq!(
            left_out,
            [
                ".#lock",
                ".dangling",
                "lib/deep/.env",
                "notes~",
                "x.test.toml"
            ]
        );
        assert_eq!(tree.left_out[4].reason, "test cases");
    }

    #[test]
    fn links_out_of_the_directory_are_refused_with_their_path() {
        for target in ["/etc/passwd", "../..", "deep/../../.."] {
            let (_directory, root) = tree();
            symlink(target, root.join("lib/link")).unwrap();
            let error = Tree::read(&root, &Selection::default()).unwrap_err();
            let text = error.to_string();
            assert!(text.contains("lib/link"), "{text}");
            assert!(
                matches!(error, BundleError::LinkOut { .. }),
                "{target}: {text}"
            );
        }
        for (target, reason) in [("nowhere", "broken link"), ("..", "leads back")] {
            let (_directory, root) = tree();
            symlink(target, root.join("lib/link")).unwrap();
            let error = Tree::read(&root, &Selection::default()).unwrap_err();
            assert!(error.to_string().contains(reason), "{target}: {error}");
        }
    }

    #[test]
    fn devices_are_refused() {
        let (_directory, root) = tree();
        let socket = root.join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let error = Tree::read(&root, &Selection::default()).unwrap_err();
        assert!(error.to_string().contains("neither a file"), "{error}");
    }
}
