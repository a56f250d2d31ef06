//! Concurrency limit and queue: both are bounded, and queued runs start in order.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcpd_exec::{Ending, StartError};
use tokio::task::JoinSet;

use crate::support::{World, config, within};

#[tokio::test]
async fn full_queue_rejects_at_once() {
    let world = World::with(config(8, 64));
    let go = world.directory().join("go");
    let script = world
        .sh("until test -e \"$1\"; do sleep 0.02; done")
        .arg(&go);
    let mut runs = JoinSet::new();
    for _ in 0..200 {
        let (executor, script) = (world.executor.clone(), script.clone());
        runs.spawn(async move { executor.run(script).await });
    }
    let (mut ran, mut refused) = (0, 0);
    while let Some(run) = within(runs.join_next()).await {
        match run.unwrap() {
            Ok(outcome) => ran += usize::from(outcome.success()),
            Err(error) => {
                assert!(
                    matches!(error, StartError::Busy { queued: 64, .. }),
                    "{error}"
                );
                refused += 1;
                assert_eq!(
                    (world.executor.running(), world.executor.queue_length()),
                    (8, 64)
                );
            }
        }
        if refused == 128 {
            std::fs::write(&go, "").unwrap();
        }
    }
    assert_eq!((ran, refused), (72, 128));
    world.nothing_left();
}

#[tokio::test]
async fn queue_is_first_in_first_out() {
    let world = World::with(config(1, 64));
    let order = Mutex::new(Vec::new());
    let script = world.sh("exit 0");
    let runs = (0..40).map(|index| {
        let run = world.executor.run(script.clone());
        let order = &order;
        async move {
            assert!(run.await.unwrap().success());
            order.lock().unwrap().push(index);
        }
    });
    let mut runs: Vec<_> = runs.map(Box::pin).collect();
    // They are first polled in order, so they queue in order.
    within(std::future::poll_fn(|context| {
        runs.retain_mut(|run| run.as_mut().poll(context).is_pending());
        if runs.is_empty() {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    }))
    .await;
    assert_eq!(*order.lock().unwrap(), (0..40).collect::<Vec<_>>());
    world.nothing_left();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrency_limit_holds_for_a_thousand_runs() {
    let world = World::with(config(6, 1000));
    let script = world.command("/bin/true");
    let most = std::sync::Arc::new(AtomicUsize::new(0));
    let mut runs = JoinSet::new();
    for _ in 0..1000 {
        let (executor, script) = (world.executor.clone(), script.clone());
        let most = most.clone();
        runs.spawn(async move {
            let outcome = executor.run(script).await.unwrap();
            most.fetch_max(executor.running(), Ordering::Relaxed);
            outcome.ending
        });
    }
    while let Some(ending) = within(runs.join_next()).await {
        assert_eq!(ending.unwrap(), Ending::Exited(0));
    }
    let most = most.load(Ordering::Relaxed);
    assert!((1..=6).contains(&most), "{most} at a time");
    world.nothing_left();
}

#[tokio::test]
async fn queued_runs_do_not_count_as_running() {
    let world = World::with(config(1, 8));
    let limits = crate::support::limits(|limits| limits.wall = crate::support::ms(2000));
    let script = world.sh("sleep 1.2").limits(limits);
    let (first, second) = within(async {
        tokio::join!(
            world.executor.run(script.clone()),
            world.executor.run(script.clone())
        )
    })
    .await;
    assert!(first.unwrap().success());
    let second = second.unwrap();
    assert!(second.success(), "{:?}", second.ending);
    assert!(
        second.timing.queued >= crate::support::ms(1000),
        "{:?}",
        second.timing
    );
}

#[tokio::test]
async fn every_run_starts_though_the_host_has_other_work() {
    let world = World::with(config(64, 1000));
    let script = world.sh("sleep 0.02");
    let mut runs = JoinSet::new();
    for number in 0..300 {
        // Some wait while fewer may start at a time, and still do when more may again.
        if number % 60 == 30 {
            world.executor.note_other_work();
        }
        let (executor, script) = (world.executor.clone(), script.clone());
        runs.spawn(async move { executor.run(script).await.unwrap().ending });
        if number % 20 == 19 {
            tokio::time::sleep(crate::support::ms(30)).await;
        }
    }
    while let Some(ending) = within(runs.join_next()).await {
        assert_eq!(ending.unwrap(), Ending::Exited(0));
    }
    world.nothing_left();
}
