//! A client and its requests: its session, a [`request`] in its context, the open ones and the
//! subscriptions, the questions that wait for answers, and the queue of messages to it. Knows no
//! method, and of transports only their names.

pub(crate) mod approvals;
pub(crate) mod inflight;
pub(crate) mod outbox;
pub(crate) mod questions;
pub(crate) mod request;
pub(crate) mod session;
pub(crate) mod subscribers;
