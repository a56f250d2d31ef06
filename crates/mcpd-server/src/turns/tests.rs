//! Who gets the next turn, and who is told that there is no room.

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

/// Queues for a turn, and comes back when it is in the queue or has one.
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

/// A turn that has been given.
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
    // She has two by now.
    let fourth = queue(&turns, &alice, &any).await;
    drop(given(queue(&turns, &bob, &any).await).await);
    assert!(!second.is_finished() && !fourth.is_finished());
    drop(third);
    drop(given(fourth).await);
    drop(first);
    drop(given(second).await);
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
    let busy = |wait| Busy::Lane {
        waiting: LANE_QUEUE,
        wait,
    };
    assert_eq!(turns.take(&alice, &any).await.unwrap_err(), busy(wait));
    let his = queue(&turns, &bob, &any).await;
    let refused = hers.pop().unwrap().await.unwrap();
    assert_eq!(refused.unwrap_err(), busy(wait + UNKNOWN_TURN));
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
    // Its turn comes, and it goes before it knows.
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
    // Somebody else has all the places.
    check(50, 0, 256, 12_800);
}

#[test]
fn those_who_are_refused_at_once_come_back_one_after_the_other() {
    let lane = Lane::new(NonZeroUsize::MAX);
    lane.took(UNKNOWN_TURN);
    lane.running.store(1, Relaxed);
    lane.waiting.store(4, Relaxed);
    let waits: Vec<_> = (0..6).map(|_| lane.wait().as_millis()).collect();
    assert_eq!(waits, [400, 500, 600, 700, 400, 500]);
}
