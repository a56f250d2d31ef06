//! Log of the sandbox mechanisms that the system lacks, each reported once.

use std::collections::BTreeSet;
use std::sync::Mutex;

use mcpd_exec::warm::Warmth;
use mcpd_exec::{Enforcement, MissingMechanism, Outcome};
use mcpd_scriptspec::ScriptPath;

use crate::support::sync::lock;

/// Missing mechanisms that were reported: each is logged once, not for every run.
#[derive(Debug, Default)]
pub(crate) struct MissingEnforcement(Mutex<BTreeSet<String>>);

impl MissingEnforcement {
    /// Logs the mechanisms that a run lacked.
    pub(crate) fn report(&self, enforced: &Enforcement) {
        for missing in &enforced.missing {
            // One mechanism may lack several things.
            if lock(&self.0).insert(missing.to_string()) {
                tracing::warn!(level = %enforced.level, "sandbox of scripts is incomplete: {missing}");
            }
        }
    }
}

impl MissingEnforcement {
    /// Logs the reason that a run had a cold start, although the operator wants warm ones.
    pub(crate) fn report_cold(&self, path: &ScriptPath, outcome: &Outcome) {
        /// Texts to remember: reasons may have numbers in them.
        const MAX_REASONS: usize = 1000;
        let Some(Warmth::Cold(reason)) = &outcome.warmth else {
            return;
        };
        let text = format!("start of `{path}` was cold: {reason}");
        let mut reported = lock(&self.0);
        if reported.len() < MAX_REASONS && reported.insert(text.clone()) {
            tracing::info!(script = %path, "{text}");
        }
    }

    /// Logs the mechanisms that only probes lack.
    pub(crate) fn report_probe(&self, missing: &[MissingMechanism]) {
        for missing in missing {
            if lock(&self.0).insert(missing.to_string()) {
                tracing::warn!(
                    "sandbox of `--help` is incomplete: {missing}; to run no script with `--help` then, set `require = true` in `[probe]`"
                );
            }
        }
    }
}
