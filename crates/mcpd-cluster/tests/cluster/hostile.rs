//! Hostile peers on the same NATS server: forged ends, replayed runs, frames that are none.

use std::time::Duration;

use async_nats::{Client, Message, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt as _;
use mcpd_cluster::{Role, Worker};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::fixture::{
    EVENT_TIMEOUT, Front, LocalWorker, NAMES, Scripts, one_worker, settings, wait_until,
};
use crate::grants::{self, Nodes};
use crate::nats::Nats;

async fn client(nats: &Nats) -> Client {
    async_nats::connect(nats.url()).await.expect("a connection")
}

/// Subscribes, and waits until the server knows of it: what a connection sends takes effect in
/// order.
async fn subscribe(client: &Client, subject: &str) -> Subscriber {
    let subscribe = async |subject: String| client.subscribe(subject).await.expect("a server");
    let subscription = subscribe(subject.to_owned()).await;
    let marker = client.new_inbox();
    let mut echo = subscribe(marker.clone()).await;
    let sent = client.publish(marker, Bytes::new()).await;
    sent.expect("a server");
    next(&mut echo).await;
    subscription
}

/// Returns the next message, which is to come in time.
async fn next(subscription: &mut Subscriber) -> Message {
    let message = timeout(EVENT_TIMEOUT, subscription.next()).await;
    message.expect("in time").expect("a message")
}

pub(crate) fn frame(head: &Value, body: &[u8]) -> Bytes {
    let head = head.to_string();
    let length = u32::try_from(head.len()).expect("a short head");
    [&length.to_le_bytes()[..], head.as_bytes(), body]
        .concat()
        .into()
}

pub(crate) fn head(payload: &[u8]) -> Value {
    let (length, rest) = payload.split_first_chunk().expect("a frame");
    let length = usize::try_from(u32::from_le_bytes(*length)).expect("a length");
    serde_json::from_slice(&rest[..length]).expect("a head")
}

#[tokio::test(flavor = "multi_thread")]
async fn replayed_run_starts_nothing() {
    let Some((nats, scripts, _worker, front)) = one_worker().await else {
        return;
    };
    let spy = client(&nats).await;
    let mut runs = subscribe(&spy, "mcpd.1.default.run.w1").await;
    let told = front.run("change", "one", "0").await;
    assert_eq!(told, Ok((true, "did one".to_owned())));
    let run = next(&mut runs).await;
    let mut answers = subscribe(&spy, "_INBOX.spy").await;
    for _ in 0..3 {
        let sent = spy.publish_with_reply(run.subject.clone(), "_INBOX.spy", run.payload.clone());
        sent.await.expect("a replay");
        let answer = next(&mut answers).await;
        assert_eq!(head(&answer.payload)["event"], "end");
    }
    assert_eq!(scripts.counts("one"), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_end_is_ignored() {
    let Some((nats, _scripts, _worker, front)) = one_worker().await else {
        return;
    };
    let spy = client(&nats).await;
    let mut runs = subscribe(&spy, "mcpd.1.default.run.w1").await;
    let call = tokio::spawn({
        let front = front.clone();
        async move { front.run("change", "one", "1").await }
    });
    let run = next(&mut runs).await;
    let (inbox, request) = (run.reply.expect("an inbox"), head(&run.payload));
    // It knows the inbox, but is another node, or does not know the run.
    for (node, id) in [
        ("w2", request["run"].clone()),
        ("w1", json!("00000000000000000000000000000000.0")),
    ] {
        let forged =
            json!({"v": 1, "run": id, "node": node, "epoch": request["epoch"], "event": "end"});
        let body = br#"{"Err": {"reason": "busy", "retry_after_ms": 1}}"#;
        spy.publish(inbox.clone(), frame(&forged, body))
            .await
            .expect("a forgery");
    }
    assert_eq!(
        call.await.expect("no panic"),
        Ok((true, "did one".to_owned()))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_messages_are_refused_or_ignored() {
    let Some((nats, _scripts, _worker, front)) = one_worker().await else {
        return;
    };
    let spy = client(&nats).await;
    let newer = json!({"v": 2, "run": "000000000000000000000000000000aa.0", "what": "ever"});
    let answer = spy
        .request("mcpd.1.default.run.w1", frame(&newer, b""))
        .await
        .expect("an answer");
    assert_eq!(head(&answer.payload)["reason"], "version");
    let garbage: [&[u8]; 5] = [
        b"",
        b"\xff\xff\xff\xff",
        b"\x02\0\0\0{}",
        &[0; 900_000],
        b"\x05\0\0\0[1]",
    ];
    for kind in [
        "run.w1",
        "ctl.w1",
        "catalog.w1",
        "here.w1",
        "here.zz",
        "in.f1",
        "who",
    ] {
        for bytes in garbage {
            let subject = format!("mcpd.1.default.{kind}");
            spy.publish_with_reply(subject, "_INBOX.spy", bytes.to_vec().into())
                .await
                .expect("a message");
        }
    }
    spy.flush().await.expect("a flush");
    tokio::time::sleep(Duration::from_millis(200)).await;
    let told = front.run("change", "one", "0").await;
    assert_eq!(told, Ok((true, "did one".to_owned())));
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_that_lies_about_its_scripts_is_not_listed() {
    let Some((nats, scripts, _worker, front)) = one_worker().await else {
        return;
    };
    let liar = client(&nats).await;
    let mut asked = subscribe(&liar, "mcpd.1.default.catalog.liar").await;
    let here = json!({"v": 1, "node": "liar", "epoch": 1, "kind": "worker", "at_ms": 0, "slots": 9000, "catalog": "00"});
    liar.publish("mcpd.1.default.here.liar", frame(&here, b""))
        .await
        .expect("a message");
    let question = next(&mut asked).await;
    let part = json!({"v": 1, "catalog": "00", "total": 1, "scripts": [{
        "path": "change", "digest": "sha256:0", "role": "tool", "level": "none",
        "description": {}, "lengths": [4, 0, 0],
    }]});
    let reply = question.reply.expect("a reply");
    liar.publish(reply, frame(&part, b"evil"))
        .await
        .expect("an answer");
    tokio::time::sleep(Duration::from_millis(300)).await;
    front.wait_for(&NAMES).await;
    let told = front.run("change", "one", "0").await;
    assert_eq!(told, Ok((true, "did one".to_owned())));
    wait_until("the journal", || scripts.counts("one") == (1, 1)).await;
}

/// Takes the place of the worker `w1`, which it has seen: accepts what it is asked to run, talks,
/// and says that it is done with an outcome of this size, which it does not have.
async fn promise_outcomes(client: Client, mut here: Value, size: u64) {
    let subject = |kind: &str| format!("mcpd.1.default.{kind}.liar");
    let mut asked = client.subscribe(subject("*")).await.expect("a server");
    let send = async |subject: &str, head: Value| {
        let sent = client.publish(subject.to_owned(), frame(&head, b""));
        sent.await.expect("a server");
    };
    here["node"] = json!("liar");
    let epoch = here["epoch"].clone();
    let event = |run: &Value, rest: Value| {
        let mut event = json!({"v": 1, "run": run, "node": "liar", "epoch": epoch});
        let members = event.as_object_mut().expect("an object");
        members.extend(rest.as_object().expect("an object").clone());
        event
    };
    let mut tick = tokio::time::interval(Duration::from_millis(200));
    let mut promise: Option<(String, Value)> = None;
    loop {
        tokio::select! {
            _ = tick.tick() => {
                send(&subject("here"), here.clone()).await;
                if let Some((inbox, end)) = &promise {
                    send(inbox, end.clone()).await;
                }
            }
            Some(message) = asked.next() => {
                let Some(reply) = message.reply.as_deref() else { continue };
                let head = head(&message.payload);
                if message.subject.contains(".run.") {
                    send(reply, event(&head["run"], json!({"event": "accepted"}))).await;
                    let end = event(&head["run"], json!({"event": "end", "size": size}));
                    promise = Some((reply.to_owned(), end));
                } else if head["ask"] == "part" {
                    send(reply, json!({"v": 1, "missing": "lost my notes"})).await;
                } else {
                    send(reply, json!({"v": 1, "node": "liar", "epoch": epoch})).await;
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn outcome_that_is_never_there_ends_the_call() {
    for (size, reason) in [(300 << 20, "too many"), (600_000, "lost my notes")] {
        let Some((nats, _scripts, worker, front)) = one_worker().await else {
            return;
        };
        let liar = client(&nats).await;
        let mut heard = subscribe(&liar, "mcpd.1.default.here.w1").await;
        let here = head(&next(&mut heard).await.payload);
        let lying = tokio::spawn(promise_outcomes(liar.clone(), here, size));
        worker.drain().await;
        let begun = Instant::now();
        let (is_ok, text) = front.run("change", "one", "0").await.expect("a result");
        assert!(!is_ok && text.contains("not known"), "{text}");
        assert!(text.contains(reason), "{text}");
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(10), "{took:?}");
        lying.abort();
    }
}

/// Sends a copy of a run under a new id. Returns the answer.
async fn forge(thief: &Client, inbox: &str, run: &Message, front: Option<&str>) -> Value {
    let mut answers = thief.subscribe(inbox.to_owned()).await.expect("a server");
    let mut forged = head(&run.payload);
    forged["run"] = json!("00000000000000000000000000000bad.0");
    if let Some(front) = front {
        forged["front"] = json!(front);
    }
    let (length, rest) = run.payload.split_first_chunk().expect("a frame");
    let body = &rest[usize::try_from(u32::from_le_bytes(*length)).expect("a length")..];
    let payload = frame(&forged, body);
    let sent = thief.publish_with_reply(run.subject.clone(), inbox.to_owned(), payload);
    sent.await.expect("a server");
    head(&next(&mut answers).await.payload)
}

#[tokio::test(flavor = "multi_thread")]
async fn run_under_the_name_of_another_front_is_denied() {
    // Once without rights, and once with those of another front.
    let nodes = Nodes::new()
        .add(Role::Worker, "w1")
        .add(Role::Front, "f1")
        .add(Role::Front, "f2")
        .add_unlimited("watcher");
    for has_rights in [false, true] {
        let nats = if has_rights {
            nodes.server()
        } else {
            Nats::start("")
        };
        let Some(nats) = nats else { return };
        let (settings, watcher, thief) = if has_rights {
            let watcher = grants::client(&nats, &nodes.key("watcher")).await;
            let thief = grants::client(&nats, &nodes.key("f2")).await;
            (
                ["w1", "f1"].map(|node| nodes.settings(&nats, node)),
                watcher,
                thief,
            )
        } else {
            let settings = ["w1", "f1"].map(|node| settings(&nats.url(), node));
            (settings, client(&nats).await, client(&nats).await)
        };
        let [worker, front] = settings;
        let scripts = Scripts::new();
        let accepting = Worker::new(worker).accept(["f1".parse().expect("a name")]);
        let _worker = LocalWorker::with(accepting, &scripts);
        let front = Front::with(front);
        front.wait_for(&NAMES).await;
        let mut runs = subscribe(&watcher, "mcpd.1.default.run.w1").await;
        let told = front.run("change", "one", "0").await;
        assert_eq!(told, Ok((true, "did one".to_owned())));
        let run = next(&mut runs).await;
        let own = format!("f2.{}", head(&run.payload)["epoch"]);
        for front in [None, Some(&*own)] {
            let answer = forge(&thief, "_INBOX.f2.thief", &run, front).await;
            assert_eq!(answer["reason"], "denied", "{answer}");
        }
        if has_rights {
            // It can't confirm its run in the place of the front either.
            let heard = thief.subscribe("mcpd.1.default.in.f1").await;
            let mut heard = heard.expect("refused later");
            let answer = forge(&thief, "_INBOX.f2.thief", &run, None).await;
            assert_eq!(answer["reason"], "denied", "{answer}");
            let stolen = timeout(Duration::from_millis(100), heard.next()).await;
            assert!(stolen.is_err(), "{stolen:?}");
        }
        let told = front.run("change", "two", "0").await;
        assert_eq!(told, Ok((true, "did two".to_owned())));
        assert_eq!(scripts.journal().len(), 2);
        assert_eq!(scripts.counts("one"), (1, 1));
    }
}
