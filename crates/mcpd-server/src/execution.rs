//! Calls of scripts: arguments, runs and their output, rounds of input, and the result. Knows the
//! script and the request; neither the catalog nor a transport.

pub(crate) mod approval;
pub(crate) mod archive;
pub(crate) mod call;
mod client_directory;
pub(crate) mod elsewhere;
pub(crate) mod engine;
pub(crate) mod for_front;
pub(crate) mod input_rounds;
mod line_tap;
pub(crate) mod output;
pub(crate) mod permit;
pub(crate) mod relay;
pub(crate) mod run;
mod run_observer;
pub(crate) mod seal;
