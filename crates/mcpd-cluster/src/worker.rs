//! A worker: announces the scripts of a server, and runs them for fronts.
//!
//! One task hears everything that concerns this node, in its order, and owns the
//! [registry](crate::registry); every run is a task of its own.

mod acceptance;
mod duty;
mod lines;
mod run;

#[cfg(test)]
pub(crate) use self::run::check as check_run;

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use mcpd_server::Server;
use mcpd_server::remote::Announcement;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval};

use self::duty::Duty;
use crate::detached::run_detached;
use crate::error::Error;
use crate::node::Node;
use crate::settings::{Name, Settings};

/// Interval at which time alone is acted on.
const TICK: Duration = Duration::from_millis(100);
/// Time for draining, unless the operator says otherwise.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(60);

/// Worker to be run.
#[derive(Debug)]
pub struct Worker {
    settings: Settings,
    labels: Vec<String>,
    selects: Selects,
    accepts: Option<BTreeSet<Name>>,
    drain_timeout: Duration,
}

/// Test of paths.
type Selector = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Scripts that are announced.
#[derive(Clone, Default)]
struct Selects(Option<Selector>);

impl std::fmt::Debug for Selects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "some" } else { "all" })
    }
}

impl Worker {
    /// Creates a worker that announces every script, runs it for every front, has no labels, and
    /// drains for 60 s.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            labels: Vec::new(),
            selects: Selects::default(),
            accepts: None,
            drain_timeout: DRAIN_TIMEOUT,
        }
    }

    /// Sets the labels that fronts can ask for.
    #[must_use]
    pub fn labels(self, labels: impl IntoIterator<Item = String>) -> Self {
        let labels = labels.into_iter().collect();
        Self { labels, ..self }
    }

    /// Announces and runs the scripts with these paths only.
    #[must_use]
    pub fn scripts(self, selects: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        let selects = Selects(Some(Arc::new(selects)));
        Self { selects, ..self }
    }

    /// Runs scripts for these fronts only. Each run is confirmed by its front, on a subject that
    /// no other node hears, where the server enforces the rights of nodes.
    #[must_use]
    pub fn accept(self, fronts: impl IntoIterator<Item = Name>) -> Self {
        let accepts = Some(fronts.into_iter().collect());
        Self { accepts, ..self }
    }

    /// Sets the time for which runs may go on after the worker was stopped.
    #[must_use]
    pub fn drain_timeout(self, drain_timeout: Duration) -> Self {
        Self {
            drain_timeout,
            ..self
        }
    }

    /// Serves fronts until `stop`, then drains: takes nothing new, lets runs end, and cancels what
    /// is left at its time limit.
    ///
    /// # Errors
    ///
    /// Fails for settings that can never work. A server that can't be reached is waited for.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels every run, and fronts hear nothing of it.
    pub async fn serve(
        self,
        server: Server,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<(), Error> {
        let (stopped, stopping) = oneshot::channel::<()>();
        let serving = run_detached(Duration::ZERO, |_| self.serve_until(server, stopping));
        let mut serving = pin!(serving);
        let ended = tokio::select! {
            ended = &mut serving => ended,
            () = stop => {
                drop(stopped);
                serving.await
            }
        };
        ended.unwrap_or(Err(Error::Closed))
    }

    async fn serve_until(
        self,
        server: Server,
        mut stop: oneshot::Receiver<()>,
    ) -> Result<(), Error> {
        let node = Node::connect(&self.settings).await?;
        let mut own = node.subscribe(node.subject("*", &node.name)).await?;
        let mut who = node.subscribe(node.subject_of_all("who")).await?;
        let (reports, mut reported) = mpsc::unbounded_channel();
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // It compares all of them, so it must not begin anew with each message.
        let mut changed = pin!(next_announcements(server.clone(), Arc::new([])));
        let mut duty = Duty::new(&self, node, server.clone(), reports);
        let (mut is_stopped, mut drain_until) = (false, None);
        loop {
            tokio::select! {
                biased;
                _ = &mut stop, if !is_stopped => {
                    is_stopped = true;
                    let now = Instant::now();
                    drain_until = Some((now, Some(now + self.drain_timeout)));
                    duty.drain();
                }
                // Before messages, of which there may always be one more.
                _ = tick.tick() => duty.tick(),
                message = own.next() => duty.hear(message.ok_or(Error::Closed)?.into()),
                _ = who.next() => duty.announce(),
                Some(report) = reported.recv() => duty.take(report),
                announcements = &mut changed => {
                    duty.set_announcements(&announcements);
                    changed.set(next_announcements(server.clone(), announcements));
                }
            }
            if duty.registry.is_draining && drain_until.is_none() {
                // The operator wants it, without a time limit.
                drain_until = Some((Instant::now(), None));
            }
            if let Some((since, until)) = drain_until
                && duty.is_drained(since, until)
            {
                return duty.leave(own).await;
            }
        }
    }
}

/// Waits until a server announces something else than is known.
async fn next_announcements(server: Server, known: Arc<[Announcement]>) -> Arc<[Announcement]> {
    server.announcements_changed(&known).await
}
