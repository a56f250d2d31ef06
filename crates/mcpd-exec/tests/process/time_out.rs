//! Wall limit: it holds for the whole group, and the output and actions until the end are kept.

use mcpd_exec::{Command, Outcome, Sandbox};

use crate::support::{World, exit_code, levels, limits, ms, signal, timed_out, within};

/// Milliseconds in which a script gets ready on a busy machine.
const WALL: u64 = 1000;

async fn run_with_limits(world: &World, wall: u64, grace: u64, command: Command) -> Outcome {
    let limits = limits(|limits| (limits.wall, limits.grace) = (ms(wall), ms(grace)));
    within(world.executor.run(command.limits(limits)))
        .await
        .unwrap()
}

#[tokio::test]
async fn process_that_ignores_term_is_killed_after_the_grace() {
    for level in levels().await {
        let world = World::new();
        let script = world.sh("trap '' TERM; echo started; while :; do sleep 1; done");
        let script = script.sandbox(Sandbox::at(level));
        let outcome = run_with_limits(&world, WALL, 300, script).await;
        assert!(timed_out(&outcome), "at {level}: {outcome:?}");
        assert_eq!(signal(&outcome), Some(9), "at {level}");
        assert_eq!(outcome.stdout.head, "started\n");
        let wall = outcome.timing.wall;
        assert!((ms(WALL + 300)..ms(10_000)).contains(&wall), "{wall:?}");
        world.nothing_left();
    }
}

#[tokio::test]
async fn term_handler_may_still_print() {
    for level in levels().await {
        let world = World::new();
        let script = world.sh("trap 'echo bye; exit 3' TERM; while :; do sleep 0.02; done");
        let script = script.sandbox(Sandbox::at(level));
        let outcome = run_with_limits(&world, WALL, 20_000, script).await;
        assert!(timed_out(&outcome), "at {level}: {outcome:?}");
        assert_eq!(exit_code(&outcome), Some(3), "at {level}");
        assert_eq!(outcome.stdout.head, "bye\n");
        let wall = outcome.timing.wall;
        assert!(wall < ms(10_000), "the grace is not waited out: {wall:?}");
        world.nothing_left();
    }
}

#[tokio::test]
async fn child_may_use_the_grace_after_its_parent_is_gone() {
    let world = World::new();
    let child = world.file(
        "#!/bin/sh\ntrap 'sleep 0.1; echo cleaned up; exit' TERM\necho ready\nwhile :; do sleep 0.02; done\n",
        0o755,
    );
    let script = world.sh("\"$1\"; exit 1").arg(child);
    let outcome = run_with_limits(&world, WALL, 20_000, script).await;
    assert!(timed_out(&outcome), "{:?}", outcome.ending);
    assert_eq!(signal(&outcome), Some(15));
    assert_eq!(outcome.stdout.head, "ready\ncleaned up\n");
    world.nothing_left();
}

#[tokio::test]
async fn stopped_process_receives_term() {
    let world = World::new();
    let script =
        world.sh("trap 'echo woken; exit 4' TERM; kill -STOP $$; while :; do sleep 0.02; done");
    let outcome = run_with_limits(&world, WALL, 20_000, script).await;
    assert!(timed_out(&outcome), "{:?}", outcome.ending);
    assert_eq!(
        (exit_code(&outcome), &outcome.stdout.head[..]),
        (Some(4), &b"woken\n"[..])
    );
    world.nothing_left();
}

#[tokio::test]
async fn time_out_ends_the_whole_group() {
    let world = World::new();
    let script = world.sh("for i in 1 2 3 4 5; do sh -c 'trap \"\" TERM; sleep 300' & done; wait");
    let outcome = run_with_limits(&world, WALL, 100, script).await;
    assert!(timed_out(&outcome), "{:?}", outcome.ending);
    world.nothing_left();
}

#[tokio::test]
async fn time_out_ends_processes_that_outlive_the_leader() {
    let world = World::new();
    let script = world.sh("(trap '' TERM; exec sleep 300) >/dev/null 2>&1 & sleep 300");
    let outcome = run_with_limits(&world, WALL, 20_000, script).await;
    assert!(timed_out(&outcome), "{:?}", outcome.ending);
    assert_eq!(signal(&outcome), Some(15));
    world.nothing_left();
}

#[tokio::test]
async fn closed_pipes_do_not_hide_a_process() {
    let world = World::new();
    let outcome = run_with_limits(&world, WALL, 100, world.sh("exec >&- 2>&-; sleep 300")).await;
    assert!(timed_out(&outcome), "{:?}", outcome.ending);
    world.nothing_left();
}

#[tokio::test]
async fn endless_limit_does_not_overflow() {
    let world = World::new();
    let limits = limits(|limits| {
        (limits.wall, limits.grace, limits.drain) = (
            std::time::Duration::MAX,
            std::time::Duration::MAX,
            std::time::Duration::MAX,
        );
    });
    assert!(
        within(world.executor.run(world.sh("exit 0").limits(limits)))
            .await
            .unwrap()
            .success()
    );
}
