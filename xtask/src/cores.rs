//! Separate cores for a server and its clients, as if on two machines: the latency that clients
//! see is then the server's, and not their own wait for a core.

use std::sync::OnceLock;

use rustix::io;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::report::line;

#[derive(Debug)]
struct Halves {
    server: CpuSet,
    clients: CpuSet,
}

static HALVES: OnceLock<Halves> = OnceLock::new();

/// Restricts this thread, and all it starts, to one half of the cores, and reserves the other for
/// servers.
///
/// # Errors
///
/// Fails if the system refuses it.
pub(crate) fn share() -> io::Result<()> {
    let all = sched_getaffinity(None)?;
    if all.count() < 2 {
        line(format_args!(
            "there is one core only, so that clients wait for it behind scripts"
        ));
        return Ok(());
    }
    let cores: Vec<_> = (0..CpuSet::MAX_CPU)
        .filter(|core| all.is_set(*core))
        .collect();
    let (server, clients) = cores.split_at(cores.len() / 2);
    let halves = HALVES.get_or_init(|| Halves {
        server: set(server),
        clients: set(clients),
    });
    sched_setaffinity(None, &halves.clients)
}

fn set(cores: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    for core in cores {
        set.set(*core);
    }
    set
}

/// Guard: while it lives, this thread starts processes on the server's cores, if the cores are
/// split.
#[derive(Debug)]
pub(crate) struct ForServer(());

impl ForServer {
    /// Moves this thread to the server's cores.
    ///
    /// # Errors
    ///
    /// Fails if the system refuses it.
    pub(crate) fn new() -> io::Result<Self> {
        if let Some(halves) = HALVES.get() {
            sched_setaffinity(None, &halves.server)?;
        }
        Ok(Self(()))
    }
}

impl Drop for ForServer {
    fn drop(&mut self) {
        if let Some(halves) = HALVES.get() {
            // Moving back can't fail, because the thread ran there before.
            sched_setaffinity(None, &halves.clients).ok();
        }
    }
}
