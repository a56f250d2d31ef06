//! Parts of a message beside its method and parameters: the trace it belongs to, and arguments
//! that are repeated in headers.

pub(crate) mod param_headers;
pub(crate) mod trace;
