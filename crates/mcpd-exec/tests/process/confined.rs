//! Containment: at `guarded` and `strict`, nothing that a run has started outlives it. Each
//! escape is also tried at `none`, where it succeeds.

use std::time::Instant;

use mcpd_exec::{Containment, Ending, Level, Missing, Outcome, Sandbox, StartError};
use tokio::sync::Notify;

use crate::support::{
    World, config, eventually, eventually_async, levels, limits, ms, signal, within,
};

fn world() -> World {
    let mut config = config(8, 64);
    config.reaper = true;
    World::with(config)
}

/// Runs a script that leaves `left` processes behind, which hold no pipe.
async fn check(body: &str, left: u32) {
    for level in levels().await {
        let world = world();
        let outcome = run(&world, body, level).await;
        // At `strict` the kernel ends them, and counts none.
        let known = (level < Level::Strict).then_some(left);
        assert_eq!(outcome.leftovers, known, "at {level}: {body}");
        match level {
            // A process in the middle of `execve` is not visible for a moment.
            Level::None => eventually(body, || world.processes() >= left as usize),
            _ => assert_eq!(world.processes(), 0, "at {level}: {body}"),
        }
        world.end_all();
    }
}

async fn run(world: &World, body: &str, level: Level) -> Outcome {
    let command = world.sh(body).sandbox(Sandbox::at(level));
    let outcome = within(world.executor.run(command)).await.unwrap();
    assert_eq!(outcome.ending, Ending::Exited(0), "{outcome:?}");
    outcome
}

#[tokio::test]
async fn ordinary_run_leaves_nothing() {
    check("true", 0).await;
    check("sleep 0.01; (true; true) | cat", 0).await;
}

#[tokio::test]
async fn background_jobs_end_with_the_run() {
    check("sleep 300 >/dev/null 2>&1 &", 1).await;
}

#[tokio::test]
async fn daemons_end_with_the_run() {
    check("setsid sleep 300 >/dev/null 2>&1 & sleep 0.2", 1).await;
    check("setsid -f sleep 300 >/dev/null 2>&1; sleep 0.2", 1).await;
    check("nohup sleep 300 >/dev/null 2>&1 &", 1).await;
}

#[tokio::test]
async fn missing_watchdog_is_reported_or_refused() {
    let world = world();
    let whole = Sandbox::guarded().missing(Missing::Refuse);
    let command = world.sh("true").sandbox(whole);
    match within(world.executor.run(command)).await {
        Err(StartError::Unenforceable { missing, .. }) => {
            assert!(
                missing
                    .iter()
                    .any(|missing| missing.mechanism == "watchdog")
            );
        }
        other => panic!("{other:?}"),
    }
    world.nothing_left();
}

#[tokio::test]
async fn daemon_that_holds_the_pipes_does_not_delay_a_confined_run() {
    for level in levels().await {
        let world = world();
        let body = "setsid sleep 300 & echo done; sleep 0.2";
        let outcome = run(&world, body, level).await;
        assert_eq!(outcome.pipes_held, level == Level::None, "at {level}");
        if level > Level::None {
            assert_eq!(outcome.enforced.containment, Containment::Proven);
            assert!(outcome.enforced.seccomp);
            world.nothing_left();
        }
        world.end_all();
    }
}

/// Without its own session, a process may join another group of the session.
#[tokio::test]
async fn leader_that_has_left_its_group_is_ended() {
    let body = "my $child = fork // die $!;
        if (!$child) { setpgrp(0, 0); sleep 300; exit }
        select undef, undef, undef, 0.1;
        setpgrp(0, $child) or die $!;
        sleep 300";
    for level in levels().await {
        let world = world();
        let limits = limits(|limits| limits.wall = ms(500));
        let command = world.perl(body).sandbox(Sandbox::at(level)).limits(limits);
        let outcome = within(world.executor.run(command)).await.unwrap();
        assert!(
            matches!(outcome.ending, Ending::TimedOut { .. }),
            "{outcome:?}"
        );
        assert!(signal(&outcome).is_some(), "at {level}: {outcome:?}");
        world.end_all();
    }
}

/// The daemons have sessions of their own, out of reach of signals to the group.
#[tokio::test]
async fn dropped_run_ends_with_all_it_has_started() {
    for level in levels().await {
        let world = world();
        let body = "for i in 1 2 3; do setsid sh -c '(sleep 300 &)'; done; sleep 300; true";
        let command = world.sh(body).sandbox(Sandbox::at(level));
        tokio::select! {
            outcome = world.executor.run(command) => panic!("{outcome:?}"),
            () = eventually_async(|| world.processes() >= 5) => {}
        }
        if level == Level::None {
            eventually("its daemons alone", || world.processes() == 3);
            world.end_all();
        }
        world.nothing_left();
    }
}

#[tokio::test]
async fn cancelled_run_ends_with_all_it_has_started() {
    for level in levels().await {
        let world = world();
        let body = "setsid sh -c 'trap \"\" TERM; sleep 300' & sleep 300; true";
        let command = world.sh(body).sandbox(Sandbox::at(level));
        let begun = eventually_async(|| world.processes() >= 4);
        let run = world.executor.run_until(command, |_| {}, begun);
        assert_eq!(within(run).await.unwrap().ending, Ending::Cancelled);
        match level {
            Level::None => assert!(world.processes() > 0, "its daemon"),
            _ => assert_eq!(world.processes(), 0, "at {level}"),
        }
        world.end_all();
    }
}

#[tokio::test]
async fn orphans_that_end_meanwhile_are_reaped() {
    let world = world();
    let outcome = run(
        &world,
        "for i in 1 2 3 4 5 6 7 8 9; do (sleep 0.01 &) ; done; sleep 0.5",
        Level::None,
    )
    .await;
    assert_eq!(outcome.leftovers, Some(0));
    eventually("no zombie left", || zombies() == 0);
}

/// Number of dead children of this process that were not reaped.
fn zombies() -> usize {
    let own = std::process::id().to_string();
    let stats = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| std::fs::read_to_string(entry.unwrap().path().join("stat")).ok());
    let zombies = stats.filter(|stat| {
        let fields = stat
            .rsplit_once(") ")
            .map(|(_, rest)| rest.split(' ').collect::<Vec<_>>());
        fields.is_some_and(|fields| fields[0] == "Z" && fields[1] == own)
    });
    zombies.count()
}

#[tokio::test]
async fn exit_code_is_kept_while_leftovers_are_ended() {
    let world = world();
    let limits = limits(|limits| limits.drain = ms(0));
    let command = world.sh("setsid sleep 300 & setsid sleep 300 & exit 3");
    let command = command.limits(limits).sandbox(Sandbox::guarded());
    let outcome = within(world.executor.run(command)).await.unwrap();
    assert_eq!(outcome.ending, Ending::Exited(3), "{outcome:?}");
    world.nothing_left();
}

#[tokio::test]
async fn dead_orphans_of_short_runs_are_reaped() {
    let world = world();
    for _ in 0..20 {
        run(&world, "(true &)", Level::None).await;
    }
    eventually("no zombie left", || zombies() == 0);
}

/// After its grace a run is ended as eagerly as if it were killed at once: processes that fork on
/// must not be given time.
#[tokio::test]
async fn run_after_its_grace_is_ended_without_a_pause() {
    if levels().await.all(|level| level != Level::Guarded) {
        return;
    }
    let world = world();
    let daemons = "for i in 1 2 3 4; do setsid sleep 300 >/dev/null 2>&1 & done";
    let body = format!("trap '' TERM; {daemons}; echo started; while :; do sleep 0.02; done");
    let mut pauses = Vec::new();
    // A busy machine may be slow once.
    for _ in 0..3 {
        let script = world.sh(&body).sandbox(Sandbox::guarded());
        let script = script.limits(limits(|limits| limits.grace = ms(2500)));
        let started = Notify::new();
        let is_running = async {
            within(started.notified()).await;
            eventually_async(|| world.processes() >= 5).await;
        };
        tokio::select! {
            outcome = world.executor.run_with(script, |_| started.notify_one()) => panic!("{outcome:?}"),
            () = is_running => {}
        }
        eventually_async(|| world.processes() < 5).await;
        let begun = Instant::now();
        world.nothing_left();
        pauses.push(begun.elapsed());
        if begun.elapsed() < ms(200) {
            return;
        }
    }
    panic!("{pauses:?}");
}
