//! Store of tasks in a bucket: what every store promises, and its bounds.

use mcpd_cluster::SharedTasks;
use mcpd_protocol::method::TaskStatus;
use mcpd_server::tasks::{Store as _, StoredTask, TaskKey};
use serde_json::json;
use serde_json::value::to_raw_value;

use crate::fixture::settings;
use crate::nats::Nats;

fn store(nats: &Nats, node: &str) -> SharedTasks {
    SharedTasks::new(settings(&nats.url(), node), 1)
}

/// Returns a task that runs at a front.
fn task(store: &SharedTasks, id: &str, owner: &str, expires_at: i64) -> StoredTask {
    let task = json!({"id": id, "owner": owner, "tool": "t", "runner": store.runner(),
        "status": "working", "detail": null, "created_at": 1, "updated_at": 1, "expires_at": expires_at});
    serde_json::from_value(task).expect("a task")
}

const LATER: i64 = i64::MAX / 2;

#[tokio::test(flavor = "multi_thread")]
async fn first_ending_stays_and_every_front_reads_it() {
    let Some(nats) = Nats::with_jetstream("") else {
        return;
    };
    let (first, second) = (store(&nats, "f1"), store(&nats, "f2"));
    let added = first.add(task(&first, "1", "ada", LATER)).await;
    assert!(added.expect("a bucket"));
    let key = || TaskKey::new("1", "ada");
    let read = second.task(key()).await.expect("a bucket").expect("a task");
    assert_eq!(read.status, TaskStatus::Working);
    // Another front is not its runner.
    let late = to_raw_value("no").expect("JSON");
    let ended = second.store_ending(key(), TaskStatus::Failed, Some(late.clone()));
    ended.await.expect("nothing to do");
    let large = to_raw_value(&"x".repeat(1_500_000)).expect("JSON");
    let ended = first.store_ending(key(), TaskStatus::Completed, Some(large.clone()));
    ended.await.expect("an ending");
    let again = first.store_ending(key(), TaskStatus::Failed, Some(late));
    again.await.expect("nothing to do");
    let read = second.task(key()).await.expect("a bucket").expect("a task");
    assert_eq!(read.status, TaskStatus::Completed);
    assert_eq!(read.detail.expect("a result").get(), large.get());
    let other = second.task(TaskKey::new("1", "bob")).await;
    assert!(other.expect("a bucket").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_task_cannot_be_read() {
    let Some(nats) = Nats::with_jetstream("") else {
        return;
    };
    let store = store(&nats, "f1");
    store
        .add(task(&store, "1", "ada", 2))
        .await
        .expect("a bucket");
    let read = store.task(TaskKey::new("1", "ada")).await;
    assert!(read.expect("a bucket").is_none());
    assert!(store.tasks("ada").await.expect("a bucket").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_one_owner_are_bounded() {
    let Some(nats) = Nats::with_jetstream("") else {
        return;
    };
    let store = store(&nats, "f1");
    for number in 0..256 {
        let added = store
            .add(task(&store, &number.to_string(), "ada", LATER))
            .await;
        assert!(added.expect("a bucket"));
    }
    let added = store.add(task(&store, "more", "ada", LATER)).await;
    assert!(!added.expect("a bucket"));
    let added = store.add(task(&store, "more", "bob", LATER)).await;
    assert!(added.expect("a bucket"));
    assert_eq!(store.tasks("ada").await.expect("a bucket").len(), 256);
}

#[tokio::test(flavor = "multi_thread")]
async fn server_without_jetstream_is_named_with_what_to_do() {
    let Some(nats) = Nats::start("") else { return };
    let store = store(&nats, "f1");
    store.tasks("ada").await.expect_err("no bucket");
    let before = nats.connection_number();
    let error = store.tasks("ada").await.expect_err("no bucket").to_string();
    assert!(
        error.contains("jetstream {store_dir") && error.contains("tasks = \"front\""),
        "{error}"
    );
    let after = nats.connection_number();
    assert_eq!(
        after,
        before + 1,
        "another attempt needs no other connection"
    );
}
