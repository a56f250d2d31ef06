//! Guarantees of the executor, one file each. The scripts are hostile and real.
#![cfg(unix)]
#![cfg_attr(
    mcpd_portable,
    expect(dead_code, reason = "nothing is confined there, so less is needed")
)]
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod alone;
#[cfg(all(target_os = "linux", not(mcpd_portable)))]
mod backends;
mod cancel;
#[cfg(all(target_os = "linux", not(mcpd_portable)))]
mod confined;
#[cfg(all(target_os = "linux", not(mcpd_portable)))]
mod destinations;
#[cfg(all(target_os = "linux", not(mcpd_portable)))]
mod directory;
mod ending;
mod environment;
#[cfg(all(target_os = "linux", not(mcpd_portable)))]
mod files;
#[cfg(all(target_os = "linux", not(mcpd_portable)))]
mod groups;
#[cfg(all(target_os = "linux", not(mcpd_portable)))]
mod homes;
#[cfg(all(target_os = "linux", not(mcpd_portable)))]
mod host;
mod input;
#[cfg(all(target_os = "linux", not(mcpd_portable)))]
mod isolation;
mod leftover;
#[cfg(all(target_os = "linux", not(mcpd_portable)))]
mod network;
mod output;
#[cfg(mcpd_portable)]
mod portable;
#[cfg(all(target_os = "linux", not(mcpd_portable)))]
mod privileges;
#[cfg(all(target_os = "linux", not(mcpd_portable)))]
mod programs;
mod queue;
#[cfg(all(target_os = "linux", not(mcpd_portable)))]
mod races;
#[cfg(all(target_os = "linux", not(mcpd_portable)))]
mod resources;
#[cfg(all(target_os = "linux", not(mcpd_portable)))]
mod scripts;
mod shutdown;
mod skip;
mod spill;
mod start;
mod support;
#[cfg(all(target_os = "linux", not(mcpd_portable)))]
mod system_calls;
#[cfg(all(target_os = "linux", not(mcpd_portable)))]
mod temporary;
mod time_out;
#[cfg(all(target_os = "linux", not(mcpd_portable)))]
mod warm;
#[cfg(all(target_os = "linux", not(mcpd_portable)))]
mod warm_scripts;
