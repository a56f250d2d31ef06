//! Scheduling of probes: their selection, their order, and the moment at which each file is
//! [quiet](super::quiet).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpd_scriptspec::ScriptPath;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::examiner::{Examiner, Looked, Sight, Unasked};
use super::quiet::{Debounce, wait_for_quiet};
use super::{Scanner, finished, recall_one};
use crate::catalog::memory::Memory;
use crate::catalog::walk::Candidate;

/// File that is not known yet.
pub(super) enum Pending {
    /// It needs a probe.
    Unasked(Unasked),
    /// It is being written.
    Unquiet(Candidate, Debounce),
}

impl Pending {
    pub(super) fn candidate(&self) -> &Candidate {
        match self {
            Self::Unasked(script) => script.candidate(),
            Self::Unquiet(candidate, _) => candidate,
        }
    }
}

impl Scanner {
    /// Starts probes; scripts other than the wanted one are probed only if that was not found.
    pub(super) async fn ask(&mut self, scripts: Vec<(usize, Pending)>) {
        let (first, others): (Vec<_>, Vec<_>) = scripts
            .into_iter()
            .partition(|(_, script)| self.is_wanted(&script.candidate().path));
        self.begin(first);
        if others.is_empty() {
            return;
        }
        self.finish_probes().await;
        let is_found = self.results_by_root().any(|(_, looked)| {
            let mut scripts = looked.scripts.iter();
            scripts.any(|script| self.is_wanted(&script.path) && script.served.is_some())
        });
        // Otherwise any of the others may describe the wanted one.
        if !is_found {
            self.begin(others);
        }
    }

    fn begin(&mut self, scripts: Vec<(usize, Pending)>) {
        let turns = self.asked.turns();
        for (root, pending) in scripts {
            let candidate = pending.candidate().clone();
            let earlier = self.earlier(root, &candidate).map(Arc::clone);
            let turns = Arc::clone(&turns);
            match pending {
                Pending::Unasked(mut script) => {
                    // A former tool is reported as faulty if its output describes none.
                    script.is_ours |= earlier.as_deref().is_some_and(Looked::is_ours);
                    let earlier = earlier.filter(|earlier| earlier.candidate == candidate);
                    let time_outs = earlier.map_or(0, |earlier| earlier.time_outs);
                    let examiner = Arc::clone(&self.examiner);
                    let ask = ask_in_turn(examiner, turns, script, time_outs);
                    self.asked.add(root, candidate, ask);
                }
                Pending::Unquiet(file, debounce) => {
                    let key = (root, file.path.clone());
                    let begun = *self.unquiet.entry(key).or_insert_with(Instant::now);
                    let look = UnquietFile {
                        candidate: file,
                        root,
                        earlier,
                        debounce,
                        begun,
                        examiner: Arc::clone(&self.examiner),
                        memory: self.memory.clone(),
                    };
                    self.asked.add(root, candidate, look.look(turns));
                }
            }
        }
        let asked = &self.asked;
        self.unquiet.retain(|key, _| asked.has(key));
    }

    /// Debounce times of this scan.
    pub(super) fn debounce(&self) -> Debounce {
        match self.known.is_empty() {
            true => Debounce::FIRST_LOOK,
            false => Debounce::EDITS,
        }
    }

    fn is_wanted(&self, path: &ScriptPath) -> bool {
        let wanted = self.wanted.as_deref();
        wanted.is_none_or(|wanted| path.as_str() == wanted)
    }

    /// Returns the last result for a file, in this or an earlier version.
    pub(super) fn earlier(&self, root: usize, candidate: &Candidate) -> Option<&Arc<Looked>> {
        self.known.get(root)?.get(&candidate.path)
    }
}

/// Probes a script once a permit is free.
async fn ask_in_turn(
    examiner: Arc<Examiner>,
    turns: Arc<Semaphore>,
    script: Unasked,
    time_outs: u8,
) -> Looked {
    let _turn = turns.acquire().await;
    examiner.ask(script, time_outs).await
}

/// File that is being written, with everything needed to examine it afterwards.
struct UnquietFile {
    candidate: Candidate,
    root: usize,
    earlier: Option<Arc<Looked>>,
    debounce: Debounce,
    /// Start of the unrest.
    begun: Instant,
    examiner: Arc<Examiner>,
    memory: Option<Arc<Mutex<Memory>>>,
}

impl UnquietFile {
    /// Examines the file once it is quiet, and probes it if necessary.
    async fn look(self, turns: Arc<Semaphore>) -> Looked {
        let was_ours = self.earlier.as_deref().is_some_and(Looked::is_ours);
        loop {
            match self.see().await {
                Ok(Sight::Clear(looked)) => return looked,
                Ok(Sight::Unasked(mut script)) => {
                    script.is_ours |= was_ours;
                    return ask_in_turn(self.examiner, turns, script, 0).await;
                }
                // It was written once more in between.
                Err(_) => {}
            }
        }
    }

    async fn see(&self) -> Result<Sight, Box<Candidate>> {
        let waited = wait_for_quiet(&self.candidate, self.debounce, self.begun).await;
        if let (Err(unrest), Some(earlier)) = (&waited, &self.earlier)
            && earlier.is_ours()
        {
            let script = &self.candidate.path;
            tracing::warn!(%script, "not asked anew: {}; it is served as it was", unrest.reason());
            return Ok(Sight::Clear(earlier.kept_for(self.candidate.clone())));
        }
        let (examiner, memory, root) = (Arc::clone(&self.examiner), self.memory.clone(), self.root);
        let candidate = self.candidate.clone();
        let see = move || {
            let recalled = recall_one(memory.as_deref(), root, &candidate);
            match waited {
                Ok(()) => examiner.see(candidate, recalled, Duration::ZERO),
                Err(unrest) => {
                    let looked = examiner.see_unquiet(candidate, recalled.was_ours, unrest);
                    Ok(Sight::Clear(looked))
                }
            }
        };
        finished(tokio::task::spawn_blocking(see)).await
    }
}
