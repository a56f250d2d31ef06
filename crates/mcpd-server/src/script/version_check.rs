//! Version of a script, which is checked again before each run: the script that was approved at the
//! scan, or that a front has asked for, may have changed since.

use std::fmt;

/// Comparison of a script with the version that may run.
pub(crate) trait VersionCheck: fmt::Debug + Send + Sync {
    /// Returns the members that differ, such as `content`; empty if nothing does.
    /// Blocks.
    fn changes(&self) -> Vec<String>;
}
