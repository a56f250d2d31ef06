//! Where messages come from and go to. A transport moves bytes; what they mean, it leaves to
//! [`Connection`](crate::Connection) and the dispatch behind it.

#[cfg(feature = "http")]
pub mod http;
pub mod stdio;
