//! One request: its envelope, on either wire, and the context in which it is answered. Knows who
//! asks and by which revision.

pub(crate) mod context;
pub(crate) mod envelope;
pub(crate) mod side_stream;
