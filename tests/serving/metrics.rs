//! Metrics: present, correct, documented, and in the format of Prometheus.

use std::collections::{BTreeMap, BTreeSet};

use mcpd_tests::{Client, Daemon, Sandbox, repository};
use serde_json::json;

use crate::call;

/// Metric families by name: the type, and the sample values by name and labels.
type Families = BTreeMap<String, (String, BTreeMap<String, f64>)>;

/// Parses the text format, more strictly than Prometheus does.
#[track_caller]
fn read(text: &str) -> Families {
    let mut families = Families::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').expect(line);
            assert!(!help.is_empty() && help.ends_with('.'), "{line}");
            name.clone_into(&mut current);
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').expect(line);
            assert_eq!(name, current, "{line}");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            let before = families.insert(name.to_owned(), (kind.to_owned(), BTreeMap::new()));
            assert!(before.is_none(), "{line}");
        } else {
            let (sample, value) = line.rsplit_once(' ').expect(line);
            let (kind, samples) = families.get_mut(&current).expect(line);
            let name = sample.split('{').next().expect(line);
            let suffix = name.strip_prefix(&*current).expect(line);
            let suffixes: &[_] = match &**kind {
                "histogram" => &["_bucket", "_sum", "_count"],
                _ => &[""],
            };
            assert!(suffixes.contains(&suffix), "{line}");
            let before = samples.insert(sample.to_owned(), value.parse().expect(line));
            assert!(before.is_none(), "{line}");
        }
    }
    families
}

/// Returns the only value of a metric with these labels among others.
#[track_caller]
fn value(families: &Families, name: &str, labels: &[&str]) -> f64 {
    let family = families.keys().find(|family| name.starts_with(*family));
    let (_, samples) = &families[family.expect(name)];
    let mut found = samples.iter().filter(|(sample, _)| {
        sample.split('{').next() == Some(name) && labels.iter().all(|label| sample.contains(label))
    });
    let (_, value) = found
        .next()
        .unwrap_or_else(|| panic!("{name} {labels:?}: {samples:#?}"));
    assert_eq!(found.next(), None);
    *value
}

fn sandbox() -> Sandbox {
    let script =
        |body| format!("#!/bin/sh\n[ \"$1\" = --help ] && {{ echo '{{}}'; exit; }}\n{body}\n");
    Sandbox::new()
        .with_script("hello", &script("echo hello"))
        .with_script("fails", &script("exit 42"))
}

/// Calls both tools and an unknown one, and lists.
fn work(client: &Client) {
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    for message in [
        call("hello", json!({})),
        call("fails", json!({})),
        call("made-up", json!({})),
        list,
    ] {
        let (status, body) = client.post(&message.to_string()).unwrap();
        assert_eq!(status, 200, "{body}");
    }
    let nobody = client.with_token(Some("wrong"));
    assert_eq!(nobody.post("{}").unwrap().0, 401);
}

#[test]
fn operations_are_counted_and_timed() {
    let sandbox = sandbox();
    let daemon = Daemon::start(&sandbox, &["--metrics-listen", "127.0.0.1:0"]);
    let address = daemon.announcement().split("  metrics: http://").nth(1);
    let address = address.unwrap().split('/').next().unwrap();
    work(&daemon.client());
    let prometheus = Client::new(address, None);
    let (status, text) = prometheus.get("/metrics").unwrap();
    assert_eq!(status, 200, "{text}");
    let families = read(&text);
    let count = |labels: &[&str]| {
        let name = "mcp_server_operation_duration_seconds_count";
        value(&families, name, labels)
    };
    let tool = |name| format!("gen_ai_tool_name=\"{name}\"");
    assert_eq!(
        count(&["tools/call", &tool("hello"), "error_type=\"\""]),
        1.0
    );
    assert_eq!(count(&["tools/call", &tool("fails"), "tool_error"]), 1.0);
    assert_eq!(count(&["tools/call", &tool(""), "-32602"]), 1.0);
    assert_eq!(count(&["tools/list", "error_type=\"\""]), 1.0);
    assert!(!text.contains("made-up"));
    let bucket = "mcp_server_operation_duration_seconds_bucket";
    assert_eq!(
        value(&families, bucket, &[&tool("hello"), "le=\"+Inf\""]),
        1.0
    );
    let ended = |ending| value(&families, "mcpd_run_outcomes_total", &[ending]);
    assert_eq!((ended("success"), ended("failed")), (1.0, 1.0));
    assert_eq!(value(&families, "mcpd_refusals_total", &["token"]), 1.0);
    assert_eq!(value(&families, "mcpd_catalog_tools", &[]), 2.0);
    assert_eq!(value(&families, "mcpd_runs_in_flight", &[]), 0.0);
    assert!(value(&families, "process_resident_memory_bytes", &[]) > 1e6);
    // The server was started after 2025 and not in the future.
    assert!((1.7e9..1e11).contains(&value(&families, "process_start_time_seconds", &[])));
    for (path, expected) in [("/", 404), ("/mcp", 404), ("/health", 404)] {
        assert_eq!(prometheus.get(path).unwrap().0, expected, "{path}");
    }
}

#[test]
fn metrics_are_public_only_if_configured() {
    for (arguments, expected) in [(&["--metrics-to-clients"][..], 200), (&[], 404)] {
        let sandbox = sandbox();
        let daemon = Daemon::start(&sandbox, arguments);
        assert_eq!(daemon.client().get("/metrics").unwrap().0, expected);
        let nobody = daemon.client().with_token(None);
        assert_eq!(nobody.get("/metrics").unwrap().0, 401);
    }
}

#[test]
fn metrics_on_a_public_address_need_a_token() {
    let said = sandbox().run(&[
        "serve",
        "scripts",
        "--port",
        "0",
        "--metrics-listen",
        "0.0.0.0:0",
    ]);
    assert!(said.contains("on loopback addresses only"), "{said}");
}

#[test]
fn metrics_page_describes_every_metric() {
    let sandbox = sandbox();
    let daemon = Daemon::start(&sandbox, &["--metrics-to-clients"]);
    work(&daemon.client());
    let (_, text) = daemon.client().get("/metrics").unwrap();
    let exported: BTreeSet<_> = read(&text)
        .into_iter()
        .map(|(name, (kind, _))| (name, kind))
        .collect();
    let page = std::fs::read_to_string(repository().join("docs/observability.md")).unwrap();
    let table = page.split("<!-- metrics -->\n").nth(1).unwrap();
    let described: BTreeSet<_> = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|row| {
            let cells: Vec<_> = row.split('|').map(|cell| cell.trim().to_owned()).collect();
            (cells[1].trim_matches('`').to_owned(), cells[2].clone())
        })
        .collect();
    assert_eq!(described, exported);
}
