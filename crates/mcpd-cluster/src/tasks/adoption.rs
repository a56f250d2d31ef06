//! Adoption of tasks whose front is gone: every front looks for them, and a compare-and-set decides
//! which one continues. Expired tasks are removed on the same occasion.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::method::TaskStatus;
use mcpd_server::tasks::StoredTask;
use tokio::time::{Instant, sleep};

use super::record::{Record, Text};
use super::roster::{Judgement, node_of};
use super::{Inner, lock, now};
use crate::node::ping::PingResult;
use crate::wire::{Control, Frame, Pong, Request};

/// Interval at which fronts that may be gone are looked at.
const TICK: Duration = Duration::from_millis(500);
/// Interval at which all tasks are looked at.
const SCAN: Duration = Duration::from_secs(60);

impl Inner {
    /// Waits for a task of a front that is gone, and becomes its runner.
    pub(super) async fn adopt(&self) -> StoredTask {
        let mut last_error = String::new();
        let mut last_scan = None;
        loop {
            match self.look(&mut last_scan).await {
                Ok(Some(task)) => return task,
                Ok(None) => last_error.clear(),
                Err(error) if error != last_error => {
                    tracing::warn!("background tasks are not available: {error}");
                    last_error = error;
                }
                Err(_) => {}
            }
            sleep(TICK).await;
        }
    }

    async fn look(&self, last_scan: &mut Option<Instant>) -> Result<Option<StoredTask>, String> {
        self.bucket().await?;
        let clock = self.started.elapsed();
        let (is_trusting, has_suspects) = {
            let roster = lock(&self.roster);
            (roster.is_trusting(), roster.has_suspects(clock))
        };
        let is_due = last_scan.is_none_or(|last| last.elapsed() >= SCAN)
            || self.is_doubtful.load(Ordering::Relaxed);
        if !is_trusting || !(has_suspects || is_due) {
            return Ok(None);
        }
        self.is_doubtful.store(false, Ordering::Relaxed);
        let mut is_unclear = false;
        let mut judgements: BTreeMap<String, Judgement> = BTreeMap::new();
        let mut adopted = None;
        for (key, record, revision) in self.records("*.*").await? {
            let runner = &record.task.runner;
            if !record.is_open() || *runner == self.runner {
                continue;
            }
            let judgement = match judgements.get(runner) {
                Some(judgement) => *judgement,
                None => self.judge(runner).await?,
            };
            judgements.insert(runner.clone(), judgement);
            is_unclear |= judgement == Judgement::Unclear;
            if judgement == Judgement::Gone && adopted.is_none() {
                adopted = self.take_over(&key, record, revision).await?;
            }
        }
        if is_unclear || adopted.is_some() {
            self.is_doubtful.store(true, Ordering::Relaxed);
        } else {
            // Fronts without tasks are settled as well.
            lock(&self.roster).settle(clock);
            *last_scan = Some(Instant::now());
            self.remove_expired().await?;
        }
        Ok(adopted)
    }

    /// A client asks for a task: if its front may be gone, all are looked at soon, also where no
    /// sign of life of that front was ever heard.
    pub(super) fn doubt(&self, task: &StoredTask) {
        if task.status.is_terminal() || task.runner == self.runner {
            return;
        }
        let judgement = lock(&self.roster).judge(self.started.elapsed(), &task.runner);
        if judgement != Judgement::There {
            self.is_doubtful.store(true, Ordering::Relaxed);
        }
    }

    /// Judges another runner, and asks it if that is necessary.
    async fn judge(&self, runner: &str) -> Result<Judgement, String> {
        let judgement = lock(&self.roster).judge(self.started.elapsed(), runner);
        if judgement != Judgement::Unclear {
            return Ok(judgement);
        }
        let node = self.node().await?;
        let question = Frame::new(
            Control::new(&node.identity(), Request::Ping),
            bytes::Bytes::new(),
        );
        let subject = node.subject("ctl", node_of(runner));
        let result: PingResult<Pong> = node.ping(subject, &question).await;
        let mut roster = lock(&self.roster);
        let clock = self.started.elapsed();
        match result {
            PingResult::Answer(pong) if !pong.runner.is_empty() => {
                roster.hear(clock, &pong.runner, false)
            }
            PingResult::Absent => roster.miss(clock, runner),
            PingResult::Answer(_) | PingResult::Silent => {}
        }
        Ok(roster.judge(clock, runner))
    }

    /// Becomes the runner of a task, unless another front is faster. A task that can't be continued
    /// fails.
    async fn take_over(
        &self,
        key: &str,
        mut record: Record,
        revision: u64,
    ) -> Result<Option<StoredTask>, String> {
        let continuation = self.load_text(key, &record.continuation).await?;
        if continuation.is_none() {
            let error = ErrorObject::internal_error("the server stopped before the run ended");
            let error = serde_json::to_string(&error).map_err(|error| error.to_string())?;
            record.end(TaskStatus::Failed, Text::Here(error), now());
            self.write(key, &record, revision).await?;
            return Ok(None);
        }
        record.task.runner.clone_from(&self.runner);
        if !self.write(key, &record, revision).await? {
            return Ok(None);
        }
        let mut task = record.task;
        task.continuation = continuation;
        lock(&self.running).keys.insert(task.id.clone(), task.key());
        Ok(Some(task))
    }

    /// Removes the records and parts of tasks that can't be read any more, and parts that no record
    /// names.
    async fn remove_expired(&self) -> Result<(), String> {
        let bucket = self.bucket().await?;
        let now = now();
        for key in bucket.keys("*.*").await? {
            let Some(revised) = bucket.get(&key).await? else {
                continue;
            };
            let record: Result<Record, _> = serde_json::from_slice(&revised.value);
            if record.is_ok_and(|record| record.is_expired(now)) {
                bucket.remove(&format!("{key}.>")).await?;
                bucket.remove(&key).await?;
            }
        }
        Ok(())
    }
}
