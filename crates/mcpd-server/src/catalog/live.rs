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
use crate::interpreter::Interpreters;
use crate::policy::Policy;
use crate::source::{Described, Host, Offer, Sources};
use crate::subscribers::Subscribers;
use crate::sync::lock;
use crate::tool::Tool;

mod faults;

/// Debounce interval: time without changes before a rescan, since editors write several files.
/// The time for which a single file has to be unchanged is set by the [scanner](super::scan).
const QUIET_TIME: Duration = Duration::from_millis(200);
/// Upper bound of the debounce: a file that is written all the time must not hold up others.
const LONGEST_UNREST: Duration = Duration::from_millis(500);
/// Minimum ratio of debounce time to scan time, where a file in large roots is written all the
/// time, such as a log.
const LOOKS_PER_PAUSE: u32 = 10;
/// Debounce interval for changes of sources.
const SETTLE: Duration = Duration::from_millis(80);
/// Time that a publication waits for probes. Most scripts answer within it, and appear together.
const ANSWER_PATIENCE: Duration = Duration::from_millis(200);
/// Interval between checks that the watch still covers the roots.
const ROOTS_INTERVAL: Duration = Duration::from_secs(2);
/// First and longest backoff before failed probes are repeated.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Current catalog, and whether the first scan is complete.
#[derive(Debug)]
pub(crate) struct LiveCatalog {
    current: ArcSwap<Catalog>,
    scanned: watch::Receiver<bool>,
    orders: Orders,
}

/// Slot for the next reconfiguration; a later one replaces an earlier one that has not been
/// applied.
#[derive(Debug, Default)]
struct Orders {
    next: Mutex<Option<Order>>,
    is_there: Notify,
}

/// Parts of a catalog that can be replaced while the server runs.
#[derive(Debug)]
pub(crate) struct Order {
    /// New policy and interpreters for probes and runs, if these change.
    pub(crate) scripts: Option<(Policy, Interpreters)>,
    /// Replacement for the built-in tool with its path.
    pub(crate) tool: Option<Arc<Tool>>,
    pub(crate) sources: Vec<Described>,
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
        let orders = Orders::default();
        let live = Arc::new(Self {
            current,
            scanned,
            orders,
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
            look_cost: Duration::ZERO,
        };
        tokio::spawn(async move {
            stop.run_until_cancelled_owned(follower.follow(watched))
                .await;
        });
        live
    }

    /// Returns the current catalog; before the first scan it holds the built-in entries only.
    pub(crate) fn current(&self) -> Arc<Catalog> {
        self.current.load_full()
    }

    /// Returns whether the first scan is complete.
    pub(crate) fn is_scanned(&self) -> bool {
        *self.scanned.borrow()
    }

    /// Requests a reconfiguration, which is applied in the background. Until then the current
    /// catalog stays.
    pub(crate) fn order(&self, order: Order) {
        let mut next = lock(&self.orders.next);
        let (scripts, tool, was_same_policy) = match next.take() {
            Some(before) => (before.scripts, before.tool, before.is_same_policy),
            None => (None, None, true),
        };
        *next = Some(Order {
            scripts: order.scripts.or(scripts),
            tool: order.tool.or(tool),
            is_same_policy: order.is_same_policy && was_same_policy,
            ..order
        });
        self.orders.is_there.notify_one();
    }

    /// Waits for the first scan; afterwards it returns at once.
    pub(crate) async fn scanned(&self) {
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
    look_cost: Duration,
}

impl Follower {
    async fn follow(mut self, watched: Option<Vec<PathBuf>>) {
        let is_watching = watched.is_some();
        let changed = Arc::new(Notify::new());
        // Callers must not wait for the watch, so changes before its start are searched for
        // afterwards.
        let mut again = survived(self.first()).await.unwrap_or(true);
        self.ready.send_replace(true);
        let mut watch = start_watch(watched.as_ref(), &changed).await;
        if is_watching {
            changed.notify_one();
        }
        let mut pause = FIRST_PAUSE;
        // These timers are not restarted when another event comes first.
        let mut retry = Instant::now() + pause;
        let mut check = interval_at(Instant::now() + ROOTS_INTERVAL, ROOTS_INTERVAL);
        check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let mut patience = ANSWER_PATIENCE;
            tokio::select! {
                () = self.live.orders.is_there.notified() => {
                    survived(self.obey()).await;
                    // Scripts may have to be probed anew, and must not be missing in between.
                    patience = Duration::MAX;
                }
                () = changed.notified() => debounce(&changed, self.look_cost).await,
                () = self.sources.changed(), if is_watching => tokio::time::sleep(SETTLE).await,
                () = sleep_until(retry), if again && is_watching => {}
                true = self.scanner.answered() => {
                    again = survived(self.publish(patience)).await.unwrap_or(true);
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
                    tracing::info!("watching the roots anew");
                    watch = start_watch(watched.as_ref(), &changed).await;
                }
            }
            again = survived(self.refresh(patience)).await.unwrap_or(true);
            pause = if again {
                LONGEST_PAUSE.min(pause * 2)
            } else {
                FIRST_PAUSE
            };
            retry = Instant::now() + pause;
        }
    }

    /// Applies the requested reconfiguration, and waits for new sources, so that their entries
    /// are not missing in between.
    async fn obey(&mut self) {
        let Some(order) = lock(&self.live.orders.next).take() else {
            return;
        };
        if let Some((policy, interpreters)) = order.scripts {
            self.scanner.configure(policy, interpreters);
        }
        if let Some(tool) = order.tool {
            let mut tools = self.built_in.tools.iter_mut();
            if let Some(known) = tools.find(|known| known.path() == tool.path()) {
                *known = tool;
                self.is_rebuilt = true;
            }
        }
        self.sources
            .replace(order.sources, &order.host, order.is_same_policy);
        self.sources.first().await;
    }

    /// Builds the first catalog. Returns whether another scan may find more.
    async fn first(&mut self) -> bool {
        let scripts = async {
            self.scanner.look().await;
            self.scanner.all_answered().await;
        };
        tokio::join!(scripts, self.sources.first());
        let (scan, offers) = (self.scanner.found(), self.sources.offers());
        let again = scan.is_passing;
        // Saved before any client is answered, because a command ends with its answer. No client
        // has seen a list yet, so none has changed.
        let swap = async { self.swap(scan, offers) };
        tokio::join!(self.scanner.remember(), swap);
        again
    }

    /// Scans the roots and publishes the result. Returns whether another scan may find more.
    async fn refresh(&mut self, patience: Duration) -> bool {
        let begun = Instant::now();
        self.scanner.look().await;
        self.look_cost = begun.elapsed();
        self.publish(patience).await
    }

    /// Replaces the catalog if anything differs. A script whose probe takes longer than
    /// `patience` keeps its previous entry and joins a later catalog. Returns whether another
    /// scan may find more.
    async fn publish(&mut self, patience: Duration) -> bool {
        let answers = self.scanner.all_answered();
        timeout(patience, answers).await.ok();
        let again = self.renew();
        // Clients do not wait for this, as another process may keep the database locked for
        // seconds.
        self.scanner.remember().await;
        again
    }

    /// Replaces the catalog with what is known now, if anything differs.
    fn renew(&mut self) -> bool {
        let before = self.live.current();
        let (scan, offers) = (self.scanner.found(), self.sources.offers());
        let again = scan.is_passing;
        let is_rebuilt = std::mem::take(&mut self.is_rebuilt);
        if is_rebuilt || !is_same(&offers, before.offers()) || !scan.is_same_as(before.scan()) {
            for event in self.swap(scan, offers).events_since(&before) {
                self.subscribers.publish(&event);
            }
        }
        again
    }

    /// Builds the catalog and makes it the current one.
    fn swap(&self, scan: Scan, offers: Vec<Arc<Offer>>) -> Arc<Catalog> {
        let after = Catalog::new(&self.built_in, scan, offers, self.page_size);
        faults::log_changes(&self.live.current(), &after);
        let after = Arc::new(after);
        self.live.current.store(Arc::clone(&after));
        after
    }
}

/// Debounces changes: waits for a quiet interval, within an upper bound.
async fn debounce(changed: &Notify, look_cost: Duration) {
    let until = Instant::now() + LONGEST_UNREST.max(look_cost * LOOKS_PER_PAUSE);
    while Instant::now() < until {
        if timeout(QUIET_TIME, changed.notified()).await.is_err() {
            return;
        }
    }
}

/// Runs `work`; returns `None` if it panics. The follower goes on, or the catalog would stay
/// unchanged for good.
async fn survived<T>(work: impl Future<Output = T>) -> Option<T> {
    let done = AssertUnwindSafe(work).catch_unwind().await;
    if done.is_err() {
        tracing::error!(
            "a fault of its own kept mcpd from making the catalog anew: what is served may be old"
        );
    }
    done.ok()
}

async fn start_watch(roots: Option<&Vec<PathBuf>>, changed: &Arc<Notify>) -> Option<Watch> {
    Some(Watch::start(roots?.clone(), Arc::clone(changed)).await)
}

fn is_same(offers: &[Arc<Offer>], before: &[Arc<Offer>]) -> bool {
    let mut pairs = offers.iter().zip(before);
    offers.len() == before.len() && pairs.all(|(offer, before)| Arc::ptr_eq(offer, before))
}
