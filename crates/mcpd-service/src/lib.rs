//! A server and the system that it runs on: sockets and states of its service manager, requests to
//! end, Unix domain sockets in files, the pipes of a peer, and a standard error that never makes it
//! wait.
//!
//! ```no_run
//! use mcpd_service::manager::{self, PassedSocket, ServiceState};
//! use mcpd_service::signals::Termination;
//! use mcpd_service::stderr;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! stderr::report_panics();
//! stderr::drop_when_full();
//! let _flush = stderr::flush_on_drop();
//! let mut termination = Termination::listen()?;
//! let listener = match manager::sockets()?.pop() {
//!     Some(PassedSocket::Network(listener)) => listener,
//!     _ => std::net::TcpListener::bind("127.0.0.1:8080")?,
//! };
//! let served = async move { /* Accepts connections. */ drop(listener) };
//! manager::report_state(ServiceState::Ready).await;
//! tokio::select! {
//!     () = served => {}
//!     () = manager::ping_watchdog() => {}
//!     () = termination.wait() => stderr::write(b"ends as the system wishes\n"),
//! }
//! manager::report_state(ServiceState::Stopping).await;
//! # Ok(()) }
//! ```
//!
//! - [`manager`]: systemd and its relatives. Without one, nothing is passed and nothing is sent.
//! - [`pipes`]: standard input and output of one peer, and the moment when nothing reads them.
//! - [`signals`]: SIGTERM, SIGINT and SIGHUP; Ctrl-C on other systems.
//! - `socket_file`, on Unix: a socket that only its owner can open, in a file that goes with it.
//! - [`stderr`]: a bounded queue, with loss for servers and backpressure for commands.
//!
//! # Stability
//!
//! Before 1.0 a minor version may break. The minimum supported Rust version is 1.95.

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod manager;
pub mod pipes;
pub mod signals;
#[cfg(unix)]
pub mod socket_file;
pub mod stderr;
