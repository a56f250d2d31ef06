//! Output for people.

use std::fmt;
use std::io::Write as _;

/// Prints a line. A closed stdout is no reason to end.
pub(crate) fn line(text: fmt::Arguments<'_>) {
    writeln!(std::io::stdout(), "{text}").ok();
}

/// Prints whether a promise was kept, and by how much.
pub(crate) fn promise(kept: bool, text: fmt::Arguments<'_>) -> bool {
    line(format_args!(
        "  {} {text}",
        if kept { "ok    " } else { "BROKEN" }
    ));
    kept
}
