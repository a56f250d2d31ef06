//! Settings of the allocator.

use libc::c_int;

/// Address space that an arena of the allocator reserves at a time. It becomes memory only when
/// it is used.
#[cfg(target_env = "gnu")]
const ARENA_STEP: c_int = 4 << 20;

/// Smallest allocation that gets its own mapping. Once any option is set, glibc stops adapting
/// this threshold by itself.
#[cfg(target_env = "gnu")]
const MMAP_THRESHOLD: c_int = 1 << 20;

/// Lets the allocator take memory in large pieces.
pub(crate) fn prepare_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: It sets numbers that the allocator reads under its locks.
    unsafe {
        libc::mallopt(libc::M_TOP_PAD, ARENA_STEP);
        libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD);
    }
}

/// Lets the allocator return free memory to the system.
pub(crate) fn release_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: It touches nothing but free memory, and that under the locks of the allocator.
    unsafe {
        libc::malloc_trim(0);
    }
}
