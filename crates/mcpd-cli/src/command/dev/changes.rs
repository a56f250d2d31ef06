//! Changes between two catalogs, as their author sees them: one line for each entry that came, went
//! or changed, and the faults that are new.

use std::collections::BTreeSet;

use mcpd_check::{EntryChange, Finding, render};
use mcpd_server::Catalog;

use super::timeline::{self, Sign};
use crate::output;

/// Columns of a terminal whose width is unknown.
const DEFAULT_COLUMNS: usize = 100;

/// Shows how the tools, prompts and resources of `after` differ from those of `before`.
pub(super) fn show(before: &Catalog, after: &Catalog) {
    for change in EntryChange::between(before, after) {
        let entry = &change.entry;
        match (&change.before, &change.after) {
            (None, _) => timeline::line(Sign::Added, entry),
            (_, None) => timeline::line(Sign::Removed, entry),
            _ => {
                let members = change.members().join(", ");
                timeline::line(Sign::Changed, &format!("{entry}: {members}"));
            }
        }
    }
}

/// Shows the faults of `after` that `before` does not have, or how many are left if some are gone.
pub(super) fn show_faults(before: Option<&Catalog>, after: &Catalog) {
    let old = before.map(Finding::all).unwrap_or_default();
    let before = old.len();
    let old: BTreeSet<_> = old.iter().map(identity).collect();
    let mut findings = Finding::all(after);
    let left = findings.len();
    findings.retain(|finding| !old.contains(&identity(finding)));
    if !findings.is_empty() {
        let columns = output::columns().unwrap_or(DEFAULT_COLUMNS);
        let scripts = after.scan().scripts.len();
        output::note_styled(&render::human(&findings, scripts, columns));
    } else if left < before {
        timeline::note(&match left {
            0 => "no fault is left".to_owned(),
            1 => "1 fault is left".to_owned(),
            _ => format!("{left} faults are left"),
        });
    }
}

/// What makes two findings the same, wherever they stand in a file.
fn identity(finding: &Finding<'_>) -> String {
    format!(
        "{:?} {:?} {} {}",
        finding.path, finding.file, finding.code, finding.message
    )
}
