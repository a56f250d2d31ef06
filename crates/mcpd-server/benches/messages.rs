//! Cost of a message from its bytes to those of the response, without a transport or a process.
//!
//! `cargo bench -p mcpd-server` prints the time per kind of message.

#![expect(clippy::unwrap_used, reason = "a benchmark may fail where it stands")]

use bytes::Bytes;
use divan::{Bencher, black_box};
use mcpd_exec::{Config, Executor};
use mcpd_protocol::jsonrpc::Message;
use mcpd_scriptspec::{HelpOutput, ScriptSpec, parse};
use mcpd_server::catalog::Search;
use mcpd_server::{CallContext, Connection, Reply, Server, ServerBuilder, ToolNames};
use serde_json::value::RawValue;
use tokio::runtime::{Builder, Runtime};

#[path = "../tests/search/corpus.rs"]
mod corpus;

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo0","arguments":{"text":"Hello"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

const SEARCH: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_tools","arguments":{"query":"bring back the database dump after the emergency"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
const UNKNOWN: &str = r#"{"jsonrpc":"2.0","id":1,"method":"nobody/knows","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

const METADATA: &str = r#"{"title": "Calculator", "description": "Calculates.", "version": "1.0"}"#;
const OPTIONS: &str = r#"{
  "operation": {"description": "What to do.", "required": true, "value_type": {"enum": ["add", "subtract"]}},
  "a": {"description": "First number.", "required": true, "value_type": "float"},
  "b": {"description": "Second number.", "required": true, "value_type": "float"},
  "digits": {"description": "Digits after the point.", "value_type": "integer", "default_value": 2, "size": {"min": 0, "max": 9}},
  "unit": {"description": "What is counted.", "value_type": "string", "default_value": "", "size": {"max": 8}}
}"#;
const ARGUMENTS: &str = r#"{"operation": "add", "a": 1, "b": "2.5", "digits": 3}"#;

fn main() {
    divan::main();
}

fn message(kind: &str) -> &'static str {
    match kind {
        "list" => LIST,
        "call" => CALL,
        _ => panic!("there is no {kind}"),
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    /// Text of the answer.
    text: String,
}

/// Runtime and executor of a server with native tools.
struct World {
    runtime: Runtime,
    executor: Executor,
}

impl World {
    fn new() -> Self {
        Self {
            runtime: Builder::new_current_thread().enable_all().build().unwrap(),
            executor: Executor::new(Config::default()).unwrap(),
        }
    }

    /// Connects a client to a new server.
    fn connection(&self, tools: usize) -> Connection {
        let echo = async |echo: Echo, _: CallContext| echo.text;
        self.connect((0..tools).fold(Server::builder(), |server, number| {
            server.tool(format!("echo{number}"), "Answers with its text.", echo)
        }))
    }

    /// Connects a client to a new server with 2,000 tools and a search for them.
    fn searchable(&self) -> Connection {
        self.connect(corpus::add_tools(Server::builder()).search(Search::default()))
    }

    fn connect(&self, server: ServerBuilder) -> Connection {
        let _runtime = self.runtime.enter();
        let server = server.executor(self.executor.clone()).start().unwrap();
        self.runtime.block_on(server.catalog_ready());
        Connection::open(&server, ToolNames::Portable).0
    }
}

/// Returns the response to `message`.
fn answer(runtime: &Runtime, connection: &Connection, message: &str) -> Bytes {
    match connection.receive(message.as_bytes()) {
        Reply::Ready(answer) => answer,
        Reply::Pending(answer) => runtime.block_on(answer).unwrap(),
        Reply::Nothing => panic!("no answer to {message}"),
    }
}

/// Decodes the bytes of a request.
#[divan::bench(args = ["list", "call"])]
fn decode(bencher: Bencher<'_, '_>, kind: &str) {
    let message = message(kind);
    bencher.bench_local(|| Message::decode(black_box(message.as_bytes())).is_ok());
}

/// Request whose response costs next to nothing itself.
#[divan::bench]
fn dispatch(bencher: Bencher<'_, '_>) {
    let world = World::new();
    let connection = world.connection(3);
    let _runtime = world.runtime.enter();
    bencher.bench_local(|| answer(&world.runtime, &connection, black_box(UNKNOWN)));
}

/// `tools/list` for every client but the first.
#[divan::bench(args = [3, 100, 1000])]
fn list(bencher: Bencher<'_, '_>, tools: usize) {
    let world = World::new();
    let connection = world.connection(tools);
    let _runtime = world.runtime.enter();
    bencher.bench_local(|| answer(&world.runtime, &connection, black_box(LIST)));
}

/// `tools/list` for the first client after a change.
#[divan::bench(args = [3, 100, 1000], sample_count = 20, sample_size = 1)]
fn first_list(bencher: Bencher<'_, '_>, tools: usize) {
    let world = World::new();
    let _runtime = world.runtime.enter();
    bencher
        .with_inputs(|| world.connection(tools))
        .bench_local_refs(|connection| answer(&world.runtime, connection, black_box(LIST)));
}

/// Search among 2,000 tools.
#[divan::bench]
fn search(bencher: Bencher<'_, '_>) {
    let world = World::new();
    let connection = world.searchable();
    let _runtime = world.runtime.enter();
    bencher.bench_local(|| answer(&world.runtime, &connection, black_box(SEARCH)));
}

/// First search among 2,000 tools after a change.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn first_search(bencher: Bencher<'_, '_>) {
    let world = World::new();
    let _runtime = world.runtime.enter();
    bencher
        .with_inputs(|| world.searchable())
        .bench_local_refs(|connection| answer(&world.runtime, connection, black_box(SEARCH)));
}

/// Call of a native tool.
#[divan::bench]
fn native_call(bencher: Bencher<'_, '_>) {
    let world = World::new();
    let connection = world.connection(3);
    bencher.bench_local(|| {
        let _runtime = world.runtime.enter();
        answer(&world.runtime, &connection, black_box(CALL))
    });
}

/// Validates the arguments of a call, and builds stdin and environment of the script.
#[divan::bench]
fn invocation(bencher: Bencher<'_, '_>) {
    let spec = spec();
    let arguments = RawValue::from_string(ARGUMENTS.to_owned()).unwrap();
    bencher.bench_local(|| spec.invocation(black_box(Some(&arguments))).unwrap());
}

/// Parses the output of `--help`.
#[divan::bench]
fn description(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| black_box(spec()));
}

fn spec() -> ScriptSpec {
    let help = HelpOutput {
        stdout: METADATA.as_bytes(),
        stderr: OPTIONS.as_bytes(),
    };
    parse(help).spec.unwrap()
}
