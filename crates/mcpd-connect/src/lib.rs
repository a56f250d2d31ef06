//! Bridge from a client on two pipes to an MCP server over HTTP: lines of JSON-RPC in, lines back.
//!
//! ```
//! use std::io::{Cursor, Read as _};
//!
//! use mcpd_connect::{Bridge, Target};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
//! # let url = format!("http://{}/mcp", listener.local_addr()?);
//! # std::thread::spawn(move || {
//! #     use std::io::Write as _;
//! #     let (mut stream, _) = listener.accept().unwrap();
//! #     stream.read(&mut [0; 1024]).unwrap();
//! #     let body = "{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": {}}";
//! #     let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length:";
//! #     write!(stream, "{head} {}\r\n\r\n{body}", body.len()).unwrap();
//! # });
//! let target = Target::new(&url)?.token("ed9fb1c0")?;
//! let input = Cursor::new(r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#);
//! let (mut lines, output) = std::io::pipe()?;
//!
//! // A program passes stdin, stdout, and a future that is ready when a signal asks it to end.
//! let bridge = Bridge::new(target)?;
//! bridge.run(input, output, std::future::pending()).await?;
//!
//! let mut answers = String::new();
//! lines.read_to_string(&mut answers)?;
//! assert_eq!(answers, "{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": {}}\n");
//! # Ok(())
//! # }
//! ```
//!
//! It is a transport and nothing more: it reads ids, methods and a few parameters, and passes
//! messages on as their bytes. Memory is that of the messages under way: a message is collected
//! before it is passed on, so that half a message never reaches the client, in a buffer of up to
//! twice its size.
//!
//! # Structure
//!
//! ```text
//! input ──line──► dispatch ──► exchange ──POST──► server
//!                    │  64 at once  │
//!                    │              └─JSON, or events─► output ──line──► client
//!                    └─ outbox: notifications and responses, one after the other
//! listener ──GET──► messages of the server outside responses ─► output
//! ```
//!
//! `session` has the state of a revision with sessions: the id, the negotiated version, and the
//! client's own introduction, with which a lost session is opened again. Revision 2026-07-28 has
//! no state; its headers come from each message.
//!
//! # Features
//!
//! None.
//!
//! # Stability
//!
//! Before 1.0 a minor version may break. The minimum supported Rust version is 1.95.

#![forbid(unsafe_code)]

mod answer;
mod backoff;
mod bridge;
mod console;
mod dispatch;
mod error;
mod events;
mod exchange;
mod http;
mod input;
mod link;
mod listener;
mod login;
mod message;
mod output;
mod parameters;
mod pending;
mod refusal;
mod session;
mod target;

pub use bridge::Bridge;
pub use console::console_link;
pub use error::Error;
pub use login::{Login, log_out};
pub use target::Target;

/// Example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
