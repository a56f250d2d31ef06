//! Nodes of a cluster as operators see them: a front that is a worker as well, fronts that a worker
//! accepts, quotas that are divided, the examination, and the audit logs of both sides.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::thread;

use mcpd_tests::{Daemon, Nats, Sandbox, TwoFronts, Worker, eventually, wait_for_tools};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{call, text};

/// Script that says where it runs.
const WHERE: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Says where it runs."}'
  exit 0
fi
echo "on $NODE"
"#;

fn ask(client: &mcpd_tests::Client, name: &str) -> Value {
    let (status, body) = client.post(&call(name, json!({})).to_string()).unwrap();
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

#[test]
fn front_runs_scripts_for_other_fronts() {
    let sandbox = Sandbox::new().with_script("where", WHERE);
    let Some(nats) = Nats::start(&sandbox) else {
        return;
    };
    let url = nats.url();
    let sandbox = sandbox.with_variable("NODE", "both");
    let arguments = ["--cluster", &url, "--node", "both", "--worker"];
    let both = Daemon::start(&sandbox, &arguments);
    let front = Daemon::front(&sandbox, &["--cluster", &url, "--node", "front"]);
    wait_for_tools(&front.client(), 1..=1);
    assert_eq!(text(&ask(&front.client(), "where")["result"]), "on both");
    assert_eq!(text(&ask(&both.client(), "where")["result"]), "on both");
    // It announces its own scripts, and not those that it got from itself.
    let listed = sandbox.stdout(&["cluster", "status", "--cluster", &url, "--json"]);
    let nodes: Vec<Value> = serde_json::from_slice(&listed).unwrap();
    let kinds = nodes
        .iter()
        .map(|node| format!("{} {}", node["node"], node["kind"]));
    let expected = [
        r#""both" "front""#,
        r#""both" "worker""#,
        r#""front" "front""#,
    ];
    assert_eq!(kinds.collect::<Vec<_>>(), expected);
    assert_eq!(nodes[1]["scripts"].as_object().unwrap().len(), 1);
    // The front goes on when its worker is drained.
    sandbox.run(&["cluster", "drain", "both", "--cluster", &url]);
    wait_for_tools(&front.client(), 0..=0);
    assert_eq!(text(&ask(&both.client(), "where")["result"]), "on both");
}

#[test]
fn worker_runs_nothing_for_fronts_that_it_does_not_accept() {
    let sandbox = Sandbox::new().with_script("where", WHERE);
    let Some(nats) = Nats::start(&sandbox) else {
        return;
    };
    let url = nats.url();
    let file = sandbox.path().join("worker.toml");
    fs::write(&file, "[cluster]\naccept = [\"f1\"]\n").unwrap();
    let arguments = ["scripts", "--config", file.to_str().unwrap()];
    let _worker = Worker::start(&sandbox, &nats, "w1", &arguments);
    let accepted = Daemon::front(&sandbox, &["--cluster", &url, "--node", "f1"]);
    wait_for_tools(&accepted.client(), 1..=1);
    assert_eq!(text(&ask(&accepted.client(), "where")["result"]), "on w1");
    let other = Daemon::front(&sandbox, &["--cluster", &url, "--node", "f2"]);
    wait_for_tools(&other.client(), 1..=1);
    let refused = ask(&other.client(), "where").to_string();
    assert!(refused.contains("does not accept"), "{refused}");
    // A key can't be verified, and is refused with what to do.
    let key = format!("U{}", "A".repeat(55));
    fs::write(&file, format!("[cluster]\naccept = [\"{key}\"]\n")).unwrap();
    let said = sandbox.run(&[&["worker", "--cluster", &url], &arguments[..]].concat());
    assert!(
        said.contains("expected the name of a front, not a key"),
        "{said}"
    );
}

#[test]
fn quota_is_divided_among_fronts() {
    let sandbox = Sandbox::new().with_script("where", WHERE);
    let limits = "[limits]\nrate = 0.002\nburst = 4\n\n[cluster]\nfronts = 2\n";
    fs::write(sandbox.path().join("mcpd.toml"), limits).unwrap();
    let Some(cluster) = TwoFronts::start(&sandbox, &["scripts"], &[]) else {
        return;
    };
    let client = cluster.client();
    let allowed = |_: &usize| {
        let (_, body) = client.post(&call("where", json!({})).to_string()).unwrap();
        body.contains("on w1")
    };
    // Two of each front.
    assert_eq!((0..8).filter(allowed).count(), 4);
}

#[test]
fn examination_names_what_is_wrong() {
    let sandbox = Sandbox::new();
    let Some(nats) = Nats::start(&sandbox) else {
        return;
    };
    let url = nats.url();
    let _front = Daemon::front(&sandbox, &["--cluster", &url, "--node", "f1"]);
    let said = sandbox.run(&["doctor", "--cluster", &url, "--node", "here"]);
    assert!(said.contains("cluster default, as the node here"), "{said}");
    assert!(said.contains("f1: front, mcpd "), "{said}");
    assert!(!said.contains("exit code: 1"), "{said}");
    let toml = "[cluster]\nurl = [\"nats://127.0.0.1:9\"]\n";
    fs::write(sandbox.path().join("mcpd.toml"), toml).unwrap();
    let said = sandbox.run(&["doctor", "--cluster"]);
    let reason = "nats://127.0.0.1:9: not reached: Connection refused (os error 111)";
    assert!(said.contains(reason), "{said}");
    assert!(said.contains("exit code: 1"), "{said}");
    let report = sandbox.run(&["doctor", "--cluster", &url, "--json"]);
    assert!(report.contains("\"max_payload\": 1048576"), "{report}");
}

#[test]
fn runs_are_witnessed_by_front_and_worker() {
    let sandbox = Sandbox::new().with_script("where", WHERE);
    let write = |name: &str| {
        let file = sandbox.path().join(format!("{name}.toml"));
        fs::write(&file, format!("[audit]\npath = \"{name}.jsonl\"\n")).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let (worker, front) = (write("worker"), write("front"));
    let arguments = ["scripts", "--config", &worker];
    let Some(cluster) = TwoFronts::start(&sandbox, &arguments, &["--config", &front]) else {
        return;
    };
    for _ in 0..4 {
        assert_eq!(text(&ask(&cluster.client(), "where")["result"]), "on w1");
    }
    let logs = ["audit", "verify", "front.jsonl", "worker.jsonl"];
    let said = eventually("all records", || {
        let said = sandbox.run(&logs);
        said.contains("runs witnessed by a front and a worker: 4\n")
            .then_some(said)
    });
    assert!(
        !said.contains("only") && !said.contains("exit code: 1"),
        "{said}"
    );
    let log = fs::read_to_string(sandbox.path().join("front.jsonl")).unwrap();
    let record = log
        .lines()
        .find(|line| line.contains(r#""event":"end""#))
        .unwrap();
    let record: Value = serde_json::from_str(record).unwrap();
    assert_eq!(record["worker"], "w1");
    assert!(
        ["front-1", "front-2"].contains(&record["node"].as_str().unwrap()),
        "{record}"
    );
    assert!(record["run"].as_str().unwrap().ends_with(".0"), "{record}");
    // A worker that hides a run is found.
    drop(cluster);
    let path = sandbox.path().join("worker.jsonl");
    let log = fs::read_to_string(&path).unwrap();
    let lines: Vec<_> = log.lines().collect();
    fs::write(&path, format!("{}\n", lines[..lines.len() - 1].join("\n"))).unwrap();
    let said = sandbox.run(&logs);
    assert!(said.contains("recorded by the front only: 1"), "{said}");
    assert!(said.contains("exit code: 1"), "{said}");
}

/// Script that only reads, and that takes long on every worker but `w2`.
const READS: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Reads.", "annotations": {"read_only": true}}'
  exit 0
fi
[ "$NODE" = w2 ] || sleep 60
echo "on $NODE"
"#;

/// Returns the workers, by their names.
fn workers(sandbox: &Sandbox, nats: &Nats) -> BTreeMap<String, Value> {
    let words = ["cluster", "status", "--cluster", &nats.url(), "--json"];
    let nodes: Vec<Value> = serde_json::from_slice(&sandbox.stdout(&words)).unwrap();
    let workers = nodes.into_iter().filter(|node| node["kind"] == "worker");
    workers
        .map(|node| (node["node"].as_str().unwrap().to_owned(), node))
        .collect()
}

fn wait_for_workers(sandbox: &Sandbox, nats: &Nats, names: &[&str]) {
    eventually("all workers", || {
        workers(sandbox, nats).keys().eq(names).then_some(())
    });
}

/// Waits until a worker runs one script.
fn wait_for_run(sandbox: &Sandbox, nats: &Nats, worker: &str) {
    eventually("the script runs", || {
        (workers(sandbox, nats).get(worker)?["running"] == 1).then_some(())
    });
}

#[test]
fn run_that_is_made_again_has_a_line_of_its_own() {
    let sandbox = Sandbox::new().with_script("reads", READS);
    let file = sandbox.path().join("front.toml");
    fs::write(&file, "[audit]\npath = \"front.jsonl\"\n").unwrap();
    let front = ["--config", file.to_str().unwrap()];
    let Some(cluster) = TwoFronts::start(&sandbox, &["scripts"], &front) else {
        return;
    };
    let client = cluster.client();
    let answer = thread::spawn(move || ask(&client, "reads"));
    wait_for_run(&sandbox, &cluster.nats, "w1");
    let _second = Worker::start(&sandbox, &cluster.nats, "w2", &["scripts"]);
    wait_for_workers(&sandbox, &cluster.nats, &["w1", "w2"]);
    cluster.worker.signal(Signal::KILL);
    assert_eq!(text(&answer.join().unwrap()["result"]), "on w2");
    let ends = eventually("both records", || {
        let log = fs::read_to_string(sandbox.path().join("front.jsonl")).ok()?;
        let records = log.lines().map(|line| serde_json::from_str(line).unwrap());
        let ends: Vec<Value> = records
            .filter(|one: &Value| one["event"] == "end")
            .collect();
        (ends.len() == 2).then_some(ends)
    });
    let sides = ends.iter().map(|end| (&end["outcome"], &end["worker"]));
    let expected = [
        (&json!("lost"), &json!("w1")),
        (&json!("success"), &json!("w2")),
    ];
    assert!(sides.eq(expected), "{ends:?}");
    let [first, second] = [0, 1].map(|number: usize| ends[number]["run"].as_str().unwrap());
    assert_ne!(first, second);
    assert_eq!(first.split('.').next(), second.split('.').next());
    assert_eq!(ends[0]["call_id"], ends[1]["call_id"]);
}

#[test]
fn placement_follows_the_configuration_of_the_front() {
    let sandbox = Sandbox::new();
    for name in ["gpu/where", "home/where", "any/where"] {
        sandbox.write_script(name, WHERE);
    }
    sandbox.write_script("never/reads", READS);
    let file = sandbox.path().join("front.toml");
    let tools = [
        ("gpu/**", "on = [\"gpu\", \"eu\"]"),
        ("home/**", "home = true"),
        ("never/**", "on = [\"gpu\"]\nrerun = \"never\""),
    ];
    let tools = tools.map(|(path, keys)| format!("[[tool]]\nmatch = \"{path}\"\n{keys}\n"));
    fs::write(&file, tools.concat()).unwrap();
    let Some(nats) = Nats::start(&sandbox) else {
        return;
    };
    let start = |name, labels: &[&str]| {
        let labels = labels.iter().flat_map(|label| ["--label", label]);
        let arguments: Vec<_> = ["scripts"].into_iter().chain(labels).collect();
        Worker::start(&sandbox, &nats, name, &arguments)
    };
    let _workers = [start("w1", &[]), start("w2", &["eu"]), start("w3", &["eu"])];
    let gpu = start("w4", &["gpu", "eu"]);
    let (url, file) = (nats.url(), file.to_str().unwrap());
    let arguments = ["--cluster", &url, "--node", "f1", "--config", file];
    let front = Daemon::front(&sandbox, &arguments);
    let client = front.client();
    wait_for_tools(&client, 4..=4);
    wait_for_workers(&sandbox, &nats, &["w1", "w2", "w3", "w4"]);
    let places = |name: &str| -> BTreeSet<String> {
        let calls = 0..12;
        calls
            .map(|_| text(&ask(&client, name)["result"]).to_owned())
            .collect()
    };
    assert_eq!(places("gpu_where"), BTreeSet::from(["on w4".to_owned()]));
    assert_eq!(places("home_where").len(), 1);
    assert!(places("any_where").len() > 1);
    // It only reads, but the operator wants no run to be made again.
    let lost = {
        let client = front.client();
        thread::spawn(move || ask(&client, "never_reads"))
    };
    wait_for_run(&sandbox, &nats, "w4");
    gpu.signal(Signal::KILL);
    let result = lost.join().unwrap()["result"].clone();
    assert_eq!(result["_meta"]["mcpd/unknown"], true, "{result}");
}

/// Script that waits for a file.
const WAITS: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Waits."}'
  exit 0
fi
echo >begun
while [ ! -e gate ]; do sleep 0.02; done
echo "on $NODE"
"#;

#[test]
fn front_that_stops_answers_open_calls() {
    let sandbox = Sandbox::new().with_script("waits", WAITS);
    let Some(nats) = Nats::start(&sandbox) else {
        return;
    };
    let _worker = Worker::start(&sandbox, &nats, "w1", &["scripts"]);
    let front = Daemon::front(&sandbox, &["--cluster", &nats.url(), "--node", "f1"]);
    let client = front.client();
    wait_for_tools(&client, 1..=1);
    let answer = thread::spawn(move || ask(&client, "waits"));
    let scripts = sandbox.path().join("scripts");
    eventually("the script runs", || {
        scripts.join("begun").exists().then_some(())
    });
    front.signal(Signal::TERM);
    eventually("it takes nothing new", || {
        front.client().get("/health").is_err().then_some(())
    });
    fs::write(scripts.join("gate"), "").unwrap();
    let answer = answer.join().unwrap();
    assert_eq!(text(&answer["result"]), "on w1", "{answer}");
    assert_eq!(front.wait().0, 0);
}
