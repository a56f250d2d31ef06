//! Changes of the catalog while its scripts are written: one line for each entry that came, went
//! or changed, and the faults that are new.

use std::collections::BTreeSet;

use mcpd_check::{EntryChange, Finding};
use mcpd_server::Catalog;

use super::{Display, Shown, Sign};

/// Shows how the tools, prompts and resources of `after` differ from those of `before`.
pub(super) fn show(before: &Catalog, after: &Catalog, display: &Display) {
    for change in EntryChange::between(before, after) {
        let entry = &change.entry;
        match (&change.before, &change.after) {
            (None, _) => display.line(Sign::Added, entry),
            (_, None) => display.line(Sign::Removed, entry),
            _ => {
                let members = change.members().join(", ");
                display.line(Sign::Changed, &format!("{entry}: {members}"));
            }
        }
    }
}

/// Shows the faults of `after` that `before` does not have, or how many are left if some are gone.
pub(super) fn show_faults(before: Option<&Catalog>, after: &Catalog, display: &Display) {
    let old = before.map(Finding::all).unwrap_or_default();
    let before = old.len();
    let old: BTreeSet<_> = old.iter().map(identity).collect();
    let mut findings = Finding::all(after);
    let left = findings.len();
    findings.retain(|finding| !old.contains(&identity(finding)));
    if !findings.is_empty() {
        (display.0)(Shown::Faults(&findings, after.scan().scripts.len()));
    } else if left < before {
        display.note(&match left {
            0 => "no fault is left".to_owned(),
            1 => "1 fault is left".to_owned(),
            _ => format!("{left} faults are left"),
        });
    }
}

/// Identity of a finding, wherever it stands in a file.
fn identity(finding: &Finding<'_>) -> String {
    format!(
        "{:?} {:?} {} {}",
        finding.path, finding.file, finding.code, finding.message
    )
}
