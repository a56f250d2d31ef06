//! mcpd behind mcpd, over both transports.

use std::fs;

use mcpd_tests::{Daemon, Sandbox, binary, eventually, processes_of};
use serde_json::json;

use super::{Front, REVISIONS, text};

const ADD: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Adds."}'
  echo '{"a": {"value_type": "integer", "required": true}, "b": {"value_type": "integer", "required": true}}' >&2
  exit 0
fi
echo "PROGRESS 1/2 adding" >&2
echo $((MCPD_OPT_a + MCPD_OPT_b))
"#;
const LINGER: &str = "#!/bin/sh\n[ \"$1\" = --help ] && { echo '{}'; exit; }\nexec sleep 1000\n";

/// Two sandboxes that stand for two machines: the upstream server and the server in front.
struct Pair {
    behind: Sandbox,
    front: Sandbox,
}

impl Pair {
    fn new() -> Self {
        let behind = Sandbox::new().with_script("math/add", ADD);
        Self {
            behind: behind.with_script("linger", LINGER),
            front: Sandbox::new(),
        }
    }

    /// Returns the configuration of an upstream server that is started as a program.
    fn program(&self) -> String {
        let scripts = self.behind.path().join("scripts");
        let command = json!([binary(), "stdio", scripts]);
        format!("[[upstream]]\nname = \"behind\"\ncommand = {command}\n")
    }

    /// Returns the configuration of a running upstream server, with its token.
    fn address(&self, daemon: &Daemon) -> String {
        let token = self.front.path().join("token");
        fs::write(token, daemon.token().unwrap()).unwrap();
        let url = daemon.url();
        format!(
            "[[upstream]]\nname = \"behind\"\nurl = \"{url}\"\ntoken = {{ file = \"token\" }}\n"
        )
    }

    #[track_caller]
    fn check(&self, configuration: &str) {
        for revision in REVISIONS {
            let mut front = Front::start(&self.front, configuration, revision);
            assert_eq!(front.tools(), ["behind_linger", "behind_math_add"]);
            let params = json!({
                "name": "behind_math_add",
                "arguments": {"a": 2, "b": 3},
                "_meta": {"progressToken": "token"},
            });
            let (answer, before) = front.answer("tools/call", params);
            assert_eq!(text(&answer["result"]), "5");
            let progress = before
                .iter()
                .find(|told| told["params"]["message"] == "adding");
            let progress = progress.unwrap_or_else(|| panic!("{before:?}"));
            assert_eq!(progress["params"]["progressToken"], "token");
            let result = front.call("behind/math_add", json!({"a": "two", "b": 3}));
            assert_eq!(result["isError"], true);
            assert!(text(&result).contains("`a`"), "{result}");
        }
    }
}

#[test]
fn tools_are_called_over_stdio() {
    let pair = Pair::new();
    pair.check(&pair.program());
}

#[test]
fn tools_are_called_over_http() {
    let pair = Pair::new();
    let daemon = Daemon::start(&pair.behind, &[]);
    pair.check(&pair.address(&daemon));
}

#[test]
fn cancelled_call_ends_its_upstream_script() {
    let pair = Pair::new();
    let daemon = Daemon::start(&pair.behind, &[]);
    for configuration in [pair.program(), pair.address(&daemon)] {
        let mut front = Front::start(&pair.front, &configuration, "2025-06-18");
        let lingering = || {
            let all = [&pair.front, &pair.behind].map(processes_of).concat();
            let is_sleep = |process: &u32| {
                fs::read_to_string(format!("/proc/{process}/comm"))
                    .is_ok_and(|name| name.trim() == "sleep")
            };
            all.into_iter().find(is_sleep)
        };
        let call = front.send("tools/call", json!({"name": "behind_linger"}));
        eventually("it runs", lingering);
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call}});
        front.pipes.send(cancelled.to_string().as_bytes());
        eventually("it is ended", || lingering().is_none().then_some(()));
    }
}

#[test]
fn rate_limit_of_the_upstream_reaches_the_caller() {
    let pair = Pair::new();
    let limits = "[limits]\nrate = 0.001\nburst = 1\n";
    fs::write(pair.behind.path().join("mcpd.toml"), limits).unwrap();
    let daemon = Daemon::start(&pair.behind, &[]);
    let configuration = pair.address(&daemon);
    let mut front = Front::start(&pair.front, &configuration, "2025-06-18");
    let arguments = json!({"a": 2, "b": 3});
    assert_eq!(text(&front.call("behind_math_add", arguments.clone())), "5");
    let params = json!({"name": "behind_math_add", "arguments": arguments});
    // The refusal is not taken for a lost connection either: every further call gets the same
    // answer.
    for _ in 0..3 {
        let (answer, _) = front.answer("tools/call", params.clone());
        assert_eq!(answer["error"]["code"], 429, "{answer}");
        let wait = answer["error"]["data"]["retryAfterMs"].as_u64();
        assert!(wait.is_some_and(|wait| wait > 1000), "{answer}");
    }
}

#[test]
fn list_change_is_forwarded() {
    let pair = Pair::new();
    let daemon = Daemon::start(&pair.behind, &[]);
    let configuration = pair.address(&daemon);
    let mut front = Front::start(&pair.front, &configuration, "2025-06-18");
    assert_eq!(front.tools().len(), 2);
    pair.behind.write_script("another", ADD);
    eventually("it is listed in front, too", || {
        let told = front.pipes.receive();
        assert_eq!(told["method"], "notifications/tools/list_changed", "{told}");
        front
            .tools()
            .contains(&"behind_another".to_owned())
            .then_some(())
    });
}

#[test]
fn missing_token_is_reported() {
    let pair = Pair::new();
    let daemon = Daemon::start(&pair.behind, &[]);
    let url = daemon.url();
    let configuration = format!("[[upstream]]\nname = \"behind\"\nurl = \"{url}\"\n");
    fs::write(pair.front.path().join("front.toml"), configuration).unwrap();
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let arguments = ["stdio", "scripts", "--config", "front.toml"];
    let transcript = pair.front.run_with_stdin(&arguments, list);
    assert!(
        transcript.contains("the upstream server `behind` is unreachable: it wants a token"),
        "{transcript}"
    );
}

#[test]
fn server_is_not_its_own_upstream() {
    let sandbox = Sandbox::new().with_script("math/add", ADD);
    let scripts = sandbox.path().join("scripts");
    let command = json!([binary(), "stdio", scripts, "--config", "front.toml"]);
    let configuration = format!("[[upstream]]\nname = \"behind\"\ncommand = {command}\n");
    let mut front = Front::start(&sandbox, &configuration, "2025-06-18");
    eventually("it is listed", || {
        let tools = front.tools();
        assert!(tools.len() <= 2, "{tools:?}");
        (tools == ["behind_math_add", "math_add"]).then_some(())
    });
}

#[test]
fn upstream_program_ends_with_the_server() {
    let pair = Pair::new();
    let front = Front::start(&pair.front, &pair.program(), "2025-06-18");
    assert!(processes_of(&pair.front).len() > 1);
    front.pipes.signal(rustix::process::Signal::KILL);
    eventually("nothing is left", || {
        processes_of(&pair.front).is_empty().then_some(())
    });
}
