//! Script descriptions → specs, JSON Schemas and diagnostics; arguments → stdin,
//! environment and command line.
//!
//! Pure functions of bytes: this crate starts no process, reads no file and no
//! variable, and does not know MCP.
//!
//! # The contract in one example
//!
//! ```
//! use mcpd_scriptspec::{HelpOutput, parse};
//! use serde_json::{json, value::RawValue};
//!
//! // A script prints its metadata to stdout and its options to stderr when asked for `--help`.
//! let parsed = parse(HelpOutput {
//!     stdout: br#"{"description": "Repeats a word", "version": "1.0"}"#,
//!     stderr: br#"{"word": {"description": "What to repeat", "required": true,
//!                           "value_type": "string"},
//!                  "times": {"description": "How often", "required": false,
//!                            "value_type": "integer", "default_value": 1,
//!                            "size": {"min": 1, "max": 9}}}"#,
//! });
//! let spec = parsed.spec.expect("the script has no errors");
//!
//! // Callers see a JSON Schema.
//! assert_eq!(spec.input_schema(), json!({
//!     "type": "object",
//!     "properties": {
//!         "word": {"type": "string", "description": "What to repeat"},
//!         "times": {"type": "integer", "minimum": 1, "maximum": 9,
//!                   "description": "How often", "default": 1},
//!     },
//!     "required": ["word"],
//!     "additionalProperties": false,
//! }));
//!
//! // The script gets checked arguments, on stdin and as variables.
//! let arguments = RawValue::from_string(r#"{"times": "3", "word": "ho"}"#.to_owned())?;
//! let invocation = spec.invocation(Some(&arguments)).expect("the arguments are valid");
//! assert_eq!(invocation.stdin, br#"{"word":"ho","times":3}"#);
//! assert_eq!(invocation.env[1], ("MCPD_OPT_times".to_owned(), "3".to_owned()));
//!
//! // A caller gets every fault of its arguments.
//! let arguments = RawValue::from_string(r#"{"word": "ho", "times": 10}"#.to_owned())?;
//! let faults = spec.invocation(Some(&arguments)).unwrap_err();
//! let fault = "option `times`: expected an integer from 1 to 9, got the number 10";
//! assert_eq!(faults[0].to_string(), fault);
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! # A linter in ten lines
//!
//! ```
//! use mcpd_scriptspec::{HelpOutput, Severity, parse};
//!
//! fn lint(stdout: &[u8], stderr: &[u8]) -> bool {
//!     let parsed = parse(HelpOutput { stdout, stderr });
//!     for fault in &parsed.diagnostics {
//!         let place = &fault.location;
//!         print!("{} at byte {}: ", place.stream, place.span.start);
//!         println!("{}: {} [{}]", fault.severity, fault.message, fault.code);
//!     }
//!     parsed.diagnostics.iter().all(|fault| fault.severity < Severity::Error)
//! }
//!
//! assert!(lint(br#"{"descripton": "Says hello"}"#, b""));
//! assert!(!lint(b"Hello, World!", b""));
//! ```
//!
//! Without output to parse, [`Diagnostic::help_failed`] and its neighbours report the reason. A
//! file that describes itself is read instead of probed, and may contain several tools:
//!
//! ```
//! use mcpd_scriptspec::Dialect;
//!
//! let path = "hello.sh";
//! let text = b"# /// mcpd\n# titel = \"Hello\"\n# description = \"Says it\"\n# ///\n";
//! let dialect = Dialect::of(path, text).expect("it has a header");
//! let tools = dialect.read(path, text);
//! let fault = &tools[0].parsed.diagnostics[0];
//! let line = text[..fault.location.span.start].split(|byte| *byte == b'\n').count();
//! assert_eq!((line, fault.code.as_str()), (2, "unknown-field"));
//! ```

#![forbid(unsafe_code)]

pub mod adopt;
mod decimal;
mod definition;
mod diagnostic;
pub mod dialect;
mod edit;
mod header;
mod input_schema;
mod invocation;
mod json;
pub mod log_line;
mod name;
pub mod output;
mod parse;
pub mod portable;
pub mod rules;
pub mod shell;
pub mod spec;
mod suggest;
mod synopsis;
pub mod template;
mod text;
pub mod text_arguments;
pub mod uri;
mod uri_template;
mod value;

pub use decimal::Decimal;
pub use diagnostic::{Diagnostic, Location, Severity, Stream};
pub use dialect::Dialect;
pub use edit::{Edit, apply_edits};
pub use header::header_fault;
pub use invocation::{ArgumentFault, Invocation, members};
pub use name::{PathError, ScriptPath};
pub use parse::{HelpOutput, Parsed, parse};
pub use rules::Code;
pub use spec::{OutputFormat, Role, ScriptOption, ScriptSpec, TaskSupport, ValueType};
pub use suggest::suggest;
pub use text::{excerpt, is_hidden};
