//! Queue of running probes, with bounded concurrency. Results of files that have gone or changed
//! in the meantime are dropped.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcpd_scriptspec::ScriptPath;
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};

use super::examiner::Looked;
use crate::catalog::walk::Candidate;

/// Probes per processor: while one is starting or has just ended, another runs.
const ASKED_AT_ONCE: usize = 2;

/// Running probes; dropping it cancels them.
#[derive(Debug)]
pub(super) struct Asked {
    /// By root and path: the file as it was when its probe began, and the task of the probe.
    scripts: BTreeMap<(usize, ScriptPath), (Candidate, AbortHandle)>,
    answers: JoinSet<(usize, Looked)>,
    turns: Arc<Semaphore>,
}

impl Asked {
    /// Creates an empty queue.
    pub(super) fn new(processors: usize) -> Self {
        Self {
            scripts: BTreeMap::new(),
            answers: JoinSet::new(),
            turns: Arc::new(Semaphore::new(ASKED_AT_ONCE * processors)),
        }
    }

    /// Returns whether this version of a file is being probed.
    pub(super) fn contains(&self, root: usize, candidate: &Candidate) -> bool {
        let asked = self.scripts.get(&(root, candidate.path.clone()));
        asked.is_some_and(|(asked, _)| asked == candidate)
    }

    /// Returns whether a file is being probed, in this or an earlier version.
    pub(super) fn has(&self, key: &(usize, ScriptPath)) -> bool {
        self.scripts.contains_key(key)
    }

    /// Permits to run a probe.
    pub(super) fn turns(&self) -> Arc<Semaphore> {
        Arc::clone(&self.turns)
    }

    /// Runs `ask` in the background, to examine a file.
    pub(super) fn add(
        &mut self,
        root: usize,
        candidate: Candidate,
        ask: impl Future<Output = Looked> + Send + 'static,
    ) {
        let task = self.answers.spawn(async move { (root, ask.await) });
        let key = (root, candidate.path.clone());
        self.scripts.insert(key, (candidate, task));
    }

    /// Cancels the probes of files that are no longer there.
    pub(super) fn retain(&mut self, is_there: impl Fn(usize, &Candidate) -> bool) {
        self.scripts.retain(|(root, _), (candidate, task)| {
            let is_there = is_there(*root, candidate);
            if !is_there {
                task.abort();
            }
            is_there
        });
    }

    /// Waits for the next result, with its root; `None` if no probe is running. May be dropped
    /// and called again.
    pub(super) async fn next(&mut self) -> Option<(usize, Looked)> {
        while let Some(answer) = self.answers.join_next().await {
            // A cancelled probe may have ended before.
            if let Ok((root, looked)) = answer
                && self.contains(root, &looked.candidate)
            {
                self.scripts.remove(&(root, looked.candidate.path.clone()));
                return Some((root, looked));
            }
        }
        None
    }
}
