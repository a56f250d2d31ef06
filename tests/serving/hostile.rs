//! Scripts that take more than they should: each call ends as it must, and mcpd goes on as before.

use mcpd_tests::peak_memory;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::{nothing_left, on_each_transport, text};

const MIB: u64 = 1024 * 1024;

#[test]
fn a_gigabyte_of_output_is_cut_short_and_takes_no_memory() {
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
        nothing_left(sandbox, &[server.id()]);
    });
}

#[test]
fn output_within_the_limit_is_shortened_and_counted() {
    on_each_transport("hostile", &[], |server, _| {
        let result = server.call("floods", json!({"bytes": 100_000_000}));
        assert_eq!(result["isError"], false);
        assert_eq!(result["_meta"]["mcpd/output"]["totalBytes"], 100_000_000);
        assert!(text(&result).len() < 200_000);
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
        assert!(text(&result).starts_with(r#"{"value":"xxx"#), "{result}");
        assert!(text(&result).ends_with(r#"xxx"}"#), "{result}");
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
fn who_ignores_the_time_limit_is_killed() {
    on_each_transport("hostile", &["--timeout", "1"], |server, sandbox| {
        let result = server.call("ignores-term", json!({}));
        assert_eq!(
            result["_meta"]["mcpd/exit"]["name"], "time-limit",
            "{result}"
        );
        nothing_left(sandbox, &[server.id()]);
    });
}

#[test]
fn who_leaves_a_child_with_its_pipes_is_answered_for() {
    on_each_transport("hostile", &[], |server, _| {
        let result = server.call("leaves-a-child", json!({}));
        let child = text(&result)
            .trim()
            .parse()
            .ok()
            .and_then(Pid::from_raw)
            .unwrap();
        // It is still there: nobody waited for its end.
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
