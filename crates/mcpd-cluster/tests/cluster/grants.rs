//! Rights of nodes: with those of [`grants`], everything works, and nothing beyond it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_nats::{Client, ConnectOptions};
use futures_util::StreamExt as _;
use mcpd_cluster::{Credentials, Role, Settings, Worker, drain, grants, status};
use nkeys::KeyPair;
use tokio::time::timeout;

use crate::fixture::{Front, LocalWorker, NAMES, Scripts, settings};
use crate::nats::Nats;
use crate::task_client::{LocalClient, TaskClient as _};

/// Nodes with keys and rights.
pub(crate) struct Nodes {
    directory: tempfile::TempDir,
    users: String,
}

impl Nodes {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let users = String::new();
        Self { directory, users }
    }

    pub(crate) fn key(&self, node: &str) -> PathBuf {
        self.directory.path().join(node)
    }

    pub(crate) fn add(mut self, role: Role, node: &str) -> Self {
        let pair = KeyPair::new_user();
        std::fs::write(self.key(node), pair.seed().expect("a seed")).expect("a file");
        let name = |name: &str| name.parse().expect("a name");
        self.users += &grants(role, &name("default"), &name(node), &pair.public_key())
            .expect("it is the key of a user");
        self
    }

    /// Adds a client with all rights.
    pub(crate) fn add_unlimited(mut self, name: &str) -> Self {
        let pair = KeyPair::new_user();
        std::fs::write(self.key(name), pair.seed().expect("a seed")).expect("a file");
        self.users += &format!("{{nkey: {}}}\n", pair.public_key());
        self
    }

    pub(crate) fn settings(&self, nats: &Nats, node: &str) -> Settings {
        let mut settings = settings(&nats.url(), node);
        settings.credentials = vec![Credentials::KeyFile(self.key(node))];
        settings
    }

    pub(crate) fn server(&self) -> Option<Nats> {
        Nats::with_jetstream(&self.authorization())
    }

    /// Settings of a server that enforces the rights.
    pub(crate) fn authorization(&self) -> String {
        format!("authorization {{\nusers: [\n{}]\n}}", self.users)
    }
}

pub(crate) async fn client(nats: &Nats, key: &Path) -> Client {
    let seed = std::fs::read_to_string(key).expect("a seed");
    let options = ConnectOptions::new().nkey(seed);
    options.connect(nats.url()).await.expect("a connection")
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_suffice_for_every_role() {
    let nodes = Nodes::new()
        .add(Role::Worker, "w1")
        .add(Role::Front, "f1")
        .add(Role::Operator, "ops");
    let Some(nats) = nodes.server() else { return };
    let scripts = Scripts::new();
    let worker = LocalWorker::with(Worker::new(nodes.settings(&nats, "w1")), &scripts);
    let front = Front::with(nodes.settings(&nats, "f1"));
    front.wait_for(&NAMES).await;
    let told = front.run("change", "one", "1").await;
    assert_eq!(told, Ok((true, "did one".to_owned())));
    // Fetched by the worker, in parts.
    let large = "x".repeat(900 * 1024);
    let told = front
        .call(
            "look",
            serde_json::json!({"id": "big", "seconds": "0", "more": large}),
        )
        .await;
    assert!(told.is_ok(), "{told:?}");
    let operator = nodes.settings(&nats, "ops");
    let all = status(&operator).await.expect("a list");
    let names: Vec<_> = all
        .iter()
        .map(|node| (&*node.name, node.scripts.len()))
        .collect();
    assert_eq!(names, [("f1", 0), ("w1", 3)]);
    drain(&operator, &"w1".parse().expect("a name"))
        .await
        .expect("a confirmation");
    worker.wait().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_can_neither_hear_nor_speak_as_another() {
    let nodes = Nodes::new()
        .add(Role::Worker, "w1")
        .add(Role::Worker, "w2")
        .add(Role::Front, "f1");
    let Some(nats) = nodes.server() else { return };
    let scripts = Scripts::new();
    let _worker = LocalWorker::with(Worker::new(nodes.settings(&nats, "w1")), &scripts);
    let front = Front::with(nodes.settings(&nats, "f1"));
    front.wait_for(&NAMES).await;
    let thief = client(&nats, &nodes.key("w2")).await;
    let mut heard = Vec::new();
    for subject in [
        "mcpd.1.default.run.w1",
        "mcpd.1.default.>",
        "_INBOX.>",
        "_INBOX.f1.>",
    ] {
        heard.push(thief.subscribe(subject).await.expect("refused later"));
    }
    for subject in [
        "mcpd.1.default.here.w1",
        "mcpd.1.default.run.w1",
        "_INBOX.f1.1.r.x",
    ] {
        thief
            .publish(subject, "forged".into())
            .await
            .expect("refused later");
    }
    thief.flush().await.expect("a flush");
    let told = front.run("change", "one", "0").await;
    assert_eq!(told, Ok((true, "did one".to_owned())));
    for mut subscription in heard {
        let message = timeout(Duration::from_millis(100), subscription.next()).await;
        assert!(message.is_err(), "{message:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn node_without_a_key_is_refused() {
    let nodes = Nodes::new().add(Role::Operator, "ops");
    let Some(nats) = nodes.server() else { return };
    let error = status(&settings(&nats.url(), "ops"))
        .await
        .expect_err("no rights");
    assert!(
        error.to_string().contains("connect to the cluster"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_of_fronts_suffice_for_tasks_and_no_worker_reads_them() {
    let nodes = Nodes::new()
        .add(Role::Worker, "w1")
        .add(Role::Front, "f1")
        .add(Role::Front, "f2");
    let Some(nats) = nodes.server() else { return };
    let scripts = Scripts::new();
    scripts.add_task("job", "");
    let _worker = LocalWorker::with(Worker::new(nodes.settings(&nats, "w1")), &scripts);
    let first = Front::with_tasks(nodes.settings(&nats, "f1"));
    let second = Front::with_tasks(nodes.settings(&nats, "f2"));
    let tools = ["again", "change", "job", "look"];
    first.wait_for(&tools).await;
    second.wait_for(&tools).await;
    let ada = LocalClient::of(&first.server, "ada");
    let task = ada.begin("job", "one", "6").await;
    let there = LocalClient::of(&second.server, "ada");
    assert_eq!(there.get(&task).await["status"], "working");
    let thief = client(&nats, &nodes.key("w1")).await;
    let bucket = "mcpd_1_default_tasks";
    let read = format!("$JS.API.STREAM.INFO.KV_{bucket}");
    let mut heard = thief
        .subscribe(format!("$KV.{bucket}.>"))
        .await
        .expect("refused later");
    let answer = timeout(Duration::from_secs(1), thief.request(read, "".into())).await;
    assert!(!matches!(answer, Ok(Ok(_))), "{answer:?}");
    // The other front continues, with the same rights.
    first.server.shutdown().await;
    let done = there.until(&task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "did one", "{done}");
    assert_eq!(scripts.counts("one"), (1, 1));
    let stolen = timeout(Duration::from_millis(100), heard.next()).await;
    assert!(stolen.is_err(), "{stolen:?}");
}
