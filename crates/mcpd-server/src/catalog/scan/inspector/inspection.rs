//! Results of the inspection of one file: a described script, or one that needs a probe.

use std::sync::Arc;

use crate::catalog::scan::ScannedScript;
use crate::catalog::scan::files::{PassOverKind, PassedOver};
use crate::catalog::walk::Candidate;
#[cfg(feature = "database")]
use crate::database::rows::ProbeRefusal;
use crate::database::rows::ProbeResult;
use crate::script::start_command::StartCommand;

/// Result for one file.
#[derive(Debug)]
pub(crate) struct InspectedFile {
    pub(crate) candidate: Candidate,
    /// Scripts in the file; empty if it has nothing to do with mcpd.
    pub(crate) scripts: Vec<Arc<ScannedScript>>,
    /// Reason for which it is passed over, if that is no fault.
    pub(crate) passed_over: Option<PassedOver>,
    /// Result to cache, and the conditions beside the file under which it is valid.
    #[cfg_attr(
        not(feature = "database"),
        expect(dead_code, reason = "only a database is asked for it")
    )]
    pub(crate) answer: Option<(ProbeResult, Arc<str>)>,
    /// Tells whether a probe failed for a reason that may be unrelated to the file: it is
    /// repeated.
    pub(crate) is_transient: bool,
    /// Tells whether it was not probed because it is not approved: every scan examines it again.
    pub(in crate::catalog::scan) is_refused: bool,
    /// Number of probes in a row that exceeded the time limit.
    pub(in crate::catalog::scan) time_outs: u8,
}

/// Result of an examination without running the file.
pub(in crate::catalog::scan) enum Inspection {
    /// Everything is known.
    Done(InspectedFile),
    /// It needs a probe.
    NeedsProbe(NeedsProbe),
}

/// Script that needs a probe.
pub(in crate::catalog::scan) struct NeedsProbe {
    pub(super) candidate: Candidate,
    pub(super) shebang: Option<String>,
    pub(super) start_command: StartCommand,
    /// Tells whether its faults concern the operator: it mentions mcpd, was named explicitly, or
    /// was a tool.
    pub(in crate::catalog::scan) concerns_operator: bool,
}

impl NeedsProbe {
    pub(in crate::catalog::scan) fn candidate(&self) -> &Candidate {
        &self.candidate
    }
}

impl InspectedFile {
    /// Returns its refusal, if its result is one.
    #[cfg(feature = "database")]
    pub(crate) fn refusal(&self) -> Option<&ProbeRefusal> {
        let (answer, _) = self.answer.as_ref()?;
        answer.refusal.as_ref()
    }

    /// Returns whether it is a tool, or a faulty one.
    pub(in crate::catalog::scan) fn concerns_operator(&self) -> bool {
        !self.scripts.is_empty()
    }

    /// Returns a copy that stands in for `candidate` until that can be examined.
    pub(in crate::catalog::scan) fn standing_in_for(&self, candidate: Candidate) -> Self {
        Self {
            is_transient: true,
            ..Self::new(candidate, self.scripts.clone())
        }
    }

    pub(in crate::catalog::scan) fn new(
        candidate: Candidate,
        scripts: Vec<Arc<ScannedScript>>,
    ) -> Self {
        Self {
            candidate,
            scripts,
            passed_over: None,
            answer: None,
            is_transient: false,
            is_refused: false,
            time_outs: 0,
        }
    }

    pub(in crate::catalog::scan) fn passed_over_file(
        candidate: Candidate,
        kind: PassOverKind,
        reason: impl Into<String>,
    ) -> Self {
        let passed = PassedOver::new(candidate.file.clone(), kind, reason);
        Self {
            passed_over: Some(passed),
            ..Self::new(candidate, Vec::new())
        }
    }
}
