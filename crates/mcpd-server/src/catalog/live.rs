//! The catalog as it is now: scanned at the start, scanned again when the roots change, swapped in one
//! piece. Readers take no lock; whoever needs the first scan waits for it.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use mcpd_scriptspec::Severity;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::scan::{Scan, ScannedScript, Scanner};
use super::watch::Watch;
use super::{BuiltIn, Catalog};
use crate::source::{Offer, Sources};
use crate::subscribers::Subscribers;

/// Editors write in several steps; one look after the last of them is enough.
const SETTLE: Duration = Duration::from_millis(80);
/// How often the roots are checked for being the directories they were.
const ROOTS_INTERVAL: Duration = Duration::from_secs(2);
/// How long to wait before what could not be asked is asked again: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The catalog and whether the first scan has been made.
#[derive(Debug)]
pub(crate) struct LiveCatalog {
    current: ArcSwap<Catalog>,
    scanned: watch::Receiver<bool>,
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
        let live = Arc::new(Self { current, scanned });
        let follower = Follower {
            live: Arc::clone(&live),
            built_in,
            page_size,
            scanner,
            sources,
            subscribers,
            ready,
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
}

impl Follower {
    async fn follow(mut self, watched: Option<Vec<PathBuf>>) {
        let Some(roots) = watched else {
            self.first().await;
            return;
        };
        let changed = Arc::new(Notify::new());
        // Watching starts before the scan, so that no change falls between the two.
        let mut watch = Watch::start(roots.clone(), Arc::clone(&changed)).await;
        let mut again = self.first().await;
        let mut pause = FIRST_PAUSE;
        loop {
            tokio::select! {
                () = changed.notified() => tokio::time::sleep(SETTLE).await,
                () = self.sources.changed() => tokio::time::sleep(SETTLE).await,
                () = tokio::time::sleep(pause), if again => {}
                () = tokio::time::sleep(ROOTS_INTERVAL) => {
                    if watch.is_current().await {
                        continue;
                    }
                    // A watch stays with the directory it began with, not with its name.
                    tracing::info!("a root is another directory now");
                    watch = Watch::start(roots.clone(), Arc::clone(&changed)).await;
                }
            }
            again = self.refresh().await;
            pause = if again {
                LONGEST_PAUSE.min(pause * 2)
            } else {
                FIRST_PAUSE
            };
        }
    }

    /// Makes the catalog that everybody waits for. Says whether another look is worth while.
    async fn first(&mut self) -> bool {
        let (scan, ()) = tokio::join!(self.scanner.scan(), self.sources.first());
        let again = scan.is_passing;
        let offers = self.sources.offers();
        // Nobody has seen a list before, so none has changed.
        self.swap(scan, offers);
        self.ready.send_replace(true);
        again
    }

    /// Scans, and swaps the catalog if anything is different. Says whether another look is worth while.
    async fn refresh(&mut self) -> bool {
        let before = self.live.current();
        let scan = self.scanner.scan().await;
        let again = scan.is_passing;
        let offers = self.sources.offers();
        if is_same(&offers, before.offers()) && scan.is_same_as(before.scan()) {
            return again;
        }
        for event in self.swap(scan, offers).events_since(&before) {
            self.subscribers.publish(&event);
        }
        again
    }

    /// Puts the catalog of these in the place of the one before.
    fn swap(&self, scan: Scan, offers: Vec<Arc<Offer>>) -> Arc<Catalog> {
        let after = Catalog::new(&self.built_in, scan, offers, self.page_size);
        report(&self.live.current(), &after);
        let after = Arc::new(after);
        self.live.current.store(Arc::clone(&after));
        after
    }
}

fn is_same(offers: &[Arc<Offer>], before: &[Arc<Offer>]) -> bool {
    let mut pairs = offers.iter().zip(before);
    offers.len() == before.len() && pairs.all(|(offer, before)| Arc::ptr_eq(offer, before))
}

/// Logs what became faulty, and which sources are well again.
fn report(before: &Catalog, after: &Catalog) {
    let known: BTreeSet<*const ScannedScript> =
        before.scan().scripts.iter().map(Arc::as_ptr).collect();
    for script in after
        .scan()
        .scripts
        .iter()
        .filter(|script| !known.contains(&Arc::as_ptr(script)))
    {
        // The first fault is enough for a log; `mcpd check` shows them all, and where they are.
        let fault = script
            .diagnostics
            .iter()
            .find(|fault| fault.severity == Severity::Error);
        if let Some(fault) = fault {
            tracing::warn!(script = %script.path, code = %fault.code, "not served: {}", fault.message);
        }
    }
    for conflict in after
        .conflicts()
        .iter()
        .filter(|conflict| !before.conflicts().contains(conflict))
    {
        tracing::warn!(script = %conflict.path, "{}", conflict.message);
    }
    for file in after
        .scan()
        .unusable
        .iter()
        .filter(|file| !before.scan().unusable.contains(file))
    {
        tracing::warn!(file = %file.file.display(), "not served: {}", file.reason);
    }
    for (place, offer) in after.offers().iter().enumerate() {
        let known = before.offers().get(place).map(|offer| offer.faults());
        report_source(offer, known.unwrap_or_default());
    }
}

fn report_source(offer: &Offer, known: &[String]) {
    for fault in offer.faults().iter().filter(|fault| !known.contains(fault)) {
        tracing::warn!("{} {fault}", offer.source());
    }
    if !offer.is_faulty() && !known.is_empty() {
        tracing::info!("{} is all right now", offer.source());
    }
}
