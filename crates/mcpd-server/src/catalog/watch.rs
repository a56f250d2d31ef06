//! Tells that something under the roots may have changed. Says neither what nor where: the scan that
//! follows finds out, and is cheap where nothing did.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Config, Event, EventKind, PollWatcher, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

/// How often the roots are looked at where the system can't tell of changes.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Watches until it is dropped.
pub(super) struct Watch {
    changed: Arc<Notify>,
    _watcher: Box<dyn Watcher + Send>,
}

impl Watch {
    /// Starts watching `roots`; falls back to looking at them every two seconds.
    ///
    /// # Errors
    ///
    /// When neither works.
    pub(super) fn start(roots: &[PathBuf]) -> notify::Result<Self> {
        let changed = Arc::new(Notify::new());
        let watcher = match native(roots, &changed) {
            Ok(watcher) => watcher,
            Err(error) => {
                tracing::warn!(%error, "failed to watch the roots; looking every {POLL_INTERVAL:?} instead");
                polling(roots, &changed)?
            }
        };
        Ok(Self {
            changed,
            _watcher: watcher,
        })
    }

    /// Notified of every change; changes since the last look count.
    pub(super) fn changed(&self) -> Arc<Notify> {
        Arc::clone(&self.changed)
    }
}

fn native(roots: &[PathBuf], changed: &Arc<Notify>) -> notify::Result<Box<dyn Watcher + Send>> {
    let mut watcher = RecommendedWatcher::new(announce(changed), Config::default())?;
    watch_all(&mut watcher, roots)?;
    Ok(Box::new(watcher))
}

fn polling(roots: &[PathBuf], changed: &Arc<Notify>) -> notify::Result<Box<dyn Watcher + Send>> {
    let config = Config::default().with_poll_interval(POLL_INTERVAL);
    let mut watcher = PollWatcher::new(announce(changed), config)?;
    watch_all(&mut watcher, roots)?;
    Ok(Box::new(watcher))
}

fn watch_all(watcher: &mut dyn Watcher, roots: &[PathBuf]) -> notify::Result<()> {
    roots
        .iter()
        .try_for_each(|root: &PathBuf| watcher.watch(Path::new(root), RecursiveMode::Recursive))
}

fn announce(changed: &Arc<Notify>) -> impl Fn(notify::Result<Event>) + Send + 'static {
    let changed = Arc::clone(changed);
    move |event| {
        // An error means that events were lost: look again.
        if event.map_or(true, |event| is_change(event.kind)) {
            changed.notify_one();
        }
    }
}

/// Every run opens and reads its script; only what may alter one counts.
fn is_change(kind: EventKind) -> bool {
    !matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}
