//! Order of turns, and rejections when a queue is full.

use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::task::JoinHandle;

use super::*;
use crate::quota::Quota;

fn lane(at_once: usize) -> Arc<Lane> {
    Arc::new(Lane::new(NonZeroUsize::new(at_once).unwrap()))
}

fn caller(name: &str, at_once: usize) -> Principal {
    let quota = Quota {
        concurrency: NonZeroUsize::new(at_once).unwrap(),
        ..Quota::default()
    };
    Principal::new(name).limited(quota)
}

/// Starts a task that takes a turn, and returns once it is queued or has the turn.
async fn queue(
    turns: &Turns,
    caller: &Principal,
    lane: &Arc<Lane>,
) -> JoinHandle<Result<Turn, Busy>> {
    let (turns, caller, lane) = (turns.clone(), caller.clone(), Arc::clone(lane));
    let waiting = tokio::spawn(async move { turns.take(&caller, &lane).await });
    tokio::task::yield_now().await;
    waiting
}

/// Waits for a turn that is granted.
async fn given(waiting: JoinHandle<Result<Turn, Busy>>) -> Turn {
    let turn = tokio::time::timeout(Duration::from_secs(30), waiting).await;
    turn.expect("it is given a turn")
        .unwrap()
        .expect("there is room")
}

#[tokio::test]
async fn nobody_waits_for_all_that_another_has_brought() {
    let (turns, any) = (Turns::new(1), lane(100));
    let (alice, bob) = (caller("alice", 100), caller("bob", 100));
    let running = turns.take(&alice, &any).await.unwrap();
    let mut hers = Vec::new();
    for _ in 0..10 {
        hers.push(queue(&turns, &alice, &any).await);
    }
    let his = queue(&turns, &bob, &any).await;
    drop(running);
    drop(given(hers.remove(0)).await);
    drop(given(his).await);
    for waiting in hers {
        drop(given(waiting).await);
    }
    assert!(lock(&turns.0).callers.is_empty(), "nothing is left of them");
}

#[tokio::test]
async fn a_full_lane_and_a_full_share_let_others_pass() {
    let turns = Turns::new(3);
    let (slow, any) = (lane(1), lane(100));
    let (alice, bob) = (caller("alice", 2), caller("bob", 2));
    let first = turns.take(&alice, &slow).await.unwrap();
    let second = queue(&turns, &alice, &slow).await;
    let third = given(queue(&turns, &alice, &any).await).await;
    // Alice has two turns by now.
    let fourth = queue(&turns, &alice, &any).await;
    drop(given(queue(&turns, &bob, &any).await).await);
    assert!(!second.is_finished() && !fourth.is_finished());
    drop(third);
    drop(given(fourth).await);
    drop(first);
    drop(given(second).await);
}

#[tokio::test]
async fn whoever_came_before_a_lane_had_another_width_counts() {
    let (turns, alice) = (Turns::new(100), caller("alice", 100));
    let width = |at_once| Width::new(NonZeroUsize::new(at_once).unwrap());
    let (old, narrow, wide) = (width(2), width(1), width(3));
    let take = async |width| queue(&turns, &alice, &turns.lane("x", width)).await;
    let first = given(take(old).await).await;
    let second = given(take(old).await).await;
    let third = take(narrow).await;
    // The earlier limit is replaced.
    let fourth = take(old).await;
    drop(first);
    tokio::task::yield_now().await;
    assert!(!third.is_finished() && !fourth.is_finished());
    let fifth = take(wide).await;
    let (third, fourth) = (given(third).await, given(fourth).await);
    tokio::task::yield_now().await;
    assert!(!fifth.is_finished());
    drop((second, third, fourth));
    drop(given(fifth).await);
}

#[tokio::test]
async fn lanes_are_forgotten_in_which_nobody_is() {
    let (turns, alice) = (Turns::new(100), caller("alice", 100));
    let width = Width::new(NonZeroUsize::MIN);
    let _running = turns.take(&alice, &turns.lane("x", width)).await.unwrap();
    for name in 0..LANES + 5 {
        turns.lane(&name.to_string(), width);
    }
    let state = lock(&turns.0);
    assert!(state.lanes.len() < LANES && state.lanes.contains_key("x"));
}

#[tokio::test]
async fn of_too_many_the_last_of_whoever_has_most_is_refused() {
    let (turns, any) = (Turns::new(1), lane(1));
    let (alice, bob) = (caller("alice", 1), caller("bob", 1));
    let running = turns.take(&alice, &any).await.unwrap();
    let mut hers = Vec::new();
    for _ in 0..LANE_QUEUE {
        hers.push(queue(&turns, &alice, &any).await);
    }
    let wait = UNKNOWN_TURN * LANE_QUEUE as u32;
    let told = |busy| match busy {
        Busy::Lane {
            waiting: LANE_QUEUE,
            wait,
        } => wait,
        other => panic!("{other:?}"),
    };
    let hers_now = turns.take(&alice, &any).await.unwrap_err();
    assert_eq!(told(hers_now), wait);
    let his = queue(&turns, &bob, &any).await;
    let refused = hers.pop().unwrap().await.unwrap();
    let later = told(refused.unwrap_err());
    assert!(later > wait && later <= wait + UNKNOWN_TURN, "{later:?}");
    assert_eq!(lock(&turns.0).all.waiting.load(Relaxed), LANE_QUEUE);
    drop(running);
    drop(given(hers.remove(0)).await);
    drop(given(his).await);
}

#[tokio::test]
async fn there_is_an_end_to_all_lanes_together() {
    let turns = Turns::new(1);
    let alice = caller("alice", 1);
    let running = turns.take(&alice, &lane(1)).await.unwrap();
    let mut waiting = Vec::new();
    for _ in 0..QUEUE {
        waiting.push(queue(&turns, &alice, &lane(1)).await);
    }
    let refused = turns.take(&alice, &lane(1)).await.unwrap_err();
    assert!(matches!(refused, Busy::All { waiting: QUEUE, .. }));
    drop(running);
    for waiting in waiting {
        drop(given(waiting).await);
    }
}

#[tokio::test]
async fn who_leaves_the_queue_takes_no_turn_along() {
    let (turns, any) = (Turns::new(1), lane(1));
    let alice = caller("alice", 1);
    let running = turns.take(&alice, &any).await.unwrap();
    let leaving = queue(&turns, &alice, &any).await;
    // Its turn comes, and it is dropped before it is polled again.
    let mut unaware = Box::pin(turns.take(&alice, &any));
    assert!((&mut unaware).now_or_never().is_none());
    let last = queue(&turns, &alice, &any).await;
    leaving.abort();
    assert!(leaving.await.is_err());
    drop(running);
    drop(unaware);
    drop(given(last).await);
    let all = &lock(&turns.0).all;
    assert_eq!(
        [&all.waiting, &all.running].map(|number| number.load(Relaxed)),
        [0, 0]
    );
}

#[tokio::test]
async fn a_turn_counts_from_when_it_is_given() {
    const LATE: Duration = Duration::from_millis(20);
    let (turns, any) = (Turns::new(1), lane(1));
    let alice = caller("alice", 2);
    let running = turns.take(&alice, &any).await.unwrap();
    let mut late = Box::pin(turns.take(&alice, &any));
    assert!((&mut late).now_or_never().is_none());
    drop(running);
    std::thread::sleep(LATE);
    let turn = late.await.unwrap();
    assert!(turn.since.elapsed() >= LATE);
}

#[test]
fn who_is_refused_is_told_how_long_the_others_will_take() {
    #[track_caller]
    fn check(turn_ms: u64, running: usize, waiting: usize, wait_ms: u64) {
        let lane = Lane::new(NonZeroUsize::MAX);
        for _ in 0..100 {
            lane.took(Duration::from_millis(turn_ms));
        }
        lane.running.store(running, Relaxed);
        lane.waiting.store(waiting, Relaxed);
        let (wait, expected) = (lane.wait(), Duration::from_millis(wait_ms));
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
fn those_who_are_refused_at_once_come_back_one_after_the_other() {
    let lane = Lane::new(NonZeroUsize::MAX);
    lane.took(UNKNOWN_TURN);
    lane.running.store(1, Relaxed);
    lane.waiting.store(4, Relaxed);
    let waits = |now: u64, count| -> Vec<_> {
        let now = Duration::from_millis(now);
        (0..count).map(|_| lane.wait_at(now).as_millis()).collect()
    };
    assert_eq!(waits(0, 4), [400, 500, 600, 700]);
    // Turns are taken meanwhile, so the delay hardly grows.
    assert_eq!(waits(300, 1), [500]);
    // A lasting overload spaces suggestions further apart.
    assert_eq!(waits(800, 3), [400, 700, 1_000]);
    assert_eq!(waits(10_000, 3), [400, 1_200, 2_000]);
    // Callers that return far too often do not postpone the others for ever.
    assert_eq!(waits(10_000, 3), [2_800, 400, 1_200]);
    // The queue has room again.
    lane.waiting.store(0, Relaxed);
    lane.waits();
    assert_eq!(waits(20_000, 2), [100, 200]);
}
