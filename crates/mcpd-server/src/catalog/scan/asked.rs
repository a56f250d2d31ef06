//! The scripts that are being asked, some at a time, while nobody need wait for them. Whoever answers as a file that
//! has gone or changed meanwhile is not heard.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcpd_scriptspec::ScriptPath;
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};

use super::examiner::Looked;
use crate::catalog::walk::Candidate;

/// How many scripts are asked at once, for each processor: while one is started or has just ended, another runs.
const ASKED_AT_ONCE: usize = 2;

/// Dropped, it asks nobody any more.
#[derive(Debug)]
pub(super) struct Asked {
    /// By their roots and paths: the files as they were when that began, and who asks them.
    scripts: BTreeMap<(usize, ScriptPath), (Candidate, AbortHandle)>,
    answers: JoinSet<(usize, Looked)>,
    turns: Arc<Semaphore>,
}

impl Asked {
    /// Nobody yet.
    pub(super) fn new(processors: usize) -> Self {
        Self {
            scripts: BTreeMap::new(),
            answers: JoinSet::new(),
            turns: Arc::new(Semaphore::new(ASKED_AT_ONCE * processors)),
        }
    }

    /// Whether a file is asked as it is now.
    pub(super) fn contains(&self, root: usize, candidate: &Candidate) -> bool {
        let asked = self.scripts.get(&(root, candidate.path.clone()));
        asked.is_some_and(|(asked, _)| asked == candidate)
    }

    /// Returns whether a file is asked, as it is now or was before.
    pub(super) fn has(&self, key: &(usize, ScriptPath)) -> bool {
        self.scripts.contains_key(key)
    }

    /// Permits to run a script.
    pub(super) fn turns(&self) -> Arc<Semaphore> {
        Arc::clone(&self.turns)
    }

    /// Has `ask` tell of a file in the background.
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

    /// Asks only those on that are still there.
    pub(super) fn retain(&mut self, is_there: impl Fn(usize, &Candidate) -> bool) {
        self.scripts.retain(|(root, _), (candidate, task)| {
            let is_there = is_there(*root, candidate);
            if !is_there {
                task.abort();
            }
            is_there
        });
    }

    /// What comes of the next that answers, with its root; nothing if nobody is asked. It may be dropped and called again.
    pub(super) async fn next(&mut self) -> Option<(usize, Looked)> {
        while let Some(answer) = self.answers.join_next().await {
            // Who is not asked any more may have answered before.
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
