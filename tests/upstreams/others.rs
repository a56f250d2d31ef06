//! The reference servers from npm and servers on the Python SDK, as `setup` beside this file
//! installs and lists them.

use std::fs;
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::Duration;

use mcpd_tests::{Sandbox, eventually, output_within, processes_of, repository};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{Front, REVISIONS, text};

/// Time limit that includes the first installation.
const SETUP_TIMEOUT: Duration = Duration::from_secs(600);

/// Runs `check` with the command of a server for each revision, unless the machine lacks its
/// runtime.
#[track_caller]
fn check(name: &str, arguments: &[&str], check: impl Fn(&mut Front)) {
    let Some(command) = command(name, arguments) else {
        return;
    };
    for revision in REVISIONS {
        let sandbox = Sandbox::new();
        check(&mut Front::start(
            &sandbox,
            &table(name, &command),
            revision,
        ));
    }
}

fn table(name: &str, command: &[String]) -> String {
    format!(
        "[[upstream]]\nname = \"{name}\"\ncommand = {}\n",
        json!(command)
    )
}

/// Returns the command of a server, or none if `setup` reports why it is missing.
#[track_caller]
fn command(name: &str, arguments: &[&str]) -> Option<Vec<String>> {
    let setup = setup();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&setup.stdout), text(&setup.stderr));
    let listed = stdout.lines().map(|line| line.split('\t'));
    let words = listed
        .into_iter()
        .find_map(|mut words| (words.next() == Some(name)).then_some(words));
    let Some(words) = words else {
        let is_excused =
            stderr.contains("UPSTREAM TESTS SKIPPED") || std::env::var_os("CI").is_none();
        assert!(is_excused, "setup failed:\n{stderr}");
        // Written past the test harness, which hides the output of tests that pass.
        std::io::Write::write_all(
            &mut std::io::stderr(),
            format!("\n*** `{name}` IS NOT TESTED:\n{stderr}\n").as_bytes(),
        )
        .ok();
        return None;
    };
    let arguments = arguments.iter().copied();
    Some(words.chain(arguments).map(str::to_owned).collect())
}

fn setup() -> &'static Output {
    static SETUP: OnceLock<Output> = OnceLock::new();
    SETUP.get_or_init(|| {
        #[expect(
            clippy::disallowed_methods,
            reason = "it is no script of ours to confine"
        )]
        let mut setup = Command::new(repository().join("tests/upstreams/setup"));
        setup.arg(repository().join("target/upstreams"));
        output_within(SETUP_TIMEOUT, setup, b"")
    })
}

#[test]
fn everything_server_is_passed_through() {
    check("everything", &[], |front| {
        let tools = front.tools();
        assert!(tools.contains(&"everything_echo".to_owned()), "{tools:?}");
        let result = front.call("everything_echo", json!({"message": "hello"}));
        assert_eq!(text(&result), "Echo: hello");
        let result = front.call("everything/get-sum", json!({"a": 2, "b": 3}));
        assert!(text(&result).contains('5'), "{result}");
        let result = front.call(
            "everything/get-structured-content",
            json!({"location": "New York"}),
        );
        assert!(result["structuredContent"].is_object(), "{result}");
        // An error result of the upstream server itself.
        let result = front.call("everything/get-sum", json!({"a": "two"}));
        assert_eq!(result["isError"], true);
        let prompts = front.names("prompts/list", "prompts", "name");
        assert!(
            prompts.contains(&"everything_simple-prompt".to_owned()),
            "{prompts:?}"
        );
        let prompt = front.result("prompts/get", json!({"name": "everything_simple-prompt"}));
        assert!(!prompt["messages"].as_array().unwrap().is_empty());
        let resources = front.names("resources/list", "resources", "uri");
        let read = front.result("resources/read", json!({"uri": resources[0]}));
        assert_eq!(read["contents"][0]["uri"], resources[0]);
        let uri = "demo://resource/dynamic/text/7";
        let read = front.result("resources/read", json!({"uri": uri}));
        assert_eq!(read["contents"][0]["uri"], uri);
    });
}

#[test]
fn everything_server_reports_progress() {
    check("everything", &[], |front| {
        let params = json!({
            "name": "everything/trigger-long-running-operation",
            "arguments": {"duration": 1, "steps": 3},
            "_meta": {"progressToken": 1},
        });
        let (answer, before) = front.answer("tools/call", params);
        assert_eq!(answer["result"]["isError"], Value::Null, "{answer}");
        let progress = before.iter().map(|told| &told["params"]["progress"]);
        let progress: Vec<_> = progress.filter(|value| value.is_number()).collect();
        assert_eq!(progress, [1, 2, 3], "{before:?}");
    });
}

#[test]
fn everything_server_is_restarted_under_load() {
    let Some(command) = command("everything", &[]) else {
        return;
    };
    for revision in REVISIONS {
        let sandbox = Sandbox::new();
        let mut front = Front::start(&sandbox, &table("everything", &command), revision);
        let params = json!({
            "name": "everything/trigger-long-running-operation",
            "arguments": {"duration": 600, "steps": 1},
        });
        let mut open: Vec<u64> = (0..20)
            .map(|_| front.send("tools/call", params.clone()))
            .collect();
        let servers: Vec<u32> = eventually("it runs", || {
            let servers = processes_of(&sandbox).into_iter().filter(is_node);
            Some(servers.collect()).filter(|servers: &Vec<u32>| !servers.is_empty())
        });
        // The server has received all of them: it reads this call after them.
        front.call("everything/echo", json!({"message": "there"}));
        for server in servers {
            let server = Pid::from_raw(server.try_into().unwrap()).unwrap();
            kill_process(server, Signal::KILL).ok();
        }
        while !open.is_empty() {
            let answer = front.pipes.receive();
            if let Some(place) = open.iter().position(|number| answer["id"] == *number) {
                open.swap_remove(place);
                let result = &answer["result"];
                assert_eq!(result["isError"], true);
                assert_eq!(
                    text(result),
                    "The upstream server `everything` exited before it responded."
                );
            }
        }
        let result = front.call("everything/echo", json!({"message": "again"}));
        assert_eq!(text(&result), "Echo: again");
    }
}

fn is_node(process: &u32) -> bool {
    fs::read(format!("/proc/{process}/cmdline"))
        .is_ok_and(|line| String::from_utf8_lossy(&line).contains("server-everything"))
}

#[test]
fn filesystem_server_is_filtered() {
    let files = tempfile::tempdir().unwrap();
    let directory = files.path().canonicalize().unwrap();
    let file = directory.join("note.txt");
    fs::write(&file, "remember").unwrap();
    let Some(command) = command("filesystem", &[directory.to_str().unwrap()]) else {
        return;
    };
    for revision in REVISIONS {
        let sandbox = Sandbox::new();
        let table = table("files", &command) + "tools = [\"read_*\"]\n";
        let mut front = Front::start(&sandbox, &table, revision);
        let tools = front.tools();
        assert!(
            tools.iter().all(|name| name.starts_with("files_read_")),
            "{tools:?}"
        );
        let result = front.call("files_read_text_file", json!({"path": file}));
        assert_eq!(text(&result), "remember");
        let result = front.call("files_read_text_file", json!({"path": "/etc/passwd"}));
        assert_eq!(result["isError"], true);
        let call = json!({"name": "files_write_file", "arguments": {"path": file, "content": ""}});
        let (answer, _) = front.answer("tools/call", call);
        assert_eq!(answer["error"]["code"], -32602);
    }
}

#[test]
fn python_server_is_passed_through() {
    for name in ["python-v1", "python-v2"] {
        check(name, &[], |front| {
            let of_server = |what: &str| format!("{name}/{what}");
            let result = front.call(&of_server("add"), json!({"a": 2, "b": 3}));
            assert_eq!(text(&result), "5");
            assert_eq!(result["structuredContent"], json!({"result": 5}));
            let params = json!({"name": of_server("count"), "arguments": {"to": 3}, "_meta": {"progressToken": 1}});
            let (answer, before) = front.answer("tools/call", params);
            assert_eq!(text(&answer["result"]), "counted");
            let progress = before.iter().map(|told| &told["params"]["message"]);
            let progress: Vec<_> = progress.filter(|message| message.is_string()).collect();
            assert_eq!(progress, ["at 1", "at 2", "at 3"]);
            for (uri, expected) in [
                ("python://greeting", "Hello!"),
                ("python://greeting/you", "Hello, you!"),
            ] {
                let read = front.result("resources/read", json!({"uri": uri}));
                assert_eq!(read["contents"][0]["text"], expected);
            }
            let params = json!({"name": of_server("review"), "arguments": {"code": "x"}});
            let prompt = front.result("prompts/get", params);
            let message = &prompt["messages"][0]["content"]["text"];
            assert_eq!(message, "Review this: x");
        });
    }
}
