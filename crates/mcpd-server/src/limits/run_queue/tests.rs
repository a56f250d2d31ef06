//! Order of runs, and rejections when a queue is full.

use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::task::JoinHandle;

use super::*;
use crate::policy::quota::Quota;

fn script_queue(limit: usize) -> Arc<ScriptQueue> {
    Arc::new(ScriptQueue::new(NonZeroUsize::new(limit).unwrap()))
}

fn caller(name: &str, limit: usize) -> Principal {
    let quota = Quota {
        concurrency: NonZeroUsize::new(limit).unwrap(),
        ..Quota::default()
    };
    Principal::new(name).with_quota(quota)
}

/// Starts a task that acquires a permit, and returns once it is queued or has the permit.
async fn enqueue(
    queue: &RunQueue,
    caller: &Principal,
    script_queue: &Arc<ScriptQueue>,
) -> JoinHandle<Result<RunPermit, Busy>> {
    let (queue, caller, script_queue) = (queue.clone(), caller.clone(), Arc::clone(script_queue));
    let waiting = tokio::spawn(async move { queue.acquire(&caller, &script_queue).await });
    tokio::task::yield_now().await;
    waiting
}

/// Waits for a permit that is granted.
async fn wait_for_permit(waiting: JoinHandle<Result<RunPermit, Busy>>) -> RunPermit {
    let permit = tokio::time::timeout(Duration::from_secs(30), waiting).await;
    permit
        .expect("it is given a turn")
        .unwrap()
        .expect("there is room")
}

#[tokio::test]
async fn run_queue_serves_callers_round_robin() {
    let (queue, any) = (RunQueue::new(1), script_queue(100));
    let (alice, bob) = (caller("alice", 100), caller("bob", 100));
    let running = queue.acquire(&alice, &any).await.unwrap();
    let mut hers = Vec::new();
    for _ in 0..10 {
        hers.push(enqueue(&queue, &alice, &any).await);
    }
    let his = enqueue(&queue, &bob, &any).await;
    drop(running);
    drop(wait_for_permit(hers.remove(0)).await);
    drop(wait_for_permit(his).await);
    for waiting in hers {
        drop(wait_for_permit(waiting).await);
    }
    assert!(lock(&queue.0).callers.is_empty(), "nothing is left of them");
}

#[tokio::test]
async fn full_script_queue_and_exhausted_quota_let_other_calls_pass() {
    let queue = RunQueue::new(3);
    let (slow, any) = (script_queue(1), script_queue(100));
    let (alice, bob) = (caller("alice", 2), caller("bob", 2));
    let first = queue.acquire(&alice, &slow).await.unwrap();
    let second = enqueue(&queue, &alice, &slow).await;
    let third = wait_for_permit(enqueue(&queue, &alice, &any).await).await;
    // Alice has two permits by now.
    let fourth = enqueue(&queue, &alice, &any).await;
    drop(wait_for_permit(enqueue(&queue, &bob, &any).await).await);
    assert!(!second.is_finished() && !fourth.is_finished());
    drop(third);
    drop(wait_for_permit(fourth).await);
    drop(first);
    drop(wait_for_permit(second).await);
}

#[tokio::test]
async fn changed_concurrency_limit_counts_earlier_calls() {
    let (queue, alice) = (RunQueue::new(100), caller("alice", 100));
    let width = |limit| ConcurrencyLimit::new(NonZeroUsize::new(limit).unwrap());
    let (old, narrow, wide) = (width(2), width(1), width(3));
    let take = async |width| enqueue(&queue, &alice, &queue.script_queue("x", width)).await;
    let first = wait_for_permit(take(old).await).await;
    let second = wait_for_permit(take(old).await).await;
    let third = take(narrow).await;
    // The earlier limit is replaced.
    let fourth = take(old).await;
    drop(first);
    tokio::task::yield_now().await;
    assert!(!third.is_finished() && !fourth.is_finished());
    let fifth = take(wide).await;
    let (third, fourth) = (wait_for_permit(third).await, wait_for_permit(fourth).await);
    tokio::task::yield_now().await;
    assert!(!fifth.is_finished());
    drop((second, third, fourth));
    drop(wait_for_permit(fifth).await);
}

#[tokio::test]
async fn idle_script_queues_are_dropped() {
    let (queue, alice) = (RunQueue::new(100), caller("alice", 100));
    let width = ConcurrencyLimit::new(NonZeroUsize::MIN);
    let _running = queue
        .acquire(&alice, &queue.script_queue("x", width))
        .await
        .unwrap();
    for name in 0..MAX_SCRIPT_QUEUES + 5 {
        queue.script_queue(&name.to_string(), width);
    }
    let state = lock(&queue.0);
    assert!(state.script_queues.len() < MAX_SCRIPT_QUEUES && state.script_queues.contains_key("x"));
}

#[tokio::test]
async fn full_queue_rejects_newest_call_of_busiest_caller() {
    let (queue, any) = (RunQueue::new(1), script_queue(1));
    let (alice, bob) = (caller("alice", 1), caller("bob", 1));
    let running = queue.acquire(&alice, &any).await.unwrap();
    let mut hers = Vec::new();
    for _ in 0..MAX_QUEUED_CALLS_PER_SCRIPT {
        hers.push(enqueue(&queue, &alice, &any).await);
    }
    let wait = INITIAL_RUN_TIME * MAX_QUEUED_CALLS_PER_SCRIPT as u32;
    let told = |busy| match busy {
        Busy::Script {
            waiting: MAX_QUEUED_CALLS_PER_SCRIPT,
            wait,
        } => wait,
        other => panic!("{other:?}"),
    };
    let hers_now = queue.acquire(&alice, &any).await.unwrap_err();
    assert_eq!(told(hers_now), wait);
    let his = enqueue(&queue, &bob, &any).await;
    let refused = hers.pop().unwrap().await.unwrap();
    let later = told(refused.unwrap_err());
    assert!(
        later > wait && later <= wait + INITIAL_RUN_TIME,
        "{later:?}"
    );
    assert_eq!(
        lock(&queue.0).all.waiting.load(Relaxed),
        MAX_QUEUED_CALLS_PER_SCRIPT
    );
    drop(running);
    drop(wait_for_permit(hers.remove(0)).await);
    drop(wait_for_permit(his).await);
}

#[tokio::test]
async fn run_queue_is_bounded_over_all_scripts() {
    let queue = RunQueue::new(1);
    let alice = caller("alice", 1);
    let running = queue.acquire(&alice, &script_queue(1)).await.unwrap();
    let mut waiting = Vec::new();
    for _ in 0..MAX_QUEUED_CALLS {
        waiting.push(enqueue(&queue, &alice, &script_queue(1)).await);
    }
    let refused = queue.acquire(&alice, &script_queue(1)).await.unwrap_err();
    assert!(matches!(
        refused,
        Busy::Server {
            waiting: MAX_QUEUED_CALLS,
            ..
        }
    ));
    drop(running);
    for waiting in waiting {
        drop(wait_for_permit(waiting).await);
    }
}

#[tokio::test]
async fn cancelled_call_releases_its_permit() {
    let (queue, any) = (RunQueue::new(1), script_queue(1));
    let alice = caller("alice", 1);
    let running = queue.acquire(&alice, &any).await.unwrap();
    let leaving = enqueue(&queue, &alice, &any).await;
    // Its turn comes, and it is dropped before it is polled again.
    let mut unaware = Box::pin(queue.acquire(&alice, &any));
    assert!((&mut unaware).now_or_never().is_none());
    let last = enqueue(&queue, &alice, &any).await;
    leaving.abort();
    assert!(leaving.await.is_err());
    drop(running);
    drop(unaware);
    drop(wait_for_permit(last).await);
    let all = &lock(&queue.0).all;
    assert_eq!(
        [&all.waiting, &all.running].map(|number| number.load(Relaxed)),
        [0, 0]
    );
}

#[tokio::test]
async fn run_time_counts_from_the_grant() {
    const LATE: Duration = Duration::from_millis(20);
    let (queue, any) = (RunQueue::new(1), script_queue(1));
    let alice = caller("alice", 2);
    let running = queue.acquire(&alice, &any).await.unwrap();
    let mut late = Box::pin(queue.acquire(&alice, &any));
    assert!((&mut late).now_or_never().is_none());
    drop(running);
    std::thread::sleep(LATE);
    let permit = late.await.unwrap();
    assert!(permit.since.elapsed() >= LATE);
}

#[test]
fn retry_delay_is_the_drain_time() {
    #[track_caller]
    fn check(turn_ms: u64, running: usize, waiting: usize, wait_ms: u64) {
        let script_queue = ScriptQueue::new(NonZeroUsize::MAX);
        for _ in 0..100 {
            script_queue.record_run_time(Duration::from_millis(turn_ms));
        }
        script_queue.running.store(running, Relaxed);
        script_queue.waiting.store(waiting, Relaxed);
        let (wait, expected) = (script_queue.retry_delay(), Duration::from_millis(wait_ms));
        assert!(wait.abs_diff(expected) <= expected / 100, "{wait:?}");
    }
    check(50, 8, 256, 1_600);
    check(50, 1, 256, 12_800);
    check(5, 32, 256, 100);
    check(60_000, 1, 256, 30_000);
    // Another caller has all places.
    check(50, 0, 256, 12_800);
}

#[test]
fn retry_delays_are_spaced() {
    let script_queue = ScriptQueue::new(NonZeroUsize::MAX);
    script_queue.record_run_time(INITIAL_RUN_TIME);
    script_queue.running.store(1, Relaxed);
    script_queue.waiting.store(4, Relaxed);
    let add_waiting = |now: u64, count| -> Vec<_> {
        let now = Duration::from_millis(now);
        (0..count)
            .map(|_| script_queue.retry_delay_at(now).as_millis())
            .collect()
    };
    assert_eq!(add_waiting(0, 4), [400, 500, 600, 700]);
    // Permits are taken meanwhile, so the delay hardly grows.
    assert_eq!(add_waiting(300, 1), [500]);
    // A lasting overload spaces suggestions further apart.
    assert_eq!(add_waiting(800, 3), [400, 700, 1_000]);
    assert_eq!(add_waiting(10_000, 3), [400, 1_200, 2_000]);
    // Callers that return far too often do not postpone the others for ever.
    assert_eq!(add_waiting(10_000, 3), [2_800, 400, 1_200]);
    // The queue has room again.
    script_queue.waiting.store(0, Relaxed);
    script_queue.add_waiting();
    assert_eq!(add_waiting(20_000, 2), [100, 200]);
}
