//! What differs between systems: groups, signals, pipes, noticing an exit, and what error numbers mean.
//!
//! Linux is what is tested. Elsewhere on Unix a waiter thread replaces the pidfd; `--cfg mcpd_portable_wait`
//! selects that on Linux too. On Windows only the process itself is killed, not what it started.

#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub(crate) use unix::{
    Reader, Writer, can_enter, configure, core_dumped, fault, first_write, has_exited,
    is_executable, kill, reader, signal, terminate, writer,
};

#[cfg(all(target_os = "linux", not(mcpd_portable_wait)))]
#[path = "os/linux.rs"]
mod wait;
#[cfg(all(unix, any(not(target_os = "linux"), mcpd_portable_wait)))]
#[path = "os/portable.rs"]
mod wait;
#[cfg(unix)]
pub(crate) use wait::ExitWatch;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub(crate) use windows::{
    ExitWatch, Reader, Writer, can_enter, configure, core_dumped, fault, first_write, has_exited,
    is_executable, kill, reader, signal, terminate, writer,
};

/// What a failed start means, as far as the error number tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Missing,
    NotDirectory,
    Denied,
    Loop,
    NotAProgram,
    TooLarge,
    Busy,
    Exhausted,
    Other,
}
