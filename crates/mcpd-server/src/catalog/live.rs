//! The catalog as it is now: scanned at the start, scanned again when the roots change, swapped in one
//! piece. Readers take no lock; whoever needs the first scan waits for it.

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

/// How long the roots must be quiet before they are looked at: editors write several files. What a file itself has to be
/// quiet for is up to the [scanner](super::scan).
const QUIET_TIME: Duration = Duration::from_millis(200);
/// The longest wait for that: a file that is written all the time must not hold up others.
const LONGEST_UNREST: Duration = Duration::from_millis(500);
/// A look takes at most one part in so many of the time, where something in large roots is written all the time, such as a
/// log.
const LOOKS_PER_PAUSE: u32 = 10;
/// How long to wait for further news of sources.
const SETTLE: Duration = Duration::from_millis(80);
/// How long others wait for scripts that are being asked. Most answer within it, and show together.
const ANSWER_PATIENCE: Duration = Duration::from_millis(200);
/// How often it is checked whether the watch is still that of the roots.
const ROOTS_INTERVAL: Duration = Duration::from_secs(2);
/// How long to wait before what could not be asked is asked again: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The catalog and whether the first scan has been made.
#[derive(Debug)]
pub(crate) struct LiveCatalog {
    current: ArcSwap<Catalog>,
    scanned: watch::Receiver<bool>,
    orders: Orders,
}

/// What is to be another. Of several that wait, the last counts.
#[derive(Debug, Default)]
struct Orders {
    next: Mutex<Option<Order>>,
    is_there: Notify,
}

/// Everything in a catalog that can be another while the server runs.
#[derive(Debug)]
pub(crate) struct Order {
    /// How scripts are asked and run, if that is another.
    pub(crate) scripts: Option<(Policy, Interpreters)>,
    /// What takes the place of the built-in tool with its path.
    pub(crate) tool: Option<Arc<Tool>>,
    pub(crate) sources: Vec<Described>,
    pub(crate) host: Host,
    /// Whether the host's policy is the one before.
    pub(crate) is_same_policy: bool,
}

impl LiveCatalog {
    /// Starts with what is built into the program and keeps following `roots` until `stop`.
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

    /// The catalog of this moment; before the first scan only what is built in.
    pub(crate) fn current(&self) -> Arc<Catalog> {
        self.current.load_full()
    }

    /// Whether the first scan has been made.
    pub(crate) fn is_scanned(&self) -> bool {
        *self.scanned.borrow()
    }

    /// Has another catalog made, by and by. Until it is there, this one goes on.
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

    /// Waits for the first scan. Returns at once ever after.
    pub(crate) async fn scanned(&self) {
        // An error means the follower is gone with the server: what there is is all there will be.
        self.scanned.clone().wait_for(|scanned| *scanned).await.ok();
    }
}

/// Keeps a [`LiveCatalog`] current.
struct Follower {
    live: Arc<LiveCatalog>,
    built_in: BuiltIn,
    page_size: NonZeroUsize,
    scanner: Scanner,
    sources: Sources,
    subscribers: Arc<Subscribers>,
    ready: watch::Sender<bool>,
    /// What is built in is another than in the catalog of now.
    is_rebuilt: bool,
    /// Duration of the last look.
    look_cost: Duration,
}

impl Follower {
    async fn follow(mut self, watched: Option<Vec<PathBuf>>) {
        let is_watching = watched.is_some();
        let changed = Arc::new(Notify::new());
        // Nobody shall wait for the watch, so what changes before it is there is looked for when it is.
        let mut again = survived(self.first()).await.unwrap_or(true);
        self.ready.send_replace(true);
        let mut watch = start_watch(watched.as_ref(), &changed).await;
        if is_watching {
            changed.notify_one();
        }
        let mut pause = FIRST_PAUSE;
        // Neither begins anew when something else is due.
        let mut retry = Instant::now() + pause;
        let mut check = interval_at(Instant::now() + ROOTS_INTERVAL, ROOTS_INTERVAL);
        check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let mut patience = ANSWER_PATIENCE;
            tokio::select! {
                () = self.live.orders.is_there.notified() => {
                    survived(self.obey()).await;
                    // Nothing may be known any more, and nothing shall be missing in between.
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
                    // A watch stays with the directory it began with, not with its name.
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

    /// Does what was ordered, and waits for new sources, so that what they have is not missing in between.
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

    /// Makes the catalog that everybody waits for. Says whether another look is worth while.
    async fn first(&mut self) -> bool {
        let scripts = async {
            self.scanner.look().await;
            self.scanner.all_answered().await;
        };
        tokio::join!(scripts, self.sources.first());
        let (scan, offers) = (self.scanner.found(), self.sources.offers());
        let again = scan.is_passing;
        // Before anybody is answered, as a command ends when it has its answer. Nobody has seen a list before, so none has
        // changed.
        let swap = async { self.swap(scan, offers) };
        tokio::join!(self.scanner.remember(), swap);
        again
    }

    /// Looks at the roots, and publishes what there is. Says whether another look is worth while.
    async fn refresh(&mut self, patience: Duration) -> bool {
        let begun = Instant::now();
        self.scanner.look().await;
        self.look_cost = begun.elapsed();
        self.publish(patience).await
    }

    /// Swaps the catalog if anything is different. Who is asked and takes long comes with another one, and is what it was
    /// until then. Says whether another look is worth while.
    async fn publish(&mut self, patience: Duration) -> bool {
        let answers = self.scanner.all_answered();
        timeout(patience, answers).await.ok();
        let again = self.renew();
        // Nobody waits for it, as another process may keep the database for seconds.
        self.scanner.remember().await;
        again
    }

    /// The same with what is known now.
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

    /// Puts the catalog of these in the place of the one before.
    fn swap(&self, scan: Scan, offers: Vec<Arc<Offer>>) -> Arc<Catalog> {
        let after = Catalog::new(&self.built_in, scan, offers, self.page_size);
        faults::log_changes(&self.live.current(), &after);
        let after = Arc::new(after);
        self.live.current.store(Arc::clone(&after));
        after
    }
}

/// Waits until nothing has changed for a while, but not forever.
async fn debounce(changed: &Notify, look_cost: Duration) {
    let until = Instant::now() + LONGEST_UNREST.max(look_cost * LOOKS_PER_PAUSE);
    while Instant::now() < until {
        if timeout(QUIET_TIME, changed.notified()).await.is_err() {
            return;
        }
    }
}

/// What comes of `work`; nothing if it panics. The roots are followed on, or the catalog would stay as it is for good.
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
