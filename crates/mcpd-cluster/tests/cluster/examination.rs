//! Examination of a cluster: what it says of a sound one, and of each fault.

use std::time::Duration;

use async_nats::Client;
use mcpd_cluster::{Examination, Role, Settings, Worker, examine};
use tokio::time::{sleep, timeout};

use crate::fixture::{EVENT_TIMEOUT, Front, LocalWorker, NAMES, Scripts, settings};
use crate::grants::Nodes;
use crate::nats::{Nats, free_port};

#[track_caller]
fn check(said: &str, expected: &str) {
    assert_eq!(said, expected.trim(), "\n{said}\n");
}

/// An operator at a server that enforces rights.
const SOUND: &str = "
cluster default, as the node ops

servers
  nats://SERVER: nats-server VERSION, TIME ms, max_payload 1024 KiB, JetStream

rights
  worker: may not send to mcpd.1.default.in.*, mcpd.1.default.here.ops; may not hear mcpd.1.default.*.ops, mcpd.1.default.who
  front: may not send to mcpd.1.default.run.*, mcpd.1.default.event, mcpd.1.default.here.ops; may not hear mcpd.1.default.in.ops, mcpd.1.default.ctl.ops, mcpd.1.default.event
  operator: complete

nodes
  f1: front, mcpd MCPD, protocol 1, clock SOON ms
  w1: worker, mcpd MCPD, protocol 1, clock SOON ms
";

/// A worker there.
const AS_WORKER: &str = "
cluster default, as the node w1

servers
  nats://SERVER: nats-server VERSION, TIME ms, max_payload 1024 KiB, JetStream

rights
  worker: complete
  front: may not send to mcpd.1.default.run.*, mcpd.1.default.ctl.*, mcpd.1.default.catalog.*, mcpd.1.default.who, mcpd.1.default.event; may not hear mcpd.1.default.here.*, mcpd.1.default.event
  operator: may not send to mcpd.1.default.ctl.*, mcpd.1.default.catalog.*, mcpd.1.default.who; may not hear mcpd.1.default.here.*

nodes
  not heard: only fronts and operators may hear other nodes
";

/// One server that does not run, and one that asks for no credentials.
const OUT_OF_REACH: &str = "
cluster default, as the node f1

servers
  nats://SERVER: not reached: Connection refused (os error 111): check the address, and whether the server runs
  nats://SERVER: nats-server VERSION, TIME ms, max_payload 100 KiB, no JetStream: tasks end with their front
    max_payload is too low: messages have up to 768 KiB; set `max_payload: 1MB` in nats.conf

rights
  any client may do everything, such as run scripts on all workers; away from one machine, give each node a key and what `mcpd cluster grants` prints

nodes
  none has announced itself
";

/// A node with the key of another.
const NO_RIGHTS: &str = "
cluster default, as the node w3

servers
  nats://SERVER: nats-server VERSION, TIME ms, max_payload 1024 KiB, JetStream

rights
  worker: may not send to mcpd.1.default.here.w3; may not hear mcpd.1.default.*.w3, _INBOX.w3.>
  front: may not send to mcpd.1.default.run.*, mcpd.1.default.ctl.*, mcpd.1.default.catalog.*, mcpd.1.default.who, mcpd.1.default.event, mcpd.1.default.here.w3; may not hear mcpd.1.default.here.*, mcpd.1.default.in.w3, mcpd.1.default.ctl.w3, mcpd.1.default.event, _INBOX.w3.>
  operator: may not send to mcpd.1.default.ctl.*, mcpd.1.default.catalog.*, mcpd.1.default.who; may not hear mcpd.1.default.here.*, _INBOX.w3.>
  w3 can have no role: add what `mcpd cluster grants ROLE w3 KEY` prints to nats.conf

nodes
  not heard: only fronts and operators may hear other nodes
";

/// A node without credentials.
const NO_KEY: &str = "
cluster default, as the node w1

servers
  nats://SERVER: not reached: authorization violation: it refuses this node; add what `mcpd cluster grants` prints to its configuration, and check the credentials in `[cluster]`
";

/// Returns the text, without what differs from run to run.
async fn text(settings: &Settings) -> (String, bool) {
    let examined = timeout(EVENT_TIMEOUT, examine(settings)).await;
    let examination: Examination = examined.expect("an end").expect("usable settings");
    let lines = examination.to_string();
    let lines = lines.lines().map(|line| {
        let words = line.split(' ').map(|word| match word {
            word if word.starts_with("nats://") => "nats://SERVER:".to_owned(),
            word if word.ends_with(',') && word.starts_with("2.") => "VERSION,".to_owned(),
            word if word.parse::<f64>().is_ok() && word.contains('.') => "TIME".to_owned(),
            word if word.len() < 5 && word.starts_with(['+', '-']) => "SOON".to_owned(),
            word => word.replace(env!("CARGO_PKG_VERSION"), "MCPD"),
        });
        words.collect::<Vec<_>>().join(" ")
    });
    (
        lines.collect::<Vec<_>>().join("\n"),
        examination.has_faults(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn sound_cluster_has_no_faults() {
    let nodes = Nodes::new()
        .add(Role::Worker, "w1")
        .add(Role::Front, "f1")
        .add(Role::Operator, "ops");
    let store = tempfile::tempdir().expect("a directory");
    let store = store.path().display();
    let jetstream = format!("jetstream {{store_dir: \"{store}\"}}\n");
    let Some(nats) = Nats::start(&format!("{jetstream}{}", nodes.authorization())) else {
        return;
    };
    let scripts = Scripts::new();
    let _worker = LocalWorker::with(Worker::new(nodes.settings(&nats, "w1")), &scripts);
    let front = Front::with(nodes.settings(&nats, "f1"));
    front.wait_for(&NAMES).await;
    let (said, has_faults) = text(&nodes.settings(&nats, "ops")).await;
    check(&said, SOUND);
    assert!(!has_faults);
    // The worker that is examined under its own name goes on.
    let (said, has_faults) = text(&nodes.settings(&nats, "w1")).await;
    check(&said, AS_WORKER);
    assert!(!has_faults);
    let told = front.run("change", "one", "0").await;
    assert_eq!(told, Ok((true, "did one".to_owned())));
}

#[tokio::test(flavor = "multi_thread")]
async fn server_out_of_reach_and_open_server_are_reported() {
    let Some(nats) = Nats::start("max_payload: 100KB") else {
        return;
    };
    let mut settings = settings(&nats.url(), "f1");
    settings
        .urls
        .insert(0, format!("nats://127.0.0.1:{}", free_port()));
    let (said, has_faults) = text(&settings).await;
    check(&said, OUT_OF_REACH);
    assert!(has_faults);
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_rights_are_named_with_what_to_do() {
    // The rights of another node.
    let nodes = Nodes::new().add(Role::Worker, "w1").add(Role::Worker, "w2");
    let Some(nats) = nodes.server() else { return };
    let mut stranger = nodes.settings(&nats, "w1");
    stranger.node = "w3".parse().expect("a name");
    let (said, has_faults) = text(&stranger).await;
    check(&said, NO_RIGHTS);
    assert!(has_faults);
    // No key at all.
    let (said, has_faults) = text(&settings(&nats.url(), "w1")).await;
    check(&said, NO_KEY);
    assert!(has_faults);
}

/// Announces a node every 100 ms.
async fn announce(client: &Client, node: &str, head: &str) {
    let mut frame = u32::try_from(head.len())
        .expect("small")
        .to_le_bytes()
        .to_vec();
    frame.extend(head.as_bytes());
    let subject = format!("mcpd.1.default.here.{node}");
    loop {
        let sent = client.publish(subject.clone(), frame.clone().into());
        sent.await.expect("a connection");
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_protocol_and_wrong_clock_are_reported() {
    let Some(nats) = Nats::start("") else { return };
    let client = async_nats::connect(nats.url()).await.expect("a server");
    let slow = r#"{"v":1,"node":"w1","epoch":1,"kind":"worker","at_ms":1,"clock_ms":1000,"version":"0.0.1"}"#;
    let new = r#"{"v":2,"name":"w2"}"#;
    let torn = r#"{"v":1"#;
    let settings = settings(&nats.url(), "f1");
    let (said, has_faults) = tokio::select! {
        said = text(&settings) => said,
        () = announce(&client, "w1", slow) => unreachable!("it goes on"),
        () = announce(&client, "w2", new) => unreachable!("it goes on"),
        () = announce(&client, "w4", torn) => unreachable!("it goes on"),
    };
    assert!(has_faults);
    let said: Vec<_> = said.lines().skip_while(|line| *line != "nodes").collect();
    assert_eq!(
        said[1].split(", clock").next(),
        Some("  w1: worker, mcpd 0.0.1, protocol 1")
    );
    assert!(said[2].contains("NTP"), "{said:?}");
    assert_eq!(said[3], "  w2: other, protocol 2");
    assert!(said[4].contains("update the older one"), "{said:?}");
    assert_eq!(said.len(), 5, "{said:?}");
}
