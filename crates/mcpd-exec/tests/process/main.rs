//! What the executor promises, one file per guarantee. The scripts are hostile and real.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod alone;
mod cancel;
mod confined;
mod ending;
mod environment;
mod input;
mod leftover;
mod output;
mod queue;
mod races;
mod shutdown;
mod start;
mod support;
mod time_out;
