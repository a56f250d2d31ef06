//! Scheduling of probes: their selection, their order, and the debounce of each file
//! ([`file_debounce`](super::file_debounce)), which ends when the file has been unchanged for long
//! enough.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpd_scriptspec::ScriptPath;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::file_debounce::{Debounce, wait_for_quiet};
use super::inspector::{InspectedFile, Inspection, Inspector, NeedsProbe};
use super::{Scanner, cached_result, join_blocking};
use crate::catalog::probe_cache::ProbeCache;
use crate::catalog::walk::Candidate;

/// File that is not known yet.
pub(super) enum Pending {
    /// It needs a probe.
    NeedsProbe(NeedsProbe),
    /// It is being written.
    Changing(Candidate, Debounce),
}

impl Pending {
    pub(super) fn candidate(&self) -> &Candidate {
        match self {
            Self::NeedsProbe(script) => script.candidate(),
            Self::Changing(candidate, _) => candidate,
        }
    }
}

impl Scanner {
    /// Starts probes; scripts other than the wanted one are probed only if that was not found.
    pub(super) async fn probe(&mut self, scripts: Vec<(usize, Pending)>) {
        let (first, others): (Vec<_>, Vec<_>) = scripts
            .into_iter()
            .partition(|(_, script)| self.is_wanted(&script.candidate().path));
        self.enqueue(first);
        if others.is_empty() {
            return;
        }
        self.finish_probes().await;
        let is_found = self.results_by_root().any(|(_, inspected)| {
            let mut scripts = inspected.scripts.iter();
            scripts.any(|script| self.is_wanted(&script.path) && script.served.is_some())
        });
        // Otherwise any of the others may describe the wanted one.
        if !is_found {
            self.enqueue(others);
        }
    }

    fn enqueue(&mut self, scripts: Vec<(usize, Pending)>) {
        let permits = self.probe_queue.permits();
        for (root, pending) in scripts {
            let candidate = pending.candidate().clone();
            let earlier = self.earlier(root, &candidate).map(Arc::clone);
            let permits = Arc::clone(&permits);
            match pending {
                Pending::NeedsProbe(mut script) => {
                    // A former tool is reported as faulty if its output describes none.
                    script.concerns_operator |= earlier
                        .as_deref()
                        .is_some_and(InspectedFile::concerns_operator);
                    let earlier = earlier.filter(|earlier| earlier.candidate == candidate);
                    let time_outs = earlier.map_or(0, |earlier| earlier.time_outs);
                    let inspector = Arc::clone(&self.inspector);
                    let probe = probe_with_permit(inspector, permits, script, time_outs);
                    self.probe_queue.start(root, candidate, probe);
                }
                Pending::Changing(file, debounce) => {
                    let key = (root, file.path.clone());
                    let started_at = *self.changing_since.entry(key).or_insert_with(Instant::now);
                    let changing = ChangingFile {
                        candidate: file,
                        root,
                        earlier,
                        debounce,
                        started_at,
                        inspector: Arc::clone(&self.inspector),
                        probe_cache: self.probe_cache.clone(),
                    };
                    self.probe_queue
                        .start(root, candidate, changing.inspect_when_quiet(permits));
                }
            }
        }
        let queue = &self.probe_queue;
        self.changing_since.retain(|key, _| queue.is_probed(key));
    }

    /// Debounce times of this scan.
    pub(super) fn debounce(&self) -> Debounce {
        match self.known.is_empty() {
            true => Debounce::FIRST_SCAN,
            false => Debounce::EDITS,
        }
    }

    fn is_wanted(&self, path: &ScriptPath) -> bool {
        let wanted = self.wanted_path.as_deref();
        wanted.is_none_or(|wanted| path.as_str() == wanted)
    }

    /// Returns the last result for a file, in this or an earlier version.
    pub(super) fn earlier(
        &self,
        root: usize,
        candidate: &Candidate,
    ) -> Option<&Arc<InspectedFile>> {
        self.known.get(root)?.get(&candidate.path)
    }
}

/// Probes a script once a permit is free.
async fn probe_with_permit(
    inspector: Arc<Inspector>,
    permits: Arc<Semaphore>,
    script: NeedsProbe,
    time_outs: u8,
) -> InspectedFile {
    let _permit = permits.acquire().await;
    inspector.probe(script, time_outs).await
}

/// File that is being written, with everything needed to examine it afterwards.
struct ChangingFile {
    candidate: Candidate,
    root: usize,
    earlier: Option<Arc<InspectedFile>>,
    debounce: Debounce,
    /// Start of the changes.
    started_at: Instant,
    inspector: Arc<Inspector>,
    probe_cache: Option<Arc<Mutex<ProbeCache>>>,
}

impl ChangingFile {
    /// Examines the file once it is quiet, and probes it if necessary.
    async fn inspect_when_quiet(self, permits: Arc<Semaphore>) -> InspectedFile {
        let was_tool = self
            .earlier
            .as_deref()
            .is_some_and(InspectedFile::concerns_operator);
        loop {
            match self.inspect().await {
                Ok(Inspection::Done(inspected)) => return inspected,
                Ok(Inspection::NeedsProbe(mut script)) => {
                    script.concerns_operator |= was_tool;
                    return probe_with_permit(self.inspector, permits, script, 0).await;
                }
                // It was written once more in between.
                Err(_) => {}
            }
        }
    }

    async fn inspect(&self) -> Result<Inspection, Box<Candidate>> {
        let waited = wait_for_quiet(&self.candidate, self.debounce, self.started_at).await;
        if let (Err(activity), Some(earlier)) = (&waited, &self.earlier)
            && earlier.concerns_operator()
        {
            let script = &self.candidate.path;
            tracing::warn!(%script, "`--help` not run again: {}; still serving the previous description", activity.reason());
            return Ok(Inspection::Done(
                earlier.standing_in_for(self.candidate.clone()),
            ));
        }
        let (inspector, probe_cache, root) = (
            Arc::clone(&self.inspector),
            self.probe_cache.clone(),
            self.root,
        );
        let candidate = self.candidate.clone();
        let inspect = move || {
            let cached = cached_result(probe_cache.as_deref(), root, &candidate);
            match waited {
                Ok(()) => inspector.inspect(candidate, cached, Duration::ZERO),
                Err(activity) => {
                    let inspected =
                        inspector.inspect_changing(candidate, cached.was_tool, activity);
                    Ok(Inspection::Done(inspected))
                }
            }
        };
        join_blocking(tokio::task::spawn_blocking(inspect)).await
    }
}
