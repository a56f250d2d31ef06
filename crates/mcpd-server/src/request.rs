//! One request: its envelope, on either wire, and the context in which it is answered.

pub(crate) mod context;
pub(crate) mod envelope;
pub(crate) mod side_stream;
