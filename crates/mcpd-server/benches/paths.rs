//! Paths through the server that `cargo xtask instructions` counts: `paths KIND NUMBER` takes one
//! that many times. Twice the number costs as much more as the paths themselves; the start of the
//! program cancels out.

#![expect(clippy::unwrap_used, reason = "a benchmark may fail where it stands")]

use std::fs;
use std::hint::black_box;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bytes::Bytes;
use mcpd_exec::{Config, Executor};
use mcpd_scriptspec::{HelpOutput, ScriptSpec, parse};
use mcpd_server::transport::http::{self, Auth, Options, Token};
use mcpd_server::{
    CallContext, Connection, Database, Principal, Reply, Server, ServerBuilder, ToolNames,
};
use serde_json::value::RawValue;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};

/// Number of scripts of the path `start`.
const REMEMBERED: usize = 100;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, number] = &arguments[..] else {
        // `cargo bench` and `cargo test --benches` start it without.
        return;
    };
    let Ok(number) = number.parse() else { return };
    let paths = Paths::new();
    match kind.as_str() {
        "list" => paths.answer(&list(), number),
        "function" => paths.answer(&call("echo"), number),
        "script" => paths.answer(&call("greet"), number),
        "http" => paths.answer_over_http(&list(), number),
        "arguments" => convert_arguments(number),
        "start" => paths.start_again(number),
        _ => panic!("there is no path `{kind}`"),
    }
}

fn list() -> String {
    request("tools/list", "")
}

fn call(tool: &str) -> String {
    request(
        "tools/call",
        &format!(r#""name":"{tool}","arguments":{{"name":"World"}},"#),
    )
}

fn request(method: &str, params: &str) -> String {
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}"_meta":{meta}}}}}"#)
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    /// Text of the answer.
    name: String,
}

/// Servers with a script and a function, on one thread.
struct Paths {
    runtime: Runtime,
    executor: Executor,
    directory: TempDir,
}

impl Paths {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        add_script(&directory.path().join("one"), "greet");
        Self {
            runtime: Builder::new_current_thread().enable_all().build().unwrap(),
            executor: Executor::new(Config::default()).unwrap(),
            directory,
        }
    }

    fn start(&self, server: ServerBuilder) -> Server {
        let _runtime = self.runtime.enter();
        let server = server.executor(self.executor.clone()).watch(false);
        let server = server.start().unwrap();
        self.runtime.block_on(server.catalog_ready());
        server
    }

    fn server(&self) -> Server {
        let echo = async |echo: Echo, _: CallContext| echo.name;
        let server = Server::builder().scripts(self.directory.path().join("one"));
        self.start(server.tool("echo", "Answers with its text.", echo))
    }

    fn answer(&self, request: &str, number: u32) {
        let connection = Connection::open(&self.server(), ToolNames::Portable).0;
        let _runtime = self.runtime.enter();
        for _ in 0..number {
            check(&self.exchange(&connection, black_box(request)));
        }
    }

    fn exchange(&self, connection: &Connection, request: &str) -> Bytes {
        match connection.receive(request.as_bytes()) {
            Reply::Ready(answer) => answer,
            Reply::Pending(answer) => self.runtime.block_on(answer).unwrap(),
            Reply::Nothing => panic!("no answer to {request}"),
        }
    }

    /// Sends requests one after the other on one connection.
    fn answer_over_http(&self, body: &str, number: u32) {
        let server = self.server();
        let token = Token::new("secret", Principal::new("agent"));
        let options = Options::new(Auth::tokens([token]));
        self.runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let request = format!(
                "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer secret\r\n\
                 Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
                 MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n\
                 Content-Length: {}\r\n\r\n{body}",
                body.len(),
            );
            let served = async { http::serve(&server, listener, options).await.unwrap() };
            let client = async {
                let mut client = TcpStream::connect(address).await.unwrap();
                client.set_nodelay(true).unwrap();
                let mut answer = vec![0; 64 * 1024];
                for _ in 0..number {
                    client.write_all(request.as_bytes()).await.unwrap();
                    // The answer is small, and written at once.
                    let size = client.read(&mut answer).await.unwrap();
                    check(&answer[..size]);
                }
            };
            tokio::select! {
                () = served => {}
                () = client => {}
            }
        });
    }

    /// Starts servers that remember all of their scripts.
    fn start_again(&self, number: u32) {
        let scripts = self.directory.path().join("many");
        for script in 0..REMEMBERED {
            add_script(&scripts, &format!("greet{script}"));
        }
        for _ in 0..=number {
            let database = Database::new(self.directory.path().join("mcpd.db"));
            let server = self.start(Server::builder().scripts(&scripts).database(database));
            let connection = Connection::open(&server, ToolNames::Portable).0;
            let _runtime = self.runtime.enter();
            check(&self.exchange(&connection, &list()));
            self.runtime.block_on(server.shutdown());
        }
    }
}

fn check(answer: &[u8]) {
    assert!(memchr::memmem::find(answer, b"\"result\"").is_some());
}

fn add_script(directory: &Path, name: &str) {
    let script = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Greets."}'
  echo '{"name": {"description": "Name of the guest.", "required": true, "value_type": "string"}}' >&2
  exit 0
fi
printf 'Hello, %s!' "$MCPD_OPT_name"
"#;
    fs::create_dir_all(directory).unwrap();
    let file = directory.join(name);
    fs::write(&file, script).unwrap();
    fs::set_permissions(file, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Validates the arguments of a call, and builds stdin and environment of the script.
fn convert_arguments(number: u32) {
    let spec = calculator();
    let arguments = r#"{"operation": "add", "a": 1, "b": "2.5", "digits": 3}"#;
    let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
    for _ in 0..number {
        black_box(spec.invocation(black_box(Some(&arguments))).unwrap());
    }
}

fn calculator() -> ScriptSpec {
    let options = r#"{
        "operation": {"description": "Operation.", "required": true, "value_type": {"enum": ["add", "subtract"]}},
        "a": {"description": "First number.", "required": true, "value_type": "float"},
        "b": {"description": "Second number.", "required": true, "value_type": "float"},
        "digits": {"description": "Digits after the point.", "value_type": "integer", "default_value": 2, "size": {"min": 0, "max": 9}},
        "unit": {"description": "Unit of the result.", "value_type": "string", "default_value": "", "size": {"max": 8}}
    }"#;
    let help = HelpOutput {
        stdout: br#"{"title": "Calculator", "description": "Calculates.", "version": "1.0"}"#,
        stderr: options.as_bytes(),
    };
    parse(help).spec.unwrap()
}
