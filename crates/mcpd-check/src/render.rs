//! Findings and the views of clients as text: for people, editors, `grep`, GitHub, and as SARIF.

use std::path::{Path, PathBuf};

use crate::terminal::is_obeyed;

mod forwarded;
mod github;
mod human;
mod json;
mod sarif;
mod short;

pub use forwarded::forwarded;
pub use github::github;
pub use human::human;
pub use sarif::sarif;
pub use short::short;

/// Directory that displayed paths are relative to.
#[must_use]
pub fn base_directory() -> PathBuf {
    std::env::current_dir()
        .and_then(|here| here.canonicalize())
        .unwrap_or_default()
}

/// Displayed path of a file, relative to the working directory.
#[must_use]
pub fn display_path(file: &Path, here: &Path) -> String {
    printable(&file.strip_prefix(here).unwrap_or(file).to_string_lossy())
}

/// Replaces characters that a terminal would act on or hide, and ends of lines.
pub(crate) fn printable(text: &str) -> String {
    text.replace(is_obeyed, "\u{fffd}")
}
