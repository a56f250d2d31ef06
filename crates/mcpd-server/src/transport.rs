//! Transports, which move bytes between clients and the server. The meaning of the bytes is left
//! to [`Connection`](crate::Connection) and the dispatch behind it.

pub(crate) mod connection;
mod conversation;
mod exchange;
#[cfg(feature = "http")]
pub mod http;
pub mod local;
pub mod stdio;

/// Default time for which a client may leave written data unread before its connection is
/// dropped.
///
/// Data queued meanwhile is bounded in bytes (backpressure).
pub const DEFAULT_WRITE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);
