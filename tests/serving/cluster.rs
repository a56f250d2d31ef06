//! Fronts and workers of a cluster, as processes: what a client sees of them, and what an operator
//! does with them.

use std::collections::BTreeSet;
use std::fs;

use mcpd_tests::{Client, Daemon, Nats, Sandbox, Worker, eventually, wait_for_tools};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{call, text};

/// Script that says where it runs, and waits as long as it is asked to.
const WORK: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Works."}'
  echo '{"gate": {"value_type": "string", "default_value": ""}}' >&2
  exit 0
fi
echo $$ >>journal
while [ "$MCPD_OPT_gate" ] && [ ! -e "$MCPD_OPT_gate" ]; do sleep 0.02; done
echo "done on $NODE"
"#;

fn ask(client: &Client, message: &Value) -> Value {
    let (status, body) = client.post(&message.to_string()).unwrap();
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// Returns the result of a call of `work`.
fn work(client: &Client, arguments: Value) -> Value {
    let answer = ask(client, &call("work", arguments));
    assert!(answer["result"].is_object(), "{answer}");
    answer["result"].clone()
}

/// Starts a worker of the scripts of the sandbox.
fn worker(sandbox: &Sandbox, nats: &Nats, name: &str, arguments: &[&str]) -> Worker {
    Worker::start(sandbox, nats, name, &[&["scripts"], arguments].concat())
}

fn sandbox() -> Sandbox {
    Sandbox::new().with_script("work", WORK)
}

/// Starts a front, and waits until it lists as many tools.
fn front(sandbox: &Sandbox, nats: &Nats, tools: usize) -> Daemon {
    let daemon = Daemon::front(sandbox, &["--cluster", &nats.url(), "--node", "front"]);
    wait_for_tools(&daemon.client(), tools..=tools);
    daemon
}

/// Returns the number of runs that have begun.
fn begun(sandbox: &Sandbox) -> usize {
    let journal = fs::read_to_string(sandbox.path().join("scripts/journal"));
    journal.unwrap_or_default().lines().count()
}

fn status(sandbox: &Sandbox, nats: &Nats) -> Vec<Value> {
    let nodes = sandbox.stdout(&["cluster", "status", "--cluster", &nats.url(), "--json"]);
    serde_json::from_slice(&nodes).unwrap()
}

#[test]
fn front_serves_the_scripts_of_workers() {
    let sandbox = sandbox();
    let Some(nats) = Nats::start(&sandbox) else {
        return;
    };
    let _worker = worker(&sandbox, &nats, "w1", &["--label", "gpu"]);
    let front = front(&sandbox, &nats, 1);
    assert_eq!(text(&work(&front.client(), json!({}))), "done on w1");
    let nodes = status(&sandbox, &nats);
    let seen = |node: &Value| format!("{} {} {}", node["node"], node["kind"], node["labels"]);
    let seen: Vec<_> = nodes.iter().map(seen).collect();
    assert_eq!(seen, [r#""front" "front" []"#, r#""w1" "worker" ["gpu"]"#]);
    let digest = nodes[1]["scripts"]["work"].as_str().unwrap();
    assert!(digest.starts_with("sha256:"), "{digest}");

    // A new script is served without a restart of either.
    sandbox.write_script("more", WORK);
    wait_for_tools(&front.client(), 2..=2);
}

#[test]
fn drained_worker_ends_what_it_runs_and_takes_nothing_new() {
    let sandbox = sandbox();
    let Some(nats) = Nats::start(&sandbox) else {
        return;
    };
    let mut first = worker(&sandbox, &nats, "w1", &[]);
    let front = front(&sandbox, &nats, 1);
    let gate = sandbox.path().join("gate");
    let long = {
        let (client, gate) = (front.client(), gate.clone());
        std::thread::spawn(move || work(&client, json!({ "gate": gate })))
    };
    eventually("a run", || (begun(&sandbox) == 1).then_some(()));
    let _second = worker(&sandbox, &nats, "w2", &[]);
    eventually("both workers", || {
        (status(&sandbox, &nats).len() == 3).then_some(())
    });
    let drained = sandbox.run(&["cluster", "drain", "w1", "--cluster", &nats.url()]);
    assert!(drained.contains("`w1` drains"), "{drained}");
    for _ in 0..4 {
        assert_eq!(text(&work(&front.client(), json!({}))), "done on w2");
    }
    fs::write(gate, "").unwrap();
    assert_eq!(text(&long.join().unwrap()), "done on w1");
    assert_eq!(first.wait(), Some(0));
}

#[test]
fn killed_worker_leaves_an_unknown_end_and_no_process() {
    let sandbox = sandbox();
    let Some(nats) = Nats::start(&sandbox) else {
        return;
    };
    let worker = worker(&sandbox, &nats, "w1", &[]);
    let front = front(&sandbox, &nats, 1);
    let gate = sandbox.path().join("never");
    let lost = {
        let client = front.client();
        std::thread::spawn(move || work(&client, json!({ "gate": gate })))
    };
    eventually("a run", || (begun(&sandbox) == 1).then_some(()));
    worker.signal(Signal::KILL);
    let result = lost.join().unwrap();
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(result["_meta"]["mcpd/unknown"], true, "{result}");
    assert_eq!(begun(&sandbox), 1, "nothing runs twice");
    mcpd_tests::assert_group_ends(&sandbox.path().join("scripts/journal"));
}

/// Returns the remote addresses of the connections that a process has opened: those whose local
/// port is not the one that it listens on.
fn connections(daemon: &Daemon) -> Vec<String> {
    let process = daemon.id();
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let links = descriptors.filter_map(|descriptor| fs::read_link(descriptor.unwrap().path()).ok());
    let sockets: BTreeSet<_> = links.map(|link| link.display().to_string()).collect();
    let port = daemon.address().rsplit(':').next().unwrap();
    let own = format!(":{:04X}", port.parse::<u16>().unwrap());
    let table = fs::read_to_string(format!("/proc/{process}/net/tcp")).unwrap();
    let rows = table.lines().skip(1).map(|row| row.split_whitespace());
    let rows = rows.map(Iterator::collect::<Vec<_>>);
    let opened = rows.filter(|row| {
        let is_of_process = sockets.contains(&format!("socket:[{}]", row[9]));
        is_of_process && !row[1].ends_with(&own)
    });
    opened.map(|row| row[2].to_owned()).collect()
}

#[test]
fn server_without_a_cluster_has_no_connection_for_one() {
    let sandbox = sandbox();
    let alone = Daemon::start(&sandbox, &[]);
    assert_eq!(text(&work(&alone.client(), json!({}))), "done on ");
    assert_eq!(connections(&alone), Vec::<String>::new());
    let Some(nats) = Nats::start(&sandbox) else {
        return;
    };
    let _worker = worker(&sandbox, &nats, "w1", &[]);
    let front = front(&sandbox, &nats, 1);
    let url = nats.url();
    let (_, port) = url.rsplit_once(':').unwrap();
    let port = format!(":{:04X}", port.parse::<u16>().unwrap());
    let opened = connections(&front);
    assert!(
        !opened.is_empty() && opened.iter().all(|remote| remote.ends_with(&port)),
        "{opened:?}"
    );
}

#[test]
fn faulty_settings_of_a_cluster_are_refused() {
    let sandbox = sandbox();
    for (arguments, expected) in [
        (
            &["worker", "scripts"][..],
            "failed to connect to the cluster: name a NATS server as `--cluster URL`, or in `url` of `[cluster]`",
        ),
        (
            &["worker", "scripts", "--cluster", "http://x"],
            "failed to use `--cluster`: `http://x`: expected an address such as `nats://HOST:4222` or `tls://HOST:4222`",
        ),
        (
            &[
                "worker",
                "scripts",
                "--cluster",
                "nats://x",
                "--node",
                "A B",
            ],
            "failed to use `--node`: `A B` is not a name: use 1 to 32 of `a` to `z`, `0` to `9` and `-`",
        ),
        (
            &["cluster", "status", "--cluster", "nats://127.0.0.1:9"],
            "nats://127.0.0.1:9 can be reached, or they refuse this node",
        ),
        (
            &["cluster", "grants", "worker", "w1", "SECRET"],
            "failed to use the key `SECRET`: expected the public NKey of a user, which is U and 55 letters and digits",
        ),
    ] {
        let said = sandbox.run(arguments);
        assert!(said.contains(expected), "{said}");
        assert!(said.contains("exit code: 1"), "{said}");
    }
}
