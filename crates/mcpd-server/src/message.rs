//! Parts of a message: its method, its arguments, the trace it belongs to, and texts of answers.
//! Knows nothing else of this crate.

pub(crate) mod apps;
pub(crate) mod arguments;
pub(crate) mod call;
pub(crate) mod downgrade;
pub(crate) mod identity;
pub(crate) mod method;
pub(crate) mod param_headers;
pub(crate) mod raw;
pub(crate) mod reply;
pub(crate) mod text;
pub(crate) mod tool_names;
pub(crate) mod trace;
pub(crate) mod transport;
