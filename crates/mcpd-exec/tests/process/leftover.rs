//! Leftover processes delay the outcome by the drain limit at most, and are reported.

use mcpd_exec::{Ending, Outcome};

use crate::support::{World, eventually, eventually_async, limits, ms, within};

/// Runs a script that prints the number of a process it leaves behind, then ends that process.
async fn run(world: &World, body: &str) -> Outcome {
    let limits = limits(|limits| limits.drain = ms(200));
    let outcome = within(world.executor.run(world.sh(body).limits(limits)))
        .await
        .unwrap();
    assert_eq!(outcome.ending, Ending::Exited(0));
    let text = outcome.stdout.to_text_lossy();
    let pid = text
        .split_whitespace()
        .next()
        .and_then(|pid| pid.parse().ok())
        .unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it was left alive");
    world.nothing_left();
    outcome
}

#[tokio::test]
async fn daemon_that_holds_the_output_is_not_awaited() {
    let world = World::new();
    let outcome = run(&world, "setsid sleep 300 & echo $!; echo done").await;
    assert!(outcome.pipes_held);
    assert!(
        outcome.stdout.head.ends_with(b"done\n"),
        "what was read is kept"
    );
    assert!(
        (ms(200)..ms(10_000)).contains(&outcome.timing.wall),
        "{:?}",
        outcome.timing
    );
}

#[tokio::test]
async fn background_job_that_holds_the_output_is_not_awaited() {
    let world = World::new();
    let outcome = run(&world, "sleep 300 & echo $!").await;
    assert!(outcome.pipes_held);
}

#[tokio::test]
async fn daemon_without_pipes_costs_no_time() {
    let world = World::new();
    let outcome = run(&world, "sleep 300 >/dev/null 2>&1 & echo $!").await;
    assert!(!outcome.pipes_held);
}

#[tokio::test]
async fn late_output_of_a_short_lived_child_is_read() {
    let world = World::new();
    let outcome = world.run("(sleep 0.1; echo late) & echo early").await;
    assert_eq!(outcome.stdout.head, "early\nlate\n");
    assert!(!outcome.pipes_held);
    world.nothing_left();
}

#[tokio::test]
async fn leftover_in_the_group_ends_with_a_dropped_run() {
    let world = World::new();
    let limits = limits(|limits| limits.drain = ms(60_000));
    let run = world.executor.run(world.sh("sleep 300 &").limits(limits));
    let leaving = eventually_async(|| world.processes() == 1);
    tokio::select! {
        outcome = run => panic!("{outcome:?}"),
        () = leaving => {}
    }
    world.nothing_left();
}

#[tokio::test]
async fn daemon_out_of_reach_does_not_delay_a_time_out() {
    let world = World::new();
    let limits = limits(|limits| {
        (limits.wall, limits.grace, limits.drain) = (ms(200), ms(100), ms(100));
    });
    let script = world
        .sh("setsid sh -c 'echo $$; exec sleep 300' & wait; sleep 300")
        .limits(limits);
    let outcome = within(world.executor.run(script)).await.unwrap();
    assert!(outcome.pipes_held);
    assert!(outcome.timing.wall < ms(10_000), "{:?}", outcome.timing);
    // It left the group, which is out of reach at this level: it is alive, and the test ends it.
    let pid = outcome.stdout.to_text_lossy().trim().parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it was left alive");
    eventually("the daemon is gone", || world.processes() == 0);
}
