//! File watcher on the roots: reports that something may have changed, neither what nor where. The
//! scan that follows finds out, and is cheap where nothing changed.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use notify::{
    Config, Event, EventKindMask, PollWatcher, RecommendedWatcher, RecursiveMode, Watcher,
};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::live::debounce;
use crate::support::sync::lock;

/// Poll interval on systems that cannot report changes.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Interval of the checks for a replaced root, whose watch would report nothing more.
const ROOT_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Changes of files and directories, for a program that reads them again after each.
pub struct FileChanges {
    changed: Arc<Notify>,
    watch: Watch,
}

impl FileChanges {
    /// Starts to watch files and directories, the latter with everything below.
    pub async fn start(roots: Vec<PathBuf>) -> Self {
        let changed = Arc::new(Notify::new());
        let watch = Watch::start(roots, Arc::clone(&changed)).await;
        Self { changed, watch }
    }

    /// Waits until something may have changed since the start or the last wait, and then for a
    /// quiet moment (debounce).
    ///
    /// # Cancel safety
    ///
    /// A change is lost only during the debounce.
    pub async fn wait(&mut self) {
        while timeout(ROOT_CHECK_INTERVAL, self.changed.notified())
            .await
            .is_err()
        {
            if !self.watch.is_current().await {
                break;
            }
        }
        debounce(&self.changed, Duration::ZERO).await;
        if !self.watch.is_current().await {
            let roots = self.watch.roots.clone();
            self.watch = Watch::start(roots, Arc::clone(&self.changed)).await;
        }
    }
}

impl fmt::Debug for FileChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileChanges")
            .field("roots", &self.watch.roots)
            .finish_non_exhaustive()
    }
}

/// Watches until it is dropped.
pub(super) struct Watch {
    roots: Vec<PathBuf>,
    /// Identities of the roots at the start of the watch.
    identities: Vec<Option<Identity>>,
    /// Tells that the system could report no changes when the watch began. A later attempt may
    /// succeed: descriptors are short for a moment only.
    is_polling: bool,
    unwatched: UnwatchedDirectories,
    _watcher: Option<Box<dyn Watcher + Send + Sync>>,
}

/// Directories that are not watched. Clones share one list.
#[derive(Debug, Clone, Default)]
struct UnwatchedDirectories {
    /// Directories that could not be watched, such as unreadable ones.
    errors: Arc<Mutex<Vec<notify::Error>>>,
    /// Set once a root was removed, and its watch with it. A new directory in its place may have
    /// the same identity, as file systems reuse inode numbers.
    has_lost_root: Arc<AtomicBool>,
}

/// Device and inode, which tell a directory from its successor of the same name.
type Identity = (u64, u64);

impl Watch {
    /// Starts to watch `roots`, and notifies `changed` of every change, including changes since
    /// the last scan. Falls back to polling every two seconds.
    pub(super) async fn start(roots: Vec<PathBuf>, changed: Arc<Notify>) -> Self {
        // Walks the directory tree, which blocks.
        let start = move || {
            // Taken before the watch starts, so that a root replaced in between is noticed.
            let identities = root_identities(&roots);
            let unwatched = UnwatchedDirectories::default();
            let watcher =
                RecommendedWatcher::new(event_handler(&changed, &unwatched, &roots), config());
            let is_polling = watcher.is_err();
            let watcher = watcher
                .and_then(|watcher| watch_all(watcher, &roots))
                .and_then(|watcher| unwatched.take_readable().map_or(Ok(watcher), Err))
                .or_else(|error| {
                    tracing::warn!(%error, "failed to watch the directories; polling every {POLL_INTERVAL:?} instead");
                    let config = config().with_poll_interval(POLL_INTERVAL);
                    watch_all(PollWatcher::new(event_handler(&changed, &unwatched, &roots), config)?, &roots)
                })
                .inspect_err(|error| {
                    tracing::error!(%error, "failed to watch the directories; restart mcpd after changes");
                })
                .ok();
            Self {
                identities,
                roots,
                is_polling,
                unwatched,
                _watcher: watcher,
            }
        };
        tokio::task::spawn_blocking(start)
            .await
            .unwrap_or_else(|_| Self {
                roots: Vec::new(),
                identities: Vec::new(),
                is_polling: false,
                unwatched: UnwatchedDirectories::default(),
                _watcher: None,
            })
    }

    /// Returns whether the roots are still the watched directories, and cannot be watched any
    /// better.
    pub(super) async fn is_current(&self) -> bool {
        let (roots, is_polling) = (self.roots.clone(), self.is_polling);
        let unwatched = self.unwatched.clone();
        let look = move || {
            let is_better = is_polling && can_watch()
                || unwatched.has_lost_root.load(Ordering::Relaxed)
                || unwatched.take_readable().is_some();
            (root_identities(&roots), is_better)
        };
        let seen = tokio::task::spawn_blocking(look).await;
        seen.is_ok_and(|(now, is_better)| now == self.identities && !is_better)
    }
}

impl UnwatchedDirectories {
    fn add(&self, error: notify::Error) {
        let mut unwatched = lock(&self.errors);
        let is_there = |error: &notify::Error| error.paths.iter().any(|path| path.exists());
        unwatched.retain(|known| known.paths != error.paths && is_there(known));
        unwatched.push(error);
    }

    /// Returns the error of an unwatched directory that can be read, if there is one. Unreadable
    /// directories serve nothing.
    fn take_readable(&self) -> Option<notify::Error> {
        let mut unwatched = lock(&self.errors);
        let is_readable =
            |error: &notify::Error| error.paths.iter().any(|path| path.read_dir().is_ok());
        let place = unwatched.iter().position(is_readable)?;
        Some(unwatched.swap_remove(place))
    }
}

fn root_identities(roots: &[PathBuf]) -> Vec<Option<Identity>> {
    roots.iter().map(|root| root_identity(root)).collect()
}

#[cfg(unix)]
fn root_identity(root: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    root.metadata()
        .ok()
        .map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Elsewhere only its existence is known.
#[cfg(not(unix))]
fn root_identity(root: &Path) -> Option<Identity> {
    root.metadata().ok().map(|_| (0, 0))
}

/// Returns whether the system reports changes at all.
fn can_watch() -> bool {
    RecommendedWatcher::new(|_| (), config()).is_ok()
}

/// Watches all `roots` with the watcher.
fn watch_all(
    mut watcher: impl Watcher + Send + Sync + 'static,
    roots: &[PathBuf],
) -> notify::Result<Box<dyn Watcher + Send + Sync>> {
    // A missing root is watched once it exists.
    let mut present = roots.iter().filter(|root| root.exists());
    present.try_for_each(|root| watcher.watch(root, RecursiveMode::Recursive))?;
    Ok(Box::new(watcher))
}

fn event_handler(
    changed: &Arc<Notify>,
    unwatched: &UnwatchedDirectories,
    roots: &[PathBuf],
) -> impl Fn(notify::Result<Event>) + Send + 'static {
    let (changed, unwatched, roots) = (Arc::clone(changed), unwatched.clone(), roots.to_vec());
    move |event| {
        match event {
            Ok(event) if event.kind.is_remove() => {
                if event.paths.iter().any(|path| roots.contains(path)) {
                    unwatched.has_lost_root.store(true, Ordering::Relaxed);
                }
            }
            Ok(_) => {}
            Err(error) => unwatched.add(error),
        }
        // An error means that events were lost, so a scan is due.
        changed.notify_one();
    }
}

/// Configures events and links. Every run opens and reads its script, so only modifications
/// count. The target of a link below a root is served only if it lies below the root itself, and
/// is watched there; beyond it may be the entire file system.
fn config() -> Config {
    Config::default()
        .with_event_kinds(EventKindMask::CORE | EventKindMask::ACCESS_CLOSE)
        .with_follow_symlinks(false)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn directory_that_becomes_readable_is_watched() {
        let root = tempfile::tempdir().unwrap();
        let (closed, gone) = (root.path().join("closed"), root.path().join("gone"));
        let changed = Arc::new(Notify::new());
        let watch = Watch::start(vec![root.path().to_owned()], Arc::clone(&changed)).await;
        let event_handler = event_handler(&changed, &watch.unwatched, &watch.roots);
        for path in [&closed, &gone, &closed] {
            event_handler(Err(notify::Error::generic("closed").add_path(path.clone())));
        }
        assert_eq!(lock(&watch.unwatched.errors).len(), 1);
        assert!(watch.is_current().await);
        fs::create_dir(&closed).unwrap();
        assert!(!watch.is_current().await);
    }

    #[tokio::test]
    async fn recreated_root_with_the_same_inode_is_watched_anew() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("root");
        fs::create_dir(&root).unwrap();
        let changed = Arc::new(Notify::new());
        let mut watch = Watch::start(vec![root.clone()], Arc::clone(&changed)).await;
        assert!(watch.is_current().await);
        fs::remove_dir(&root).unwrap();
        changed.notified().await;
        fs::create_dir(&root).unwrap();
        // As if the file system had reused the inode number.
        watch.identities = root_identities(&watch.roots);
        assert!(!watch.is_current().await);
    }

    #[test]
    fn links_are_watched_without_their_targets() {
        let outside = tempfile::tempdir().unwrap();
        let real = tempfile::tempdir().unwrap();
        symlink(outside.path(), real.path().join("link")).unwrap();
        fs::create_dir(real.path().join("directory")).unwrap();
        let root = outside.path().join("root");
        symlink(real.path(), &root).unwrap();

        let (sender, events) = mpsc::channel();
        let tell = move |event: notify::Result<Event>| sender.send(event.unwrap()).unwrap();
        let watcher = RecommendedWatcher::new(tell, config()).unwrap();
        let _watcher = watch_all(watcher, std::slice::from_ref(&root)).unwrap();
        fs::write(outside.path().join("beyond"), "").unwrap();
        fs::write(root.join("directory/script"), "").unwrap();
        // Events arrive in order.
        let first = events.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!(first.paths, [root.join("directory/script")]);
    }
}
