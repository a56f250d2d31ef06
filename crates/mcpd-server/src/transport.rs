//! Where messages come from and go to. A transport moves bytes; what they mean, it leaves to
//! [`Connection`](crate::Connection) and the dispatch behind it.

#[cfg(feature = "http")]
pub mod http;
pub mod stdio;

/// How long a client may by default leave what is written to it unread before it is given up.
///
/// What waits for it meanwhile is bounded in bytes.
pub const DEFAULT_WRITE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);
