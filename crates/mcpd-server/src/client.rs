//! State of one client: its session, its open requests and subscriptions, the questions that
//! wait for its answers, and the queue of messages to it. Knows no transport.

pub(crate) mod approvals;
pub(crate) mod inflight;
pub(crate) mod outbox;
pub(crate) mod questions;
pub(crate) mod session;
pub(crate) mod subscribers;
