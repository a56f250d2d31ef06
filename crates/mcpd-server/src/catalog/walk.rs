//! Directory walk: files under a root that may be served. Candidates are executable files, files
//! whose name or sidecar may describe them, apps, and every file below `resources/` or in a skill;
//! never a hidden file, a backup, an ignored file or a link out of the root. Reads directory
//! entries, ignore files and apps only; it never opens or runs another file.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use mcpd_scriptspec::{Dialect, PathError, ScriptPath};
use walkdir::{DirEntry, WalkDir};

use super::file::{self, StaticFile};
use super::scan::{PassOverKind, PassedOver, TEST_CASES, UnusableFile};
use super::skill::Skill;
use crate::policy::Root;
#[cfg(feature = "database")]
use crate::script::fingerprint::FileStamp;
use crate::script::fingerprint::Fingerprint;

mod apps;
mod errors;
mod ignored;
mod skills;

pub(crate) use apps::subject as subject_of_app;
use errors::{is_transient, unreadable};
use ignored::{Ignored, reason_of_name};
pub(crate) use ignored::{belongs_to_others, is_backup};
pub(crate) use skills::{SKILL_FILE, is_skill};

/// Depth at which directories are not entered, against a loop of mounts or an entire home.
pub(crate) const MAX_DEPTH: usize = 16;

/// Maximum number of links on the way to a directory: a few directories that link to each other
/// have more paths than can ever be walked.
pub(crate) const MAX_LINKS: usize = 3;

/// Findings under a root.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    /// Canonical.
    pub(crate) root: PathBuf,
    /// By path.
    pub(crate) scripts: BTreeMap<ScriptPath, Candidate>,
    /// In the order of their paths.
    pub(crate) files: Vec<StaticFile>,
    pub(crate) rejected: Vec<Rejected>,
    /// Other files and directories, and links to nothing.
    pub(crate) passed_over: BTreeMap<PathBuf, PassedOver>,
    /// Places that could not be read although an entry may be there, with everything below.
    pub(crate) unseen: Vec<PathBuf>,
    /// Skills that can be served, and the heads of the others.
    pub(crate) skills: Vec<Skill>,
    pub(crate) faulty_skills: Vec<UnusableFile>,
    /// Instructions of the root, or why its file is not used.
    pub(crate) instructions: Option<Result<String, UnusableFile>>,
    /// Sidecars, each with the file that it describes.
    sidecars: Vec<(PathBuf, Sidecar)>,
}

/// File that may be a script. Two that are equal have one content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) path: ScriptPath,
    pub(crate) file: PathBuf,
    pub(crate) root: PathBuf,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) is_executable: bool,
    /// Tells whether the operator named the file itself and not only a directory above it.
    pub(crate) is_named: bool,
    pub(crate) sidecar: Option<Sidecar>,
}

/// File that describes the file beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sidecar {
    pub(crate) file: PathBuf,
    pub(crate) fingerprint: Fingerprint,
}

/// File that should be served and cannot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rejected {
    pub(crate) file: PathBuf,
    pub(crate) reason: Reason,
}

/// Reason for which a file was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason {
    /// A link whose target lies outside of the root.
    LeavesRoot,
    /// A path from which no name can be made.
    Unnameable(String),
    /// A file named by the operator that is neither executable nor describes itself.
    NotExecutable,
    /// A directory below too many others, with everything in it.
    TooDeep,
    /// A directory behind too many links, with everything in it.
    TooManyLinks,
    /// A sidecar without its file, and the name that was probably meant.
    Orphan(Option<String>),
    /// A second sidecar of a file.
    SecondSidecar,
    /// A directory, a link to nothing or the like with the name of a sidecar.
    NoFile,
    /// The app of a file that is no script, and the name that was probably meant.
    AppWithoutScript(Option<String>),
    /// An app that no client could show.
    FaultyApp(String),
    /// An error of the file system.
    Unreadable(String),
}

impl Walked {
    /// Returns whether `file` may exist although it was not seen.
    pub(crate) fn is_hidden(&self, file: &Path) -> bool {
        self.unseen.iter().any(|place| file.starts_with(place))
    }
}

impl Candidate {
    /// Directory of its file.
    pub(crate) fn directory(&self) -> &Path {
        self.file.parent().unwrap_or(&self.file)
    }

    /// Fingerprints of its content, in a form that can be stored.
    #[cfg(feature = "database")]
    pub(crate) fn stamp(&self) -> FileStamp {
        let sidecar = self.sidecar.as_ref().map(|sidecar| sidecar.fingerprint);
        FileStamp::of(self.fingerprint, sidecar)
    }
}

/// Lists the candidates under `root` (canonical), to which the operator's `rule` applies if there
/// is one. A root that is a file is its only script, named as if its directory were the root.
pub(crate) fn walk(root: &Path, rule: Option<&Root>) -> Walked {
    let mut walked = Walked {
        root: root.to_owned(),
        ..Walked::default()
    };
    if root.is_file() {
        walked.add_single_root(root);
        return walked;
    }
    let mut links = Vec::new();
    let mut left_out = Vec::new();
    let mut ignored = Ignored::below(root, rule);
    let entries = WalkDir::new(root)
        .min_depth(1)
        .max_depth(MAX_DEPTH)
        .follow_links(true)
        .into_iter()
        .filter_entry(|entry| {
            let passed = pass_over(&mut ignored, entry);
            let is_looked_at = passed.is_none();
            left_out.extend(passed);
            if !is_looked_at {
                return false;
            }
            // Checked before it is entered: a link to `/` would serve everything.
            let rejected = link_rejection(root, entry).map(|reason| Rejected {
                file: entry.path().to_owned(),
                reason,
            });
            let is_followed = rejected.is_none();
            links.extend(rejected);
            is_followed
        });
    for entry in entries {
        match entry {
            Ok(entry) => {
                if let Err(reason) = walked.add(root, &entry) {
                    walked.reject(entry.path(), reason);
                }
            }
            Err(error) => walked.add_error(root, &error),
        }
    }
    walked.rejected.append(&mut links);
    walked.rejected.append(&mut ignored.unreadable());
    let left_out = left_out.into_iter();
    let left_out = left_out.map(|passed| (passed.file.clone(), passed));
    walked.passed_over.extend(left_out);
    walked.attach_sidecars(root);
    walked.check_apps();
    walked.rejected.sort_by(|a, b| a.file.cmp(&b.file));
    walked.files.sort_by(|a, b| a.path().cmp(b.path()));
    walked
}

impl Walked {
    fn add(&mut self, root: &Path, entry: &DirEntry) -> Result<(), Reason> {
        if entry.file_type().is_dir() && entry.depth() == MAX_DEPTH {
            return Err(Reason::TooDeep);
        }
        let file = entry.path();
        if !entry.file_type().is_file() {
            return match is_sidecar(root, file) {
                true => Err(Reason::NoFile),
                false => Ok(()),
            };
        }
        let metadata = entry.metadata().map_err(|error| unreadable(&error))?;
        let is_of_skill = skills::is_part(root, file);
        if is_of_skill || is_static(root, file) {
            let path = path_below(root, file)?;
            let fingerprint = Fingerprint::of(&metadata);
            let (file, root) = (file.to_owned(), root.to_owned());
            let file = StaticFile::new(path, file, root, metadata.len(), fingerprint);
            self.files.push(match is_of_skill {
                true => file.into_skill(),
                false => file,
            });
        } else {
            self.add_script(root, file, &metadata)?;
        }
        Ok(())
    }

    /// Adds a file if it may be a script, or a sidecar of one.
    fn add_script(&mut self, root: &Path, file: &Path, metadata: &Metadata) -> Result<(), Reason> {
        if let Some(subject) = apps::subject(file) {
            self.add_app(root, (file, &subject), metadata)?;
        } else if name(file).ends_with(TEST_CASES) {
            self.pass_over(file, PassOverKind::TestCases, "test cases of a script");
        } else if let Some(subject) = subject_of_sidecar(file) {
            let (file, fingerprint) = (file.to_owned(), Fingerprint::of(metadata));
            self.sidecars.push((subject, Sidecar { file, fingerprint }));
        } else if is_executable(file, metadata) || Dialect::may_describe(&name(file)) {
            let script = candidate(root, file, metadata)?;
            self.scripts.insert(script.path.clone(), script);
        } else {
            let reason = "not executable, and without a description";
            self.pass_over(file, PassOverKind::Unmarked, reason);
        }
        Ok(())
    }

    fn pass_over(&mut self, file: &Path, kind: PassOverKind, reason: &str) {
        let passed = PassedOver::new(file.to_owned(), kind, reason);
        self.passed_over.insert(file.to_owned(), passed);
    }

    /// Adds one file and the sidecar that it has or is.
    fn add_single_root(&mut self, file: &Path) {
        let root = file.parent().unwrap_or(file);
        let subject = subject_of_sidecar(file).unwrap_or_else(|| file.to_owned());
        let beside = Dialect::SIDECARS.iter().map(|extension| {
            let mut sidecar = subject.as_os_str().to_owned();
            sidecar.push(extension);
            PathBuf::from(sidecar)
        });
        let app = apps::beside(&subject);
        for file in std::iter::once(subject.clone()).chain(beside).chain([app]) {
            if let Err(reason) = self.add_existing(root, &file) {
                self.reject(&file, reason);
            }
        }
        self.attach_sidecars(root);
        self.check_apps();
        for script in self.scripts.values_mut() {
            script.is_named = true;
        }
        if self.scripts.is_empty() && self.rejected.is_empty() {
            self.passed_over.clear();
            self.reject(file, Reason::NotExecutable);
        }
    }

    /// Adds the file at `file`, if one is there.
    fn add_existing(&mut self, root: &Path, file: &Path) -> Result<(), Reason> {
        if !is_inside(root, file) {
            return Err(Reason::LeavesRoot);
        }
        match file.metadata() {
            Ok(metadata) if metadata.is_file() => self.add_script(root, file, &metadata),
            _ if is_sidecar(root, file) && file.symlink_metadata().is_ok() => Err(Reason::NoFile),
            _ => Ok(()),
        }
    }

    /// Gives each sidecar to the file that it describes. A file whose sidecar was rejected is no
    /// script: its description is missing, and it may be a file that must not be run for a probe.
    fn attach_sidecars(&mut self, root: &Path) {
        let mut sidecars = std::mem::take(&mut self.sidecars);
        let rejected = self.rejected.iter();
        let rejected: Vec<_> = rejected.map(|rejected| rejected.file.clone()).collect();
        // Of two for one file the first in order is taken, so that every walk decides alike.
        sidecars.sort_by(|(_, a), (_, b)| a.file.cmp(&b.file));
        for (subject, sidecar) in sidecars {
            let file = sidecar.file.clone();
            if let Err(reason) = self.attach(root, &subject, sidecar) {
                self.reject(&file, reason);
            }
        }
        for sidecar in rejected {
            let Some(subject) = subject_of_sidecar(&sidecar) else {
                continue;
            };
            if let Ok(path) = path_below(root, &subject) {
                self.scripts.remove(&path);
            }
            if self.is_hidden(&sidecar) {
                self.unseen.push(subject);
            }
        }
    }

    fn attach(&mut self, root: &Path, subject: &Path, sidecar: Sidecar) -> Result<(), Reason> {
        let script = match self.scripts.entry(path_below(root, subject)?) {
            Entry::Occupied(script) => script.into_mut(),
            // Only the sidecar makes it a script.
            Entry::Vacant(place) => {
                let orphan = || Reason::Orphan(intended_sidecar_name(subject, &sidecar.file));
                let metadata = subject.metadata().map_err(|_| orphan())?;
                if !metadata.is_file() || !is_inside(root, subject) {
                    return Err(orphan());
                }
                let script = candidate(root, subject, &metadata)?;
                self.passed_over.remove(subject);
                place.insert(script)
            }
        };
        if script.sidecar.is_some() {
            return Err(Reason::SecondSidecar);
        }
        script.sidecar = Some(sidecar);
        Ok(())
    }

    /// Records an entry below `root` that could not be read.
    fn add_error(&mut self, root: &Path, error: &walkdir::Error) {
        let is_missing = |error: &std::io::Error| error.kind() == ErrorKind::NotFound;
        // A dangling link is no script.
        if error.depth() > 0 && error.io_error().is_some_and(is_missing) {
            let links = error.path().into_iter();
            for link in links.filter(|link| reason_of_name(link).is_none()) {
                if is_sidecar(root, link) {
                    self.reject(link, Reason::NoFile);
                } else {
                    self.pass_over(link, PassOverKind::Unmarked, "broken link");
                }
            }
            return;
        }
        let path = error.path().unwrap_or(root);
        if is_transient(error) {
            self.unseen.push(path.to_owned());
        }
        self.reject(path, unreadable(error));
    }

    fn reject(&mut self, file: &Path, reason: Reason) {
        let file = file.to_owned();
        self.rejected.push(Rejected { file, reason });
    }
}

/// Name of a file, without its directories: the location of a root says nothing about its
/// contents.
fn name(file: &Path) -> Cow<'_, str> {
    file.file_name().unwrap_or_default().to_string_lossy()
}

/// Returns the file that a sidecar describes, if `file` is one.
pub(crate) fn subject_of_sidecar(file: &Path) -> Option<PathBuf> {
    let name = name(file);
    let subject = Dialect::subject_of_sidecar(&name)?;
    Some(file.with_file_name(subject))
}

/// Returns the name of a sidecar for the first file named `subject` plus an extension.
fn intended_sidecar_name(subject: &Path, sidecar: &Path) -> Option<String> {
    let beside = subject.parent()?.read_dir().ok()?.flatten();
    let files = beside.map(|entry| entry.path()).filter(|file| {
        file.file_stem() == subject.file_name() && file.extension().is_some() && file.is_file()
    });
    let (subject, sidecar) = (name(subject), name(sidecar));
    let ending = sidecar.strip_prefix(&*subject)?;
    files.min().map(|file| name(&file).into_owned() + ending)
}

/// Returns whether it has the name of a sidecar, in a place for scripts.
fn is_sidecar(root: &Path, file: &Path) -> bool {
    subject_of_sidecar(file).is_some() && !is_static(root, file) && !skills::is_part(root, file)
}

/// Returns whether a file lies below `resources/`, where no file is a script.
fn is_static(root: &Path, file: &Path) -> bool {
    file.strip_prefix(root).is_ok_and(|path| {
        path.starts_with(file::RESOURCE_DIRECTORY) && path != Path::new(file::RESOURCE_DIRECTORY)
    })
}

/// Returns why an entry is passed over, if it is.
fn pass_over(ignored: &mut Ignored<'_>, entry: &DirEntry) -> Option<PassedOver> {
    let path = entry.path();
    let is_directory = entry.file_type().is_dir();
    // An app is ignored with its file, and so is a sidecar: without the sidecar, a file that must
    // not be run for a probe would be probed.
    let subject = subject_of_sidecar(path).or_else(|| apps::subject(path));
    let subject = subject.filter(|_| !is_directory);
    let reason = reason_of_name(path)
        .map(str::to_owned)
        .or_else(|| ignored.reason_against(subject.as_deref().unwrap_or(path), is_directory));
    if let Some(reason) = reason {
        return Some(PassedOver::new(
            path.to_owned(),
            PassOverKind::Ignored,
            reason,
        ));
    }
    let reason = is_directory.then(|| belongs_to_others(path)).flatten()?;
    Some(PassedOver::new(
        path.to_owned(),
        PassOverKind::NotAScript,
        reason,
    ))
}

/// Returns why a link is not followed; `None` for other entries.
fn link_rejection(root: &Path, entry: &DirEntry) -> Option<Reason> {
    if !entry.path_is_symlink() {
        return None;
    }
    if !is_inside(root, entry.path()) {
        return Some(Reason::LeavesRoot);
    }
    let above = entry.path().ancestors().take(entry.depth());
    let links = above.filter(|path| path.is_symlink()).count();
    (entry.file_type().is_dir() && links > MAX_LINKS).then_some(Reason::TooManyLinks)
}

/// Returns whether a link stays inside the root. An unresolvable target counts as inside: it is
/// no script, and reported elsewhere.
fn is_inside(root: &Path, link: &Path) -> bool {
    link.canonicalize()
        .map_or(true, |target| target.starts_with(root))
}

fn candidate(root: &Path, file: &Path, metadata: &Metadata) -> Result<Candidate, Reason> {
    Ok(Candidate {
        path: path_below(root, file)?,
        file: file.to_owned(),
        root: root.to_owned(),
        fingerprint: Fingerprint::of(metadata),
        is_executable: is_executable(file, metadata),
        is_named: false,
        sidecar: None,
    })
}

/// Returns the name that a file has below its root.
fn path_below(root: &Path, file: &Path) -> Result<ScriptPath, Reason> {
    let relative = file.strip_prefix(root).unwrap_or(file);
    relative
        .to_str()
        .ok_or_else(|| "the name is not UTF-8".to_owned())
        .and_then(|text| {
            with_slashes(text)
                .parse()
                .map_err(|error: PathError| error.to_string())
        })
        .map_err(Reason::Unnameable)
}

/// Returns whether a file may be executed.
#[cfg(unix)]
pub(crate) fn is_executable(_: &Path, metadata: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o111 != 0
}

/// Windows has no executable bit: the extensions that the system itself starts count.
#[cfg(not(unix))]
pub(crate) fn is_executable(file: &Path, _: &Metadata) -> bool {
    file.extension().is_some_and(|extension| {
        ["exe", "com", "bat", "cmd"]
            .iter()
            .any(|known| extension.eq_ignore_ascii_case(known))
    })
}

/// Returns the path with `/` as its separator, as names have on every platform.
fn with_slashes(path: &str) -> Cow<'_, str> {
    if std::path::MAIN_SEPARATOR == '/' {
        Cow::Borrowed(path)
    } else {
        Cow::Owned(path.replace(std::path::MAIN_SEPARATOR, "/"))
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    fn executable(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn path(path: &str) -> ScriptPath {
        path.parse().unwrap()
    }

    fn names(root: &Path) -> Vec<String> {
        walk(root, None)
            .scripts
            .keys()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn walk_finds_visible_executables_only() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for name in [
            "b",
            "a/c",
            ".hidden",
            ".git/hook",
            "b~",
            "b.swp",
            ".#lock",
            "#b#",
        ] {
            executable(&at(name));
        }
        fs::write(at("notes.txt"), "").unwrap();
        symlink("/nowhere", at("dangling")).unwrap();
        assert_eq!(names(&root.path().canonicalize().unwrap()), ["a/c", "b"]);
    }

    #[test]
    fn walk_passes_over_unmarked_files() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for name in [
            "a/lib",
            "b",
            "b.mcpd.toml",
            "c.bas",
            "resources/d",
            ".hidden",
        ] {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), "").unwrap();
        }
        executable(&at("script"));
        for link in ["dangling", "resources/dangling", ".#lock"] {
            symlink("nowhere", at(link)).unwrap();
        }
        let passed_over = walk(root.path(), None).passed_over;
        let unmarked = passed_over.into_values();
        let unmarked = unmarked.filter(|passed| passed.kind == PassOverKind::Unmarked);
        let expected = ["a/lib", "dangling", "resources/dangling"];
        assert!(unmarked.map(|passed| passed.file).eq(expected.map(at)));
        // As a root, this file is rejected instead.
        assert!(walk(&at("a/lib"), None).passed_over.is_empty());
    }

    #[test]
    fn test_cases_are_no_script() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for name in ["a", "a.test.toml"] {
            executable(&at(name));
        }
        let walked = walk(root.path(), None);
        assert!(walked.scripts.into_keys().eq([path("a")]));
        let passed: Vec<_> = walked.passed_over.into_values().collect();
        assert_eq!(passed.len(), 1, "{passed:?}");
        assert_eq!(passed[0].kind, PassOverKind::TestCases);
    }

    #[test]
    fn walk_follows_no_link_out_of_the_root() {
        let outside = tempfile::tempdir().unwrap();
        executable(&outside.path().join("x"));
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        executable(&at("real"));
        symlink("real", at("alias")).unwrap();
        symlink(outside.path().join("x"), at("escape")).unwrap();
        symlink(outside.path(), at("escape-dir")).unwrap();
        symlink(".", at("loop")).unwrap();
        let root = root.path().canonicalize().unwrap();
        assert_eq!(names(&root), ["alias", "real"]);
        let rejected: Vec<_> = walk(&root, None)
            .rejected
            .into_iter()
            .map(|r| (r.file, r.reason))
            .collect();
        assert_eq!(rejected[0], (root.join("escape"), Reason::LeavesRoot));
        assert_eq!(rejected[1], (root.join("escape-dir"), Reason::LeavesRoot));
        assert_eq!(rejected[2].0, root.join("loop"));
    }

    #[test]
    fn walk_ends_with_directories_that_link_to_each_other() {
        const COUNT: usize = 8;
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for from in 0..COUNT {
            executable(&root.join(format!("{from}/x")));
            for to in (0..COUNT).filter(|to| *to != from) {
                symlink(format!("../{to}"), root.join(format!("{from}/{to}"))).unwrap();
            }
        }
        let walked = walk(&root, None);
        assert!(walked.scripts.contains_key(&path("0/1/2/3/x")));
        assert!(!walked.scripts.contains_key(&path("0/1/2/3/4/x")));
        let rejected = Rejected {
            file: root.join("0/1/2/3/4"),
            reason: Reason::TooManyLinks,
        };
        assert!(walked.rejected.contains(&rejected));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn name_that_is_not_utf8_hides_no_other_file() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt as _;

        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join(OsStr::from_bytes(b"\xff"));
        executable(&root.join("a"));
        for name in [&b"a.mcpd.toml"[..], b"b.bas", b"\xff.bas"] {
            fs::write(root.join(OsStr::from_bytes(name)), "").unwrap();
        }
        let walked = walk(&root, None);
        assert_eq!(names(&root), ["a", "b.bas"]);
        assert!(walked.scripts[&path("a")].sidecar.is_some());
        assert_eq!(walked.rejected.len(), 1, "{walked:?}");
        assert_eq!(names(&root.join("a.mcpd.toml")), ["a"]);
    }

    #[test]
    fn missing_root_is_reported() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("gone");
        let walked = walk(&path, None);
        let [rejected] = &walked.rejected[..] else {
            panic!("{:?}", walked.rejected);
        };
        assert_eq!(rejected.file, path);
        assert!(walked.unseen.is_empty() && walked.passed_over.is_empty());
    }

    #[test]
    #[cfg(unix)]
    fn link_to_itself_leaves_nothing_unseen() {
        let root = tempfile::tempdir().unwrap();
        executable(&root.path().join("a"));
        symlink("loop", root.path().join("loop")).unwrap();
        let walked = walk(&root.path().canonicalize().unwrap(), None);
        assert_eq!((walked.scripts.len(), walked.rejected.len()), (1, 1));
        let Reason::Unreadable(why) = &walked.rejected[0].reason else {
            panic!("{:?}", walked.rejected);
        };
        assert!(why.starts_with("not readable: "), "{why}");
        assert!(walked.unseen.is_empty());
    }

    #[test]
    fn directory_that_is_too_deep_is_not_entered() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let above = root.join(["d"; MAX_DEPTH - 1].join("/"));
        executable(&above.join("last"));
        executable(&above.join("d/beyond"));
        let walked = walk(&root, None);
        assert_eq!(walked.scripts.len(), 1);
        let rejected = Rejected {
            file: above.join("d"),
            reason: Reason::TooDeep,
        };
        assert_eq!(walked.rejected, [rejected]);
    }

    #[test]
    fn files_below_resources_are_static() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for name in [
            "a/resources/b",
            "resources/sub/run",
            "resources/.hidden",
            "resources/x~",
        ] {
            executable(&at(name));
        }
        fs::write(at("resources/notes.txt"), "").unwrap();
        symlink("/etc/hostname", at("resources/escape")).unwrap();
        let root = root.path().canonicalize().unwrap();
        let walked = walk(&root, None);
        let files: Vec<_> = walked
            .files
            .iter()
            .map(|file| file.path().as_str())
            .collect();
        assert_eq!(files, ["resources/notes.txt", "resources/sub/run"]);
        assert_eq!(names(&root), ["a/resources/b"]);
        assert_eq!(walked.rejected[0].reason, Reason::LeavesRoot);
    }

    #[test]
    fn script_may_be_called_resources() {
        let root = tempfile::tempdir().unwrap();
        executable(&root.path().join("resources"));
        assert_eq!(names(&root.path().canonicalize().unwrap()), ["resources"]);
    }

    #[test]
    fn root_that_is_a_file_is_its_only_script() {
        let root = tempfile::tempdir().unwrap();
        executable(&root.path().join("a"));
        executable(&root.path().join("b"));
        assert_eq!(names(&root.path().join("b")), ["b"]);

        let notes = root.path().join("notes");
        fs::write(&notes, "").unwrap();
        assert_eq!(walk(&notes, None).rejected[0].reason, Reason::NotExecutable);
    }

    #[test]
    fn changed_file_has_another_fingerprint() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("x");
        executable(&file);
        let before = walk(root.path(), None).scripts;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o700)).unwrap();
        assert_ne!(before, walk(root.path(), None).scripts);
    }

    #[test]
    fn self_describing_file_need_not_be_executable() {
        let root = tempfile::tempdir().unwrap();
        for name in ["a.bas", "b.MD", "c.ts", "d.txt", "node_modules/e.js"] {
            let file = root.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        assert_eq!(names(root.path()), ["a.bas", "b.MD", "c.ts"]);
        assert_eq!(names(&root.path().join("a.bas")), ["a.bas"]);
    }

    #[test]
    fn sidecar_makes_a_script_of_the_file_beside_it() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        executable(&at("a"));
        for name in [
            "a.mcpd.toml",
            "b.py",
            "b.py.mcpd.json",
            "b.py.mcpd.toml",
            "gone.mcpd.toml",
            "b.mcpd.toml",
        ] {
            fs::write(at(name), "").unwrap();
        }
        for root in [&root, &at("b.py"), &at("b.py.mcpd.toml")] {
            let walked = walk(root, None);
            let script = &walked.scripts[&path("b.py")];
            let sidecar = script.sidecar.as_ref().unwrap();
            assert_eq!(script.path.as_str(), "b.py");
            assert_eq!(sidecar.file, at("b.py.mcpd.json"));
            let rejected = Rejected {
                file: at("b.py.mcpd.toml"),
                reason: Reason::SecondSidecar,
            };
            assert!(walked.rejected.contains(&rejected), "{walked:?}");
        }
        let walked = walk(&root, None);
        assert!(walked.scripts[&path("a")].sidecar.is_some());
        assert_eq!(walked.scripts.len(), 2);
        for (sidecar, meant) in [
            ("gone.mcpd.toml", None),
            ("b.mcpd.toml", Some("b.py.mcpd.toml")),
        ] {
            let orphan = Rejected {
                file: at(sidecar),
                reason: Reason::Orphan(meant.map(str::to_owned)),
            };
            assert!(walked.rejected.contains(&orphan), "{walked:?}");
        }

        let before = walked.scripts;
        fs::write(at("a.mcpd.toml"), "title = 'x'").unwrap();
        assert_ne!(walk(&root, None).scripts, before);
    }

    #[test]
    fn file_with_unusable_sidecar_is_no_script() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("x"), "").unwrap();
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        for name in ["away", "dangling", "directory", "fine", "loop", "socket"] {
            executable(&at(name));
        }
        symlink(outside.path().join("x"), at("away.mcpd.toml")).unwrap();
        symlink("nowhere", at("dangling.mcpd.json")).unwrap();
        fs::create_dir(at("directory.mcpd.toml")).unwrap();
        fs::write(at("description"), "").unwrap();
        symlink("description", at("fine.mcpd.toml")).unwrap();
        symlink("loop.mcpd.toml", at("loop.mcpd.toml")).unwrap();
        UnixListener::bind(at("socket.mcpd.toml")).unwrap();
        let walked = walk(&root, None);
        assert_eq!(names(&root), ["fine"]);
        let rejected: Vec<_> = walked.rejected.iter().map(|r| name(&r.file)).collect();
        let expected = [
            "away.mcpd.toml",
            "dangling.mcpd.json",
            "directory.mcpd.toml",
            "loop.mcpd.toml",
            "socket.mcpd.toml",
        ];
        assert_eq!(rejected, expected);
        for (file, sidecar) in ["away", "dangling", "directory", "loop", "socket"]
            .into_iter()
            .zip(expected)
        {
            let walked = walk(&at(file), None);
            assert!(walked.scripts.is_empty(), "{walked:?}");
            let [rejected] = &walked.rejected[..] else {
                panic!("{walked:?}");
            };
            assert_eq!(rejected.file, at(sidecar));
        }
        assert_eq!(names(&at("fine")), ["fine"]);
    }
}
