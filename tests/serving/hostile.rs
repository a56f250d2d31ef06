//! Scripts that exceed their limits: each call ends as specified, and mcpd goes on.

use mcpd_tests::{Pipes, Sandbox, eventually, peak_memory, processes_of};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{call, on_each_transport, text, wait_until_nothing_left};

const MIB: u64 = 1024 * 1024;

#[test]
fn gigabyte_of_output_is_truncated_in_bounded_memory() {
    on_each_transport("hostile", &[], |server, sandbox| {
        server.call("never-reads", json!({}));
        let before = peak_memory(server.id());
        let result = server.call("floods", json!({"bytes": 1_000_000_000}));
        assert_eq!(
            result["_meta"]["mcpd/exit"]["name"], "output-limit",
            "{result}"
        );
        let growth = peak_memory(server.id()) - before;
        assert!(growth < 16 * MIB, "mcpd grew by {growth} bytes");
        wait_until_nothing_left(sandbox, &[server.id()]);
    });
}

/// Log lines that the client does not read are dropped, however long they are.
#[test]
fn unread_log_lines_take_bounded_memory() {
    let endless = "#!/bin/sh\n[ \"$1\" = --help ] && { echo '{}'; exit; }\n\
                   yes \"DEBUG $(head -c 60000 /dev/zero | tr '\\0' '\\1')\" >&2\n";
    let sandbox = Sandbox::new().with_script("endless", endless);
    let mut client = Pipes::start_unread(&sandbox, &["--timeout", "3"]);
    let mut message = call("endless", json!({}));
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/logLevel": "debug",
    });
    client.send(message.to_string().as_bytes());
    eventually("the script to run", || {
        (processes_of(&sandbox).len() > 2).then_some(())
    });
    let before = peak_memory(client.id());
    // By its time limit the script has logged far more than mcpd may keep.
    wait_until_nothing_left(&sandbox, &[client.id()]);
    let growth = peak_memory(client.id()) - before;
    assert!(growth < 16 * MIB, "mcpd grew by {growth} bytes");
}

/// Returns the shown part of an output that is too long for the result.
fn shown_text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

#[test]
fn output_within_the_limit_is_shortened_and_counted() {
    on_each_transport("hostile", &[], |server, _| {
        let result = server.call("floods", json!({"bytes": 100_000_000}));
        assert_eq!(result["isError"], false);
        assert_eq!(result["_meta"]["mcpd/output"]["totalBytes"], 100_000_000);
        assert!(shown_text(&result).len() < 200_000);
        let note = result["content"][1]["text"].as_str().unwrap();
        assert!(
            note.contains("The first 16777216 bytes can be read"),
            "{note}"
        );
    });
}

#[test]
fn both_pipes_may_be_filled_at_once() {
    on_each_transport("hostile", &[], |server, _| {
        let result = server.call("fills-both-pipes", json!({}));
        assert_eq!(text(&result), "o".repeat(70_000));
    });
}

#[test]
fn arguments_of_any_size_arrive_whole() {
    let value = "x".repeat(32 * MIB as usize);
    let stdin = json!({"value": value}).to_string();
    on_each_transport("ok", &["--max-message", "40000000"], |server, _| {
        let result = server.call("echo", json!({"value": value}));
        assert_eq!(result["isError"], false);
        assert_eq!(result["_meta"]["mcpd/output"]["totalBytes"], stdin.len());
        assert!(
            shown_text(&result).starts_with(r#"{"value":"xxx"#),
            "{result}"
        );
        assert!(shown_text(&result).ends_with(r#"xxx"}"#), "{result}");
    });
}

#[test]
fn arguments_may_stay_unread() {
    on_each_transport("hostile", &[], |server, _| {
        let result = server.call("never-reads", json!({"value": "x".repeat(1_000_000)}));
        assert_eq!(text(&result), "done");
    });
}

#[test]
fn script_that_ignores_its_timeout_is_killed() {
    on_each_transport("hostile", &["--timeout", "1"], |server, sandbox| {
        let result = server.call("ignores-term", json!({}));
        assert_eq!(
            result["_meta"]["mcpd/exit"]["name"], "time-limit",
            "{result}"
        );
        wait_until_nothing_left(sandbox, &[server.id()]);
    });
}

#[test]
fn child_that_holds_the_pipes_does_not_delay_the_answer() {
    on_each_transport("hostile", &[], |server, _| {
        let result = server.call("leaves-a-child", json!({}));
        let printed = result["content"][0]["text"].as_str().unwrap();
        let child = printed.trim().parse().ok().and_then(Pid::from_raw).unwrap();
        // The child still runs: the answer did not wait for its end, and reports it.
        assert!(result.to_string().contains("is still running"), "{result}");
        kill_process(child, Signal::KILL).unwrap();
    });
}

#[test]
fn bytes_that_are_no_text_are_replaced() {
    on_each_transport("hostile", &[], |server, _| {
        let result = server.call("not-utf8", json!({}));
        assert_eq!(text(&result), "a\u{fffd}\u{fffd}b");
    });
}
