//! Limits on what one caller, and all callers together, may use: rate limit, run queue,
//! memory budget, and the admission control that holds the three. Knows callers as principals; not
//! what they ask for.

pub(crate) mod admission;
pub(crate) mod memory_budget;
pub(crate) mod rate_limit;
pub(crate) mod run_queue;
