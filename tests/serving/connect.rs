//! `mcpd connect` between a client on two pipes and a real mcpd over HTTP.

use std::fs;
use std::process::Command;

use mcpd_tests::{Daemon, Pipes, Sandbox, assert_group_ends, eventually, output};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::encryption::{Authority, TLS};

mod login;
mod recovery;
mod stand_in;

const HELLO: &str = "#!/bin/sh\n[ \"$1\" = --help ] && { echo '{}'; exit; }\necho hello\n";

/// Script that reports progress, and goes on when there is a file `go`.
const GATED: &str = "#!/bin/sh\n[ \"$1\" = --help ] && { echo '{}'; exit; }\n\
    echo 'PROGRESS 1/2 half' >&2\nuntil [ -e \"${0%/*}/../go\" ]; do sleep 0.01; done\necho done\n";

/// Script that lets the gated one go on.
const OPEN: &str = "#!/bin/sh\n[ \"$1\" = --help ] && { echo '{}'; exit; }\n\
    : > \"${0%/*}/../go\"\necho opened\n";

/// Script that runs until it is ended.
const ENDLESS: &str = "#!/bin/sh\n[ \"$1\" = --help ] && { echo '{}'; exit; }\n\
    cd \"${0%/*}/..\"\necho $$ >number.new && mv number.new number\nwhile :; do sleep 1; done\n";

const META: &str = "io.modelcontextprotocol/protocolVersion";

/// The two kinds of Streamable HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    Sessions,
    Stateless,
}

const ERAS: [Era; 2] = [Era::Sessions, Era::Stateless];

/// Client behind `mcpd connect`.
struct Client {
    pipes: Pipes,
    era: Era,
}

impl Client {
    /// Starts `command`, and introduces itself if its era has that.
    fn start(command: Command, era: Era) -> Self {
        let mut client = Self {
            pipes: Pipes::of(command),
            era,
        };
        if era == Era::Sessions {
            let answer = client.introduce();
            assert_eq!(
                answer["result"]["protocolVersion"], "2025-11-25",
                "{answer}"
            );
            client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        }
        client
    }

    fn introduce(&mut self) -> Value {
        self.send(
            &json!({"jsonrpc": "2.0", "id": "intro", "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"}}}),
        );
        self.pipes.receive()
    }

    fn send(&mut self, message: &Value) {
        self.pipes.send(message.to_string().as_bytes());
    }

    /// Calls a tool, and asks for its progress.
    fn call(&mut self, id: u64, tool: &str) {
        let mut meta = json!({"progressToken": id});
        if self.era == Era::Stateless {
            meta[META] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        let params = json!({"name": tool, "arguments": {}, "_meta": meta});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }

    fn cancel(&mut self, id: u64) {
        self.send(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": id}}),
        );
    }

    /// Returns the next answer, past notifications.
    #[track_caller]
    fn answer(&self) -> Value {
        loop {
            let message = self.pipes.receive();
            if !message["id"].is_null() {
                return message;
            }
        }
    }

    #[track_caller]
    fn check_answer(&self, id: u64, text: &str) {
        let answer = self.answer();
        assert_eq!(answer["id"], id, "{answer}");
        assert_eq!(answer["result"]["content"][0]["text"], text, "{answer}");
    }
}

/// Returns `mcpd connect` for a daemon, with its token.
fn connect(sandbox: &Sandbox, daemon: &Daemon) -> Command {
    let mut command = sandbox.command(&["connect", &daemon.url()]);
    command.env("MCPD_TOKEN", daemon.token().unwrap());
    command
}

fn sandbox() -> Sandbox {
    Sandbox::new()
        .with_script("hello", HELLO)
        .with_script("gated", GATED)
        .with_script("open", OPEN)
        .with_script("endless", ENDLESS)
}

#[test]
fn calls_of_each_era_are_answered() {
    let sandbox = sandbox();
    let daemon = Daemon::start(&sandbox, &[]);
    for era in ERAS {
        let mut client = Client::start(connect(&sandbox, &daemon), era);
        client.call(1, "hello");
        client.check_answer(1, "hello");
        client.pipes.close_input();
        assert_eq!(client.pipes.wait(), 0, "{era:?}");
    }
}

#[test]
fn arguments_that_a_tool_wants_in_headers_are_repeated() {
    const ROUTED: &str = "#!/bin/sh\n# /// mcpd\n# [options.region]\n# value_type = \"string\"\n\
        # header = \"Region\"\n# ///\necho \"in $MCPD_OPT_region\"\n";
    let sandbox = Sandbox::new().with_script("routed", ROUTED);
    let daemon = Daemon::start(&sandbox, &[]);
    let mut client = Client::start(connect(&sandbox, &daemon), Era::Stateless);
    let meta = json!({META: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params":
        {"name": "routed", "arguments": {"region": "größe"}, "_meta": meta}});
    // The tool has not been listed yet, and the server says what is missing.
    client.send(&call);
    let answer = client.pipes.receive();
    assert_eq!(answer["error"]["code"], -32020, "{answer}");
    client.send(
        &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params":
        {"_meta": meta}}),
    );
    assert_eq!(client.pipes.receive()["id"], 1);
    client.send(&call);
    let answer = client.pipes.receive();
    assert_eq!(
        answer["result"]["content"][0]["text"], "in größe",
        "{answer}"
    );
}

#[test]
fn piped_messages_are_answered_in_full() {
    let sandbox = sandbox();
    let daemon = Daemon::start(&sandbox, &[]);
    let lines = [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
    ];
    let lines = lines.map(|line| line.to_string()).join("\n");
    let output = output(connect(&sandbox, &daemon), lines.as_bytes());
    let answers = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> = answers
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert_eq!(answers[0]["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(answers[1]["result"]["tools"].as_array().unwrap().len(), 4);
    assert!(output.status.success());
}

#[test]
fn faulty_line_is_answered_as_by_mcpd_stdio() {
    let sandbox = sandbox();
    let daemon = Daemon::start(&sandbox, &[]);
    for line in [
        "nonsense",
        "[]",
        "[{}]",
        "{}",
        "1",
        "{\"jsonrpc\": \"2.0\", \"id\": 7}",
    ] {
        let direct = sandbox.run_with_stdin(&["stdio", "scripts", "--quiet"], line);
        let connected = output(connect(&sandbox, &daemon), line.as_bytes());
        assert_eq!(sandbox.transcript(&connected), direct, "{line}");
    }
}

#[test]
fn progress_arrives_before_the_result() {
    for era in ERAS {
        let sandbox = sandbox();
        let daemon = Daemon::start(&sandbox, &[]);
        let mut client = Client::start(connect(&sandbox, &daemon), era);
        client.call(1, "gated");
        let progress = client.pipes.receive();
        assert_eq!(progress["method"], "notifications/progress", "{progress}");
        assert_eq!(progress["params"]["message"], "half");
        fs::write(sandbox.path().join("go"), "").unwrap();
        client.check_answer(1, "done");
    }
}

#[test]
fn calls_run_concurrently() {
    for era in ERAS {
        let sandbox = sandbox();
        let daemon = Daemon::start(&sandbox, &["--concurrency", "4"]);
        let mut client = Client::start(connect(&sandbox, &daemon), era);
        client.call(1, "gated");
        assert_eq!(client.pipes.receive()["method"], "notifications/progress");
        // The first is answered only because the second runs meanwhile.
        client.call(2, "open");
        let mut ids = [client.answer(), client.answer()].map(|answer| answer["id"].as_u64());
        ids.sort_unstable();
        assert_eq!(ids, [Some(1), Some(2)]);
    }
}

#[test]
fn more_calls_than_run_at_once_are_all_answered() {
    let sandbox = sandbox();
    let daemon = Daemon::start(&sandbox, &[]);
    let mut client = Client::start(connect(&sandbox, &daemon), Era::Stateless);
    for id in 0..100 {
        let mut list = json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"});
        list["params"] = json!({"_meta": {META: "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}}});
        client.send(&list);
    }
    let mut ids: Vec<_> = (0..100)
        .map(|_| {
            let answer = client.answer();
            assert!(answer["result"].is_object(), "{answer}");
            answer["id"].as_u64().unwrap()
        })
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..100).collect::<Vec<_>>());
}

#[test]
fn cancelled_call_ends_its_script() {
    for era in ERAS {
        let sandbox = sandbox();
        let daemon = Daemon::start(&sandbox, &[]);
        let mut client = Client::start(connect(&sandbox, &daemon), era);
        client.call(1, "endless");
        let number = sandbox.path().join("number");
        eventually("the script runs", || number.exists().then_some(()));
        client.cancel(1);
        assert_group_ends(&number);
        // It has no answer, and the next call has one.
        client.call(2, "hello");
        client.check_answer(2, "hello");
    }
}

#[test]
fn signal_ends_it_with_0_and_the_call_with_it() {
    for era in ERAS {
        let sandbox = sandbox();
        let daemon = Daemon::start(&sandbox, &[]);
        let mut client = Client::start(connect(&sandbox, &daemon), era);
        client.call(1, "endless");
        let number = sandbox.path().join("number");
        eventually("the script runs", || number.exists().then_some(()));
        client.pipes.signal(Signal::TERM);
        assert_eq!(client.pipes.wait(), 0);
        assert_group_ends(&number);
    }
}

#[test]
fn end_of_input_leaves_no_call() {
    let sandbox = sandbox();
    let daemon = Daemon::start(&sandbox, &[]);
    let mut client = Client::start(connect(&sandbox, &daemon), Era::Sessions);
    client.call(1, "endless");
    let number = sandbox.path().join("number");
    eventually("the script runs", || number.exists().then_some(()));
    client.pipes.close_input();
    let (code, rest) = client.pipes.wait_with_rest();
    assert_eq!(code, 0);
    assert!(
        rest.iter().all(|message| message["id"].is_null()),
        "{rest:?}"
    );
    assert_group_ends(&number);
}

/// Runs `mcpd connect` with one request. Returns the transcript, which must not have the token.
#[track_caller]
fn try_credentials(
    sandbox: &Sandbox,
    daemon: &Daemon,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> String {
    let url = daemon.url();
    let mut command = sandbox.command(&[&["connect", &url], arguments].concat());
    command.envs(variables.iter().copied());
    let call = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#;
    let transcript = sandbox.transcript(&output(command, call.as_bytes()));
    assert!(
        !transcript.contains(daemon.token().unwrap()),
        "{transcript}"
    );
    transcript
}

#[test]
fn token_is_taken_from_file_variable_and_header() {
    let sandbox = sandbox();
    let daemon = Daemon::start(&sandbox, &[]);
    let token = daemon.token().unwrap();
    fs::write(sandbox.path().join("token"), format!("{token}\n")).unwrap();
    let try_out = |arguments: &[&str], variables: &[(&str, &str)]| {
        try_credentials(&sandbox, &daemon, arguments, variables)
    };
    let both = [("ANY", token), ("MCPD_TOKEN", "wrong")];
    for (arguments, variables) in [
        (&["--token-file", "token"][..], &both[1..]),
        (&["--token-env", "ANY"], &both),
        (&["--header", "Authorization: Bearer ${ANY}"], &both),
        (&[], &[("MCPD_TOKEN", token)]),
    ] {
        let transcript = try_out(arguments, variables);
        assert!(
            transcript.contains("\"tools\""),
            "{arguments:?}: {transcript}"
        );
    }
    let wrong = try_out(
        &["--token-env", "ANY"],
        &[("ANY", "wrong"), ("MCPD_TOKEN", token)],
    );
    assert!(
        wrong.contains("HTTP 401") && wrong.contains("exit code: 0"),
        "{wrong}"
    );
}

#[test]
fn faulty_credentials_are_explained() {
    let sandbox = sandbox();
    let daemon = Daemon::start(&sandbox, &[]);
    for (arguments, expected) in [
        (
            ["--token-env", "ANY"],
            "failed to use the variable `ANY`: it is not set",
        ),
        (
            ["--token-file", "nowhere"],
            "failed to read the token file `nowhere`: it does not exist",
        ),
        (
            ["--header", "X: ${ANY}"],
            "failed to use the variable `ANY`: it is not set",
        ),
        (
            ["--header", "X: ${ANY"],
            "failed to use a header: `${` has no `}`",
        ),
        (
            ["--header", "secret"],
            "failed to use the header `…`: expected `Name: value`",
        ),
        (
            ["--header", "Accept: x"],
            "failed to use the header `Accept`: the bridge sets it",
        ),
    ] {
        let transcript = try_credentials(&sandbox, &daemon, &arguments, &[]);
        assert!(transcript.starts_with("exit code: 1\n"), "{transcript}");
        assert!(transcript.contains(expected), "{transcript}");
    }
}

#[test]
fn socket_in_the_file_system_is_connected_to() {
    let sandbox = sandbox();
    let _daemon = Daemon::listening(&sandbox, &["--listen", "unix:socket"]);
    for era in ERAS {
        let token = fs::read_to_string(sandbox.path().join("state/mcpd/agent-token"));
        let url = "http://localhost/mcp";
        let mut command = sandbox.command(&["connect", "--socket", "socket", url]);
        command.env("MCPD_TOKEN", token.unwrap_or_default().trim());
        let mut client = Client::start(command, era);
        client.call(1, "hello");
        client.check_answer(1, "hello");
    }
}

#[test]
fn tls_server_is_connected_to_if_its_certificate_is_trusted() {
    let sandbox = sandbox();
    Authority::new(&sandbox).certify("server");
    let daemon = Daemon::start(&sandbox, TLS);
    assert!(daemon.url().starts_with("https://"), "{}", daemon.url());
    let authority = sandbox.path().join("ca.pem");
    for era in ERAS {
        let mut command = connect(&sandbox, &daemon);
        command.env("SSL_CERT_FILE", &authority);
        let mut client = Client::start(command, era);
        client.call(1, "hello");
        client.check_answer(1, "hello");
    }
    // Another authority: the reason is reported at once, and nothing is tried again.
    let other = Sandbox::new();
    let _other = Authority::new(&other);
    let mut command = connect(&sandbox, &daemon);
    command.env("SSL_CERT_FILE", other.path().join("ca.pem"));
    command.args(["--retry-for", "600"]);
    let mut client = Client::start(command, Era::Stateless);
    client.call(1, "hello");
    let answer = client.answer().to_string();
    assert!(
        answer.contains("failed to reach `https://") && answer.contains("certificate"),
        "{answer}"
    );
}

#[test]
fn unusable_url_is_explained() {
    let sandbox = sandbox();
    for (arguments, expected) in [
        (
            &["tools.example"][..],
            "failed to use the URL `tools.example`: it is not a URL",
        ),
        (
            &["ftp://u:secret@tools.example?secret"],
            "failed to use the URL `ftp://tools.example",
        ),
        (
            &["http://tools.example/mcp", "--header", "X: secret"],
            "failed to send credentials to `http://tools.example/mcp`: `http` is not encrypted",
        ),
        (
            &["http://u:secret@tools.example/mcp"],
            "failed to send credentials to `http://tools.example/mcp`: `http` is not encrypted",
        ),
    ] {
        let transcript = sandbox.run(&[&["connect"], arguments].concat());
        assert!(transcript.starts_with("exit code: 1\n"), "{transcript}");
        assert!(transcript.contains(expected), "{transcript}");
        assert!(!transcript.contains("secret"), "{transcript}");
    }
}
