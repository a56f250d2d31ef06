//! Approval of a script by its operator, which is checked again before each run: what was approved
//! at the scan may have changed since.

use std::fmt;

/// Comparison of a script with its approved state.
pub(crate) trait Approval: fmt::Debug + Send + Sync {
    /// Returns what differs from what was approved, such as `content`; empty if nothing does.
    /// Blocks.
    fn changes(&self) -> Vec<String>;
}
