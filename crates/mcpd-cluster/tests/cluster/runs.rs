//! Runs without faults: results, errors, lines, large inputs and outputs, draining, versions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mcpd_cluster::Cluster;
use mcpd_server::{Connection, Reply, ToolNames};
use serde_json::json;
use tokio::time::Instant;

use crate::fixture::{
    EVENT_TIMEOUT, Front, LocalWorker, NodeProcess, Scripts, first_link, one_worker,
    process_worker, settings, wait_until,
};
use crate::nats::Nats;

#[tokio::test(flavor = "multi_thread")]
async fn call_runs_on_a_worker() {
    let Some((_nats, scripts, _worker, front)) = one_worker().await else {
        return;
    };
    let told = front.run("change", "one", "0").await;
    assert_eq!(told, Ok((true, "did one".to_owned())));
    assert_eq!(scripts.counts("one"), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_workers_a_call_is_refused_in_time() {
    let Some((_nats, _scripts, worker, front)) = one_worker().await else {
        return;
    };
    worker.drain().await;
    let begun = Instant::now();
    let told = front.run("change", "one", "0").await;
    assert!(
        told.as_ref()
            .is_err_and(|error| error.contains("No server")),
        "{told:?}"
    );
    assert!(
        begun.elapsed() < Duration::from_secs(8),
        "{:?}",
        begun.elapsed()
    );
    // A path that no worker has is gone.
    front.wait_for(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn draining_worker_ends_what_it_runs() {
    let Some((nats, scripts, worker, front)) = one_worker().await else {
        return;
    };
    let call = tokio::spawn({
        let front = front.clone();
        async move { front.run("change", "one", "1").await }
    });
    wait_until("the script runs", || scripts.counts("one").0 == 1).await;
    let other = LocalWorker::start(&scripts, &nats.url(), "w2");
    worker.drain().await;
    assert_eq!(
        call.await.expect("no panic"),
        Ok((true, "did one".to_owned()))
    );
    let told = front.run("change", "two", "0").await;
    assert_eq!(told, Ok((true, "did two".to_owned())));
    drop(other);
}

#[tokio::test(flavor = "multi_thread")]
async fn caller_that_leaves_cancels_the_run() {
    let Some((_nats, scripts, worker, front)) = one_worker().await else {
        return;
    };
    let call = tokio::spawn({
        let front = front.clone();
        async move { front.run("change", "one", "30").await }
    });
    wait_until("the script runs", || scripts.counts("one").0 == 1).await;
    call.abort();
    wait_until("the script ends", || worker.server.load().running == 0).await;
    assert_eq!(scripts.counts("one"), (1, 0));
}

/// Script that returns what it gets, with its number of bytes.
const MIRROR: &str = r#"#!/bin/sh
if [ "${1-}" = --help ]; then
  echo '{"description": "Counts bytes"}'
  echo '{"text": {"description": "Anything", "required": true, "value_type": "string"}}' >&2
  exit
fi
wc -c
"#;

#[tokio::test(flavor = "multi_thread")]
async fn large_input_arrives_whole() {
    let Some(nats) = Nats::start("") else { return };
    let scripts = Scripts::new();
    scripts.write("mirror", MIRROR);
    let _worker = LocalWorker::start(&scripts, &nats.url(), "w1");
    let front = Front::start(&nats.url(), "f1");
    front.wait_for(&["again", "change", "look", "mirror"]).await;
    for size in [10, 512 * 1024, 900 * 1024, 16 << 20] {
        let text = "x".repeat(size);
        let told = front.call("mirror", json!({ "text": text })).await;
        // The braces, the name and the quotes.
        let expected = (size + r#"{"text":""}"#.len()).to_string();
        let (is_ok, text) = told.expect("a result");
        assert!(is_ok, "{text}");
        assert_eq!(text.trim(), expected);
    }
}

/// Script whose description and behaviour are those of one version.
fn versioned(version: &str) -> String {
    format!(
        r#"#!/bin/sh
if [ "${{1-}}" = --help ]; then
  echo '{{"description": "Version {version}"}}'
  echo '{{"{version}": {{"description": "Its version", "required": false, "value_type": "string", "default_value": "{version}"}}}}' >&2
  exit
fi
[ "$MCPD_OPT_{version}" = {version} ] && echo {version} || echo "mixed up"
"#
    )
}

/// A worker that comes back with the other version again and again, as in a roll-out. (A file that
/// is replaced in place may change between the last check and its start.)
#[tokio::test(flavor = "multi_thread")]
async fn schema_of_one_version_never_meets_the_code_of_another() {
    let Some(nats) = Nats::start("") else { return };
    let (first, second) = (Scripts::new(), Scripts::new());
    first.write("pinned", &versioned("va"));
    second.write("pinned", &versioned("vb"));
    let _one = LocalWorker::start(&first, &nats.url(), "w1");
    let front = Front::start(&nats.url(), "f1");
    front.wait_for(&["again", "change", "look", "pinned"]).await;
    let done = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let counts = Arc::clone(&done);
    let flapping = tokio::spawn(async move {
        for number in 0..4 {
            let (scripts, count) = match number % 2 {
                0 => (&second, &counts[1]),
                _ => (&first, &counts[0]),
            };
            let two = LocalWorker::start(scripts, &nats.url(), "w2");
            let three = LocalWorker::start(scripts, &nats.url(), "w3");
            // Until calls run the version that most workers have now.
            let enough = count.load(Ordering::Relaxed) + 6;
            wait_until("calls of the new version", || {
                count.load(Ordering::Relaxed) >= enough
            })
            .await;
            tokio::join!(two.drain(), three.drain());
        }
        (first, nats)
    });
    let count = |version: usize| {
        done[version].fetch_add(1, Ordering::Relaxed);
    };
    let mut refused = 0;
    while !flapping.is_finished() {
        match front.call("pinned", json!({})).await {
            Ok((true, text)) if text.trim() == "va" => count(0),
            Ok((true, text)) if text.trim() == "vb" => count(1),
            // The last worker with the version of the list has just left.
            Ok((false, text)) if text.contains("not available any more") => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(refused <= 4, "{refused}");
    drop(flapping.await.unwrap());
}

/// Script that prints the numbers up to `count`.
const NUMBERS: &str = r#"#!/bin/sh
if [ "${1-}" = --help ]; then
  echo '{"description": "Prints numbers"}'
  echo '{"count": {"description": "How many", "required": true, "value_type": "string"}}' >&2
  exit
fi
seq "$MCPD_OPT_count"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn long_output_is_fetched_from_its_worker() {
    let Some(nats) = Nats::start("") else { return };
    let scripts = Scripts::new();
    scripts.write("numbers", NUMBERS);
    let _worker = LocalWorker::start(&scripts, &nats.url(), "w1");
    let front = Front::start(&nats.url(), "f1");
    let names = ["again", "change", "look", "numbers"];
    front.wait_for(&names).await;
    let whole: String = (1..=1_000_000)
        .map(|number| format!("{number}\n"))
        .collect();
    let result = front
        .call_in_full("numbers", json!({"count": "1000000"}))
        .await;
    let uri = first_link(&result);
    // Any front reads it, for its caller alone.
    let other = Front::start(&nats.url(), "f2");
    other.wait_for(&names).await;
    for front in [&front, &other] {
        let read = front.read(uri).await.expect("the output");
        assert!(read == whole, "the output differs");
        for (caller, uri) in [
            ("eve", uri.to_owned()),
            ("ada", uri.replace("w1.", "w2.")),
            ("ada", uri.replace("w1.", "*.")),
            ("ada", uri.replace("w1.", "w1.0")),
        ] {
            let read = front.read_as(caller, &uri).await;
            assert_eq!(read, Err("resource not found".to_owned()), "{uri}");
        }
    }
    // Bytes above the limit of kept ones are counted.
    let result = front
        .call_in_full("numbers", json!({"count": "2500000"}))
        .await;
    let text = result["content"][0]["text"].as_str().expect("text");
    assert!(
        text.starts_with("1\n2\n") && text.ends_with("2500000"),
        "{}",
        &text[..200]
    );
}

/// Returns the most memory that a process has had so far, in bytes.
fn peak_memory(process: &NodeProcess) -> u64 {
    let status = format!("/proc/{}/status", process.0.id());
    let status = std::fs::read_to_string(status).expect("a process");
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let words = line.and_then(|line| line.split_whitespace().nth(1));
    let kilobytes: u64 = words.and_then(|size| size.parse().ok()).expect("a size");
    kilobytes * 1024
}

#[tokio::test(flavor = "multi_thread")]
async fn very_long_output_takes_no_memory_of_its_worker() {
    let Some(nats) = Nats::start("") else { return };
    let scripts = Scripts::new();
    scripts.write("numbers", NUMBERS);
    let worker = process_worker(&scripts, &nats.url(), "w1");
    let front = Front::start(&nats.url(), "f1");
    front
        .wait_for(&["again", "change", "look", "numbers"])
        .await;
    let call = async |count: u32| {
        front
            .call_in_full("numbers", json!({"count": count.to_string()}))
            .await
    };
    call(10).await;
    let before = peak_memory(&worker);
    // Some 100 MB, of which the first 16 MiB are kept.
    let result = call(12_500_000).await;
    let totals = &result["_meta"]["mcpd/output"];
    assert_eq!(totals["totalBytes"], 101_388_897, "{totals}");
    let read = front.read(first_link(&result)).await.expect("the output");
    let whole = (1..).flat_map(|number| format!("{number}\n").into_bytes());
    assert!(read.bytes().eq(whole.take(16 << 20)), "the output differs");
    let grown = peak_memory(&worker) - before;
    assert!(grown < 12 << 20, "{grown} bytes more");
}

/// Script that prints one line.
const LINE: &str = r#"#!/bin/sh
if [ "${1-}" = --help ]; then
  echo '{"description": "Prints a line"}'
  exit
fi
head -c 1048576 /dev/zero | tr '\0' x
"#;

#[tokio::test(flavor = "multi_thread")]
async fn very_long_line_arrives_whole() {
    let Some(nats) = Nats::start("") else { return };
    let scripts = Scripts::new();
    scripts.write("line", LINE);
    let _worker = LocalWorker::start(&scripts, &nats.url(), "w1");
    let front = Front::start(&nats.url(), "f1");
    front.wait_for(&["again", "change", "line", "look"]).await;
    let result = front.call_in_full("line", json!({})).await;
    let read = front.read(first_link(&result)).await.expect("the output");
    assert!(read == "x".repeat(1 << 20), "the output differs");
}

#[tokio::test(flavor = "multi_thread")]
async fn message_that_the_server_would_refuse_is_not_sent() {
    let Some(nats) = Nats::start("max_payload: 100KB\n") else {
        return;
    };
    let scripts = Scripts::new();
    scripts.write("mirror", MIRROR);
    let _worker = LocalWorker::start(&scripts, &nats.url(), "w1");
    let front = Front::start(&nats.url(), "f1");
    front.wait_for(&["again", "change", "look", "mirror"]).await;
    let client = async_nats::connect(nats.url()).await.expect("a server");
    let before = client.server_info().client_id;
    let told = front
        .call("mirror", json!({ "text": "x".repeat(300 << 10) }))
        .await;
    assert!(told.is_err(), "{told:?}");
    let told = front.run("change", "one", "0").await;
    assert_eq!(told, Ok((true, "did one".to_owned())));
    // No node had to connect anew.
    let client = async_nats::connect(nats.url()).await.expect("a server");
    assert_eq!(client.server_info().client_id, before + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn stderr_of_a_failure_is_read_at_any_front() {
    let Some(nats) = Nats::start("") else { return };
    let scripts = Scripts::new();
    scripts.write("fails", FAILS);
    let _worker = LocalWorker::start(&scripts, &nats.url(), "w1");
    let names = ["again", "change", "fails", "look"];
    let fronts = ["f1", "f2"].map(|node| Front::start(&nats.url(), node));
    for front in &fronts {
        front.wait_for(&names).await;
    }
    let result = fronts[0].call_in_full("fails", json!({})).await;
    let whole: String = (1..=2000).map(|number| format!("{number}\n")).collect();
    for front in &fronts {
        assert_eq!(front.read(first_link(&result)).await, Ok(whole.clone()));
    }
}

/// Script that fails with more messages than its result has.
const FAILS: &str = r#"#!/bin/sh
if [ "${1-}" = --help ]; then
  echo '{"description": "Fails"}'
  exit
fi
seq 2000 >&2
exit 1
"#;

/// Script that writes messages, the last of them long.
const MESSAGES: &str = r#"#!/bin/sh
if [ "${1-}" = --help ]; then
  echo '{"description": "Writes messages"}'
  exit
fi
for number in 1 2 3 4 5; do echo "PROGRESS $number/5 step" >&2; sleep 0.05; done
head -c 1048576 /dev/zero | tr '\0' x >&2
echo done
"#;

#[tokio::test(flavor = "multi_thread")]
async fn messages_arrive_while_a_script_runs() {
    let Some(nats) = Nats::start("") else { return };
    let scripts = Scripts::new();
    scripts.write("messages", MESSAGES);
    let _worker = LocalWorker::start(&scripts, &nats.url(), "w1");
    let front = Front::start(&nats.url(), "f1");
    front
        .wait_for(&["again", "change", "look", "messages"])
        .await;
    let (told, messages) = front.call_with_progress("messages").await;
    assert_eq!(told, Ok((true, "done".to_owned())));
    let steps: Vec<_> = messages.iter().filter(|one| one.contains("step")).collect();
    assert_eq!(steps.len(), 5, "{messages:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_reach_the_subscribers_of_other_fronts() {
    let Some(nats) = Nats::start("") else { return };
    let fronts = ["f1", "f2"].map(|node| Front::start(&nats.url(), node));
    for (front, node) in fronts.iter().zip(["f1", "f2"]) {
        let (server, settings) = (front.server.clone(), settings(&nats.url(), node));
        tokio::spawn(async move { Cluster::new(settings).share_events(&server).await });
    }
    let (connection, mut messages) = Connection::open(&fronts[1].server, ToolNames::Path);
    let listen = json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {
        "notifications": {"resourceSubscriptions": ["notes://today"]},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }});
    let Reply::Pending(listening) = connection.receive(listen.to_string().as_bytes()) else {
        panic!("no subscription");
    };
    let listening = tokio::spawn(listening);
    // Events are lost until both fronts are connected.
    let received = async {
        loop {
            fronts[0].server.notify_resource_updated("notes://today");
            let pause = Duration::from_millis(50);
            let Ok(Some(message)) = tokio::time::timeout(pause, messages.recv()).await else {
                continue;
            };
            let text = String::from_utf8_lossy(&message).into_owned();
            if text.contains("notifications/resources/updated") {
                return;
            }
        }
    };
    let received = tokio::time::timeout(EVENT_TIMEOUT, received).await;
    received.expect("an event of the other front");
    listening.abort();
}
