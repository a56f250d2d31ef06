//! Tasks of all fronts of a cluster, in a key-value bucket of JetStream: any front reads any task,
//! and continues with the tasks of a front that is gone.
//!
//! ```text
//! <owner>.<task>                  record, changed by compare-and-set
//! <owner>.<task>.<name>.<number>  part of a text that is too long for the record
//! ```
//!
//! A task is changed by its runner alone, except for requests of its owner. Another front becomes
//! the runner by a compare-and-set of the record, so of two that try one wins, and the runner that
//! lost its task finds that out before its next change.

mod adoption;
mod record;
pub(crate) mod roster;
mod texts;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use mcpd_protocol::method::{InputRequests, InputResponses, TaskStatus};
use mcpd_server::tasks::{Answer, Store, StoreError, StoredTask, TaskKey, TaskRequest};
use serde_json::value::RawValue;
use tokio::sync::OnceCell;
use tokio::time::Instant;

pub(crate) use self::record::Location;
use self::record::{Record, Text, is_token, owner_token};
use self::roster::Roster;
use crate::node::bucket::Bucket;
use crate::node::{Node, clock_ms};
use crate::settings::Settings;
use crate::wire::{PROTOCOL_VERSION, Request, bucket_name};

/// Maximum number of tasks, of one owner and overall.
const MAX_TASKS_PER_OWNER: usize = 256;
const MAX_TASKS: usize = 4096;
/// Number of attempts to change a record that others change at the same time.
const MAX_ATTEMPTS: u32 = 16;
/// Number of records that are read at the same time.
const PARALLEL: usize = 16;

/// Store of the tasks of all fronts of a cluster.
#[derive(Debug, Clone)]
pub struct SharedTasks {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    settings: Settings,
    /// Number of servers that keep a copy, when the bucket is made.
    replicas: usize,
    runner: String,
    started: Instant,
    node: OnceCell<Node>,
    bucket: OnceCell<Bucket>,
    roster: Mutex<Roster>,
    running: Mutex<Running>,
    /// The front of some task may be gone.
    is_doubtful: AtomicBool,
}

/// Tasks that run here.
#[derive(Debug, Default)]
struct Running {
    keys: BTreeMap<String, TaskKey>,
    /// Those whose answers were handed out.
    answered: BTreeSet<String>,
}

/// Milliseconds since 1970.
fn now() -> i64 {
    i64::try_from(clock_ms()).unwrap_or(i64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn record_key(key: &TaskKey) -> Option<String> {
    is_token(&key.id).then(|| format!("{}.{}", owner_token(&key.owner), key.id))
}

impl SharedTasks {
    /// Creates the store of one front. `replicas` is the number of NATS servers that keep a copy,
    /// if the bucket does not exist yet.
    #[must_use]
    pub fn new(settings: Settings, replicas: usize) -> Self {
        let start = clock_ms();
        Self {
            inner: Arc::new(Inner {
                runner: format!("{}.{start}", settings.node),
                settings,
                replicas,
                started: Instant::now(),
                node: OnceCell::new(),
                bucket: OnceCell::new(),
                roster: Mutex::default(),
                running: Mutex::default(),
                is_doubtful: AtomicBool::new(false),
            }),
        }
    }

    /// Name under which this front runs tasks.
    pub(crate) fn runner_name(&self) -> &str {
        &self.inner.runner
    }

    /// Records a sign of life of a front, or its good-bye.
    pub(crate) fn hear(&self, runner: &str, has_left: bool) {
        let now = self.inner.started.elapsed();
        lock(&self.inner.roster).hear(now, runner, has_left);
    }

    /// Records for how long silence has counted; `None` while this node may be cut off.
    pub(crate) fn set_trust(&self, trusted_for: Option<Duration>) {
        let now = self.inner.started.elapsed();
        let trusted_from = trusted_for.map(|trusted| now.saturating_sub(trusted));
        lock(&self.inner.roster).set_trust(trusted_from);
    }

    /// Records where the run of a task is, before it is sent there.
    ///
    /// # Errors
    ///
    /// It cannot be recorded, or the task is another front's.
    pub(crate) async fn locate(&self, key: &TaskKey, location: &Location) -> Result<(), String> {
        let runner = self.runner_name();
        let mut is_mine = true;
        let change = |record: &mut Record| {
            is_mine = record.is_of(runner);
            if is_mine {
                record.locate(location);
            }
            is_mine
        };
        self.inner.change(key, change).await?;
        match is_mine {
            true => Ok(()),
            false => Err("another front continues with the task".to_owned()),
        }
    }
}

impl Inner {
    /// Returns the connection, opened by the first that needs it.
    async fn node(&self) -> Result<&Node, String> {
        let connect = async || {
            let node = Node::connect(&self.settings).await;
            node.map_err(|error| format!("failed to {error}"))
        };
        self.node.get_or_try_init(connect).await
    }

    /// Returns the bucket, opened by the first that needs it. A server without one keeps the
    /// connection for the next attempt.
    async fn bucket(&self) -> Result<&Bucket, String> {
        let open = async || {
            let name = bucket_name(self.settings.cluster.as_str());
            self.node().await?.open_bucket(&name, self.replicas).await
        };
        self.bucket.get_or_try_init(open).await
    }

    async fn read(&self, key: &str) -> Result<Option<(Record, u64)>, String> {
        let bucket = self.bucket().await?;
        let Some(revised) = bucket.get(key).await? else {
            return Ok(None);
        };
        let record: Record = serde_json::from_slice(&revised.value)
            .map_err(|error| format!("read the task `{key}`: {error}"))?;
        if record.v > PROTOCOL_VERSION {
            return Err(format!("the task `{key}` is of a newer version of mcpd"));
        }
        Ok((!record.is_expired(now())).then_some((record, revised.revision)))
    }

    /// Writes a record if its revision is this one.
    async fn write(&self, key: &str, record: &Record, revision: u64) -> Result<bool, String> {
        let value = serde_json::to_vec(record).map_err(|error| error.to_string())?;
        let bucket = self.bucket().await?;
        bucket.set(key, Bytes::from(value), revision).await
    }

    /// Changes a record that is there, unless `change` returns false.
    async fn change(
        &self,
        key: &TaskKey,
        mut change: impl FnMut(&mut Record) -> bool,
    ) -> Result<(), String> {
        let Some(key) = record_key(key) else {
            return Ok(());
        };
        for _ in 0..MAX_ATTEMPTS {
            let Some((mut record, revision)) = self.read(&key).await? else {
                return Ok(());
            };
            if !change(&mut record) || self.write(&key, &record, revision).await? {
                return Ok(());
            }
        }
        Err(format!("the task `{key}` is changed by too many at a time"))
    }

    async fn add(&self, task: StoredTask) -> Result<bool, String> {
        let key = task.key();
        let Some(name) = record_key(&key) else {
            return Err("the id of a task is no token".to_owned());
        };
        let all = self.bucket().await?.keys("*.*").await?;
        let prefix = format!("{}.", owner_token(&task.owner));
        let own = all.iter().filter(|key| key.starts_with(&prefix)).count();
        if own >= MAX_TASKS_PER_OWNER || all.len() >= MAX_TASKS {
            return Ok(false);
        }
        let mut task = task;
        let continuation = task.continuation.take();
        let record = Record {
            v: PROTOCOL_VERSION,
            detail: Text::None,
            continuation: self.store_text(&name, continuation).await?,
            cancel: false,
            answers: None,
            task,
        };
        if !self.write(&name, &record, 0).await? {
            return Err("its id is in use".to_owned());
        }
        lock(&self.running).keys.insert(key.id.clone(), key);
        Ok(true)
    }

    async fn task(&self, key: &TaskKey) -> Result<Option<StoredTask>, String> {
        let Some(name) = record_key(key) else {
            return Ok(None);
        };
        let Some((record, _)) = self.read(&name).await? else {
            return Ok(None);
        };
        let mut task = record.task;
        self.doubt(&task);
        let detail = self.load_text(&name, &record.detail).await?;
        let detail = detail.map(RawValue::from_string).transpose();
        task.detail = detail.map_err(|error| format!("read the task `{name}`: {error}"))?;
        // Two owners with one token are as good as impossible, but that is not for a store to say.
        Ok((task.owner == key.owner).then_some(task))
    }

    async fn tasks(&self, owner: &str) -> Result<Vec<StoredTask>, String> {
        let pattern = format!("{}.*", owner_token(owner));
        let mut tasks: Vec<_> = self
            .records(&pattern)
            .await?
            .into_iter()
            .map(|(_, record, _)| record.task)
            .filter(|task| task.owner == owner)
            .collect();
        tasks.sort_by(|a, b| (b.created_at, &a.id).cmp(&(a.created_at, &b.id)));
        Ok(tasks)
    }

    /// Reads the records of a pattern, with their keys and revisions.
    async fn records(&self, pattern: &str) -> Result<Vec<(String, Record, u64)>, String> {
        let keys = self.bucket().await?.keys(pattern).await?;
        let reads = keys.into_iter().map(async |key| {
            let read = self.read(&key).await?;
            Ok::<_, String>(read.map(|(record, revision)| (key, record, revision)))
        });
        let read: Vec<_> = stream::iter(reads)
            .buffer_unordered(PARALLEL)
            .try_collect()
            .await?;
        Ok(read.into_iter().flatten().collect())
    }

    async fn ask(
        &self,
        key: &TaskKey,
        questions: InputRequests,
        continuation: Option<String>,
    ) -> Result<(), String> {
        let name = record_key(key).unwrap_or_default();
        let text = serde_json::to_string(&questions).map_err(|error| error.to_string())?;
        let detail = self.store_text(&name, Some(text)).await?;
        let continuation = self.store_text(&name, continuation).await?;
        lock(&self.running).answered.remove(&key.id);
        let change = |record: &mut Record| {
            let is_mine = record.is_of(&self.runner);
            if is_mine {
                record.ask(detail.clone(), continuation.clone(), now());
            }
            is_mine
        };
        self.change(key, change).await
    }

    async fn answer(&self, key: &TaskKey, responses: &InputResponses) -> Result<(), String> {
        let Some(name) = record_key(key) else {
            return Ok(());
        };
        for _ in 0..MAX_ATTEMPTS {
            let Some((mut record, revision)) = self.read(&name).await? else {
                return Ok(());
            };
            if record.task.status != TaskStatus::InputRequired || record.task.owner != key.owner {
                return Ok(());
            }
            let open = self.load_text(&name, &record.detail).await?;
            let open = serde_json::from_str(&open.unwrap_or_default())
                .map_err(|error| format!("read the questions of `{name}`: {error}"))?;
            let rest = record.answer(open, responses, now());
            if !rest.is_empty() {
                let text = serde_json::to_string(&rest).map_err(|error| error.to_string())?;
                record.detail = self.store_text(&name, Some(text)).await?;
            }
            if self.write(&name, &record, revision).await? {
                return Ok(());
            }
        }
        Err(format!(
            "the task `{name}` is changed by too many at a time"
        ))
    }

    async fn end(
        &self,
        key: &TaskKey,
        status: TaskStatus,
        detail: Option<Box<RawValue>>,
    ) -> Result<(), String> {
        let name = record_key(key).unwrap_or_default();
        let text = detail.map(|detail| Box::<str>::from(detail).into_string());
        let detail = self.store_text(&name, text).await?;
        let mut location = None;
        let change = |record: &mut Record| {
            let is_mine = record.is_of(&self.runner);
            if is_mine {
                location = record
                    .task
                    .location
                    .as_deref()
                    .and_then(Location::from_text);
                record.end(status, detail.clone(), now());
            }
            is_mine
        };
        self.change(key, change).await?;
        if let Some(Location::Worker { node, run, .. }) = location {
            // Its result is here, so the worker need not keep it any longer.
            let own = self.node().await?;
            own.send_control(&node, Request::Release { run }, None);
        }
        self.forget(&key.id);
        Ok(())
    }

    fn forget(&self, id: &str) {
        let mut running = lock(&self.running);
        running.keys.remove(id);
        running.answered.remove(id);
    }

    async fn take_requests(&self) -> Result<Vec<(String, TaskRequest)>, String> {
        let keys: Vec<_> = lock(&self.running).keys.values().cloned().collect();
        let mut requests = Vec::new();
        for key in keys {
            let Some(name) = record_key(&key) else {
                continue;
            };
            let Some((record, _)) = self.read(&name).await? else {
                continue;
            };
            if record.task.runner != self.runner {
                self.forget(&key.id);
                requests.push((key.id, TaskRequest::Leave));
                continue;
            }
            let Some(request) = record.request() else {
                continue;
            };
            let is_answer = matches!(request, TaskRequest::Answers(_));
            if !is_answer || lock(&self.running).answered.insert(key.id.clone()) {
                requests.push((key.id, request));
            }
        }
        Ok(requests)
    }
}

impl Store for SharedTasks {
    fn runner(&self) -> &str {
        self.runner_name()
    }

    fn add(&self, task: StoredTask) -> Answer<'_, bool> {
        Box::pin(async { self.inner.add(task).await.map_err(StoreError::new) })
    }

    fn task(&self, key: TaskKey) -> Answer<'_, Option<StoredTask>> {
        Box::pin(async move { self.inner.task(&key).await.map_err(StoreError::new) })
    }

    fn tasks(&self, owner: &str) -> Answer<'_, Vec<StoredTask>> {
        let owner = owner.to_owned();
        Box::pin(async move { self.inner.tasks(&owner).await.map_err(StoreError::new) })
    }

    fn store_questions(
        &self,
        key: TaskKey,
        questions: InputRequests,
        continuation: Option<String>,
    ) -> Answer<'_, ()> {
        Box::pin(async move {
            let asked = self.inner.ask(&key, questions, continuation).await;
            asked.map_err(StoreError::new)
        })
    }

    fn store_answers(&self, key: TaskKey, responses: InputResponses) -> Answer<'_, ()> {
        Box::pin(async move {
            let answered = self.inner.answer(&key, &responses).await;
            answered.map_err(StoreError::new)
        })
    }

    fn request_cancel(&self, key: TaskKey) -> Answer<'_, ()> {
        Box::pin(async move {
            let change = |record: &mut Record| {
                let is_open = record.is_open() && record.task.owner == key.owner;
                record.cancel |= is_open;
                is_open
            };
            let changed = self.inner.change(&key, change).await;
            changed.map_err(StoreError::new)
        })
    }

    fn store_ending(
        &self,
        key: TaskKey,
        status: TaskStatus,
        detail: Option<Box<RawValue>>,
    ) -> Answer<'_, ()> {
        Box::pin(async move {
            let ended = self.inner.end(&key, status, detail).await;
            ended.map_err(StoreError::new)
        })
    }

    fn take_requests(&self) -> Answer<'_, Vec<(String, TaskRequest)>> {
        Box::pin(async { self.inner.take_requests().await.map_err(StoreError::new) })
    }

    fn has_successors(&self) -> bool {
        true
    }

    fn adopt(&self) -> Answer<'_, StoredTask> {
        Box::pin(async { Ok(self.inner.adopt().await) })
    }
}
