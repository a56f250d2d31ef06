//! Audit log of three days and two teams, as a server writes it, for the tests of the console.

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

/// Time in the browser, whose time zone is that of Tokyo: 12:00 on November 22nd there.
pub(crate) const NOW: &str = "2026-11-22T03:00:00.000Z";

/// Number of failures of each team on a day, besides the one that is looked for.
const FAILURES: u32 = 12;

/// Returns the log. Team A failed once on November 21st in Tokyo, among many failures of team B,
/// and often on the days around it; some of these are on the 21st in UTC.
pub(crate) fn three_days() -> String {
    let mut records = vec![];
    for (day, hour) in [(20, 0), (20, 14), (21, 1), (21, 16), (22, 1)] {
        let is_yesterday = (day, hour) == (21, 1);
        for minute in 0..FAILURES {
            let time = format!("2026-11-{day}T{hour:02}:{minute:02}:00.000Z");
            for team in ["team-a", "team-b"] {
                records.push(success(&time, team));
                if team == "team-b" || !is_yesterday {
                    records.push(failure(&time, team, "slow"));
                }
            }
            if is_yesterday && minute == 7 {
                records.push(failure(&time, "team-a", "report/fail"));
            }
        }
    }
    records.extend(details());
    chain(records)
}

fn success(time: &str, team: &str) -> Value {
    json!({
        "timestamp": time, "method": "tools/call", "params": {"name": "count"}, "duration_ms": 5,
        "success": true, "error": null, "event": "end", "principal": team, "tool": "count",
        "outcome": "success", "transport": "http", "revision": "2026-07-28",
    })
}

fn failure(time: &str, team: &str, tool: &str) -> Value {
    json!({
        "timestamp": time, "method": "tools/call", "params": {"name": tool}, "duration_ms": 9,
        "success": false, "error": format!("exit code 3 of {tool}"), "event": "end",
        "principal": team, "tool": tool, "outcome": "internal-error", "transport": "http",
    })
}

/// Records with what the policy lets one see of the arguments, and one of a confined run.
fn details() -> Vec<Value> {
    let hash = json!({"bytes": 3, "sha256": "0".repeat(64)});
    let recorded = [
        ("names", json!(["numbers", "mode"])),
        ("hashes", json!({"numbers": hash, "mode": hash})),
        (
            "redacted",
            json!({"numbers": [1, 2], "scale": 3, "mode": "[redacted]"}),
        ),
        ("hash", hash.clone()),
    ];
    let records = recorded.into_iter().map(|(client, arguments)| {
        let mut record = success("2026-11-22T02:00:00.000Z", "team-c");
        record["tool"] = "math/add".into();
        record["client"] = client.into();
        record["params"] = json!({"name": "math/add", "arguments": arguments});
        record
    });
    let mut confined = success("2026-11-22T02:30:00.000Z", "team-d");
    for (name, value) in [
        ("duration_ms", json!(1000)),
        ("queued_ms", json!(200)),
        ("run_ms", json!(700)),
        ("sandbox", json!("strict")),
        ("missing", json!(["limit of memory"])),
    ] {
        confined[name] = value;
    }
    records.chain([confined]).collect()
}

/// Gives each record its number, and the hashes that chain it to the one before it.
fn chain(records: Vec<Value>) -> String {
    let mut prev = "0".repeat(64);
    let mut log = String::new();
    for (number, mut record) in records.into_iter().enumerate() {
        record["pid"] = 1.into();
        record["seq"] = (number + 1).into();
        record["prev"] = prev.into();
        let text = record.to_string();
        let line = text.strip_suffix('}').unwrap_or(&text);
        let hash = digest(&SHA256, line.as_bytes());
        prev = hash
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        log += &format!("{line},\"hash\":\"{prev}\"}}\n");
    }
    log
}
