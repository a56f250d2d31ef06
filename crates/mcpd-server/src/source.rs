//! What is served from elsewhere than the directories and this program. A source says at once all that it has, and
//! says it anew when that changes; how it gets to know is its own business.
//!
//! ```no_run
//! use std::fmt;
//!
//! use mcpd_protocol::{CallToolResult, Tool};
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
//!         offer.tool("lighthouse/blink", Tool::new("blink", schema.expect("JSON")), |arguments, _| async move {
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
use std::sync::Arc;
use std::time::Duration;

use mcpd_exec::Executor;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::policy::Policy;

mod offer;
mod remote;
mod secrets;
mod tool;

pub use offer::{MAX_ENTRIES, Offer};
pub(crate) use remote::{Behind, RemotePrompt, RemoteResource, passed_on};
pub use secrets::Secrets;
pub(crate) use tool::RemoteTool;

/// How long the first list waits for sources. What comes later is announced as a change.
pub const FIRST_WAIT: Duration = Duration::from_secs(5);

/// How long a source that was taken out goes on for the calls that have begun.
const LAST_CALLS: Duration = Duration::from_secs(60);

/// The variable that a source sets for the programs it starts. An mcpd that finds it serves no sources, so that none
/// ever asks itself.
pub const NO_SOURCES: &str = "MCPD_NO_SOURCES";

/// The path of what a source calls `name`, if all it has is served below `prefix`, which may be empty.
#[must_use]
pub fn below(prefix: &str, name: &str) -> String {
    match prefix {
        "" => name.to_owned(),
        prefix => format!("{prefix}/{name}"),
    }
}

/// Somewhere that tools come from. Displayed, it says where, such as "the endpoint `notes`".
pub trait Source: fmt::Display + Send + 'static {
    /// Tells `publisher` what there is, as long as that can change. It is a task of the runtime, and is dropped when
    /// the server stops; tools that were published outlive its end.
    fn run(self, publisher: Publisher) -> impl Future<Output = ()> + Send;

    /// What tells this source from others, secrets and all: when the server is [configured anew](crate::Server::reload),
    /// one with the same fingerprint goes on. One without any is replaced each time.
    fn fingerprint(&self) -> Option<u64> {
        None
    }

    /// Whether what it runs goes by the server's [`Policy`]: with another one it is replaced, whatever its fingerprint.
    fn goes_by_policy(&self) -> bool {
        false
    }
}

/// Where a source says what it has.
#[derive(Debug, Clone)]
pub struct Publisher {
    place: usize,
    /// What it was before it said anything.
    first: Arc<Offer>,
    offers: watch::Sender<Offers>,
    host: Host,
}

/// What sources offer, by the places that they were given when they were started.
type Offers = BTreeMap<usize, Arc<Offer>>;

/// What sources of this crate make use of.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    /// What asks for descriptions, however many calls are waiting.
    pub(crate) probes: Executor,
    pub(crate) policy: Policy,
    /// Whether changes are followed.
    pub(crate) watch: bool,
}

impl Host {
    pub(crate) fn new(probes: &Executor, policy: &Policy, watch: bool) -> Self {
        Self {
            probes: probes.clone(),
            policy: policy.clone(),
            watch,
        }
    }
}

impl Publisher {
    /// An offer to be filled, empty at first.
    #[must_use]
    pub fn offer(&self) -> Offer {
        Offer::of(&self.first)
    }

    /// Offers this, in place of whatever was offered before.
    pub fn publish(&self, offer: Offer) {
        self.replace(|_| Some(offer));
    }

    /// Says that something is wrong, in words that fit after the name of the source. What was offered before is served
    /// on; what else was wrong is forgotten.
    pub fn fail(&self, fault: impl Into<String>) {
        self.replace(|before| before.failed(fault.into()));
    }

    /// Puts another offer in the place of the one before. There is none if the source has been taken out.
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

    /// Whether anybody will hear of changes after the first wait.
    #[must_use]
    pub fn is_followed(&self) -> bool {
        self.host.watch
    }

    pub(crate) fn host(&self) -> &Host {
        &self.host
    }
}

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A source that has not been started.
pub(crate) struct Described {
    name: String,
    fingerprint: Option<u64>,
    goes_by_policy: bool,
    run: Box<dyn FnOnce(Publisher) -> Running + Send>,
}

impl Described {
    pub(crate) fn new(source: impl Source) -> Self {
        Self {
            name: source.to_string(),
            fingerprint: source.fingerprint(),
            goes_by_policy: source.goes_by_policy(),
            run: Box::new(|publisher| Box::pin(source.run(publisher))),
        }
    }
}

impl fmt::Debug for Described {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The sources of a server, and what they have said.
#[derive(Debug)]
pub(crate) struct Sources {
    started: Vec<Started>,
    places: usize,
    offers: watch::Receiver<Offers>,
    sender: watch::Sender<Offers>,
    stop: CancellationToken,
}

/// A source that runs.
#[derive(Debug)]
struct Started {
    place: usize,
    fingerprint: Option<u64>,
    stop: CancellationToken,
}

impl Sources {
    /// None yet. What will be there runs until `stop`.
    pub(crate) fn new(stop: CancellationToken) -> Self {
        let (sender, offers) = watch::channel(Offers::new());
        Self {
            started: Vec::new(),
            places: 0,
            offers,
            sender,
            stop,
        }
    }

    /// Has these instead of those before, of which the same go on. Must be called on a tokio runtime.
    pub(crate) fn replace(&mut self, described: Vec<Described>, host: &Host, is_same_policy: bool) {
        let mut before = std::mem::take(&mut self.started);
        for source in described {
            let is_same = |started: &Started| {
                started.fingerprint.is_some()
                    && started.fingerprint == source.fingerprint
                    && (is_same_policy || !source.goes_by_policy)
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
            tokio::spawn(async move {
                tokio::time::sleep(LAST_CALLS).await;
                gone.stop.cancel();
            });
        }
    }

    fn start(&mut self, source: Described, host: &Host) -> Started {
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
        };
        let stop = self.stop.child_token();
        let run = (source.run)(publisher);
        tokio::spawn(stop.clone().run_until_cancelled_owned(run));
        Started {
            place,
            fingerprint: source.fingerprint,
            stop,
        }
    }

    /// Waits until each has said something, but no longer than [`FIRST_WAIT`].
    pub(crate) async fn first(&mut self) {
        let all = |offers: &Offers| !offers.values().any(|offer| offer.is_pending());
        let said = self.offers.wait_for(all);
        // Those that are silent are reported as such.
        tokio::time::timeout(FIRST_WAIT, said).await.ok();
    }

    /// Waits for news of any of them.
    ///
    /// # Cancel safety
    ///
    /// No news is lost.
    pub(crate) async fn changed(&mut self) {
        // An error would mean that the channel is closed, and its sender is here.
        self.offers.changed().await.ok();
    }

    /// What they offer now, in their order.
    pub(crate) fn offers(&mut self) -> Vec<Arc<Offer>> {
        let offers = self.offers.borrow_and_update();
        let started = self.started.iter();
        started
            .filter_map(|source| offers.get(&source.place).cloned())
            .collect()
    }
}
