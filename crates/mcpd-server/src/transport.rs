//! Where messages come from and go to. A transport moves bytes; what they mean, it leaves to
//! [`Connection`](crate::Connection) and the dispatch behind it.


// http;
pub mod stdio;
