//! Queue of running probes, with bounded concurrency. Results of files that have gone or changed
//! in the meantime are dropped.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcpd_scriptspec::ScriptPath;
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};

use super::inspector::InspectedFile;
use crate::catalog::walk::Candidate;

/// Probes per processor: while one is starting or has just ended, another runs.
const PROBES_PER_PROCESSOR: usize = 2;

/// Running probes; dropping it cancels them.
#[derive(Debug)]
pub(super) struct ProbeQueue {
    /// By root and path: the file as it was when its probe began, and the task of the probe.
    running: BTreeMap<(usize, ScriptPath), (Candidate, AbortHandle)>,
    tasks: JoinSet<(usize, InspectedFile)>,
    permits: Arc<Semaphore>,
}

impl ProbeQueue {
    /// Creates an empty queue.
    pub(super) fn new(processors: usize) -> Self {
        Self {
            running: BTreeMap::new(),
            tasks: JoinSet::new(),
            permits: Arc::new(Semaphore::new(PROBES_PER_PROCESSOR * processors)),
        }
    }

    /// Returns whether this version of a file is being probed.
    pub(super) fn contains(&self, root: usize, candidate: &Candidate) -> bool {
        let probed = self.running.get(&(root, candidate.path.clone()));
        probed.is_some_and(|(probed, _)| probed == candidate)
    }

    /// Returns whether a file is being probed, in this or an earlier version.
    pub(super) fn is_probed(&self, key: &(usize, ScriptPath)) -> bool {
        self.running.contains_key(key)
    }

    /// Permits to run a probe.
    pub(super) fn permits(&self) -> Arc<Semaphore> {
        Arc::clone(&self.permits)
    }

    /// Runs `probe` in the background, to examine a file.
    pub(super) fn start(
        &mut self,
        root: usize,
        candidate: Candidate,
        probe: impl Future<Output = InspectedFile> + Send + 'static,
    ) {
        let task = self.tasks.spawn(async move { (root, probe.await) });
        let key = (root, candidate.path.clone());
        self.running.insert(key, (candidate, task));
    }

    /// Cancels the probes of files that are no longer there.
    pub(super) fn retain(&mut self, is_there: impl Fn(usize, &Candidate) -> bool) {
        self.running.retain(|(root, _), (candidate, task)| {
            let is_there = is_there(*root, candidate);
            if !is_there {
                task.abort();
            }
            is_there
        });
    }

    /// Waits for the next result, with its root; `None` if no probe is running. May be dropped
    /// and called again.
    pub(super) async fn next_result(&mut self) -> Option<(usize, InspectedFile)> {
        while let Some(result) = self.tasks.join_next().await {
            // A cancelled probe may have ended before.
            if let Ok((root, inspected)) = result
                && self.contains(root, &inspected.candidate)
            {
                self.running
                    .remove(&(root, inspected.candidate.path.clone()));
                return Some((root, inspected));
            }
        }
        None
    }
}
