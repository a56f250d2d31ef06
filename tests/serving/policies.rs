//! Policies seen from the wire: sandbox levels, secrets and concurrency limits as configured.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use mcpd_tests::{Daemon, Pipes, Sandbox, binary, eventually, output, processes_of, skip};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{Server, call, text};

/// Secret value, which no message may contain.
const SECRET: &str = "s3cr\"et-of-alice";

/// Returns a script that answers `--help` with `metadata` and runs `body` when called.
fn script(metadata: &str, body: &str) -> String {
    format!("#!/bin/sh\n[ \"$1\" = --help ] && {{ echo '{metadata}'; exit; }}\n{body}\n")
}

fn sandbox_with(configuration: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    sandbox
}

/// Serves a sandbox with its configuration over stdio and then over HTTP.
fn on_each_transport(sandbox: &Sandbox, check: impl Fn(&mut dyn Server)) {
    let arguments = ["--config", "mcpd.toml"];
    check(&mut Pipes::start(sandbox, &arguments));
    check(&mut Daemon::start(sandbox, &arguments));
}

/// Script that tries to write a file in the directory `outside` beside its own, and prints the
/// outcome.
const WRITER: &str = "echo x 2>/dev/null >\"$PWD/../outside/x\" && echo written || echo refused";

#[track_caller]
fn check_writing(configuration: &str, metadata: &str, expected: &str) {
    let sandbox = sandbox_with(configuration).with_script("writer", &script(metadata, WRITER));
    fs::create_dir(sandbox.path().join("outside")).unwrap();
    on_each_transport(&sandbox, |server| {
        assert_eq!(text(&server.call("writer", json!({}))), expected);
    });
    assert_eq!(
        sandbox.path().join("outside/x").exists(),
        expected == "written"
    );
}

#[test]
fn a_guarded_script_writes_nothing_outside() {
    let guarded = "[[tool]]\nmatch = \"writer\"\nsandbox = \"guarded\"\n";
    check_writing("", "{}", "written");
    check_writing(guarded, "{}", "refused");
    check_writing("", r#"{"sandbox": "guarded"}"#, "refused");
}

#[test]
fn guarded_script_writes_to_allowed_paths() {
    let allowed =
        "[sandbox.x]\nwrite = [\"outside\"]\n[[tool]]\nmatch = \"writer\"\nsandbox = \"x\"\n";
    check_writing(allowed, "{}", "written");
    check_writing(
        allowed,
        r#"{"sandbox": {"write": ["../outside"]}}"#,
        "written",
    );
    check_writing(allowed, r#"{"sandbox": {"write": ["."]}}"#, "refused");
    check_writing("", r#"{"sandbox": {"write": ["../outside"]}}"#, "written");
}

/// Script that prints a file in the home directory of mcpd's user.
const READER: &str = "cat ~/.agent/token";

#[track_caller]
fn check_reading(configuration: &str, expected: &[&str]) {
    let sandbox = sandbox_with(configuration).with_script("reader", &script("{}", READER));
    let token = sandbox.path().join("home/.agent/token");
    fs::create_dir_all(token.parent().unwrap()).unwrap();
    fs::write(token, "token of an agent\n").unwrap();
    on_each_transport(&sandbox, |server| {
        let told = server.call("reader", json!({}))["content"].to_string();
        for expected in expected {
            assert!(told.contains(expected), "{expected} in {told}");
        }
    });
}

#[test]
fn home_of_the_user_is_hidden_from_confined_scripts_and_the_key_is_named() {
    let reads = "token of an agent";
    let hidden = "home/.agent/token\\\" is hidden from sandboxed scripts";
    check_reading("", &[reads]);
    for level in ["guarded", "strict"] {
        let confined = format!("floor = \"{level}\"\n");
        check_reading(&confined, &[hidden, "`read = [", "/home/.agent/token"]);
        let declared =
            format!("floor = \"x\"\n[sandbox.x]\nlevel = \"{level}\"\nread = [\"home/.agent\"]\n");
        check_reading(&declared, &[reads]);
    }
}

/// Checks the modes of the log and of its directory, and the record of their restoration.
#[test]
fn mode_of_the_audit_log_that_a_guarded_script_changes_is_restored() {
    let sandbox = sandbox_with("floor = \"guarded\"\n[audit]\npath = \"logs/log\"\n").with_script(
        "closer",
        &script("{}", "chmod 0 ../logs/log; chmod 500 ../logs; echo closed"),
    );
    let log = sandbox.path().join("logs/log");
    let mut server = Pipes::start(&sandbox, &["--config", "mcpd.toml"]);
    for _ in 0..2 {
        assert_eq!(text(&server.call("closer", json!({}))), "closed");
    }
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let restored = || (mode(log.parent().unwrap()), mode(&log)) == (0o700, 0o600);
    eventually("modes restored", || restored().then_some(()));
    let recorded =
        || fs::read_to_string(&log).is_ok_and(|text| text.contains("audit/access-restored"));
    eventually("record of restored modes", || recorded().then_some(()));
}

#[test]
fn guarded_script_reads_no_hidden_file() {
    let reader = r#"echo '{"contents": [{"uri": "x:/", "path": "../mcpd.toml"}]}'"#;
    let metadata = r#"{"kind": "resource", "uri": "x:/", "output": "mcp"}"#;
    let read =
        json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "x:/"}});
    for (sandbox, is_read) in [("none", true), ("guarded", false)] {
        let configuration = format!("[[tool]]\nmatch = \"reader\"\nsandbox = \"{sandbox}\"\n");
        let sandbox = sandbox_with(&configuration).with_script("reader", &script(metadata, reader));
        on_each_transport(&sandbox, |server| {
            let answer = server.exchange(&read);
            assert_eq!(answer["result"].is_object(), is_read, "{answer}");
            assert_eq!(answer.to_string().contains("match ="), is_read, "{answer}");
        });
    }
}

/// The files are protected wherever they are: a script that read a token could call all scripts
/// that are not confined.
#[test]
fn guarded_script_reads_no_file_of_the_server() {
    let names = [
        "token", "seal", "key", "upstream", "header", "endpoint", "log.1",
    ];
    let reader = format!(
        "cd ../given; cat {} mcpd.toml 2>/dev/null; echo end",
        names.join(" ")
    );
    for (level, is_read) in [("none", true), ("guarded", false)] {
        let configuration = format!(
            "token_file = \"token\"\nstate_key_file = \"seal\"\n\
             [audit]\npath = \"log\"\n\
             [[tool]]\nmatch = \"reader\"\nsandbox = \"{level}\"\nredact = false\nenv.KEY = {{ file = \"key\" }}\n\
             [[upstream]]\nname = \"up\"\nurl = \"http://127.0.0.1:1\"\n\
             token = {{ file = \"upstream\" }}\nheaders.X-Key = {{ file = \"header\" }}\n\
             [[endpoint]]\ncommand = [\"true\"]\nenv.KEY = {{ file = \"endpoint\" }}\n"
        );
        let sandbox = Sandbox::new().with_script("reader", &script("{}", &reader));
        let given = sandbox.path().join("given");
        fs::create_dir(&given).unwrap();
        let secrets = names.map(|name| (name, name.repeat(16)));
        for (name, secret) in &secrets {
            let file = given.join(name);
            fs::write(&file, secret).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        }
        fs::write(given.join("mcpd.toml"), &configuration).unwrap();
        let check = |read: &str| {
            let secrets = secrets.iter().map(|(_, secret)| secret.as_str());
            for secret in secrets.chain(["token_file"]) {
                assert_eq!(
                    read.contains(secret),
                    is_read,
                    "{secret} at {level}: {read}"
                );
            }
        };
        // The clients of these tests look for the token here.
        let state = sandbox.path().join("state/mcpd");
        fs::create_dir_all(&state).unwrap();
        fs::copy(given.join("token"), state.join("agent-token")).unwrap();
        let mut daemon = Daemon::start(&sandbox, &["--config", "given/mcpd.toml"]);
        check(text(&daemon.call("reader", json!({}))));
        // `mcpd call` serves nothing, but runs the same script.
        let called = ["call", "--config", "given/mcpd.toml", "scripts", "reader"];
        check(&sandbox.run(&called));
    }
}

fn with_secret() -> Sandbox {
    let sandbox = sandbox_with("[[tool]]\nmatch = \"*\"\n[tool.env]\nKEY = { file = \"key\" }\n");
    fs::write(sandbox.path().join("key"), SECRET).unwrap();
    sandbox
}

/// Calls a script that has the secret, and checks every resulting message.
#[track_caller]
fn check_secret(metadata: &str, body: &str, method: &str, params: &Value, expected: &str) {
    let sandbox = with_secret().with_script("teller", &script(metadata, body));
    let mut client = Pipes::start(&sandbox, &["--config", "mcpd.toml"]);
    let mut message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    message["params"]["_meta"] = json!({
        "progressToken": 1,
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/logLevel": "debug",
    });
    client.send(message.to_string().as_bytes());
    let mut said = String::new();
    loop {
        let message = client.receive();
        said += &message.to_string();
        if message["id"] == 1 {
            break;
        }
    }
    assert!(!said.contains("et-of-alice"), "{said}");
    assert!(said.contains(expected), "{said}");
}

#[test]
fn secret_is_redacted_from_answers() {
    let tool = json!({"name": "teller", "arguments": {}});
    check_secret(
        "{}",
        "echo \"it is $KEY\"",
        "tools/call",
        &tool,
        "it is [redacted KEY]",
    );
    check_secret(
        "{}",
        "echo \"it is $KEY\" >&2; exit 1",
        "tools/call",
        &tool,
        "it is [redacted KEY]",
    );
    let json = r#"printf '{"a": "s3cr\\u0022et-of-alice", "b": 1.50}'"#;
    let metadata = r#"{"output": "json"}"#;
    check_secret(
        metadata,
        json,
        "tools/call",
        &tool,
        r#""structuredContent":{"a":"[redacted KEY]","b":1.5}"#,
    );
    let prompt = json!({"name": "teller"});
    check_secret(
        r#"{"kind": "prompt"}"#,
        "echo \"$KEY\"",
        "prompts/get",
        &prompt,
        "[redacted KEY]",
    );
    let resource = json!({"uri": "x:/"});
    let metadata = r#"{"kind": "resource", "uri": "x:/"}"#;
    check_secret(
        metadata,
        "echo \"$KEY\"",
        "resources/read",
        &resource,
        "[redacted KEY]",
    );
    let state = json!({"uri": "mcpd://teller/state"});
    check_secret(
        r#"{"state": true}"#,
        "echo \"$KEY\"",
        "resources/read",
        &state,
        "[redacted KEY]",
    );
}

#[test]
fn secret_is_redacted_from_archived_output() {
    let flood = "head -c 150000 /dev/zero | tr '\\0' x";
    let body = format!("{flood}\necho \"$KEY\"\n{flood}");
    let sandbox = with_secret().with_script("teller", &script("{}", &body));
    on_each_transport(&sandbox, |server| {
        let result = server.call("teller", json!({}));
        let note = result["content"][1]["text"].as_str().unwrap();
        let uri = &note[note.find("mcpd://runs/").unwrap()..];
        let read =
            json!({"jsonrpc": "2.0", "id": 2, "method": "resources/read", "params": {"uri": uri}});
        let read = server.exchange(&read);
        let output = read["result"]["contents"][0]["text"].as_str().unwrap();
        assert!(!output.contains("et-of-alice"));
        assert!(output.contains("xx[redacted KEY]\nxx"));
    });
}

#[test]
fn secret_is_redacted_from_notifications() {
    let tool = json!({"name": "teller", "arguments": {}});
    let progress = "echo \"PROGRESS 1/2 $KEY\" >&2; sleep 0.1";
    check_secret(
        "{}",
        progress,
        "tools/call",
        &tool,
        r#""message":"[redacted KEY]""#,
    );
}

#[test]
fn secret_is_not_passed_to_probes() {
    let help = "#!/bin/sh\necho \"{\\\"description\\\": \\\"it is ${KEY:-unknown}\\\"}\"\n";
    let sandbox = with_secret().with_script("teller", help);
    on_each_transport(&sandbox, |server| {
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        let tools = server.exchange(&list);
        assert_eq!(tools["result"]["tools"][0]["description"], "it is unknown");
    });
}

#[test]
fn full_script_queue_rejects_with_retry_after() {
    let body =
        "mkdir busy || echo 'both at once'\nuntil [ -e go ]; do sleep 0.02; done\nrmdir busy";
    let metadata = r#"{"description": "x", "concurrency": 1}"#;
    let sandbox = Sandbox::new().with_script("slow", &script(metadata, body));
    let mut client = Pipes::start(&sandbox, &[]);
    // One runs, 256 wait, and one exceeds the queue.
    for id in 1..=258 {
        let mut message = call("slow", json!({}));
        message["id"] = id.into();
        client.send(message.to_string().as_bytes());
    }
    let refused = client.receive();
    assert_eq!(refused["error"]["code"], 429, "{refused}");
    let said = "The script `slow` is busy: 256 calls of it are already waiting; try again in ";
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.starts_with(said), "{message}");
    let wait = refused["error"]["data"]["retryAfterMs"].as_u64();
    assert!(wait.is_some_and(|wait| wait >= 100), "{refused}");
    fs::write(sandbox.path().join("scripts/go"), "").unwrap();
    for _ in 1..=257 {
        let answer = client.receive();
        assert_eq!(
            text(&answer["result"]),
            "The script succeeded and printed nothing.",
            "{answer}"
        );
    }
}

#[test]
fn missing_confinement_is_logged_once() {
    let script = script(r#"{"sandbox": "guarded"}"#, "echo done");
    let sandbox = Sandbox::new().with_script("x", &script);
    // A server that is itself marked can't mark its runs.
    let mut shell = sandbox.program("bash");
    shell.args(["-c", "ulimit -x 5 && exec \"$0\" stdio scripts"]);
    shell.arg(binary());
    let calls: Vec<_> = (1..=2)
        .map(|id| {
            let mut message = call("x", json!({}));
            message["id"] = id.into();
            message.to_string() + "\n"
        })
        .collect();
    let output = output(shell, calls.concat().as_bytes());
    let said = sandbox.transcript(&output);
    assert_eq!(said.matches("\"done\"").count(), 2, "{said}");
    assert_eq!(
        said.matches("sandbox of scripts is incomplete: mark")
            .count(),
        1,
        "{said}"
    );
}

#[test]
fn missing_confinement_is_noted_in_the_result() {
    let script = script(r#"{"sandbox": "guarded"}"#, "echo done");
    let sandbox = Sandbox::new().with_script("x", &script);
    let mut shell = sandbox.program("bash");
    shell.args(["-c", "ulimit -x 5 && exec \"$0\" call scripts x"]);
    shell.arg(binary());
    let said = sandbox.transcript(&output(shell, b""));
    let expected = "WARN sandbox of scripts is incomplete: mark";
    assert!(said.contains("done\n") && said.contains(expected), "{said}");
}

/// Each of these makes a shell or an interpreter run code chosen by whichever process set it.
#[test]
fn variables_that_run_code_reach_no_confined_script() {
    const NAMES: [&str; 6] = [
        "LD_PRELOAD",
        "BASH_ENV",
        "BASH_FUNC_x%%",
        "ENV",
        "PYTHONPATH",
        "NODE_OPTIONS",
    ];
    let body = "tr '\\0' '\\n' < /proc/$$/environ | cut -d = -f 1";
    let mut sandbox = Sandbox::new()
        .with_script("free", &script("{}", body))
        .with_script("guarded", &script(r#"{"sandbox": "guarded"}"#, body));
    for name in NAMES {
        // This library can be preloaded without a message.
        sandbox = sandbox.with_variable(name, "libc.so.6");
    }
    let mut client = Pipes::start(&sandbox, &[]);
    let mut check = |tool: &str, expected: usize| {
        let names = text(&client.call(tool, json!({}))).to_owned();
        let found = NAMES
            .into_iter()
            .filter(|known| names.lines().any(|name| name == *known));
        let found: Vec<_> = found.collect();
        assert_eq!(found.len(), expected, "{tool}: {found:?}");
    };
    check("free", NAMES.len());
    check("guarded", 0);
}

#[test]
fn leftover_processes_are_noted_and_recorded() {
    let daemons = "for i in 1 2; do (sleep 300 > /dev/null 2>&1 &); done; echo done";
    let sandbox = Sandbox::new()
        .with_script("free", &script("{}", daemons))
        .with_script("guarded", &script(r#"{"sandbox": "guarded"}"#, daemons));
    let said = sandbox.run(&["call", "scripts", "free"]);
    let expected = "WARN the script has ended, but processes that it started are still running script=free processes=2";
    assert!(said.contains(expected), "{said}");
    let said = sandbox.run(&["call", "scripts", "guarded"]);
    assert!(!said.contains("WARN"), "{said}");
    let mut client = Pipes::start(&sandbox, &[]);
    for tool in ["free", "guarded"] {
        client.call(tool, json!({}));
    }
    let left: Vec<_> = processes_of(&sandbox);
    // Two of each call at the level `none`, and the server.
    assert_eq!(left.len(), 5, "{left:?}");
    for process in left.into_iter().filter(|process| *process != client.id()) {
        let process = Pid::from_raw(process.cast_signed()).unwrap();
        kill_process(process, Signal::KILL).unwrap();
    }
    client.close_input();
    assert_eq!(client.wait(), 0);
    let log = sandbox.path().join("state/mcpd/logs/mcp-audit.jsonl");
    let log = fs::read_to_string(log).unwrap();
    assert_eq!(log.matches("\"leftovers\":2").count(), 2, "{log}");
}

#[test]
fn script_that_can_not_be_confined_is_not_run() {
    let strict = script(r#"{"sandbox": "strict"}"#, "echo done");
    let nested = format!("exec '{}' call . strict --no-cache", binary().display());
    let sandbox = Sandbox::new()
        .with_script("strict", &strict)
        .with_script("nested", &script("{}", &nested));
    assert!(sandbox.run(&["call", "scripts", "strict"]).contains("done"));
    // A confined process can't set up another confinement.
    let said = sandbox.run(&["call", "scripts", "nested", "--sandbox", "guarded"]);
    assert!(!said.contains("done"), "{said}");
    assert!(
        said.contains("The script `strict` was not run: this system cannot enforce its sandbox"),
        "{said}"
    );
    assert!(said.contains("failed to enforce the sandbox"), "{said}");
}

#[test]
fn script_runs_as_another_user_and_reads_its_files() {
    if !rustix::process::geteuid().is_root() {
        return skip("scripts that run as somebody else, which takes root");
    }
    let configuration = "[sandbox.x]\nlevel = \"none\"\nrun_as = \"65534:65534\"\n\
                         [[tool]]\nmatch = \"*\"\nsandbox = \"x\"\n";
    let body = "[ -s \"$MCPD_CONTEXT\" ] && id -u";
    let sandbox =
        sandbox_with(configuration).with_script("who", &script(r#"{"context": true}"#, body));
    fs::set_permissions(sandbox.path(), fs::Permissions::from_mode(0o755)).unwrap();
    on_each_transport(&sandbox, |server| {
        assert_eq!(text(&server.call("who", json!({}))), "65534");
    });
}

#[test]
fn script_of_another_user_gets_no_unreadable_file() {
    if !rustix::process::geteuid().is_root() {
        return skip("scripts that run as somebody else, which takes root");
    }
    let configuration = "[sandbox.x]\nlevel = \"none\"\nrun_as = \"65534:65534\"\n\
                         [[tool]]\nmatch = \"*\"\nsandbox = \"x\"\n";
    let metadata = r#"{"kind": "resource", "uri_template": "x:/{+file}", "output": "mcp"}"#;
    let body = r#"echo "{\"contents\": [{\"uri\": \"x:/\", \"path\": \"$MCPD_OPT_file\"}]}""#;
    let help = r#"{"file": {"description": "f", "value_type": "string", "required": true}}"#;
    let reader = format!(
        "#!/bin/sh\nif [ \"$1\" = --help ]; then\n  echo '{metadata}'\n  echo '{help}' >&2\n  exit\nfi\n{body}\n"
    );
    let sandbox = sandbox_with(configuration).with_script("reader", &reader);
    let scripts = sandbox.path().join("scripts");
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    fs::create_dir(scripts.join("closed")).unwrap();
    for (file, mode) in [("open", 0o644), ("shut", 0o600), ("closed/open", 0o644)] {
        fs::write(scripts.join(file), "inside").unwrap();
        set(&scripts.join(file), mode);
    }
    set(sandbox.path(), 0o755);
    set(&scripts.join("closed"), 0o700);
    on_each_transport(&sandbox, |server| {
        for (file, is_read) in [("open", true), ("shut", false), ("closed/open", false)] {
            let uri = format!("x:/{file}");
            let read = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": uri}});
            let answer = server.exchange(&read);
            assert_eq!(
                answer.to_string().contains("inside"),
                is_read,
                "{file}: {answer}"
            );
        }
    });
}

/// Scripts, each with its metadata and the request that calls it at a stage.
const STAGED: [(&str, &str, &str); 3] = [
    (
        "tool",
        r#"{"description": "d"}"#,
        r#""tools/call", "params": {"name": "NAME", "arguments": {"stage": "STAGE", "weight": WEIGHT}}"#,
    ),
    (
        "prompt",
        r#"{"description": "d", "kind": "prompt"}"#,
        r#""prompts/get", "params": {"name": "NAME", "arguments": {"stage": "STAGE"}}"#,
    ),
    (
        "template",
        r#"{"description": "d", "kind": "resource", "uri_template": "stage://{stage}"}"#,
        r#""resources/read", "params": {"uri": "stage://STAGE"}"#,
    ),
];

/// Serves these scripts from `directory`, with the `prefix`, under a rule for their stage.
fn check_staged(configuration: &str, directory: &str, prefix: &str, weight: &str) {
    let allow = "allow = [\"**\"]\narguments = { stage = [\"test-*\"] }";
    let deny = "deny = [\"**\"]\narguments = { stage = [\"prod*\"] }";
    for rule in [allow, deny] {
        let mut sandbox = sandbox_with(&format!("[[rule]]\n{rule}\n{configuration}"));
        for (name, metadata, _) in STAGED {
            let options = r#"{"stage": {"value_type": "string", "required": true}, "weight": {"value_type": "float"}}"#;
            let help = format!("echo '{metadata}'; echo '{options}' >&2; exit");
            let text = format!(
                "#!/bin/sh\n[ \"$1\" = --help ] && {{ {help}; }}\necho ran at $MCPD_OPT_stage\n"
            );
            sandbox = sandbox.with_script(&format!("{directory}/{name}"), &text);
        }
        on_each_transport(&sandbox, |server| {
            for (name, _, request) in STAGED {
                let name = format!("{prefix}{name}");
                let request = request.replace("NAME", &name).replace("WEIGHT", weight);
                let mut ask = |stage| {
                    let request = request.replace("STAGE", stage);
                    server.exchange_raw(&format!(
                        r#"{{"jsonrpc": "2.0", "id": 1, "method": {request}}}"#
                    ))
                };
                let ran = ask("test-1").to_string();
                assert!(ran.contains("ran at test-1"), "{name}: {ran}");
                let refused = ask("production");
                let said = match request.starts_with("\"tools") {
                    true => &refused["result"]["content"][0]["text"],
                    false => &refused["error"]["message"],
                };
                let said = said.as_str().unwrap_or_default();
                let expected = format!("`{name}` was not called: ");
                assert!(said.starts_with(&expected), "{refused}");
            }
        });
    }
}

#[test]
fn rules_check_arguments_of_every_kind_of_tool() {
    check_staged("", ".", "", "1e999");
}

#[test]
fn rules_check_arguments_of_remote_tools() {
    let command = json!([binary(), "stdio", "behind"]);
    let upstream = format!("[[upstream]]\nname = \"up\"\ncommand = {command}\n");
    check_staged(&upstream, "../behind", "up/", "1");
}
