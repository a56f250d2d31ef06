//! What each method does, in one file per group of them. A handler gets a request and its context and
//! gives a result; which wire it is for, only its encoding needs to know.

pub(crate) mod completion;
mod instructions;
pub(crate) mod lifecycle;
pub(crate) mod lists;
pub(crate) mod prompts;
pub(crate) mod resources;
pub(crate) mod subscriptions;
pub(crate) mod tasks;
pub(crate) mod tools;
