//! Handlers of the methods, one file per group. A handler receives a request and its context and
//! returns a result; only the encoding of the result depends on the wire.

pub(crate) mod completion;
pub(crate) mod dispatch;
mod instructions;
pub(crate) mod lifecycle;
pub(crate) mod lists;
pub(crate) mod prompts;
pub(crate) mod resources;
pub(crate) mod skills;
pub(crate) mod subscriptions;
pub(crate) mod tasks;
pub(crate) mod tools;
