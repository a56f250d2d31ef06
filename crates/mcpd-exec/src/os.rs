//! Operating system interface: creating, confining, signalling and reaping processes, pipes, and
//! the meaning of error numbers.
//!
//! Linux is tested, and confines best. On other systems the standard library creates processes;
//! `--cfg mcpd_portable` selects that on Linux too.

use std::io;
use std::net::TcpListener;
use std::process::ExitStatus;

use crate::egress::Password;
use crate::outcome::Usage;
use crate::warm::Warmth;

#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub(crate) use unix::{
    Pipe, Reader, Writer, can_enter, core_dumped, fault, file_size_limit, first_write,
    is_executable, may_execute, read_at_once, reader, signal, widen, writer,
};
#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub(crate) use windows::{
    Pipe, Reader, Writer, can_enter, core_dumped, fault, file_size_limit, first_write,
    is_executable, may_execute, read_at_once, reader, signal, widen, writer,
};

#[cfg(all(target_os = "linux", not(mcpd_portable)))]
pub use crate::linux::Allocator;
#[cfg(all(target_os = "linux", not(mcpd_portable)))]
pub(crate) use crate::linux::{
    Child, ExitWatch, InstalledClass, SpawnerClass, System, control_group, is_open_for_writing,
    prepare_memory, prepare_signals, release_memory, run_watchdog,
};
#[cfg(any(not(target_os = "linux"), mcpd_portable))]
mod portable;
#[cfg(any(target_os = "macos", all(unix, test)))]
mod seatbelt;
#[cfg(any(not(target_os = "linux"), mcpd_portable))]
pub use portable::Allocator;
#[cfg(any(not(target_os = "linux"), mcpd_portable))]
pub(crate) use portable::{
    Child, ExitWatch, InstalledClass, SpawnerClass, System, control_group, is_open_for_writing,
    prepare_memory, prepare_signals, release_memory, run_watchdog,
};

/// New process, with our ends of its pipes.
#[derive(Debug)]
pub(crate) struct SpawnedChild {
    pub(crate) child: Child,
    /// Socket for the proxy of the run, if it has one, with the password of its clients.
    pub(crate) proxy: Option<io::Result<(TcpListener, Option<Password>)>>,
    /// Start of the process, if a warm one was asked for.
    pub(crate) warmth: Option<Warmth>,
    pub(crate) stdin: Option<Pipe>,
    pub(crate) stdout: Pipe,
    pub(crate) stderr: Pipe,
}

/// One output stream of a process.
#[derive(Debug)]
pub(crate) struct Output {
    /// `None` once every other end is closed.
    pub(crate) pipe: Option<Pipe>,
    /// Bytes that were already read.
    pub(crate) read: Vec<u8>,
}

impl Output {
    pub(crate) fn new(pipe: Pipe) -> Self {
        Self {
            pipe: Some(pipe),
            read: Vec::new(),
        }
    }
}

/// Number of SIGKILL, which no process can catch.
pub(crate) const KILL: i32 = 9;

/// Exit status and resource usage, as the reaper of a process gets them.
pub(crate) type ExitReport = (ExitStatus, Usage);

/// Class of a failed start, as far as the error number tells.
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
