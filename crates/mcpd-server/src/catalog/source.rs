//! Sources: tools, resources and prompts from elsewhere than the directories and this program. A
//! source publishes a complete offer, and publishes anew when that changes; how it learns of
//! changes is its own concern.
//!
//! ```no_run
//! use std::fmt;
//!
//! use mcpd_protocol::method::{CallToolResult, Tool};
//! use mcpd_server::Server;
//! use mcpd_server::source::{Publisher, Source};
//! use serde_json::value::RawValue;
//!
//! struct Lighthouse;
//!
//! impl fmt::Display for Lighthouse {
//!     fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
//!         f.write_str("the lighthouse")
//!     }
//! }
//!
//! impl Source for Lighthouse {
//!     async fn run(self, publisher: Publisher) {
//!         let schema = RawValue::from_string(r#"{"type": "object"}"#.to_owned());
//!         let mut offer = publisher.offer();
//!         let blink = Tool::new("blink", schema.expect("JSON"));
//!         offer.tool("lighthouse/blink", blink, |arguments, _| async move {
//!             Ok(CallToolResult::text(format!("blinked as in {arguments}")))
//!         });
//!         publisher.publish(offer);
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), mcpd_server::Error> {
//! let server = Server::builder().source(Lighthouse).start()?;
//! # Ok(()) }
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpd_exec::Executor;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::policy::Policy;
use crate::support::sync::lock;

mod offer;
mod remote_script;
mod secrets;
mod tool;

pub use crate::catalog::call::OutgoingRequest;
pub use offer::{MAX_ENTRIES, Offer};
pub use secrets::Secrets;
pub(crate) use tool::RemoteTool;

/// Time limit of the first list for sources. Later offers are announced as changes.
pub const FIRST_WAIT: Duration = Duration::from_secs(5);

/// Time for which a removed source keeps running for calls that have begun.
const REMOVED_SOURCE_GRACE: Duration = Duration::from_secs(60);

/// Variable that a source sets for the programs it starts. An mcpd that finds it serves no
/// sources, so that none can call itself in a loop.
pub const NO_SOURCES: &str = "MCPD_NO_SOURCES";

/// Returns the path of an entry called `name` of a source that is served below `prefix`, which
/// may be empty.
#[must_use]
pub fn below(prefix: &str, name: &str) -> String {
    match prefix {
        "" => name.to_owned(),
        prefix => format!("{prefix}/{name}"),
    }
}

/// Origin of tools. Displays where that is, such as "the endpoint `notes`".
pub trait Source: fmt::Display + Send + 'static {
    /// Publishes offers as long as they can change. Runs as a task of the runtime, which is
    /// dropped when the server stops; published tools remain after its end.
    fn run(self, publisher: Publisher) -> impl Future<Output = ()> + Send;

    /// Identifies this source and its settings, secrets included: when the server is
    /// [reconfigured](crate::Server::reload), a source with the same fingerprint keeps running. A
    /// source without one is replaced each time.
    fn fingerprint(&self) -> Option<u64> {
        None
    }

    /// Returns whether its programs run under the server's [`Policy`]: then a new policy replaces
    /// it, even with the same fingerprint.
    fn follows_policy(&self) -> bool {
        false
    }
}

/// Handle by which a source publishes its offers.
#[derive(Debug, Clone)]
pub struct Publisher {
    place: usize,
    /// Offer before the first publication.
    first: Arc<Offer>,
    offers: watch::Sender<Offers>,
    host: Host,
    measurements: Measurements,
}

/// Metrics of sources, as text, by the same numbers as offers.
pub(crate) type Measurements = Arc<Mutex<BTreeMap<usize, String>>>;

/// Offers of sources, by the number that each got when it was started.
type Offers = BTreeMap<usize, Arc<Offer>>;

/// Dependencies of the sources of this crate.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    /// Executor of probes, apart from waiting calls.
    pub(crate) probes: Executor,
    pub(crate) policy: Arc<Policy>,
    /// Tells whether changes are followed.
    pub(crate) watch: bool,
}

impl Host {
    pub(crate) fn new(probes: &Executor, policy: &Policy, watch: bool) -> Self {
        Self {
            probes: probes.clone(),
            policy: Arc::new(policy.clone()),
            watch,
        }
    }
}

impl Publisher {
    /// Returns an empty offer to fill.
    #[must_use]
    pub fn offer(&self) -> Offer {
        Offer::empty_like(&self.first, &self.host.policy)
    }

    /// Publishes an offer in place of the previous one.
    pub fn publish(&self, offer: Offer) {
        self.replace(|_| Some(offer));
    }

    /// Publishes a fault, as words that fit after the name of the source. The previous offer is
    /// kept; previous faults are dropped.
    pub fn fail(&self, fault: impl Into<String>) {
        self.replace(|before| before.with_failure(fault.into(), false));
    }

    /// Publishes a fault as [`Self::fail`] does: the source wants credentials, or others.
    pub fn fail_unauthorized(&self, fault: impl Into<String>) {
        self.replace(|before| before.with_failure(fault.into(), true));
    }

    /// Replaces the offer. A removed source has none.
    fn replace(&self, change: impl FnOnce(&Offer) -> Option<Offer>) {
        self.offers.send_if_modified(|offers| {
            let Some(offer) = offers.get_mut(&self.place) else {
                return false;
            };
            let changed = change(offer);
            let is_news = changed.is_some();
            if let Some(changed) = changed {
                *offer = Arc::new(changed);
            }
            is_news
        });
    }

    /// Sets the metrics of the source, in the text format of Prometheus: whole families, whose
    /// names no other source has. They follow those of the server.
    pub fn set_metrics(&self, text: String) {
        if self.offers.borrow().contains_key(&self.place) {
            lock(&self.measurements).insert(self.place, text);
        }
    }

    /// Returns whether changes after the first wait are followed.
    #[must_use]
    pub fn is_followed(&self) -> bool {
        self.host.watch
    }

    pub(crate) fn host(&self) -> &Host {
        &self.host
    }
}

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Source before its start.
pub(crate) struct SourceDescription {
    name: String,
    fingerprint: Option<u64>,
    follows_policy: bool,
    run: Box<dyn FnOnce(Publisher) -> Running + Send>,
}

impl SourceDescription {
    pub(crate) fn new(source: impl Source) -> Self {
        Self {
            name: source.to_string(),
            fingerprint: source.fingerprint(),
            follows_policy: source.follows_policy(),
            run: Box::new(|publisher| Box::pin(source.run(publisher))),
        }
    }
}

impl fmt::Debug for SourceDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Sources of a server, and their offers.
#[derive(Debug)]
pub(crate) struct Sources {
    started: Vec<RunningSource>,
    places: usize,
    offers: watch::Receiver<Offers>,
    sender: watch::Sender<Offers>,
    measurements: Measurements,
    stop: CancellationToken,
}

/// Running source.
#[derive(Debug)]
struct RunningSource {
    place: usize,
    fingerprint: Option<u64>,
    stop: CancellationToken,
}

impl Sources {
    /// Creates an empty set. Sources run until `stop`.
    pub(crate) fn new(stop: CancellationToken) -> Self {
        let (sender, offers) = watch::channel(Offers::new());
        Self {
            started: Vec::new(),
            places: 0,
            offers,
            sender,
            measurements: Measurements::default(),
            stop,
        }
    }

    /// Metrics of the sources, also of those to come.
    pub(crate) fn measurements(&self) -> Measurements {
        Arc::clone(&self.measurements)
    }

    /// Starts sources, which run until `stop`. Must be called on a tokio runtime.
    pub(crate) fn started(
        descriptions: Vec<SourceDescription>,
        host: &Host,
        stop: CancellationToken,
    ) -> Self {
        let mut sources = Self::new(stop);
        sources.replace(descriptions, host, false);
        sources
    }

    /// Replaces the sources; unchanged ones keep running. Must be called on a tokio runtime.
    pub(crate) fn replace(
        &mut self,
        descriptions: Vec<SourceDescription>,
        host: &Host,
        is_same_policy: bool,
    ) {
        let mut before = std::mem::take(&mut self.started);
        for source in descriptions {
            let is_same = |started: &RunningSource| {
                started.fingerprint.is_some()
                    && started.fingerprint == source.fingerprint
                    && (is_same_policy || !source.follows_policy)
            };
            let started = match before.iter().position(is_same) {
                Some(place) => before.remove(place),
                None => self.start(source, host),
            };
            self.started.push(started);
        }
        for gone in before {
            self.sender.send_modify(|offers| {
                offers.remove(&gone.place);
            });
            lock(&self.measurements).remove(&gone.place);
            tokio::spawn(async move {
                tokio::time::sleep(REMOVED_SOURCE_GRACE).await;
                gone.stop.cancel();
            });
        }
    }

    fn start(&mut self, source: SourceDescription, host: &Host) -> RunningSource {
        let first = Arc::new(Offer::pending(&source.name));
        self.places += 1;
        let place = self.places;
        self.sender.send_modify(|offers| {
            offers.insert(place, Arc::clone(&first));
        });
        let publisher = Publisher {
            place,
            first,
            offers: self.sender.clone(),
            host: host.clone(),
            measurements: Arc::clone(&self.measurements),
        };
        let stop = self.stop.child_token();
        let run = (source.run)(publisher);
        tokio::spawn(stop.clone().run_until_cancelled_owned(run));
        RunningSource {
            place,
            fingerprint: source.fingerprint,
            stop,
        }
    }

    /// Waits for an offer of each, up to [`FIRST_WAIT`].
    pub(crate) async fn wait_for_first_offers(&mut self) {
        let all = |offers: &Offers| !offers.values().any(|offer| offer.is_pending());
        let said = self.offers.wait_for(all);
        // Silent ones are reported as such.
        tokio::time::timeout(FIRST_WAIT, said).await.ok();
    }

    /// Waits for an offer of any of them.
    ///
    /// # Cancel safety
    ///
    /// No offer is lost.
    pub(crate) async fn wait_for_change(&mut self) {
        // The channel cannot be closed, as its sender is here.
        self.offers.changed().await.ok();
    }

    /// Current offers, in the order of the sources.
    pub(crate) fn offers(&mut self) -> Vec<Arc<Offer>> {
        let offers = self.offers.borrow_and_update();
        let started = self.started.iter();
        started
            .filter_map(|source| offers.get(&source.place).cloned())
            .collect()
    }
}
