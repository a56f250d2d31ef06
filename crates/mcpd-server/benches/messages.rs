//! What a message costs from its bytes to the bytes of its answer, without any transport or process.
//!
//! `cargo bench -p mcpd-server` prints, for each kind of message, how long one takes.

#![expect(clippy::unwrap_used, reason = "a benchmark may fail where it stands")]

use bytes::Bytes;
use divan::{Bencher, black_box};
use mcpd_exec::{Config, Executor};
use mcpd_scriptspec::{HelpOutput, ScriptSpec, parse};
use mcpd_server::{CallContext, Connection, Reply, Server, ToolNames};
use serde_json::value::RawValue;
use tokio::runtime::{Builder, Runtime};

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo0","arguments":{"text":"Hello"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

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

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    /// What to answer.
    text: String,
}

/// A server of so many native tools, and what it runs on.
struct World {
    runtime: Runtime,
    executor: Executor,
}

impl World {
    fn new() -> Self {
        let mut config = Config::default();
        config.spawners = 1;
        Self {
            runtime: Builder::new_current_thread().enable_all().build().unwrap(),
            executor: Executor::new(config).unwrap(),
        }
    }

    /// One client of a new server.
    fn connection(&self, tools: usize) -> Connection {
        let _runtime = self.runtime.enter();
        let echo = async |echo: Echo, _: CallContext| echo.text;
        let server = (0..tools)
            .fold(
                Server::builder().executor(self.executor.clone()),
                |server, number| {
                    server.tool(format!("echo{number}"), "Answers with its text.", echo)
                },
            )
            .start()
            .unwrap();
        self.runtime.block_on(server.catalog_ready());
        Connection::open(&server, ToolNames::Portable).0
    }
}

/// The answer to `message`.
fn answer(runtime: &Runtime, connection: &Connection, message: &str) -> Bytes {
    match connection.receive(message.as_bytes()) {
        Reply::Ready(answer) => answer,
        Reply::Pending(answer) => runtime.block_on(answer).unwrap(),
        Reply::Nothing => panic!("no answer to {message}"),
    }
}

/// `tools/list` as every client but the first gets it.
#[divan::bench(args = [3, 100, 1000])]
fn list(bencher: Bencher<'_, '_>, tools: usize) {
    let world = World::new();
    let connection = world.connection(tools);
    let _runtime = world.runtime.enter();
    bencher.bench_local(|| answer(&world.runtime, &connection, black_box(LIST)));
}

/// `tools/list` as the first client after a change gets it.
#[divan::bench(args = [3, 100, 1000], sample_count = 20, sample_size = 1)]
fn first_list(bencher: Bencher<'_, '_>, tools: usize) {
    let world = World::new();
    let _runtime = world.runtime.enter();
    bencher
        .with_inputs(|| world.connection(tools))
        .bench_local_refs(|connection| answer(&world.runtime, connection, black_box(LIST)));
}

/// A call of a tool that is a function.
#[divan::bench]
fn native_call(bencher: Bencher<'_, '_>) {
    let world = World::new();
    let connection = world.connection(3);
    bencher.bench_local(|| {
        let _runtime = world.runtime.enter();
        answer(&world.runtime, &connection, black_box(CALL))
    });
}

/// From the arguments of a call to stdin and environment of its script.
#[divan::bench]
fn invocation(bencher: Bencher<'_, '_>) {
    let spec = spec();
    let arguments = RawValue::from_string(ARGUMENTS.to_owned()).unwrap();
    bencher.bench_local(|| spec.invocation(black_box(Some(&arguments))).unwrap());
}

/// From the output of `--help` to what it means.
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
