//! What can't be tested on a machine.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Says so and counts it, past the test harness, which swallows what a test has printed that passes.
pub fn skip(reason: &str) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed) + 1;
    let line = format!("skipped (no. {count}): {reason}\n");
    io::stderr().write_all(line.as_bytes()).ok();
}
