//! Cores for a server and others for its clients, as if they were on two machines: what clients see is then the server's
//! doing, and not that they themselves had to wait for a core.

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

/// Leaves this thread, and all it starts, one half of the cores, and keeps the other for servers.
///
/// # Errors
///
/// The system refuses it.
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

/// While it lives, what this thread starts runs on the cores for servers, if they are shared out.
#[derive(Debug)]
pub(crate) struct ForServer(());

impl ForServer {
    /// # Errors
    ///
    /// The system refuses it.
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
            // It could before.
            sched_setaffinity(None, &halves.clients).ok();
        }
    }
}
