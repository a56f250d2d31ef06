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
mod tool;

pub use offer::{MAX_ENTRIES, Offer};
pub(crate) use remote::{Behind, RemotePrompt, RemoteResource};
pub(crate) use tool::RemoteTool;

/// How long the first list waits for sources. What comes later is announced as a change.
pub const FIRST_WAIT: Duration = Duration::from_secs(5);

/// The variable that a source sets for the programs it starts. An mcpd that finds it serves no sources, so that none
/// ever asks itself.
pub const NO_SOURCES: &str = "MCPD_NO_SOURCES";

/// Somewhere that tools come from. Displayed, it says where, such as "the endpoint `notes`".
pub trait Source: fmt::Display + Send + 'static {
    /// Tells `publisher` what there is, as long as that can change. It is a task of the runtime, and is dropped when
    /// the server stops; tools that were published outlive its end.
    fn run(self, publisher: Publisher) -> impl Future<Output = ()> + Send;
}

/// Where a source says what it has.
#[derive(Debug, Clone)]
pub struct Publisher {
    place: usize,
    offers: watch::Sender<Vec<Arc<Offer>>>,
    host: Host,
}

/// What sources of this crate make use of.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    /// What asks for descriptions, however many calls are waiting.
    pub(crate) probes: Executor,
    pub(crate) policy: Policy,
    /// Whether changes are followed.
    pub(crate) watch: bool,
}

impl Publisher {
    /// An offer to be filled, empty at first.
    #[must_use]
    pub fn offer(&self) -> Offer {
        Offer::of(&self.offers.borrow()[self.place])
    }

    /// Offers this, in place of whatever was offered before.
    pub fn publish(&self, offer: Offer) {
        self.offers
            .send_modify(|offers| offers[self.place] = Arc::new(offer));
    }

    /// Says that something is wrong, in words that fit after the name of the source. What was offered before is served
    /// on; what else was wrong is forgotten.
    pub fn fail(&self, fault: impl Into<String>) {
        let fault = fault.into();
        self.offers.send_if_modified(|offers| {
            let failed = offers[self.place].failed(fault);
            let is_news = failed.is_some();
            if let Some(failed) = failed {
                offers[self.place] = Arc::new(failed);
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
    run: Box<dyn FnOnce(Publisher) -> Running + Send>,
}

impl Described {
    pub(crate) fn new(source: impl Source) -> Self {
        Self {
            name: source.to_string(),
            run: Box::new(|publisher| Box::pin(source.run(publisher))),
        }
    }
}

impl fmt::Debug for Described {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// What all sources of a server have said.
#[derive(Debug)]
pub(crate) struct Sources {
    offers: watch::Receiver<Vec<Arc<Offer>>>,
    /// Keeps the channel open when there is no source, or none left.
    _offers: watch::Sender<Vec<Arc<Offer>>>,
}

impl Sources {
    /// Starts them all, until `stop`. Must be called on a tokio runtime.
    pub(crate) fn start(described: Vec<Described>, host: &Host, stop: &CancellationToken) -> Self {
        let pending = described.iter().map(|source| Offer::pending(&source.name));
        let (sender, offers) = watch::channel(pending.map(Arc::new).collect());
        for (place, source) in described.into_iter().enumerate() {
            let publisher = Publisher {
                place,
                offers: sender.clone(),
                host: host.clone(),
            };
            let run = (source.run)(publisher);
            tokio::spawn(stop.clone().run_until_cancelled_owned(run));
        }
        Self {
            offers,
            _offers: sender,
        }
    }

    /// Waits until each has said something, but no longer than [`FIRST_WAIT`].
    pub(crate) async fn first(&mut self) {
        let all = |offers: &Vec<Arc<Offer>>| !offers.iter().any(|offer| offer.is_pending());
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
        self.offers.borrow_and_update().clone()
    }
}
