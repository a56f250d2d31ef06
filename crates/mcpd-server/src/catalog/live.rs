//! Hot reload of the catalog: scanned at the start, rescanned when the roots change, replaced in
//! one piece. Readers take no lock; callers that need the first scan wait for it.
//!
//! Changes are debounced before a rescan; what failed for a passing reason is retried with
//! exponential backoff:
//!
//! ```text
//! file event ──► debounce: 200 ms of quiet, at most 500 ms ──┐
//! source changed ──► 80 ms ──────────────────────────────────┤
//! reconfiguration ───────────────────────────────────────────┼──► scan ──► publish, if different
//! retry timer ───────────────────────────────────────────────┘      │
//!       ▲                                                           │
//!       └── 500 ms, doubled up to 30 s, while the scan is incomplete┘
//! probe answered ────────────────────────────────────────────────────────► publish, if different
//! ```

use std::num::NonZeroUsize;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::FutureExt as _;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::scan::{Scan, Scanner};
use super::watch::Watch;
use super::{BuiltIn, Catalog};
use crate::catalog::announced::Announcer;
use crate::catalog::pins::Locked;
use crate::catalog::source::{Host, Offer, SourceDescription, Sources};
use crate::catalog::tool::Tool;
use crate::client::subscribers::Subscribers;
use crate::policy::Policy;
use crate::policy::principal::Principal;
use crate::script::interpreter::Interpreters;
use crate::support::sync::lock;

mod faults;

/// Debounce interval: time without changes before a rescan, since editors write several files.
/// The time for which a single file has to be unchanged is set by the [scanner](super::scan).
const DEBOUNCE_INTERVAL: Duration = Duration::from_millis(200);
/// Upper bound of the debounce: a file that is written all the time must not hold up others.
const MAX_DEBOUNCE: Duration = Duration::from_millis(500);
/// Minimum ratio of debounce time to scan time, where a file in large roots is written all the
/// time, such as a log.
const DEBOUNCE_PER_SCAN_TIME: u32 = 10;
/// Debounce interval for changes of sources.
const SOURCE_DEBOUNCE_INTERVAL: Duration = Duration::from_millis(80);
/// Time that a publication waits for probes. Most scripts answer within it, and appear together.
const PROBE_WAIT: Duration = Duration::from_millis(200);
/// Interval between checks that the watch still covers the roots.
const WATCH_CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// First and longest backoff before failed probes are repeated.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(500);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);

/// Current catalog, and whether the first scan is complete.
#[derive(Debug)]
pub(crate) struct LiveCatalog {
    current: ArcSwap<Catalog>,
    roots: Vec<PathBuf>,
    scanned: watch::Receiver<bool>,
    /// Announcements of its scripts to other servers.
    pub(crate) announcer: Announcer,
    /// Told of each publication.
    published: watch::Sender<()>,
    reconfiguration: ReconfigurationSlot,
}

/// Slot for the next reconfiguration; a later one replaces an earlier one that has not been
/// applied.
#[derive(Debug, Default)]
struct ReconfigurationSlot {
    next: Mutex<Option<Reconfiguration>>,
    requested: Notify,
}

/// Policy and interpreters of probes and runs, and what alone is served, if anything.
pub(crate) type ScriptConfiguration = (Policy, Interpreters, Option<Arc<Locked>>);

/// Parts of a catalog that can be replaced while the server runs.
#[derive(Debug)]
pub(crate) struct Reconfiguration {
    /// New configuration of probes and runs, if it changes.
    pub(crate) scripts: Option<ScriptConfiguration>,
    /// Replacement for the built-in tool with its path.
    pub(crate) tool: Option<Arc<Tool>>,
    pub(crate) sources: Vec<SourceDescription>,
    pub(crate) host: Host,
    /// Tells whether the policy of the host is unchanged.
    pub(crate) is_same_policy: bool,
}

impl LiveCatalog {
    /// Starts with the built-in entries and follows `roots` until `stop`.
    ///
    /// Must be called on a tokio runtime.
    pub(crate) fn start(
        built_in: BuiltIn,
        page_size: NonZeroUsize,
        scanner: Scanner,
        sources: Sources,
        watched: Option<Vec<PathBuf>>,
        subscribers: Arc<Subscribers>,
        stop: CancellationToken,
    ) -> Arc<Self> {
        let (ready, scanned) = watch::channel(false);
        let first = Catalog::new(&built_in, Scan::default(), Vec::new(), page_size);
        let current = ArcSwap::from_pointee(first);
        let reconfiguration = ReconfigurationSlot::default();
        let live = Arc::new(Self {
            current,
            roots: scanner.roots().to_vec(),
            scanned,
            announcer: Announcer::default(),
            published: watch::Sender::default(),
            reconfiguration,
        });
        let follower = Follower {
            live: Arc::clone(&live),
            built_in,
            page_size,
            scanner,
            sources,
            subscribers,
            ready,
            is_rebuilt: false,
            scan_time: Duration::ZERO,
        };
        tokio::spawn(async move {
            let following = Box::pin(follower.follow(watched));
            stop.run_until_cancelled_owned(following).await;
        });
        live
    }

    /// Returns the current catalog; before the first scan it holds the built-in entries only.
    pub(crate) fn current(&self) -> Arc<Catalog> {
        self.current.load_full()
    }

    /// Returns the part of the current catalog that `principal` may use.
    pub(crate) fn visible_to(&self, principal: &Principal) -> Arc<Catalog> {
        let catalog = self.current();
        match principal.access() {
            Some(access) => catalog.view(access),
            None => catalog,
        }
    }

    /// Directories of the served scripts.
    pub(crate) fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// Returns whether the first scan is complete.
    pub(crate) fn is_scanned(&self) -> bool {
        *self.scanned.borrow()
    }

    /// Requests a reconfiguration, which is applied in the background. Until then the current
    /// catalog stays.
    pub(crate) fn request_reconfiguration(&self, reconfiguration: Reconfiguration) {
        let mut next = lock(&self.reconfiguration.next);
        let (scripts, tool, was_same_policy) = match next.take() {
            Some(before) => (before.scripts, before.tool, before.is_same_policy),
            None => (None, None, true),
        };
        *next = Some(Reconfiguration {
            scripts: reconfiguration.scripts.or(scripts),
            tool: reconfiguration.tool.or(tool),
            is_same_policy: reconfiguration.is_same_policy && was_same_policy,
            ..reconfiguration
        });
        self.reconfiguration.requested.notify_one();
    }

    /// Returns a receiver that is told of each catalog from now on.
    pub(crate) fn publications(&self) -> watch::Receiver<()> {
        self.published.subscribe()
    }

    /// Waits for the first scan; afterwards it returns at once.
    pub(crate) async fn wait_for_first_scan(&self) {
        // An error means that the follower ended with the server: the catalog is as complete as
        // it gets.
        self.scanned.clone().wait_for(|scanned| *scanned).await.ok();
    }
}

/// Background task that keeps a [`LiveCatalog`] current.
struct Follower {
    live: Arc<LiveCatalog>,
    built_in: BuiltIn,
    page_size: NonZeroUsize,
    scanner: Scanner,
    sources: Sources,
    subscribers: Arc<Subscribers>,
    ready: watch::Sender<bool>,
    /// Built-in entries differ from those in the current catalog.
    is_rebuilt: bool,
    /// Duration of the last scan.
    scan_time: Duration,
}

impl Follower {
    async fn follow(mut self, watched: Option<Vec<PathBuf>>) {
        let is_watching = watched.is_some();
        let changed = Arc::new(Notify::new());
        // Callers must not wait for the watch, so changes before its start are searched for
        // afterwards.
        let mut retry_needed = catch_panic(self.publish_first()).await.unwrap_or(true);
        self.ready.send_replace(true);
        let mut watch = start_watch(watched.as_ref(), &changed).await;
        if is_watching {
            changed.notify_one();
        }
        let mut is_started = false;
        let mut pause = MIN_RETRY_DELAY;
        // These timers are not restarted when another event comes first.
        let mut retry_at = Instant::now() + pause;
        let mut check = interval_at(Instant::now() + WATCH_CHECK_INTERVAL, WATCH_CHECK_INTERVAL);
        check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let mut probe_wait = PROBE_WAIT;
            tokio::select! {
                () = self.live.reconfiguration.requested.notified() => {
                    catch_panic(self.apply_reconfiguration()).await;
                    // Scripts may have to be probed anew, and must not be missing in between.
                    probe_wait = Duration::MAX;
                }
                () = changed.notified() => debounce(&changed, self.scan_time).await,
                () = self.sources.wait_for_change(), if is_watching => tokio::time::sleep(SOURCE_DEBOUNCE_INTERVAL).await,
                () = sleep_until(retry_at), if retry_needed && is_watching => {}
                true = self.scanner.finish_next_probe() => {
                    retry_needed = catch_panic(self.publish(probe_wait)).await.unwrap_or(true);
                    continue;
                }
                _ = check.tick(), if is_watching => {
                    let is_current = match &mut watch {
                        Some(watch) => watch.is_current().await,
                        None => true,
                    };
                    if is_current {
                        continue;
                    }
                    // A watch is bound to the directory it was started on, not to the name.
                    tracing::info!("restarting the watch of the roots");
                    watch = start_watch(watched.as_ref(), &changed).await;
                }
            }
            retry_needed = catch_panic(self.refresh(probe_wait)).await.unwrap_or(true);
            if !std::mem::replace(&mut is_started, true) {
                // The start took more than it left in use, and few scans are like the first two.
                drop(tokio::task::spawn_blocking(mcpd_exec::memory::release));
            }
            pause = if retry_needed {
                MAX_RETRY_DELAY.min(pause * 2)
            } else {
                MIN_RETRY_DELAY
            };
            retry_at = Instant::now() + pause;
        }
    }

    /// Applies the requested reconfiguration, and waits for new sources, so that their entries
    /// are not missing in between.
    async fn apply_reconfiguration(&mut self) {
        let Some(reconfiguration) = lock(&self.live.reconfiguration.next).take() else {
            return;
        };
        if let Some((policy, interpreters, locked)) = reconfiguration.scripts {
            self.scanner.configure(policy, interpreters, locked);
        }
        if let Some(tool) = reconfiguration.tool {
            let mut tools = self.built_in.tools.iter_mut();
            if let Some(known) = tools.find(|known| known.path() == tool.path()) {
                *known = tool;
                self.is_rebuilt = true;
            }
        }
        self.sources.replace(
            reconfiguration.sources,
            &reconfiguration.host,
            reconfiguration.is_same_policy,
        );
        self.sources.wait_for_first_offers().await;
    }

    /// Builds the first catalog. Returns whether another scan may find more.
    async fn publish_first(&mut self) -> bool {
        let scripts = async {
            self.scanner.start_scan().await;
            self.scanner.finish_probes().await;
            self.scanner.compare_with_lock().await;
        };
        tokio::join!(scripts, self.sources.wait_for_first_offers());
        let (scan, offers) = self.findings();
        let retry_needed = scan.is_transient;
        // Saved before any client is answered, because a command ends with its answer. No client
        // has seen a list yet, so none has changed.
        let swap = self.swap_catalog(scan, offers);
        tokio::join!(self.scanner.save_cache(), swap);
        retry_needed
    }

    /// Scans the roots and publishes the result. Returns whether another scan may find more.
    async fn refresh(&mut self, probe_wait: Duration) -> bool {
        let begun = Instant::now();
        self.scanner.start_scan().await;
        self.scan_time = begun.elapsed();
        self.publish(probe_wait).await
    }

    /// Replaces the catalog if anything differs. A script whose probe takes longer than
    /// `probe_wait` keeps its previous entry and joins a later catalog. Returns whether another
    /// scan may find more.
    async fn publish(&mut self, probe_wait: Duration) -> bool {
        let answers = self.scanner.finish_probes();
        timeout(probe_wait, answers).await.ok();
        self.scanner.compare_with_lock().await;
        let retry_needed = self.publish_changes().await;
        // Clients do not wait for this, as another process may keep the database locked for
        // seconds.
        self.scanner.save_cache().await;
        retry_needed
    }

    /// Replaces the catalog with what is known now, if anything differs.
    async fn publish_changes(&mut self) -> bool {
        let before = self.live.current();
        let (scan, offers) = self.findings();
        let retry_needed = scan.is_transient;
        let is_rebuilt = std::mem::take(&mut self.is_rebuilt);
        if is_rebuilt
            || !are_same_offers(&offers, before.offers())
            || !scan.is_same_as(before.scan())
        {
            let after = self.swap_catalog(scan, offers).await;
            for event in after.events_since(&before) {
                self.subscribers.publish(&event);
            }
        }
        retry_needed
    }

    /// Returns everything that may be served.
    fn findings(&mut self) -> (Scan, Vec<Arc<Offer>>) {
        let offers = self.sources.offers();
        (self.scanner.results(), self.scanner.approved_offers(offers))
    }

    /// Builds the catalog and makes it the current one.
    async fn swap_catalog(&self, scan: Scan, offers: Vec<Arc<Offer>>) -> Arc<Catalog> {
        let after = Catalog::new(&self.built_in, scan, offers, self.page_size);
        after.build_index().await;
        faults::log_changes(&self.live.current(), &after);
        let after = Arc::new(after);
        self.live.current.store(Arc::clone(&after));
        self.live.published.send_replace(());
        after
    }
}

/// Debounces changes: waits for a quiet interval, within an upper bound.
pub(super) async fn debounce(changed: &Notify, scan_time: Duration) {
    let until = Instant::now() + MAX_DEBOUNCE.max(scan_time * DEBOUNCE_PER_SCAN_TIME);
    while Instant::now() < until {
        if timeout(DEBOUNCE_INTERVAL, changed.notified())
            .await
            .is_err()
        {
            return;
        }
    }
}

/// Runs `work`; returns `None` if it panics. The follower goes on, or the catalog would stay
/// unchanged for good.
async fn catch_panic<T>(work: impl Future<Output = T>) -> Option<T> {
    let done = AssertUnwindSafe(Box::pin(work)).catch_unwind().await;
    if done.is_err() {
        tracing::error!(
            "rebuild of the catalog failed with an internal error; still serving the previous one"
        );
    }
    done.ok()
}

async fn start_watch(roots: Option<&Vec<PathBuf>>, changed: &Arc<Notify>) -> Option<Watch> {
    Some(Watch::start(roots?.clone(), Arc::clone(changed)).await)
}

fn are_same_offers(offers: &[Arc<Offer>], before: &[Arc<Offer>]) -> bool {
    let mut pairs = offers.iter().zip(before);
    offers.len() == before.len() && pairs.all(|(offer, before)| Arc::ptr_eq(offer, before))
}
