//! Memory of the whole process.
//!
//! A program that starts many processes, or that handles large inputs and outputs, installs the
//! allocator, and calls the functions where they belong:
//!
//! ```no_run
//! #[global_allocator]
//! static ALLOCATOR: mcpd_exec::memory::Allocator = mcpd_exec::memory::Allocator;
//!
//! fn main() {
//!     mcpd_exec::memory::prepare();
//!     // ...
//! }
//! ```

use crate::os;

pub use os::Allocator;

/// Lets the allocator take memory from the system in large pieces (Linux with glibc). Otherwise
/// threads take it page by page while a program grows, and block each other.
///
/// Call it first in `main`: it concerns the whole process.
pub fn prepare() {
    os::prepare_memory();
}

/// Returns memory to the system (Linux): free memory that the allocator of glibc holds, and pages
/// with code and constants of the program and its libraries, most of which only its start needs.
/// Breakpoints in that code are lost.
///
/// It may take milliseconds, and is worth them once a program has started and after heavy use:
/// glibc keeps free memory that lies below memory in use.
pub fn release() {
    os::release_memory();
}
