#![doc = include_str!("../README.md")]
//!
//! # Structure
//!
//! ```text
//! input ──line──► dispatch ──► exchange ──POST──► server
//!                    │  64 at once  │
//!                    │              └─JSON, or events─► output ──line──► client
//!                    └─ outbox: notifications and responses, one after the other
//! listener ──GET──► messages of the server outside responses ─► output
//! ```
//!
//! `session` has the state of a revision with sessions: the id, the negotiated version, and the
//! client's own introduction, with which a lost session is opened again. Revision 2026-07-28 has
//! no state; its headers come from each message.
//!
//! # Features
//!
//! None.
//!
//! # Stability
//!
//! Before 1.0 a minor version may break. The minimum supported Rust version is 1.95.

#![forbid(unsafe_code)]

mod answer;
mod backoff;
mod bridge;
mod dispatch;
mod error;
mod events;
mod exchange;
mod http;
mod input;
mod link;
mod listener;
mod login;
mod message;
mod output;
mod pending;
mod refusal;
mod session;
mod target;

pub use bridge::Bridge;
pub use error::Error;
pub use login::{Login, log_out};
pub use target::Target;
