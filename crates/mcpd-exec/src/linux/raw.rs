//! Process creation with vfork semantics, and the few system calls that no safe library offers.
//! All unsafe code of the crate is here and below.
//!
//! The child runs on its own stack in the memory of this process, while the calling thread sleeps
//! until the child has reached its program or has ended. So the child may only make system calls:
//! it must not allocate, lock or panic. Everything it needs is prepared before, and it reports
//! back in two words, [`ChildReport`].
#![expect(
    unsafe_code,
    reason = "std can only confine a child after fork, which takes the longer the larger we are"
)]

mod child;
pub(crate) mod init;
#[cfg(test)]
pub(crate) mod injection;
pub(crate) mod lease;
mod memory;
mod mount;
mod network;
mod plan;
mod signals;
mod spawn;
mod wait;

use std::io;

use libc::{c_int, c_long};

pub use memory::Allocator;
pub(crate) use memory::{prepare_memory, release_memory};
pub(crate) use network::receive_descriptor;
pub(crate) use plan::{
    FixedPlace, Image, MAX_TREES, Namespaces, NetworkPlan, Privileges, SetupStage, SpawnPlan, Step,
};
pub(crate) use signals::{loses_children, prepare_signals};
pub(crate) use spawn::{Failure, Spawned, marks_descriptors, spawn};
use wait::usage_from;
pub(crate) use wait::{hard_limit_of, reap};

fn errno() -> c_int {
    // SAFETY: it points to this thread's errno, which the child shares.
    unsafe { *libc::__errno_location() }
}

/// Runs a system call and turns its result into a `Result`.
fn check_call(call: impl FnOnce() -> c_long) -> io::Result<c_long> {
    match call() {
        result if result < 0 => Err(io::Error::from_raw_os_error(errno())),
        result => Ok(result),
    }
}
