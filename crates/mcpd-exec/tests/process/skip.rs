//! Report of tests that this machine can't run.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Prints and counts a skipped test, bypassing the test harness, which hides the output of
/// passing tests.
pub(crate) fn skip(reason: &str) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed) + 1;
    let line = format!("skipped (no. {count}): {reason}\n");
    io::stderr().write_all(line.as_bytes()).ok();
}
