//! Rolling update of mcpd itself: another version of it beside the one of this tree, under load.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use mcpd_tests::{
    Client, Daemon, Nats, RoundRobin, Sandbox, Worker, binary, eventually, skip, wait_for_tools,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{call, text};

const WORK: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Works."}'
  exit 0
fi
echo "done on $NODE"
"#;

/// Clients that call at the same time.
const CLIENTS: usize = 4;

/// Returns the program of another version.
fn other_version() -> Option<PathBuf> {
    let program = std::env::var_os("MCPD_OTHER_BINARY").map(PathBuf::from);
    if program.is_none() {
        skip("`MCPD_OTHER_BINARY` names no program of another version of mcpd");
    }
    program
}

/// Calls until it is told to stop. Returns the number of calls.
fn call_until(client: Client, stop: Arc<AtomicBool>) -> JoinHandle<usize> {
    thread::spawn(move || {
        let mut calls = 0;
        while !stop.load(Ordering::Relaxed) {
            let (status, body) = client.post(&call("work", json!({})).to_string()).unwrap();
            let answer: Value = serde_json::from_str(&body).unwrap_or_default();
            assert_eq!((status, &answer["error"]), (200, &Value::Null), "{body}");
            assert!(text(&answer["result"]).starts_with("done on "), "{body}");
            calls += 1;
        }
        calls
    })
}

/// Starts a front whose key is that of all.
fn front(program: &Path, sandbox: &Sandbox, nats: &Nats, name: &str) -> Daemon {
    let key = sandbox.path().join("state.key");
    fs::write(&key, [7; 32]).unwrap();
    let (url, key) = (nats.url(), key.to_str().unwrap().to_owned());
    let arguments = ["--cluster", &url, "--node", name, "--state-key-file", &key];
    let front = Daemon::front_of(program, sandbox, &arguments);
    wait_for_tools(&front.client(), 1..=1);
    front
}

/// Workers of the new version beside the old ones, then the fronts, then the old workers.
fn check_update(old: &Path, new: &Path) {
    let sandbox = Sandbox::new().with_script("work", WORK);
    let Some(nats) = Nats::start(&sandbox) else {
        return;
    };
    let start = |program: &Path, name| Worker::of(program, &sandbox, &nats, name, &["scripts"]);
    let old_workers = ["old-1", "old-2"].map(|name| start(old, name));
    let names = ["front-1", "front-2"];
    let mut fronts = names.map(|name| front(old, &sandbox, &nats, name));
    let backends = [0, 1].map(|number| (names[number], fronts[number].address()));
    let balancer = RoundRobin::start(&backends, true);
    let stop = Arc::new(AtomicBool::new(false));
    let client = || Client::new(&balancer.address(), fronts[0].token());
    let load = [(); CLIENTS].map(|()| call_until(client(), Arc::clone(&stop)));

    let _new_workers = ["new-1", "new-2"].map(|name| start(new, name));
    eventually("the new workers", || {
        let said = sandbox.run(&["doctor", "--cluster", &nats.url(), "--node", "ops"]);
        ["new-1: ", "new-2: "]
            .iter()
            .all(|name| said.contains(name))
            .then_some(())
    });
    for (name, slot) in names.iter().zip(&mut fronts) {
        balancer.take_out(name);
        slot.signal(Signal::TERM);
        let next = front(new, &sandbox, &nats, name);
        let (code, said) = std::mem::replace(slot, next).wait();
        assert_eq!(code, 0, "{said}");
        balancer.put_in(name, slot.address());
    }
    for mut worker in old_workers {
        worker.signal(Signal::TERM);
        assert_eq!(worker.wait(), Some(0));
    }
    stop.store(true, Ordering::Relaxed);
    let calls = load.map(|load| load.join().unwrap());
    assert!(calls.iter().all(|calls| *calls > 20), "{calls:?}");
    let requests = balancer.requests();
    assert!(requests.iter().all(|count| *count > 0), "{requests:?}");
    let (_, body) = fronts[0]
        .client()
        .post(&call("work", json!({})).to_string())
        .unwrap();
    assert!(body.contains("done on new-"), "{body}");
}

#[test]
fn update_of_mcpd_fails_no_call() {
    if let Some(other) = other_version() {
        check_update(&other, binary());
    }
}

#[test]
fn return_to_another_version_fails_no_call() {
    if let Some(other) = other_version() {
        check_update(binary(), &other);
    }
}
