//! Three NATS servers as a cluster of their own, and nodes of another version of the protocol.

use std::collections::BTreeSet;
use std::time::Duration;

use async_nats::Client;
use futures_util::StreamExt as _;
use mcpd_cluster::{Settings, Worker};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::faults::{call_many, judge};
use crate::fixture::{EVENT_TIMEOUT, Front, LocalWorker, NAMES, Scripts, settings};
use crate::hostile::{frame, head};
use crate::nats::{Nats, free_port};

/// Starts three servers that know each other.
fn three_servers() -> Option<Vec<Nats>> {
    let ports = [(); 3].map(|()| free_port());
    let routes = ports
        .map(|port| format!("\"nats://127.0.0.1:{port}\""))
        .join(", ");
    let start = |(number, port): (usize, u16)| {
        Nats::start(&format!(
            "server_name: n{number}\ncluster {{name: three, listen: \"127.0.0.1:{port}\", routes: [{routes}]}}"
        ))
    };
    ports.into_iter().enumerate().map(start).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn loss_of_one_of_three_servers_loses_no_call() {
    let Some(mut servers) = three_servers() else {
        return;
    };
    let urls: Vec<_> = servers.iter().map(Nats::url).collect();
    let node = |name: &str| -> Settings {
        let mut settings = settings(&urls[0], name);
        settings.urls.clone_from(&urls);
        settings
    };
    let scripts = Scripts::new();
    let _first = LocalWorker::with(Worker::new(node("w1")), &scripts);
    let _second = LocalWorker::with(Worker::new(node("w2")), &scripts);
    let front = Front::with(node("f1"));
    front.wait_for(&NAMES).await;
    for (number, server) in servers.iter_mut().enumerate() {
        let calls = tokio::spawn({
            let (front, prefix) = (front.clone(), format!("s{number}-"));
            async move { call_many(&front, &prefix, 24, "0.5").await }
        });
        sleep(Duration::from_millis(400)).await;
        server.kill();
        let calls = calls.await.expect("no panic");
        let told: Vec<_> = calls.iter().map(|call| &call.told).collect();
        assert_eq!(judge(&scripts, &calls), 24, "{told:?}");
        server.resume();
        // The next one goes when this one is back among the others.
        sleep(Duration::from_secs(3)).await;
    }
}

/// Announces two workers as `w1` is announced: `w8`, whose messages are newer, and `w9`, which
/// refuses runs of a newer front.
async fn be_of_other_protocols(client: Client) {
    let subject = |kind: &str| format!("mcpd.1.default.{kind}");
    let mut heard = client
        .subscribe(subject("here.w1"))
        .await
        .expect("a server");
    let mut runs = client.subscribe(subject("run.w9")).await.expect("a server");
    loop {
        tokio::select! {
            Some(message) = heard.next() => {
                let mut here = head(&message.payload);
                // Idle, so that it is the first choice.
                here["slots"] = json!(64);
                for (node, version) in [("w8", 2), ("w9", 1)] {
                    here["node"] = json!(node);
                    here["v"] = json!(version);
                    let subject = subject(&format!("here.{node}"));
                    client.publish(subject, frame(&here, b"")).await.expect("a server");
                }
            }
            Some(message) = runs.next() => {
                let run = head(&message.payload);
                let refused: Value = json!({
                    "v": 1, "run": run["run"], "node": "w9", "epoch": run["epoch"],
                    "event": "refused", "reason": "version", "text": "this is version 1",
                });
                let reply = message.reply.expect("an inbox");
                client.publish(reply, frame(&refused, b"")).await.expect("a server");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_of_other_protocols_are_passed_over() {
    let Some(nats) = Nats::start("") else { return };
    let scripts = Scripts::new();
    let _worker = LocalWorker::start(&scripts, &nats.url(), "w1");
    let front = Front::start(&nats.url(), "f1");
    front.wait_for(&NAMES).await;
    let client = async_nats::connect(nats.url()).await.expect("a server");
    let mut asked = client
        .subscribe("mcpd.1.default.run.*")
        .await
        .expect("a server");
    let others = tokio::spawn(be_of_other_protocols(client));
    let mut subjects = BTreeSet::new();
    let begun = Instant::now();
    let mut round = 0;
    while !subjects.contains("mcpd.1.default.run.w9") {
        assert!(begun.elapsed() < EVENT_TIMEOUT, "{subjects:?}");
        round += 1;
        let calls = call_many(&front, &format!("v{round}-"), 12, "0").await;
        assert_eq!(judge(&scripts, &calls), 12);
        while let Ok(Some(run)) = timeout(Duration::from_millis(50), asked.next()).await {
            subjects.insert(run.subject.to_string());
        }
    }
    others.abort();
    assert!(!subjects.contains("mcpd.1.default.run.w8"), "{subjects:?}");
}
