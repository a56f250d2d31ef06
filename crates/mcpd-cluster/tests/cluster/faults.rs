//! Faults: workers killed and stopped, connections stalled and cut, a server that restarts. What
//! callers are told is compared with the journal.

use std::time::Duration;

use mcpd_cluster::Worker;
use rustix::process::Signal;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::fixture::{
    Front, LocalWorker, NAMES, NodeProcess, Scripts, Told, process_worker, settings, wait_until,
};
use crate::nats::Nats;
use crate::proxy::{Conduct, Proxy};

/// Call with its result.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) name: &'static str,
    pub(crate) id: String,
    pub(crate) told: Told,
    pub(crate) took: Duration,
}

impl Call {
    /// Calls a script that takes `seconds`.
    pub(crate) async fn make(front: &Front, name: &'static str, id: String, seconds: &str) -> Self {
        let begun = Instant::now();
        let told = front.run(name, &id, seconds).await;
        let took = begun.elapsed();
        Self {
            name,
            id,
            told,
            took,
        }
    }
}

/// Calls `count` scripts, another one every 40 ms.
pub(crate) async fn call_many(
    front: &Front,
    prefix: &str,
    count: usize,
    seconds: &'static str,
) -> Vec<Call> {
    let mut calls = JoinSet::new();
    let mut done = Vec::new();
    for number in 0..count {
        let name = NAMES[number % NAMES.len()];
        let (front, id) = (front.clone(), format!("{prefix}{number}"));
        calls.spawn(async move { Call::make(&front, name, id, seconds).await });
        sleep(Duration::from_millis(40)).await;
    }
    while let Some(call) = calls.join_next().await {
        done.push(call.expect("no panic"));
    }
    done
}

/// Checks what callers were told. Returns how many were told that it is done.
#[track_caller]
pub(crate) fn judge(scripts: &Scripts, calls: &[Call]) -> usize {
    let journal = scripts.journal();
    for call in calls {
        let (begun, ended) = journal.get(&call.id).copied().unwrap_or_default();
        let limit = if call.name == "change" { 1 } else { 3 };
        assert!(begun <= limit, "{} was run {begun} times", call.id);
        match &call.told {
            Ok((true, text)) => {
                assert!(ended > 0, "{} was told `{text}`, and is not done", call.id);
            }
            Ok((false, text)) => assert!(text.contains("lost"), "{}: {text}", call.id),
            Err(error) => assert!(begun == 0 || call.name != "change", "{}: {error}", call.id),
        }
    }
    let is_ok = |call: &&Call| matches!(call.told, Ok((true, _)));
    calls.iter().filter(is_ok).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_worker_loses_only_what_it_ran() {
    let Some(nats) = Nats::start("") else { return };
    let scripts = Scripts::new();
    let _first = process_worker(&scripts, &nats.url(), "w1");
    let mut second = process_worker(&scripts, &nats.url(), "w2");
    let front = Front::start(&nats.url(), "f1");
    front.wait_for(&NAMES).await;
    let calls = {
        let front = front.clone();
        tokio::spawn(async move { call_many(&front, "k", 60, "0.5").await })
    };
    for _ in 0..2 {
        sleep(Duration::from_millis(900)).await;
        second.kill();
        second = process_worker(&scripts, &nats.url(), "w2");
    }
    let calls = calls.await.expect("no panic");
    let ok = judge(&scripts, &calls);
    assert!(ok >= 30, "only {ok} of 60 were done");
    for call in &calls {
        // Half a second of its own, three until it is given up.
        let limit = if call.name == "again" { 8 } else { 5 };
        assert!(
            call.took < Duration::from_secs(limit),
            "{} took {:?}",
            call.id,
            call.took
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_worker_goes_on() {
    let Some(nats) = Nats::start("") else { return };
    let scripts = Scripts::new();
    let worker = process_worker(&scripts, &nats.url(), "w1");
    let front = Front::start(&nats.url(), "f1");
    front.wait_for(&NAMES).await;
    let call = tokio::spawn({
        let front = front.clone();
        async move { front.run("change", "one", "1").await }
    });
    wait_until("the script runs", || scripts.counts("one").0 == 1).await;
    worker.signal(Signal::STOP);
    sleep(Duration::from_millis(2500)).await;
    worker.signal(Signal::CONT);
    assert_eq!(
        call.await.expect("no panic"),
        Ok((true, "did one".to_owned()))
    );
    assert_eq!(scripts.counts("one"), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn stall_shorter_than_the_lease_changes_nothing() {
    let Some(nats) = Nats::start("") else { return };
    let scripts = Scripts::new();
    let proxy = Proxy::start(nats.port).await;
    let _worker = LocalWorker::start(&scripts, &proxy.url(), "w1");
    let front = Front::start(&nats.url(), "f1");
    front.wait_for(&NAMES).await;
    let calls = tokio::spawn({
        let front = front.clone();
        async move { call_many(&front, "s", 9, "1").await }
    });
    sleep(Duration::from_millis(600)).await;
    proxy
        .misbehave(Conduct::Stall, Duration::from_secs(2))
        .await;
    let calls = calls.await.expect("no panic");
    assert_eq!(judge(&scripts, &calls), 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_cut_are_opened_again() {
    let Some(nats) = Nats::start("") else { return };
    let scripts = Scripts::new();
    let proxies = [Proxy::start(nats.port).await, Proxy::start(nats.port).await];
    let _worker = LocalWorker::start(&scripts, &proxies[0].url(), "w1");
    let front = Front::start(&proxies[1].url(), "f1");
    front.wait_for(&NAMES).await;
    for (number, proxy) in proxies.iter().enumerate() {
        let prefix = format!("c{number}-");
        let calls = tokio::spawn({
            let front = front.clone();
            async move { call_many(&front, &prefix, 9, "1").await }
        });
        sleep(Duration::from_millis(600)).await;
        // Shorter than the 3 s after which a worker without a connection is lost.
        proxy
            .misbehave(Conduct::Cut, Duration::from_millis(500))
            .await;
        let calls = calls.await.expect("no panic");
        assert_eq!(judge(&scripts, &calls), 9);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn latency_on_all_ways_loses_no_call() {
    const LATENCY: Duration = Duration::from_millis(40);

    let Some(nats) = Nats::start("") else { return };
    let scripts = Scripts::new();
    let proxies = [Proxy::start(nats.port).await, Proxy::start(nats.port).await];
    let _worker = LocalWorker::start(&scripts, &proxies[0].url(), "w1");
    let front = Front::start(&proxies[1].url(), "f1");
    front.wait_for(&NAMES).await;
    for proxy in &proxies {
        proxy.set(Conduct::Delay(LATENCY));
    }
    let begun = Instant::now();
    let told = front.run("change", "first", "0").await;
    assert_eq!(told, Ok((true, "did first".to_owned())));
    // The run and its end pass both proxies.
    assert!(begun.elapsed() >= 4 * LATENCY, "{:?}", begun.elapsed());
    let calls = call_many(&front, "l", 30, "0.1").await;
    assert_eq!(judge(&scripts, &calls), 30);
    assert!(scripts.journal().values().all(|counts| *counts == (1, 1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_that_is_cut_off_ends_its_runs() {
    let Some(nats) = Nats::start("") else { return };
    let scripts = Scripts::new();
    let proxy = Proxy::start(nats.port).await;
    let _worker = LocalWorker::start(&scripts, &proxy.url(), "w1");
    let front = Front::start(&nats.url(), "f1");
    front.wait_for(&NAMES).await;
    let call = tokio::spawn({
        let front = front.clone();
        async move { front.run("change", "one", "12").await }
    });
    wait_until("the script runs", || scripts.counts("one").0 == 1).await;
    proxy.set(Conduct::Stall);
    let (is_ok, text) = call.await.expect("no panic").expect("a result");
    assert!(!is_ok && text.contains("not known"), "{text}");
    // Longer than the lease and the script.
    sleep(Duration::from_secs(5)).await;
    proxy.set(Conduct::Pass);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(scripts.counts("one"), (1, 0));
    wait_until("the worker is back", || {
        !front.server.catalog().tools().is_empty()
    })
    .await;
    let told = front.run("change", "two", "0").await;
    assert_eq!(told, Ok((true, "did two".to_owned())));
}

#[tokio::test(flavor = "multi_thread")]
async fn restart_of_the_server_loses_nothing() {
    let Some(mut nats) = Nats::start("") else {
        return;
    };
    let scripts = Scripts::new();
    let _first = LocalWorker::start(&scripts, &nats.url(), "w1");
    let _second = LocalWorker::start(&scripts, &nats.url(), "w2");
    let front = Front::start(&nats.url(), "f1");
    front.wait_for(&NAMES).await;
    let calls = tokio::spawn({
        let front = front.clone();
        async move { call_many(&front, "r", 30, "1").await }
    });
    sleep(Duration::from_millis(700)).await;
    nats.kill();
    sleep(Duration::from_secs(2)).await;
    nats.resume();
    let calls = calls.await.expect("no panic");
    assert_eq!(
        judge(&scripts, &calls),
        30,
        "{:?}",
        calls.iter().map(|call| &call.told).collect::<Vec<_>>()
    );
    assert!(scripts.journal().values().all(|counts| *counts == (1, 1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn call_without_a_server_ends_in_time_and_runs_nothing() {
    let Some(mut nats) = Nats::start("") else {
        return;
    };
    let scripts = Scripts::new();
    let _worker = LocalWorker::start(&scripts, &nats.url(), "w1");
    let front = Front::start(&nats.url(), "f1");
    front.wait_for(&NAMES).await;
    nats.kill();
    sleep(Duration::from_millis(300)).await;
    let begun = Instant::now();
    let told = front.run("change", "one", "0").await;
    assert!(
        told.as_ref()
            .is_err_and(|error| error.contains("try again")),
        "{told:?}"
    );
    assert!(
        begun.elapsed() < Duration::from_secs(8),
        "{:?}",
        begun.elapsed()
    );
    nats.resume();
    sleep(Duration::from_secs(2)).await;
    assert_eq!(scripts.counts("one"), (0, 0));
    let told = front.run("change", "two", "0").await;
    assert_eq!(told, Ok((true, "did two".to_owned())));
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_end_without_a_server_and_own_scripts_go_on() {
    let Some(mut nats) = Nats::start("") else {
        return;
    };
    let (scripts, own) = (Scripts::new(), Scripts::none());
    own.write(
        "own",
        "#!/bin/sh\n[ \"${1-}\" = --help ] && echo '{\"description\": \"Is here\"}' || echo here\n",
    );
    let worker = LocalWorker::start(&scripts, &nats.url(), "w1");
    let front = Front::with_scripts(settings(&nats.url(), "f1"), own.root());
    front.wait_for(&["again", "change", "look", "own"]).await;
    let call = tokio::spawn({
        let front = front.clone();
        async move { front.run("change", "one", "60").await }
    });
    wait_until("the script runs", || scripts.counts("one").0 == 1).await;
    nats.kill();
    let begun = Instant::now();
    let told = front.call("own", json!({})).await;
    assert_eq!(told, Ok((true, "here".to_owned())));
    // By its lease, of 4 s.
    wait_until("the script ends", || worker.server.load().running == 0).await;
    let ended = begun.elapsed();
    assert!(ended < Duration::from_secs(9), "{ended:?}");
    let (is_ok, text) = call.await.expect("no panic").expect("a result");
    assert!(!is_ok && text.contains("not known"), "{text}");
    let told = begun.elapsed();
    assert!(told < Duration::from_secs(15), "{told:?}");
    assert_eq!(scripts.counts("one"), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn drain_timeout_ends_what_goes_on() {
    let Some(nats) = Nats::start("") else { return };
    let scripts = Scripts::new();
    let worker = Worker::new(settings(&nats.url(), "w1"));
    let worker = worker.drain_timeout(Duration::from_secs(1));
    let worker = LocalWorker::with(worker, &scripts);
    let front = Front::start(&nats.url(), "f1");
    front.wait_for(&NAMES).await;
    let call = tokio::spawn({
        let front = front.clone();
        async move { front.run("change", "one", "60").await }
    });
    wait_until("the script runs", || scripts.counts("one").0 == 1).await;
    let begun = Instant::now();
    worker.drain().await;
    let (is_ok, text) = call.await.expect("no panic").expect("a result");
    assert!(!is_ok && text.contains("not known"), "{text}");
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert_eq!(scripts.counts("one"), (1, 0));
}

/// Number from a variable.
fn number(name: &str, otherwise: u64) -> u64 {
    let value = std::env::var(name).ok();
    value
        .and_then(|value| value.parse().ok())
        .unwrap_or(otherwise)
}

/// Server, proxy, workers: all that faults are injected into.
struct Victims<'a> {
    scripts: &'a Scripts,
    nats: Nats,
    proxy: Proxy,
    workers: Vec<NodeProcess>,
    seed: u64,
    kills: usize,
}

impl<'a> Victims<'a> {
    async fn new(scripts: &'a Scripts, nats: Nats) -> Self {
        let mut victims = Self {
            scripts,
            proxy: Proxy::start(nats.port).await,
            nats,
            workers: Vec::new(),
            seed: number("MCPD_CLUSTER_SEED", 1) | 1,
            kills: 0,
        };
        victims.workers = (0..3).map(|number| victims.start(number)).collect();
        victims
    }

    fn draw(&mut self, bound: u64) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        (self.seed >> 11) % bound
    }

    /// Waits for a part of this time.
    async fn pause(&mut self, millis: u64) {
        let millis = self.draw(millis);
        sleep(Duration::from_millis(millis)).await;
    }

    fn start(&self, number: usize) -> NodeProcess {
        let url = match number {
            2 => self.proxy.url(),
            _ => self.nats.url(),
        };
        process_worker(self.scripts, &url, ["w0", "w1", "w2"][number])
    }

    /// Kills workers, one after the other, until so many were killed.
    async fn kill_until(&mut self, kills: usize) {
        while self.kills < kills {
            let number = usize::try_from(self.draw(3)).expect("small");
            self.kills += 1;
            self.workers[number].kill();
            self.workers[number] = self.start(number);
            self.pause(400).await;
        }
    }

    /// Injects a fault, and ends it. Returns how long it took.
    async fn suffer(&mut self) -> Duration {
        let begun = Instant::now();
        let number = usize::try_from(self.draw(3)).expect("small");
        match self.draw(6) {
            0..=2 => {
                self.kills += 1;
                self.workers[number].kill();
                self.pause(1000).await;
                self.workers[number] = self.start(number);
            }
            3 => {
                self.workers[number].signal(Signal::STOP);
                self.pause(8000).await;
                self.workers[number].signal(Signal::CONT);
            }
            4 => {
                self.proxy.set(Conduct::Stall);
                self.pause(8000).await;
                self.proxy.set(Conduct::Pass);
            }
            _ => {
                self.nats.kill();
                self.pause(3000).await;
                self.nats.resume();
            }
        }
        begun.elapsed()
    }
}

/// Longest time for which a caller waits beside the fault itself: a run that must not be made again
/// is given up after 3 s, one that only reads is made again twice, and an idempotent one after the
/// lease and a second each time. A front that was away judges nothing for 5 s, and a call without a
/// worker waits for 5 s.
fn patience(name: &str) -> Duration {
    let seconds = match name {
        "change" => 3,
        "look" => 3 * 3,
        _ => 3 * 5,
    };
    Duration::from_secs(seconds + 5 + 5) + BUSY
}

/// Time that a machine with other work may take for what needs no time itself.
const BUSY: Duration = Duration::from_secs(3);

/// Returns the part of the kills that is due after a part of the time.
fn due(kills: usize, elapsed: Duration, length: Duration) -> usize {
    let part = elapsed.as_secs_f64() / length.as_secs_f64().max(1.0);
    (kills as f64 * part.min(1.0)) as usize
}

/// Faults at random, for `MCPD_CLUSTER_SECONDS` (60 without it) and at least until
/// `MCPD_CLUSTER_KILLS` workers were killed (0 without it), from the seed in `MCPD_CLUSTER_SEED`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: MCPD_CLUSTER_SECONDS=600 MCPD_CLUSTER_KILLS=1000 cargo test -p mcpd-cluster --test cluster -- --ignored random_faults"]
async fn random_faults_keep_every_promise() {
    let Some(nats) = Nats::start("") else { return };
    let scripts = Scripts::new();
    let front = Front::start(&nats.url(), "f1");
    let mut victims = Victims::new(&scripts, nats).await;
    println!("MCPD_CLUSTER_SEED={}", victims.seed);
    front.wait_for(&NAMES).await;
    let (begun, length) = (Instant::now(), number("MCPD_CLUSTER_SECONDS", 60));
    let length = Duration::from_secs(length);
    let kills = usize::try_from(number("MCPD_CLUSTER_KILLS", 0)).expect("a number of kills");
    let (mut round, mut ok, mut total, mut longest) = (0, 0, 0, Duration::ZERO);
    while begun.elapsed() < length || victims.kills < kills {
        round += 1;
        let calls = tokio::spawn({
            let (front, prefix) = (front.clone(), format!("m{round}-"));
            async move { call_many(&front, &prefix, 24, "0.3").await }
        });
        victims.pause(500).await;
        let fault = victims.suffer().await;
        victims
            .kill_until(due(kills, begun.elapsed(), length))
            .await;
        let calls = calls.await.expect("no panic");
        for call in &calls {
            let limit = fault + patience(call.name);
            let Call { id, took, .. } = call;
            assert!(
                *took < limit,
                "{id} took {took:?}, after a fault of {fault:?}"
            );
            longest = longest.max(*took);
        }
        ok += judge(&scripts, &calls);
        total += calls.len();
    }
    println!(
        "{total} calls, {ok} done, {} workers killed; the longest took {longest:?}",
        victims.kills
    );
    // No script outlives its lease.
    sleep(Duration::from_secs(6)).await;
    let before = scripts.journal();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(scripts.journal(), before);
    assert!(ok * 4 > total, "{ok} of {total}");
}
