//! Tasks of several fronts: read, answered and cancelled at any of them, and continued by another
//! when theirs is gone.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::fixture::{ASKS, Front, LocalWorker, Scripts, settings, wait_until};
use crate::nats::Nats;
use crate::task_client::{Listener, LocalClient, ProcessFront, TaskClient as _};

fn scripts() -> Scripts {
    let scripts = Scripts::new();
    scripts.add_task("job", "");
    scripts.add("ask", r#"{}, "task": "required", "output": "mcp""#, ASKS);
    scripts.add_task("long", "head -c 100000 /dev/zero | tr '\\0' x");
    scripts
}

/// Starts a server with JetStream, and a worker `w1` of the scripts. Returns `None`, loudly, if
/// there is no server.
fn one_worker() -> Option<(Nats, Scripts, LocalWorker)> {
    let nats = Nats::with_jetstream("")?;
    let scripts = scripts();
    let worker = LocalWorker::start(&scripts, &nats.url(), "w1");
    Some((nats, scripts, worker))
}

const TOOLS: [&str; 6] = ["again", "ask", "change", "job", "long", "look"];

async fn front(nats: &Nats, node: &str) -> Front {
    let front = Front::with_tasks(settings(&nats.url(), node));
    front.wait_for(&TOOLS).await;
    front
}

async fn process_front(nats: &Nats, node: &str) -> ProcessFront {
    let front = ProcessFront::start(&nats.url(), node);
    front.wait_for("job").await;
    front
}

fn text_of(task: &serde_json::Value) -> &str {
    let text = &task["result"]["content"][0]["text"];
    text.as_str().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn task_of_a_killed_front_is_continued_by_another() {
    let Some((nats, scripts, _worker)) = one_worker() else {
        return;
    };
    let second = front(&nats, "f2").await;
    let mut first = process_front(&nats, "f1").await;
    let task = first.begin("job", "one", "5").await;
    wait_until("it runs", || scripts.counts("one").0 == 1).await;
    first.process.kill();
    let client = LocalClient::of(&second.server, "ada");
    assert_eq!(client.get(&task).await["status"], "working");
    let done = client.until(&task, "completed").await;
    assert_eq!(text_of(&done), "did one", "{done}");
    assert_eq!(scripts.counts("one"), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn result_is_there_although_no_front_was_at_its_end() {
    let Some((nats, scripts, _worker)) = one_worker() else {
        return;
    };
    let mut first = process_front(&nats, "f1").await;
    let task = first.begin("job", "one", "1").await;
    first.process.kill();
    wait_until("it has ended", || scripts.counts("one").1 == 1).await;
    // Longer than a worker waits for a front that other callers have.
    sleep(Duration::from_secs(1)).await;
    let second = front(&nats, "f2").await;
    let client = LocalClient::of(&second.server, "ada");
    let done = client.until(&task, "completed").await;
    assert_eq!(text_of(&done), "did one", "{done}");
    assert_eq!(scripts.counts("one"), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_task_of_a_killed_front_has_one_successor() {
    let Some((nats, scripts, _worker)) = one_worker() else {
        return;
    };
    let (second, third) = (front(&nats, "f2").await, front(&nats, "f3").await);
    let mut first = process_front(&nats, "f1").await;
    let mut tasks = Vec::new();
    for number in 0..12 {
        let id = format!("job-{number}");
        tasks.push((first.begin("job", &id, "6").await, id));
    }
    first.process.kill();
    let (second, third) = (
        LocalClient::of(&second.server, "ada"),
        LocalClient::of(&third.server, "ada"),
    );
    for (task, id) in &tasks {
        let done = second.until(task, "completed").await;
        assert_eq!(text_of(&done), format!("did {id}"), "{done}");
        assert_eq!(third.get(task).await["result"], done["result"]);
        assert_eq!(scripts.counts(id), (1, 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn task_is_cancelled_and_answered_from_another_front() {
    let Some((nats, scripts, _worker)) = one_worker() else {
        return;
    };
    let (first, second) = (front(&nats, "f1").await, front(&nats, "f2").await);
    let first = LocalClient::of(&first.server, "ada");
    let second = LocalClient::of(&second.server, "ada");
    let task = first.begin("job", "one", "30").await;
    wait_until("it runs", || scripts.counts("one").0 == 1).await;
    second.cancel(&task).await;
    second.until(&task, "cancelled").await;
    assert_eq!(first.get(&task).await["status"], "cancelled");
    assert_eq!(scripts.counts("one"), (1, 0));

    let task = first.begin("ask", "two", "0").await;
    let asking = second.until(&task, "input_required").await;
    assert!(!asking["inputRequests"]["sure"].is_null(), "{asking}");
    second.answer(&task, "sure").await;
    let done = second.until(&task, "completed").await;
    assert_eq!(text_of(&done), "was sure", "{done}");
    assert_eq!(scripts.counts("two").0, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_outlive_their_front() {
    let Some((nats, scripts, _worker)) = one_worker() else {
        return;
    };
    let second = front(&nats, "f2").await;
    let mut first = process_front(&nats, "f1").await;
    let task = first.begin("ask", "one", "0").await;
    first.until(&task, "input_required").await;
    first.process.kill();
    let client = LocalClient::of(&second.server, "ada");
    let asking = client.get(&task).await;
    assert_eq!(asking["status"], "input_required", "{asking}");
    client.answer(&task, "sure").await;
    let done = client.until(&task, "completed").await;
    assert_eq!(text_of(&done), "was sure", "{done}");
    assert_eq!(scripts.counts("one").0, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn task_of_another_owner_does_not_exist_at_any_front() {
    let Some((nats, scripts, _worker)) = one_worker() else {
        return;
    };
    let (first, second) = (front(&nats, "f1").await, front(&nats, "f2").await);
    let ada = LocalClient::of(&first.server, "ada");
    let task = ada.begin("job", "one", "3").await;
    let bob = LocalClient::of(&second.server, "bob");
    for id in [&*task, "*", ">", "a.b", ""] {
        for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
            let params = json!({"taskId": id, "inputResponses": {}});
            let answer = bob.ask(method, params).await;
            assert_eq!(answer["error"]["code"], -32602, "{method} {id} {answer}");
        }
    }
    let list = json!({"name": "runs_list", "arguments": {}});
    let listed = bob.result("tools/call", list.clone()).await;
    assert_eq!(listed["structuredContent"]["runs"], json!([]), "{listed}");
    let ada_there = LocalClient::of(&second.server, "ada");
    let listed = ada_there.result("tools/call", list).await;
    assert_eq!(
        listed["structuredContent"]["runs"][0]["run"], *task,
        "{listed}"
    );
    ada.until(&task, "completed").await;
    assert_eq!(scripts.counts("one"), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn front_that_stops_says_good_bye() {
    let Some((nats, scripts, _worker)) = one_worker() else {
        return;
    };
    let second = front(&nats, "f2").await;
    let first = process_front(&nats, "f1").await;
    let task = first.begin("job", "task", "8").await;
    first.send(
        "tools/call",
        json!({"name": "change", "arguments": {"id": "call", "seconds": "8"}}),
    );
    wait_until("both run", || {
        scripts.counts("task").0 + scripts.counts("call").0 == 2
    })
    .await;
    let start = Instant::now();
    first.process.signal(Signal::TERM);
    let client = LocalClient::of(&second.server, "ada");
    let done = client.until(&task, "completed").await;
    assert_eq!(text_of(&done), "did task", "{done}");
    // A run that no caller waits for has ended long before its own end, and before its front is
    // missed.
    assert!(
        start.elapsed() < Duration::from_secs(14),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(scripts.counts("task"), (1, 1));
    assert_eq!(scripts.counts("call"), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn long_result_is_whole_at_another_front() {
    let Some((nats, _scripts, _worker)) = one_worker() else {
        return;
    };
    let (first, second) = (front(&nats, "f1").await, front(&nats, "f2").await);
    let first = LocalClient::of(&first.server, "ada");
    let task = first.begin("long", "one", "0").await;
    let second = LocalClient::of(&second.server, "ada");
    let done = second.until(&task, "completed").await;
    assert!(text_of(&done).len() > 100_000, "{}", text_of(&done).len());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_jetstream_callers_wait_for_their_results() {
    let Some(nats) = Nats::start("") else { return };
    let scripts = scripts();
    let _worker = LocalWorker::start(&scripts, &nats.url(), "w1");
    let front = front(&nats, "f1").await;
    let client = LocalClient::of(&front.server, "ada");
    let params = json!({"name": "job", "arguments": {"id": "one", "seconds": "1"}});
    let result = client.result("tools/call", params).await;
    assert_eq!(result["content"][0]["text"], "did one", "{result}");
    assert_eq!(scripts.counts("one"), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn listener_hears_of_a_task_of_another_front() {
    let Some((nats, _scripts, _worker)) = one_worker() else {
        return;
    };
    let (first, second) = (front(&nats, "f1").await, front(&nats, "f2").await);
    let client = LocalClient::of(&first.server, "ada");
    let task = client.begin("job", "one", "3").await;
    let mut listener = Listener::of(&second.server, &task).await;
    let (states, ended) = listener.until("completed").await;
    assert_eq!(states, ["working", "completed"]);
    assert_eq!(text_of(&ended), "did one", "{ended}");
}

#[tokio::test(flavor = "multi_thread")]
async fn listeners_hear_of_a_task_that_is_continued() {
    let Some((nats, scripts, _worker)) = one_worker() else {
        return;
    };
    // One of them continues with the task, and the other hears of that.
    let others = [front(&nats, "f2").await, front(&nats, "f3").await];
    let mut first = process_front(&nats, "f1").await;
    let task = first.begin("job", "one", "6").await;
    let mut listeners = Vec::new();
    for other in &others {
        listeners.push(Listener::of(&other.server, &task).await);
    }
    first.process.kill();
    for listener in &mut listeners {
        let (_, ended) = listener.until("completed").await;
        assert_eq!(text_of(&ended), "did one", "{ended}");
    }
    assert_eq!(scripts.counts("one"), (1, 1));
}
