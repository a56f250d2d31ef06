//! Shutdown: TERM, then KILL, and no new runs.

use mcpd_exec::{Ending, StartError};

use crate::support::{World, config, exit_code, ms, signal, within};

#[tokio::test]
async fn shutdown_terminates_runs_and_rejects_queued_ones() {
    let world = World::with(config(1, 8));
    let script =
        world.sh("trap 'echo bye; exit 3' TERM; echo started; while :; do sleep 0.02; done");
    let waiter = world.sh("exit 0");
    let started = tokio::sync::Notify::new();
    let (ran, waited, left) = within(async {
        let run = world.executor.run_with(script, |_| started.notify_one());
        let wait = async {
            started.notified().await;
            world.executor.run(waiter).await
        };
        let shutdown = async {
            while world.executor.queue_length() == 0 {
                tokio::task::yield_now().await;
            }
            world.executor.shutdown(ms(20_000)).await
        };
        tokio::join!(run, wait, shutdown)
    })
    .await;
    let ran = ran.unwrap();
    assert_eq!((ran.ending, exit_code(&ran)), (Ending::Cancelled, Some(3)));
    assert!(
        matches!(waited, Err(StartError::ShuttingDown)),
        "{waited:?}"
    );
    assert_eq!(left, 0);
    let late = world.executor.run(world.sh("exit 0")).await;
    assert!(matches!(late, Err(StartError::ShuttingDown)), "{late:?}");
    world.nothing_left();
}

#[tokio::test]
async fn shutdown_kills_at_the_deadline() {
    let world = World::new();
    let mut limits = mcpd_exec::Limits::default();
    limits.grace = ms(60_000);
    let script = world
        .sh("trap '' TERM; echo started; while :; do sleep 1; done")
        .limits(limits);
    let started = tokio::sync::Notify::new();
    let (ran, left) = within(async {
        let run = world.executor.run_with(script, |_| started.notify_one());
        let shutdown = async {
            started.notified().await;
            world.executor.shutdown(ms(100)).await
        };
        tokio::join!(run, shutdown)
    })
    .await;
    let ran = ran.unwrap();
    assert_eq!(
        (ran.ending, signal(&ran), left),
        (Ending::Cancelled, Some(9), 0)
    );
    world.nothing_left();
}
