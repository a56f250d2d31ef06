//! Three NATS servers as a cluster of their own, and nodes of another version of the protocol.

use std::time::Duration;

use async_nats::Client;
use futures_util::StreamExt as _;
use mcpd_cluster::{Settings, Worker};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::faults::{call_many, judge};
use crate::fixture::{Front, LocalWorker, NAMES, Scripts, settings};
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

/// Announces a worker as another one is announced, and refuses what it is asked to run.
async fn refuse_as_newer(client: Client) {
    let mut heard = client
        .subscribe("mcpd.1.default.here.w1")
        .await
        .expect("a server");
    let mut runs = client
        .subscribe("mcpd.1.default.run.w9")
        .await
        .expect("a server");
    loop {
        tokio::select! {
            Some(message) = heard.next() => {
                let mut here = head(&message.payload);
                here["node"] = json!("w9");
                // Idle, so that it is the first choice.
                here["slots"] = json!(64);
                let subject = "mcpd.1.default.here.w9";
                client.publish(subject, frame(&here, b"")).await.expect("a server");
            }
            Some(message) = runs.next() => {
                let run = head(&message.payload);
                let refused: Value = json!({
                    "v": 1, "run": run["run"], "node": "w9", "epoch": run["epoch"],
                    "event": "refused", "reason": "version", "text": "this is version 2",
                });
                let reply = message.reply.expect("an inbox");
                client.publish(reply, frame(&refused, b"")).await.expect("a server");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_of_a_newer_protocol_is_passed_over() {
    let Some(nats) = Nats::start("") else { return };
    let scripts = Scripts::new();
    let _worker = LocalWorker::start(&scripts, &nats.url(), "w1");
    let front = Front::start(&nats.url(), "f1");
    front.wait_for(&NAMES).await;
    let client = async_nats::connect(nats.url()).await.expect("a server");
    let mut asked = client
        .subscribe("mcpd.1.default.run.w9")
        .await
        .expect("a server");
    let newer = tokio::spawn(refuse_as_newer(client));
    sleep(Duration::from_secs(3)).await;
    let calls = call_many(&front, "v", 12, "0").await;
    assert_eq!(judge(&scripts, &calls), 12);
    newer.abort();
    assert!(
        asked.next().await.is_some(),
        "the newer one was asked first"
    );
}
