//! Text that leaves the server.

use std::borrow::Cow;

/// Replaces U+0000 by U+FFFD: no outgoing text may contain it. Results and errors are searched
/// when they are encoded; a notification also has ids, which stay unchanged.
pub(crate) fn replace_nul(text: &str) -> Cow<'_, str> {
    match memchr::memchr(0, text.as_bytes()) {
        Some(_) => text.replace('\0', "\u{fffd}").into(),
        None => text.into(),
    }
}
