//! Entries that are not served because the operator has not approved them as they are.

use std::fmt;
use std::path::PathBuf;

use super::PinKind;

/// Entry that is held back.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldBack {
    /// Kind of the entry.
    pub kind: PinKind,
    /// Path below its root.
    pub path: String,
    /// Its file.
    pub file: PathBuf,
    /// Differing members, such as `description`; none if the entry is new.
    pub changes: Vec<String>,
}

/// Reason, as a sentence fragment: `changed since it was approved: description, content`.
impl fmt::Display for HeldBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(&self.changes, f)
    }
}

fn describe(changes: &[String], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    /// Number of changes that are named.
    const MAX_NAMED: usize = 8;
    if changes.is_empty() {
        return f.write_str("not approved: it is not in the lock file");
    }
    let named = changes.len().min(MAX_NAMED);
    let named = changes[..named].join(", ");
    write!(f, "changed since it was approved: {named}")?;
    match changes.len().saturating_sub(MAX_NAMED) {
        0 => Ok(()),
        more => write!(f, " and {more} more"),
    }
}

/// Returns the same words for an entry without a file.
pub(super) fn reason(changes: &[String]) -> String {
    fmt::from_fn(|f| describe(changes, f)).to_string()
}
