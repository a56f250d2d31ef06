//! Log of faults in a new catalog: the new ones, at most ten lines at a time, and the number of
//! the rest. A directory of a thousand files that are no scripts must not bury other log
//! messages.

use std::collections::BTreeSet;
use std::sync::Arc;

use mcpd_scriptspec::Severity;

use super::super::scan::ScannedScript;
use crate::catalog::Catalog;
use crate::catalog::source::Offer;

/// Maximum number of faults of one catalog that are logged line by line.
const MAX_LOGGED: usize = 10;

/// Logs the faults that `after` has and `before` had not, and sources that have recovered.
pub(super) fn log_changes(before: &Catalog, after: &Catalog) {
    let mut budget = Budget::default();
    log_scripts(before, after, &mut budget);
    log_conflicts(before, after, &mut budget);
    log_files(before, after, &mut budget);
    log_held_back(before, after, &mut budget);
    for (place, offer) in after.offers().iter().enumerate() {
        let known = before.offers().get(place).map(|offer| offer.faults());
        log_source(offer, known.unwrap_or_default(), &mut budget);
    }
    let others = budget.total.saturating_sub(MAX_LOGGED);
    if others > 0 {
        tracing::warn!("{others} more faults not logged; run `mcpd check` for all of them");
    }
}

/// Number of lines that may still be logged.
#[derive(Debug, Default)]
struct Budget {
    /// Number of faults so far, logged or not.
    total: usize,
}

impl Budget {
    /// Counts a fault, and returns whether it may have a line.
    fn take_line(&mut self) -> bool {
        self.total += 1;
        self.total <= MAX_LOGGED
    }
}

fn log_scripts(before: &Catalog, after: &Catalog, budget: &mut Budget) {
    let known: BTreeSet<*const ScannedScript> = {
        let scripts = before.scan().scripts.iter();
        scripts.map(Arc::as_ptr).collect()
    };
    for script in &after.scan().scripts {
        if known.contains(&Arc::as_ptr(script)) {
            continue;
        }
        // One fault per script is enough for a log; `mcpd check` shows all of them with their
        // locations.
        let mut faults = script.diagnostics.iter();
        let fault = faults.find(|fault| fault.severity == Severity::Error);
        if let Some(fault) = fault
            && budget.take_line()
        {
            tracing::warn!(script = %script.path, code = %fault.code, "not served: {}", fault.message);
        }
    }
}

fn log_conflicts(before: &Catalog, after: &Catalog, budget: &mut Budget) {
    for conflict in after.conflicts() {
        if !before.conflicts().contains(conflict) && budget.take_line() {
            tracing::warn!(script = %conflict.path, "{}", conflict.message);
        }
    }
}

fn log_files(before: &Catalog, after: &Catalog, budget: &mut Budget) {
    for file in &after.scan().unusable {
        if !before.scan().unusable.contains(file) && budget.take_line() {
            tracing::warn!(file = %file.file.display(), "not served: {}", file.reason);
        }
    }
}

fn log_held_back(before: &Catalog, after: &Catalog, budget: &mut Budget) {
    let known: Vec<_> = before.scan().held_back().collect();
    for held_back in after.scan().held_back() {
        if !known.contains(&held_back) && budget.take_line() {
            let (kind, path) = (held_back.kind.word(), &held_back.path);
            tracing::warn!(%path, "{kind} held back: {held_back}; see `mcpd approve`");
        }
    }
}

fn log_source(offer: &Offer, known: &[String], budget: &mut Budget) {
    for fault in offer.faults() {
        if !known.contains(fault) && budget.take_line() {
            tracing::warn!("{} {fault}", offer.source());
        }
    }
    if !offer.is_faulty() && !known.is_empty() {
        tracing::info!("{} works again", offer.source());
    }
}
