//! What the executor promises, one file per guarantee. The scripts are hostile and real.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod alone;
mod cancel;
mod confined;
mod ending;
mod environment;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod host;
mod input;
#[cfg(target_os = "linux")]
mod isolation;
mod kept;
mod leftover;
#[cfg(target_os = "linux")]
mod network;
mod output;
#[cfg(target_os = "linux")]
mod privileges;
#[cfg(target_os = "linux")]
mod programs;
mod queue;
mod races;
#[cfg(target_os = "linux")]
mod resources;
mod shutdown;
mod start;
mod support;
#[cfg(target_os = "linux")]
mod system_calls;
#[cfg(target_os = "linux")]
mod temporary;
mod time_out;
