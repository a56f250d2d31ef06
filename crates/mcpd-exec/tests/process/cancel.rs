//! Cancelling: a run can be ended gently, with an outcome, or by dropping it, at any moment. No
//! member of its group survives.

use std::fs;
use std::future::pending;
use std::sync::{Arc, Weak};
use std::time::Duration;

use mcpd_exec::{Ending, Sandbox, StartError};
use tokio::runtime::{Builder, Handle};
use tokio::sync::Notify;

use crate::support::{World, config, exit_code, levels, limits, ms, within};

#[tokio::test]
async fn cancelled_run_keeps_its_output() {
    let world = World::new();
    let script =
        world.sh("trap 'echo bye; exit 3' TERM; echo started; while :; do sleep 0.02; done");
    let started = Notify::new();
    let run = world
        .executor
        .run_until(script, |_| started.notify_one(), started.notified());
    let outcome = within(run).await.unwrap();
    assert_eq!(outcome.ending, Ending::Cancelled);
    assert_eq!(exit_code(&outcome), Some(3));
    assert_eq!(outcome.stdout.head, "started\nbye\n");
    world.nothing_left();
}

#[tokio::test]
async fn run_cancelled_right_after_its_start_gets_term() {
    let world = World::new();
    let ready = world.directory().join("ready");
    let body = format!(
        "trap 'echo bye; exit 3' TERM; : > '{}'; while :; do sleep 0.02; done",
        ready.display()
    );
    let is_ready = async {
        while !ready.exists() {
            tokio::task::yield_now().await;
        }
    };
    let run = world.executor.run_until(world.sh(&body), |_| {}, is_ready);
    let outcome = within(run).await.unwrap();
    assert_eq!(outcome.ending, Ending::Cancelled);
    assert_eq!(exit_code(&outcome), Some(3));
    assert_eq!(outcome.stdout.head, "bye\n");
    world.nothing_left();
}

#[tokio::test]
async fn run_that_ignores_cancellation_is_killed_with_its_group() {
    let world = World::new();
    let script = world
        .sh("trap '' TERM; sleep 300 & echo started; while :; do sleep 1; done")
        .limits(limits(|limits| limits.grace = ms(100)));
    let started = Notify::new();
    let run = world
        .executor
        .run_until(script, |_| started.notify_one(), started.notified());
    assert_eq!(within(run).await.unwrap().ending, Ending::Cancelled);
    world.nothing_left();
}

#[tokio::test]
async fn run_dropped_in_the_middle_is_killed_with_its_group() {
    let world = World::new();
    let script = world.sh("trap '' TERM; sleep 300 & sleep 300 & echo started; wait");
    let started = Notify::new();
    tokio::select! {
        outcome = world.executor.run_with(script, |_| started.notify_one()) => panic!("{outcome:?}"),
        () = within(started.notified()) => {}
    }
    world.nothing_left();
}

/// Drops a run with a long grace as soon as it is ready.
async fn drop_with_time(world: &World, trap: &str) {
    let body = format!("trap '{trap}' TERM; echo started; while :; do sleep 0.02; done");
    let script = world.sh(&body).current_dir(world.directory());
    let script = script.limits(limits(|limits| limits.grace = Duration::MAX));
    let started = Notify::new();
    tokio::select! {
        outcome = world.executor.run_with(script, |_| started.notify_one()) => panic!("{outcome:?}"),
        () = within(started.notified()) => {}
    }
}

/// Output is no longer read then, and printing must not kill the process.
#[tokio::test]
async fn run_dropped_in_the_middle_can_tidy_up() {
    let world = World::new();
    let witness = world.directory().join("witness");
    drop_with_time(&world, "echo bye; sleep 0.2; : > witness; exit").await;
    world.nothing_left();
    assert!(witness.exists());
}

/// Waits until the value is not held any more.
async fn let_go(held: &Weak<()>) {
    while held.upgrade().is_some() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn held_value_is_dropped_after_the_whole_run() {
    let world = World::new();
    let held = Arc::new(());
    let kept = Arc::downgrade(&held);
    let body = "trap 'until [ -e go ]; do sleep 0.02; done; exit' TERM; echo started; while :; do sleep 0.02; done";
    let script = world.sh(body).current_dir(world.directory()).hold(held);
    let script = script.limits(limits(|limits| limits.grace = Duration::MAX));
    let started = Notify::new();
    tokio::select! {
        outcome = world.executor.run_with(script, |_| started.notify_one()) => panic!("{outcome:?}"),
        () = within(started.notified()) => {}
    }
    assert!(kept.upgrade().is_some());
    fs::write(world.directory().join("go"), "").unwrap();
    within(let_go(&kept)).await;
    world.nothing_left();

    let held = Arc::new(());
    let kept = Arc::downgrade(&held);
    let run = world.executor.run(world.sh("true").hold(held));
    within(run).await.unwrap();
    within(let_go(&kept)).await;
}

#[tokio::test]
async fn dropped_executor_ends_every_grace() {
    let mut world = World::new();
    drop_with_time(&world, "").await;
    drop(std::mem::replace(
        &mut world.executor,
        World::new().executor,
    ));
    world.nothing_left();
}

#[tokio::test]
async fn shutdown_ends_dropped_runs_by_its_deadline() {
    let world = World::new();
    drop_with_time(&world, "").await;
    assert_eq!(world.executor.shutdown(ms(100)).await, 0);
    world.nothing_left();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_dropped_at_any_moment_leave_nothing() {
    let world = World::with(config(8, 512));
    let script = world.sh("sleep 300 & sleep 300");
    let mut runs = tokio::task::JoinSet::new();
    for index in 0..200_u64 {
        let (executor, script) = (world.executor.clone(), script.clone());
        // From before the first poll to well into the run, in odd steps.
        let moment = Duration::from_micros(index * 137 % 20_011);
        runs.spawn(async move { tokio::time::timeout(moment, executor.run(script)).await });
    }
    while let Some(run) = within(runs.join_next()).await {
        assert!(run.unwrap().is_err(), "the script never ends");
    }
    world.nothing_left();
}

#[tokio::test]
async fn run_dropped_in_the_queue_starts_nothing() {
    let world = World::with(config(1, 8));
    let witness = world.directory().join("witness");
    let holder = world.sh("echo started; exec sleep 300");
    let started = Notify::new();
    let hold = world.executor.run_with(holder, |_| started.notify_one());
    let waiting = async {
        started.notified().await;
        let waiter = world.sh("touch \"$1\"").arg(&witness);
        assert!(
            tokio::time::timeout(ms(50), world.executor.run(waiter))
                .await
                .is_err()
        );
        assert_eq!(world.executor.queue_length(), 0);
    };
    tokio::select! {
        outcome = hold => panic!("{outcome:?}"),
        () = within(waiting) => {}
    }
    // The slot is free again. A run that was queued before would have run by now.
    assert!(world.run("exit 0").await.success());
    assert!(!witness.exists());
    world.nothing_left();
}

#[tokio::test]
async fn run_cancelled_in_the_queue_has_an_outcome_and_starts_nothing() {
    let world = World::with(config(1, 8));
    let witness = world.directory().join("witness");
    let started = Notify::new();
    let hold = world
        .executor
        .run_with(world.sh("echo started; exec sleep 300"), |_| {
            started.notify_one()
        });
    let waiting = async {
        started.notified().await;
        let waiter = world.sh("touch \"$1\"").arg(&witness);
        world
            .executor
            .run_until(waiter, |_| {}, tokio::time::sleep(ms(20)))
            .await
    };
    let outcome = tokio::select! {
        outcome = hold => panic!("{outcome:?}"),
        outcome = within(waiting) => outcome.unwrap(),
    };
    assert_eq!((outcome.ending, outcome.status), (Ending::Cancelled, None));
    assert!(outcome.timing.queued >= ms(20));
    assert!(!witness.exists());
    world.nothing_left();
}

#[tokio::test]
async fn panic_in_the_callback_kills_the_group() {
    let world = World::new();
    let (executor, script) = (world.executor.clone(), world.sh("echo now; sleep 300"));
    let run =
        tokio::spawn(async move { executor.run_with(script, |_| panic!("on purpose")).await });
    assert!(within(run).await.unwrap_err().is_panic());
    world.nothing_left();
}

#[test]
fn run_survives_the_thread_that_polled_it_first() {
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    for level in runtime.block_on(levels()) {
        let world = World::new();
        let script = world.sh("echo started; sleep 0.3; exit 7");
        let script = script.sandbox(Sandbox::at(level));
        let started = Notify::new();
        let outcome = std::thread::scope(|scope| {
            let mut run = Box::pin(world.executor.run_with(script, |_| started.notify_one()));
            let handle: Handle = runtime.handle().clone();
            let first = &started;
            let begun = scope.spawn(move || {
                handle.block_on(async {
                    tokio::select! {
                        outcome = &mut run => panic!("{outcome:?}"),
                        () = within(first.notified()) => {}
                    }
                });
                run
            });
            let run = begun.join().unwrap();
            runtime.block_on(within(run))
        });
        assert_eq!(outcome.unwrap().ending, Ending::Exited(7), "at {level}");
        world.nothing_left();
    }
}

#[test]
fn dropped_runtime_ends_its_runs() {
    let world = World::new();
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    for _ in 0..4 {
        let (executor, script) = (world.executor.clone(), world.sh("sleep 300 & sleep 300"));
        runtime.spawn(async move { executor.run(script).await });
    }
    crate::support::eventually("all of them run", || world.processes() >= 8);
    drop(runtime);
    world.nothing_left();
}

#[tokio::test]
async fn futures_may_move_between_threads() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    let world = World::new();
    let run = is_send(
        world
            .executor
            .run_until(world.command("/nowhere"), |_| {}, pending()),
    );
    assert!(matches!(
        within(run).await,
        Err(StartError::NotFound { .. })
    ));
}
