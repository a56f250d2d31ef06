//! Ignored entries of a root: by their name, by `.mcpdignore`, by the operator's rule for the
//! root, and directories that a program has installed or built.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::Gitignore;

use super::{Reason, Rejected};
use crate::policy::Root;

/// Ignore file of a directory, in the syntax of `.gitignore`.
const IGNORE_FILE: &str = ".mcpdignore";

/// Ignore files below a root, read on first use, and the operator's rule.
#[derive(Debug)]
pub(super) struct Ignored<'a> {
    root: &'a Path,
    rule: Option<&'a Root>,
    /// By directory; `None` for a directory without an ignore file.
    files: BTreeMap<PathBuf, Option<Gitignore>>,
    unreadable: Vec<Rejected>,
}

impl<'a> Ignored<'a> {
    pub(super) fn below(root: &'a Path, rule: Option<&'a Root>) -> Self {
        Self {
            root,
            rule,
            files: BTreeMap::new(),
            unreadable: Vec::new(),
        }
    }

    /// Returns why the file or directory at `path` is ignored, if it is; the directories above it
    /// are not.
    ///
    /// As with `.gitignore`, the nearest file with a matching pattern decides, and in it the last
    /// such pattern.
    pub(super) fn reason_against(&mut self, path: &Path, is_directory: bool) -> Option<String> {
        let by_rule = self
            .rule
            .and_then(|rule| rule.reason_against(path, is_directory));
        if by_rule.is_some() {
            return by_rule;
        }
        let root = self.root;
        let directories = path.ancestors().skip(1);
        for directory in directories.take_while(|directory| directory.starts_with(root)) {
            let Some(file) = self.file_of(directory) else {
                continue;
            };
            match file.matched(path, is_directory) {
                Match::None => {}
                Match::Whitelist(_) => return None,
                Match::Ignore(glob) => {
                    let file = directory.join(IGNORE_FILE);
                    let file = file.strip_prefix(root).unwrap_or(&file).display();
                    return Some(format!("`{file}` has `{}`", glob.original()));
                }
            }
        }
        None
    }

    /// Returns the ignore files that could not be read, wholly or in part.
    pub(super) fn unreadable(self) -> Vec<Rejected> {
        self.unreadable
    }

    fn file_of(&mut self, directory: &Path) -> Option<&Gitignore> {
        if !self.files.contains_key(directory) {
            let read = self.read(directory.join(IGNORE_FILE));
            self.files.insert(directory.to_owned(), read);
        }
        self.files.get(directory)?.as_ref()
    }

    fn read(&mut self, file: PathBuf) -> Option<Gitignore> {
        file.symlink_metadata().ok()?;
        let (matcher, error) = Gitignore::new(&file);
        if let Some(error) = error {
            let reason = Reason::Unreadable(format!("not readable: {error}"));
            self.unreadable.push(Rejected { file, reason });
        }
        Some(matcher)
    }
}

/// Returns why no file of this name is served: hidden files, and backups of editors.
pub(super) fn reason_of_name(file: &Path) -> Option<&'static str> {
    let name = file.file_name().unwrap_or_default().as_encoded_bytes();
    if name.starts_with(b".") {
        Some("hidden: the name begins with a dot")
    } else if is_backup(file) {
        Some("file left behind by an editor, judging by the name")
    } else {
        None
    }
}

/// Returns whether a file has the name of a copy that an editor leaves behind.
pub(crate) fn is_backup(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().as_encoded_bytes();
    name.starts_with(b"#") || name.ends_with(b"~") || name.ends_with(b".swp")
}

/// First bytes of a tag file by which a program marks a directory whose contents it can recreate.
/// -- <https://bford.info/cachedir/>
const CACHE_SIGNATURE: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";

/// Returns why a directory holds no tools of the operator, if it is evident.
pub(crate) fn belongs_to_others(directory: &Path) -> Option<&'static str> {
    let has = |name: &str| directory.join(name).symlink_metadata().is_ok();
    let name = directory.file_name().unwrap_or_default();
    if name == "node_modules" {
        Some("directory with packages that scripts depend on")
    } else if name == "__pycache__" {
        Some("Python cache")
    } else if has("pyvenv.cfg") || has("conda-meta") {
        Some("virtual environment")
    } else if is_cache(directory) {
        Some("cache directory: contains a `CACHEDIR.TAG`")
    } else if has("CMakeCache.txt") {
        Some("build directory: contains a `CMakeCache.txt`")
    } else if has("HEAD") && has("objects") && has("refs") {
        Some("git repository without a work tree")
    } else {
        None
    }
}

fn is_cache(directory: &Path) -> bool {
    let mut beginning = [0; CACHE_SIGNATURE.len()];
    let tag = directory.join("CACHEDIR.TAG");
    // Opening a named pipe would block.
    tag.is_file()
        && File::open(tag).is_ok_and(|mut tag| tag.read_exact(&mut beginning).is_ok())
        && beginning == CACHE_SIGNATURE
}
