//! The front's side: a source of a server that offers the scripts of all workers, and sends their
//! runs there.
//!
//! One task owns the [delivery](crate::delivery) of all runs. A call hands its request over and
//! receives events until its answer.

mod duty;
mod events;
pub(crate) mod inventory;
pub(crate) mod metrics;
mod place;

use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use mcpd_server::remote::Traits;
use mcpd_server::source::{Publisher, Source};
use sha2::{Digest as _, Sha256};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use self::duty::Duty;
use self::place::ClusterPlace;
use crate::delivery::Rerun;
use crate::detached::run_detached;
use crate::error::Error;
use crate::node::Node;
use crate::settings::Settings;
use crate::tasks::SharedTasks;

/// Interval at which time alone is acted on.
const TICK: Duration = Duration::from_millis(50);
/// Time for open calls and a good-bye, when the source stops.
const FAREWELL: Duration = Duration::from_secs(5);
/// Time in which open calls may end before that, as long as a server waits for open requests.
const LAST_CALLS: Duration = Duration::from_secs(3);
/// Time in which a request that has arrived becomes a call.
const LINGER: Duration = Duration::from_millis(250);
/// Pause after a failure that can only be mended elsewhere.
const RETRY: Duration = Duration::from_secs(5);

/// Runs that the operator allows to be made again on another worker, when theirs is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum RerunPolicy {
    /// None.
    Never,
    /// Those of scripts that only read.
    #[default]
    ReadOnly,
    /// Those of idempotent scripts as well.
    Idempotent,
}

impl RerunPolicy {
    /// Returns whether a run may be made again: both the operator and the script must say so.
    fn of(self, traits: Traits) -> Rerun {
        match self {
            Self::Never => Rerun::Never,
            _ if traits.is_read_only => Rerun::ReadOnly,
            Self::Idempotent if traits.is_idempotent => Rerun::Idempotent,
            Self::ReadOnly | Self::Idempotent => Rerun::Never,
        }
    }
}

/// Placement of the runs of a script.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Placement {
    /// Labels that the worker must have, all of them.
    pub labels: Vec<String>,
    /// Always on the same worker, beside the scripts that demand this themselves.
    pub home: bool,
    /// Runs that may be made again.
    pub rerun: RerunPolicy,
}

impl Placement {
    /// Returns the placement on workers with these labels.
    #[must_use]
    pub fn on(labels: impl IntoIterator<Item = String>) -> Self {
        Self {
            labels: labels.into_iter().collect(),
            ..Self::default()
        }
    }
}

/// Returns the placement of the script at a path.
type Place = Arc<dyn Fn(&str) -> Placement + Send + Sync>;

/// Source of the scripts of a cluster.
#[derive(Clone)]
pub struct Cluster {
    settings: Settings,
    place: Place,
    /// Identifies `place`.
    fingerprint: Option<u64>,
    tasks: Option<SharedTasks>,
    key_mark: String,
    is_worker: bool,
    departure: Arc<Departure>,
}

/// Departure of this process from the cluster, if it stops.
#[derive(Debug, Default)]
struct Departure {
    is_final: AtomicBool,
    is_over: Notify,
}

impl Cluster {
    /// Creates the source of all scripts of the cluster, on any worker.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            place: Arc::new(|_| Placement::default()),
            fingerprint: Some(0),
            tasks: None,
            key_mark: String::new(),
            is_worker: false,
            departure: Arc::default(),
        }
    }

    /// Adds the store of the server's tasks: the runs of its tasks outlive this front, and other
    /// fronts continue with them.
    #[must_use]
    pub fn with_tasks(self, tasks: SharedTasks) -> Self {
        let tasks = Some(tasks);
        Self { tasks, ..self }
    }

    /// Names the key with which the server seals what other fronts open. A front with another one
    /// is reported; the key itself stays here.
    #[must_use]
    pub fn with_key(self, key: &[u8]) -> Self {
        let digest = Sha256::new_with_prefix("mark of a state key").chain_update(key);
        let digest = digest.finalize();
        let key_mark = digest.iter().take(8).map(|byte| format!("{byte:02x}"));
        Self {
            key_mark: key_mark.collect(),
            ..self
        }
    }

    /// Says that a [`Worker`](crate::Worker) of the same name runs in this process, whose scripts
    /// are served otherwise. Without it a worker of that name is reported: its scripts are not
    /// served.
    #[must_use]
    pub fn beside_worker(self) -> Self {
        let is_worker = true;
        Self { is_worker, ..self }
    }

    /// Takes the place of an earlier source of the same process, with its tasks and its key.
    #[must_use]
    pub fn in_place_of(self, earlier: &Self) -> Self {
        Self {
            tasks: earlier.tasks.clone(),
            key_mark: earlier.key_mark.clone(),
            departure: Arc::clone(&earlier.departure),
            ..self
        }
    }

    /// Says that the server stops for good, so that the end of this source is a good-bye to the
    /// cluster. Clones share this.
    pub fn begin_departure(&self) {
        self.departure.is_final.store(true, Ordering::Release);
    }

    /// Waits until the good-bye is said after [`begin_departure`](Self::begin_departure), for a
    /// moment at most.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn departed(&self) {
        timeout(FAREWELL, self.departure.is_over.notified())
            .await
            .ok();
    }

    /// Sets where the runs of each script go. `fingerprint` identifies the choice: when the server
    /// is reloaded and both are the same, the source keeps running.
    #[must_use]
    pub fn placed(
        self,
        place: impl Fn(&str) -> Placement + Send + Sync + 'static,
        fingerprint: Option<u64>,
    ) -> Self {
        Self {
            place: Arc::new(place),
            fingerprint,
            ..self
        }
    }

    /// Serves until the connection is closed for good.
    async fn serve(
        &self,
        publisher: &Publisher,
        mut stopped: oneshot::Receiver<()>,
    ) -> Result<(), Error> {
        let node = Node::connect(&self.settings).await?;
        let mut here = node.subscribe(node.subject("here", "*")).await?;
        let mut inbox = node.subscribe(node.inbox(">")).await?;
        let mut own = node.subscribe(node.subject("in", &node.name)).await?;
        let mut asked = node.subscribe(node.subject("ctl", &node.name)).await?;
        let (commands, mut commanded) = mpsc::unbounded_channel();
        let (news, mut heard) = mpsc::unbounded_channel();
        let place = Arc::new(ClusterPlace::new(node.clone(), commands));
        let mut duty = Duty::new(&self.settings, Arc::clone(&self.place), node, place, news)
            .with_tasks(self.tasks.clone(), self.key_mark.clone())
            .beside_worker(self.is_worker);
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stopped_at = None;
        duty.begin();
        loop {
            tokio::select! {
                Some(command) = commanded.recv() => duty.take(command),
                _ = &mut stopped, if stopped_at.is_none() => stopped_at = Some(Instant::now()),
                message = here.next() => duty.hear_here(&message.ok_or(Error::Closed)?.into()),
                message = inbox.next() => duty.hear(message.ok_or(Error::Closed)?.into()),
                message = own.next() => duty.send_input(&message.ok_or(Error::Closed)?.into()),
                message = asked.next() => duty.answer_ping(&message.ok_or(Error::Closed)?.into()),
                Some(news) = heard.recv() => duty.learn(news),
                _ = tick.tick() => duty.tick(),
            }
            let is_over = |since: Instant| {
                let waited = since.elapsed();
                waited >= LAST_CALLS || (waited >= LINGER && duty.is_idle())
            };
            if stopped_at.is_some_and(is_over) {
                let is_final = self.departure.is_final.load(Ordering::Acquire);
                duty.leave(is_final).await;
                self.departure.is_over.notify_one();
                return Ok(());
            }
            if let Some(metrics) = duty.take_metrics() {
                publisher.set_metrics(metrics);
            }
            if let Some(offer) = duty.take_offer(publisher) {
                publisher.publish(offer);
            }
        }
    }
}

impl fmt::Display for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the cluster `{}`", self.settings.cluster)
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Source for Cluster {
    async fn run(self, publisher: Publisher) {
        loop {
            let (cluster, to) = (self.clone(), publisher.clone());
            let serving = run_detached(FAREWELL, move |stopped| async move {
                cluster.serve(&to, stopped).await
            })
            .await;
            let ended = serving.unwrap_or(Err(Error::Closed));
            if let Err(error) = ended {
                publisher.fail(format!("failed to {error}"));
            }
            sleep(RETRY).await;
        }
    }

    fn fingerprint(&self) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        format!("{:?}", self.settings).hash(&mut hasher);
        self.fingerprint?.hash(&mut hasher);
        Some(hasher.finish())
    }

    /// Its scripts are offered with the policy of the front.
    fn follows_policy(&self) -> bool {
        true
    }
}
