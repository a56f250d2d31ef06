//! Programs that are not servers, or do not end.

use std::fs;
use std::time::Duration;

use serde_json::json;

use super::{Fixture, HANG_TIMEOUT, text};
use crate::{Program, Upstream};

/// MCP server as a shell script: `serve` answers requests, up to the first of a given method.
pub(super) const SERVER: &str = r#"
serve() {
  while read -r line; do
    id=${line#*'"id":'} id=${id%%,*} method=${line#*'"method":"'} method=${method%%'"'*}
    case $method in
      initialize) result='{"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "shell", "version": "0"}}' ;;
      tools/list) result='{"tools": [{"name": "any", "inputSchema": {"type": "object"}}]}' ;;
      tools/call) result='{"content": []}' ;;
      notifications/*) continue ;;
      *) printf '{"jsonrpc": "2.0", "id": %s, "error": {"code": -32601, "message": "unknown"}}\n' "$id"; continue ;;
    esac
    printf '{"jsonrpc": "2.0", "id": %s, "result": %s}\n' "$id" "$result"
    [ "$method" != "$1" ] || return 0
  done
}
true"#;

pub(super) async fn shell(script: &str) -> Fixture {
    let program = Program::new("sh").args(["-c", script]);
    Fixture::new(Upstream::stdio("shell", program)).await
}

#[track_caller]
fn check(fixture: &Fixture, expected: &str) {
    assert_eq!(fixture.server.catalog().offers()[0].faults(), [expected]);
}

#[tokio::test]
async fn missing_program_is_reported() {
    let fixture = Fixture::new(Upstream::stdio("nothing", Program::new("no-such-server"))).await;
    check(
        &fixture,
        "failed to start with the command `no-such-server`: No such file or directory (os error 2)",
    );
}

#[tokio::test]
async fn last_line_of_stderr_is_reported() {
    let fixture = shell("echo starting >&2; echo 'no license' >&2; exit 3").await;
    check(
        &fixture,
        "exited before `initialize` was complete; last line of its stderr: no license",
    );
}

#[tokio::test]
async fn last_line_of_stderr_is_redacted() {
    let script = "printf '%01016d %s' 0 $KEY >&2; exit 3";
    for (script, expected) in [
        (
            "echo \"no license for $KEY.\" >&2",
            "no license for [redacted KEY].",
        ),
        (script, &format!("{:01016} [redacted KEY]", 0)),
    ] {
        let program = Program::new("sh").args(["-c", script]);
        let program = program.env("KEY", "s3cret-of-a-shell");
        let fixture = Fixture::new(Upstream::stdio("shell", program)).await;
        let expected =
            format!("exited before `initialize` was complete; last line of its stderr: {expected}");
        check(&fixture, &expected);
    }
}

#[tokio::test]
async fn output_of_a_program_is_redacted() {
    let told = |text: &str| {
        let description = format!(r#""name": "any", "description": "with {text}""#);
        SERVER
            .replace(r#""name": "any""#, &description)
            .replace(r#""content": []"#, &format!(
                r#""content": [{{"type": "text", "text": "key {text}"}}], "structuredContent": {{"{text}": "\u0073{}"}}"#,
                &text[1..],
            ))
    };
    let script = told("s3cret-of-a-shell") + " && serve";
    let program = Program::new("sh").args(["-c", &script]);
    let program = program.env("KEY", "s3cret-of-a-shell");
    let fixture = Fixture::new(Upstream::stdio("shell", program)).await;
    let client = fixture.client("2026-07-28").await;
    let list = client.request("tools/list", json!({})).await;
    let tool = &list["result"]["tools"][0];
    assert_eq!(tool["description"], "with [redacted KEY]");
    let result = client.call("shell/any", json!({})).await;
    assert_eq!(text(&result), "key [redacted KEY]");
    let structured = json!({"[redacted KEY]": "[redacted KEY]"});
    assert_eq!(result["structuredContent"], structured);
}

#[tokio::test]
async fn foreign_output_is_reported() {
    let fixture = shell("echo Hello; head -c 20000000 /dev/zero; echo; echo '[]'").await;
    fixture
        .expect_faults(&["exited before `initialize` was complete"])
        .await;
}

#[tokio::test]
async fn program_ends_with_its_children() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    // It ignores both the end of its input and SIGTERM.
    let script = format!(
        "trap '' TERM; sleep 1000 & echo $$ $! >{0}.new; mv {0}.new {0}; wait",
        file.display()
    );
    let program = Program::new("sh").args(["-c", &script]);
    let upstream = Upstream::stdio("stubborn", program);
    let server = mcpd_server::Server::builder()
        .source(upstream)
        .start()
        .unwrap();
    let pids = eventually(|| fs::read_to_string(&file).ok()).await;
    drop(server);
    for pid in pids.split_whitespace() {
        eventually(|| has_ended(pid).then_some(())).await;
    }
}

#[tokio::test]
async fn server_that_stops_reading_is_ended_before_its_restart() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    let served = format!(
        "{SERVER} && serve tools/list && echo $$ >>{} && head -c 1 >/dev/null && exec >&- && sleep 1000",
        file.display()
    );
    let fixture = shell(&served).await;
    let client = fixture.client("2026-07-28").await;
    // Exceeds the capacity of a pipe.
    let long = json!({"text": "x".repeat(1 << 20)});
    let result = client.call("shell/any", long).await;
    assert_eq!(
        text(&result),
        "The upstream server `shell` exited before it responded."
    );
    let pids = eventually(|| {
        let pids = fs::read_to_string(&file).unwrap();
        (pids.lines().count() > 1).then_some(pids)
    });
    let pids = pids.await;
    assert!(has_ended(pids.lines().next().unwrap()), "{pids}");
}

#[tokio::test]
async fn unreadable_answer_ends_only_its_call() {
    for content in [
        r#""structuredContent": {"n": 1e400}"#,
        r#""structuredContent": {"n": 18446744073709551616}"#,
        r#""structuredContent": {"n": NaN}"#,
    ] {
        let server = SERVER.replace(r#"{"content": []}"#, &format!("{{{content}}}"));
        let fixture = shell(&format!("{server} && serve")).await;
        let client = fixture.client("2026-07-28").await;
        let result = client.call("shell/any", json!({})).await;
        assert_eq!(
            text(&result),
            "The upstream server `shell` gave no valid response.",
            "{content}"
        );
        fixture.expect_faults(&[]).await;
    }
}

#[tokio::test]
async fn too_long_answer_ends_only_its_call() {
    let long = r#"printf '{"jsonrpc": "2.0", "id": %s, "result": {"content": [], "_meta": "' "$id"
        head -c 17000000 /dev/zero | tr '\0' x; echo '"}}'; continue; "#;
    let server = SERVER.replace("tools/call) ", &format!("tools/call) {long}"));
    let fixture = shell(&format!("{server} && serve")).await;
    let client = fixture.client("2026-07-28").await;
    let result = client.call("shell/any", json!({})).await;
    assert_eq!(
        text(&result),
        "The upstream server `shell` gave no valid response."
    );
    fixture.expect_faults(&[]).await;
}

#[tokio::test]
async fn invalid_entry_is_reported_and_others_are_served() {
    for stamp in ["", r#", "resultType": "complete", "ttlMs": 0"#] {
        let odd = [
            r#"{"name": "formless"}"#,
            r#"{"name": "listed", "inputSchema": []}"#,
            r#"{"name": "sure", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": "yes"}}"#,
            r#"{"name": "unwanted"}"#,
            "7",
        ];
        let list = format!(r#""tools": [{}, "#, odd.join(", "));
        let list = SERVER.replace(r#""tools": ["#, &list);
        let list = list.replace(r#""object"}}]"#, &format!(r#""object"}}}}]{stamp}"#));
        let program = Program::new("sh").args(["-c", &format!("{list} && serve")]);
        let upstream = Upstream::stdio("shell", program).tools(["[!u]*"]).unwrap();
        let fixture = Fixture::new(upstream).await;
        fixture.expect_tools(&["shell/any"]).await;
        fixture
            .expect_faults(&[
                "has the tool `formless`, which cannot be served: missing field `inputSchema`",
                "has the tool `listed`, which cannot be served: invalid type: sequence, expected a map",
                "has the tool `sure`, which cannot be served: invalid type: string \"yes\", expected a boolean",
                "has the tool ``, which cannot be served: invalid type: integer `7`, expected struct Tool",
            ])
            .await;
    }
}

#[tokio::test]
async fn failed_list_keeps_its_entries_and_the_connection() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("starts");
    let changed = r#"printf '{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}\n'"#;
    let server = SERVER
        .replace(
            "tools/list) ",
            r#"tools/list) if [ "$called" ]; then
        printf '{"jsonrpc": "2.0", "id": %s, "error": {"code": -32603, "message": "not now"}}\n' "$id"
        continue
      fi; "#,
        )
        .replace("tools/call) ", &format!("tools/call) called=1; {changed}; "));
    let fixture = shell(&format!("echo >>{}; {server} && serve", file.display())).await;
    let client = fixture.client("2026-07-28").await;
    client.call("shell/any", json!({})).await;
    fixture
        .expect_faults(&["failed to list its tools: Mcp error: -32603: not now"])
        .await;
    fixture.expect_tools(&["shell/any"]).await;
    let result = client.call("shell/any", json!({})).await;
    assert_eq!(result["content"], json!([]));
    assert_eq!(fs::read_to_string(&file).unwrap(), "\n");
}

#[tokio::test]
async fn backpressure_stops_reading_from_a_server_that_floods_requests() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("asked");
    // Runs without end unless its output is no longer read.
    let served = format!(
        r#"{SERVER} && serve tools/list && i=0 && while echo $i >{0}.new && mv {0}.new {0}; do
             i=$((i+1)); printf '{{"jsonrpc": "2.0", "id": "%04096d", "method": "ping"}}\n' $i
           done"#,
        file.display()
    );
    let _fixture = shell(&served).await;
    let asked = || fs::read_to_string(&file).unwrap_or_default();
    let stopped = async {
        let mut before = asked();
        loop {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let now = asked();
            if !now.is_empty() && now == before {
                return;
            }
            before = now;
        }
    };
    tokio::time::timeout(HANG_TIMEOUT, stopped)
        .await
        .expect("it is heard on and on");
}

#[tokio::test]
async fn hanging_server_is_restarted_under_load() {
    let greeting = r#"server/discover) result='{"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}' ;; initialize)"#;
    let stateless = SERVER.replacen("initialize)", greeting, 1);
    let check = async |server: &str| {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("hung");
        let script = format!(
            "{server} && if [ ! -e {0} ]; then serve tools/list; touch {0}; sleep 1000; fi; serve",
            file.display()
        );
        let program = Program::new("sh").args(["-c", &script]);
        let upstream = Upstream::stdio("shell", program).timeout(Duration::from_millis(500));
        let fixture = Fixture::new(upstream).await;
        let client = fixture.client("2026-07-28").await;
        let call = async |id| {
            let params = json!({"name": "shell/any", "arguments": {}});
            let answer = client.send(id, "tools/call", params).await.unwrap();
            answer["result"]["content"] == json!([])
        };
        let restarted = async {
            // At least one call is in progress at any time.
            while !{
                let after = async {
                    tokio::time::sleep(Duration::from_millis(250)).await;
                    call(2).await
                };
                let (one, other) = tokio::join!(call(1), after);
                one || other
            } {}
        };
        tokio::time::timeout(2 * HANG_TIMEOUT, restarted)
            .await
            .expect("in time");
    };
    tokio::join!(check(SERVER), check(&stateless));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn orphans_of_a_server_are_reaped_while_it_runs() {
    // Like the executor in the role of the subreaper.
    nix::sys::prctl::set_child_subreaper(true).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    let served = format!(
        "{SERVER} && serve tools/list && (for _ in 1 2 3; do sh -c 'echo $$ >>{}' & done) && serve",
        file.display()
    );
    let fixture = shell(&served).await;
    let pids = eventually(|| {
        let pids = fs::read_to_string(&file).ok()?;
        (pids.lines().count() == 3).then_some(pids)
    });
    for pid in pids.await.lines() {
        let process = format!("/proc/{pid}");
        eventually(|| fs::metadata(&process).is_err().then_some(())).await;
    }
    fixture.expect_faults(&[]).await;
}

/// Returns whether the process is gone or a zombie.
fn has_ended(pid: &str) -> bool {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.contains(") Z"),
        Err(_) => true,
    }
}

async fn eventually<T>(look: impl Fn() -> Option<T>) -> T {
    let found = async {
        loop {
            if let Some(found) = look() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(HANG_TIMEOUT, found)
        .await
        .expect("in time")
}
