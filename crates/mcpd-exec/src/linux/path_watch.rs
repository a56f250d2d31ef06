//! Validation of cached plans: the paths that something was derived from, to tell whether it
//! would still turn out the same.
//!
//! A path is followed name by name, and each name is watched together with the directory that
//! contains it. While a directory is unchanged, so are the entries its names stand for: one look
//! at it covers all of them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf, absolute};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use rustix::fs::{Access, AtFlags, CWD, FileType, accessat, lstat, readlink, stat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::file_version::FileVersion;
use super::mounts;
use crate::os::{self, Fault};
use crate::sandbox::Sandbox;

/// Paths that something was derived from.
#[derive(Debug)]
pub(crate) struct PathWatch {
    /// Places by path, without links: a directory comes before the places in it.
    places: BTreeMap<PathBuf, WatchedPlace>,
    /// Number of mount changes at the start.
    mounts: u64,
}

/// File or directory that is watched.
#[derive(Debug)]
struct WatchedPlace {
    /// Version at the last look, which preceded the look at its names. `None` if another change
    /// might not have shown.
    last: Mutex<Option<FileVersion>>,
    /// Any change to it counts, not only one to the entries of its names.
    is_whole: bool,
    /// Paths that were looked up in it, and the entries found.
    names: BTreeMap<PathBuf, WatchedEntry>,
}

/// Entry that a name stands for.
#[derive(Debug, Clone, Copy)]
enum WatchedEntry {
    /// A new link may reuse the inode of an old one, so its time counts too.
    Link(FileVersion),
    Other(FileType, FileVersion),
    Nothing(Errno),
}

impl PathWatch {
    /// Watches nothing yet.
    pub(crate) fn new() -> Self {
        Self {
            places: BTreeMap::new(),
            mounts: mounts::changes(),
        }
    }

    /// Resolves all links of a path and watches it. `None` if it leads nowhere, which is watched
    /// as well.
    ///
    /// # Errors
    ///
    /// It can't be determined now.
    pub(crate) fn find(&mut self, path: &Path) -> io::Result<Option<PathBuf>> {
        match self.follow(path, &mut Vec::new()) {
            Ok(found) => Ok(Some(found)),
            Err(lost) => lost.passed_over(path).map(|()| None),
        }
    }

    /// Resolves all links of a path, watches it, and appends the links on the way to `links`.
    ///
    /// # Errors
    ///
    /// It leads nowhere that this user can access.
    pub(crate) fn follow(
        &mut self,
        path: &Path,
        links: &mut Vec<PathBuf>,
    ) -> Result<PathBuf, Obstructed> {
        /// The limit of the kernel.
        const MAX_LINKS: usize = 40;
        let most = links.len() + MAX_LINKS;
        let lost = |at: &Path, errno| Obstructed {
            at: at.to_owned(),
            errno,
        };
        let mut found = PathBuf::from("/");
        let absolute = absolute(path).map_err(|_| lost(path, Errno::NOENT))?;
        let mut ahead = backwards(&absolute);
        while let Some(name) = ahead.pop() {
            if name == ".." {
                found.pop();
                continue;
            }
            let path = found.join(name);
            match self.look_up(&found, &path) {
                WatchedEntry::Nothing(errno) => return Err(lost(&path, errno)),
                WatchedEntry::Other(..) => found = path,
                WatchedEntry::Link(_) if links.len() == most => {
                    return Err(lost(&path, Errno::LOOP));
                }
                WatchedEntry::Link(_) => {
                    let target = readlink(&path, Vec::new()).map_err(|errno| lost(&path, errno))?;
                    let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                    links.push(path);
                    if target.is_absolute() {
                        found = PathBuf::from("/");
                    }
                    ahead.append(&mut backwards(&target));
                }
            }
        }
        Ok(found)
    }

    /// Looks up a path in a directory, and watches it from now on.
    fn look_up(&mut self, directory: &Path, path: &Path) -> WatchedEntry {
        let names = &mut self.place(directory).names;
        let known = names.get(path).copied();
        known.unwrap_or_else(|| {
            let entry = WatchedEntry::at(path);
            names.insert(path.to_owned(), entry);
            entry
        })
    }

    fn place(&mut self, path: &Path) -> &mut WatchedPlace {
        let place = self.places.entry(path.to_owned());
        place.or_insert_with(|| WatchedPlace::at(path))
    }

    /// Watches a file or directory as a whole: a change to its contents, mode or owner counts.
    /// Its path was returned by [`find`](Self::find).
    pub(crate) fn watch_whole(&mut self, path: &Path) {
        self.place(path).is_whole = true;
    }

    /// Returns whether a process can access the place, or could after changing a mode. If not,
    /// any change to it counts. Its path was returned by [`find`](Self::find).
    pub(crate) fn is_in_reach(&mut self, path: &Path, sandbox: &Sandbox) -> bool {
        // The rights of another user are not known.
        sandbox.run_as.is_some() || is_in_reach(path) || {
            self.watch_whole(path);
            is_in_reach(path)
        }
    }

    /// Returns false once the result would be derived from something else.
    pub(crate) fn is_current(&self) -> bool {
        // Taken before any look.
        let now = SystemTime::now();
        let mut places = self.places.iter();
        self.mounts == mounts::changes()
            && places.all(|(path, place)| place.is_unchanged(path, now))
    }

    /// Returns whether the watched places below a directory are unchanged.
    #[cfg(test)]
    pub(crate) fn is_current_below(&self, directory: &Path) -> bool {
        let now = SystemTime::now();
        let mut below = self
            .places
            .iter()
            .filter(|(path, _)| path.starts_with(directory));
        below.all(|(path, place)| place.is_unchanged(path, now))
    }
}

/// End of the way along a path that can't be followed further.
#[derive(Debug)]
pub(crate) struct Obstructed {
    /// Path that was looked up, in a directory that exists.
    at: PathBuf,
    errno: Errno,
}

impl Obstructed {
    /// Returns the directory that denies passage, if that is the reason.
    pub(crate) fn closed_directory(&self) -> Option<&Path> {
        let directory = self.at.parent()?;
        let passable = || accessat(CWD, directory, Access::EXEC_OK, AtFlags::EACCESS);
        (self.errno == Errno::ACCESS && passable().is_err()).then_some(directory)
    }

    /// Returns the obstacle that stops this user, but perhaps not a process: a closed directory,
    /// or else the path that was looked up. `None` if that does not exist.
    ///
    /// # Errors
    ///
    /// A resource is exhausted.
    /// Something is short.
    pub(crate) fn obstacle(&self) -> io::Result<Option<&Path>> {
        let error = io::Error::from(self.errno);
        match (self.errno, os::fault(&error)) {
            (Errno::NAMETOOLONG, _) | (_, Fault::Missing | Fault::NotDirectory | Fault::Loop) => {
                Ok(None)
            }
            (_, Fault::Exhausted) => Err(error),
            _ => Ok(Some(self.closed_directory().unwrap_or(&self.at))),
        }
    }

    /// Passes over a path that does not exist, or that this user can't access.
    ///
    /// # Errors
    ///
    /// It can't be determined now.
    pub(crate) fn passed_over(&self, path: &Path) -> io::Result<()> {
        match (self.obstacle()?, self.errno) {
            (None, _) | (_, Errno::ACCESS | Errno::PERM) => Ok(()),
            (_, errno) => {
                let text = format!("`{}`: {errno}", path.display());
                Err(io::Error::new(errno.kind(), text))
            }
        }
    }
}

impl fmt::Display for Obstructed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.errno {
            Errno::NOENT | Errno::NOTDIR => f.write_str("does not exist"),
            errno => write!(f, "is not accessible ({errno})"),
        }
    }
}

impl WatchedPlace {
    fn at(path: &Path) -> Self {
        // The time before the look, and the directory before its names, so that a concurrent
        // change shows.
        let now = SystemTime::now();
        Self {
            last: Mutex::new(
                file_version(path)
                    .ok()
                    .filter(|version| version.is_settled(now)),
            ),
            is_whole: false,
            names: BTreeMap::new(),
        }
    }

    /// Returns whether the place is unchanged. `now` is a time before this call.
    fn is_unchanged(&self, path: &Path, now: SystemTime) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let version = file_version(path).ok();
        if version.is_some() && version == *last {
            return true;
        }
        let mut names = self.names.iter();
        let is_same = !self.is_whole && names.all(|(path, then)| WatchedEntry::at(path).is(*then));
        if is_same {
            *last = version.filter(|version| version.is_settled(now));
        }
        is_same
    }
}

impl WatchedEntry {
    fn at(path: &Path) -> Self {
        let stat = match lstat(path) {
            Ok(stat) => stat,
            Err(errno) => return Self::Nothing(errno),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => Self::Link(stat.into()),
            kind => Self::Other(kind, stat.into()),
        }
    }

    fn is(self, other: Self) -> bool {
        match (self, other) {
            (Self::Link(link), Self::Link(other)) => link == other,
            (Self::Other(kind, file), Self::Other(other_kind, other)) => {
                kind == other_kind && file.is_same_file(other)
            }
            (Self::Nothing(errno), Self::Nothing(other)) => errno == other,
            _ => false,
        }
    }
}

/// Returns the version of the file at a path, without following links.
fn file_version(path: &Path) -> Result<FileVersion, Errno> {
    lstat(path).map(FileVersion::from)
}

/// Returns the names in a path, in reverse order.
fn backwards(path: &Path) -> Vec<OsString> {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(_) | Component::ParentDir => Some(part.as_os_str().to_owned()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    names.rev().collect()
}

/// Returns whether this user can access the place, or could. A place that can't be inspected
/// counts as accessible.
fn is_in_reach(path: &Path) -> bool {
    let may = |access| accessat(CWD, path, access, AtFlags::EACCESS).is_ok();
    let mut ways = [Access::READ_OK, Access::WRITE_OK, Access::EXEC_OK].into_iter();
    let is_anothers = stat(path).is_ok_and(|found| found.st_uid != geteuid().as_raw());
    !is_anothers || ways.any(may)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::thread;
    use std::time::Duration;

    use tempfile::TempDir;

    use super::*;

    const SETTLED: Duration = Duration::from_millis(30);

    /// Temporary directory, with its path without links.
    struct TestDirectory(
        #[expect(dead_code, reason = "removed on drop")] TempDir,
        PathBuf,
    );

    impl TestDirectory {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().canonicalize().unwrap();
            Self(directory, path)
        }

        fn at(&self, path: &str) -> PathBuf {
            self.1.join(path)
        }

        fn directory(&self, path: &str) {
            fs::create_dir_all(self.at(path)).unwrap();
        }

        fn link(&self, target: impl AsRef<Path>, path: &str) {
            symlink(target, self.at(path)).unwrap();
        }

        fn rename(&self, from: &str, to: &str) {
            fs::rename(self.at(from), self.at(to)).unwrap();
        }
    }

    /// Checks whether a change matters after `path` was followed.
    #[track_caller]
    fn check(
        prepare: impl Fn(&TestDirectory),
        path: &str,
        change: impl Fn(&TestDirectory),
        expected: bool,
    ) {
        let ground = TestDirectory::new();
        prepare(&ground);
        // On older kernels a change right after the look shows no later time.
        thread::sleep(SETTLED);
        let mut watch = PathWatch::new();
        watch.find(&ground.at(path)).unwrap();
        let is_current = || watch.is_current_below(&ground.1);
        assert!(is_current(), "before the change");
        change(&ground);
        assert_eq!(is_current(), expected, "after the change");
        assert_eq!(is_current(), expected, "whoever asks");
    }

    #[test]
    fn path_is_followed_as_the_kernel_does() {
        let ground = TestDirectory::new();
        ground.directory("one/two");
        ground.link("one/two", "relative");
        ground.link(ground.at("one"), "absolute");
        ground.link("../../absolute/./two/..", "one/two/up");
        ground.link("missing", "dangling");
        ground.link("round", "round");
        fs::write(ground.at("file"), "").unwrap();
        let mut watch = PathWatch::new();
        let mut links = Vec::new();
        for path in [
            "",
            "one/two",
            "relative",
            "absolute/two",
            "relative/up/two",
            "../../..",
        ] {
            let path = ground.at(path);
            let found = watch.follow(&path, &mut links).unwrap();
            assert_eq!(found, path.canonicalize().unwrap());
        }
        let expected = ["relative", "absolute", "relative", "one/two/up", "absolute"];
        assert_eq!(links, expected.map(|link| ground.at(link)));
        for path in ["missing", "one/missing", "dangling", "round", "file/below"] {
            let path = ground.at(path);
            let lost = watch.follow(&path, &mut Vec::new()).unwrap_err();
            let expected = path.canonicalize().unwrap_err().raw_os_error();
            assert_eq!(Some(lost.errno.raw_os_error()), expected, "{path:?}");
            assert_eq!(watch.find(&path).unwrap(), None);
        }
        assert_eq!(watch.find(Path::new("")).unwrap(), None);
        assert_eq!(watch.find(&ground.at(&"x".repeat(256))).unwrap(), None);
    }

    #[test]
    fn neighbours_do_not_matter_and_are_looked_at_once() {
        let ground = TestDirectory::new();
        ground.directory("there");
        let mut watch = PathWatch::new();
        watch.find(&ground.at("there")).unwrap();
        watch.find(&ground.at("missing/further")).unwrap();
        let place = &watch.places[&ground.1];
        assert_eq!(place.names.len(), 2);
        let last = || *place.last.lock().unwrap();
        thread::sleep(SETTLED);
        assert!(watch.is_current());
        assert_eq!(last(), file_version(&ground.1).ok());

        ground.directory("beside");
        assert_ne!(last(), file_version(&ground.1).ok());
        thread::sleep(SETTLED);
        assert!(watch.is_current());
        assert_eq!(last(), file_version(&ground.1).ok());
    }

    #[test]
    fn appeared_and_replaced_entries_matter() {
        let there = |ground: &TestDirectory| ground.directory("some/there");
        check(
            there,
            "some/missing/further",
            |ground| ground.directory("some/other"),
            true,
        );
        check(
            there,
            "some/missing/further",
            |ground| ground.directory("some/missing"),
            false,
        );
        check(
            there,
            "some/there",
            |ground| ground.directory("some/there/within"),
            true,
        );
        let replace = |ground: &TestDirectory| {
            ground.rename("some/there", "some/gone");
            ground.directory("some/there");
        };
        check(there, "some/there", replace, false);
        let remove = |ground: &TestDirectory| fs::remove_dir(ground.at("some/there")).unwrap();
        check(there, "some/there", remove, false);
    }

    #[test]
    fn moved_and_linked_entry_matters() {
        let there = |ground: &TestDirectory| {
            ground.directory("some/there/within");
            ground.directory("other");
        };
        let moved = |ground: &TestDirectory| {
            ground.rename("some/there", "other/there");
            ground.link("../other/there", "some/there");
        };
        check(there, "some/there", moved, false);
        check(there, "some/there/within", moved, false);
    }

    #[test]
    fn replaced_link_matters() {
        let linked = |ground: &TestDirectory| {
            ground.directory("one/there");
            ground.directory("two/there");
            ground.link("one", "link");
        };
        let relink = |ground: &TestDirectory| {
            // The new link may reuse the inode.
            fs::remove_file(ground.at("link")).unwrap();
            ground.link("two", "link");
        };
        check(linked, "link/there", relink, false);
        check(linked, "two/there", relink, true);
        check(
            linked,
            "link/missing",
            |ground| ground.directory("one/missing"),
            false,
        );
    }

    #[test]
    fn change_of_mode_matters_for_whole_places() {
        let ground = TestDirectory::new();
        ground.directory("there");
        let path = ground.at("there");
        thread::sleep(SETTLED);
        let mut watches = [PathWatch::new(), PathWatch::new()];
        for watch in &mut watches {
            watch.find(&path).unwrap();
        }
        watches[1].watch_whole(&path);
        let current = || {
            watches
                .each_ref()
                .map(|watch| watch.is_current_below(&ground.1))
        };
        assert_eq!(current(), [true, true]);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o711)).unwrap();
        assert_eq!(current(), [true, false]);
    }

    /// With a clock that ticks, a change right after another shows no later time.
    #[test]
    fn recent_change_counts_as_another_version() {
        let ground = TestDirectory::new();
        let is_current = |file: u32| {
            fs::write(ground.at(&file.to_string()), "").unwrap();
            let mut watch = PathWatch::new();
            watch.watch_whole(&ground.1);
            watch.is_current_below(&ground.1)
        };
        // On a busy machine a single try may be too late.
        assert!(!(0..100).all(is_current));
    }
}
