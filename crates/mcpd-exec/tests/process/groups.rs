//! Control groups: below a delegated group, limits hold for whole runs, and a run ends at once as
//! a whole. It needs a delegated group, without processes of other tests in it.
//!
//! `systemd-run --pipe --wait -p Delegate=yes PROGRAM groups::` runs these tests alone; PROGRAM
//! is the binary of this test target.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use mcpd_exec::{Ending, Level, Limits, Outcome, Sandbox};
use tokio::sync::{Mutex, MutexGuard};

use crate::alone::mixed_runs;
use crate::support::{World, config, eventually, limits, ms, skip};

/// Allocates this many bytes, and reports it.
const HOG: &str =
    r#"hog() { perl -e '$text = "x" x ($ARGV[0] << 20); print "full\n"; sleep $ARGV[1]' "$@"; }"#;

/// Returns the group that is delegated to this process. It is looked up once, since afterwards
/// the process is in a group below it.
fn delegated_group() -> Option<&'static Path> {
    static DELEGATED: OnceLock<Option<PathBuf>> = OnceLock::new();
    DELEGATED.get_or_init(mcpd_exec::control_group).as_deref()
}

/// Returns an executor with a control group, if one is available, and the lock to use it.
async fn world() -> Option<(World, MutexGuard<'static, ()>)> {
    static TURN: Mutex<()> = Mutex::const_new(());
    let turn = TURN.lock().await;
    let mut config = config(16, 1000);
    config.reaper = true;
    config.cgroup = delegated_group().map(Path::to_owned);
    let world = World::with(config);
    let outcome = run(&world, Level::None, "true", megabytes(100)).await;
    if outcome.enforced.cgroup {
        return Some((world, turn));
    }
    let reasons = outcome.enforced.missing.iter();
    let reasons: Vec<_> = reasons.map(|missing| &*missing.reason).collect();
    skip(&format!("control groups: {}", reasons.join("; ")));
    None
}

async fn run(world: &World, level: Level, body: &str, limits: Limits) -> Outcome {
    let sandbox = Sandbox::at(level).write(world.directory());
    world.run_in(sandbox, world.sh(body).limits(limits)).await
}

/// Returns whether a run was limited, as far as the outcome tells.
fn is_held(outcome: &Outcome) -> bool {
    let mut missing = outcome.enforced.missing.iter();
    let limits = ["cgroup", "process limit"];
    outcome.enforced.cgroup && !missing.any(|missing| limits.contains(&&*missing.mechanism))
}

fn megabytes(count: u64) -> Limits {
    limits(|limits| limits.memory = Some(count << 20))
}

fn processes(count: u64) -> Limits {
    limits(|limits| limits.processes = Some(count))
}

const LEVELS: [Level; 3] = [Level::None, Level::Guarded, Level::Strict];

#[tokio::test]
async fn memory_limit_holds_for_the_whole_run() {
    let Some((world, _turn)) = world().await else {
        return;
    };
    let eight = format!("{HOG}\nfor i in 1 2 3 4 5 6 7; do hog 20 2 & done; hog 20 2; wait");
    let one = format!("{HOG}\nhog 160 0");
    for level in LEVELS {
        for body in [&eight, &one] {
            let free = run(&world, level, body, megabytes(400)).await;
            assert!(free.success(), "at {level}: {free:?}");
            let held = run(&world, level, body, megabytes(100)).await;
            assert_eq!(held.ending, Ending::OutOfMemory, "at {level}: {held:?}");
            assert!(is_held(&held), "at {level}: {held:?}");
            world.nothing_left();
        }
    }
}

#[tokio::test]
async fn out_of_memory_run_leaves_others_alone() {
    let Some((world, _turn)) = world().await else {
        return;
    };
    let hog = format!("{HOG}\nhog 160 0");
    let (held, other) = tokio::join!(
        run(&world, Level::None, &hog, megabytes(100)),
        run(&world, Level::None, "sleep 2; echo fine", megabytes(100)),
    );
    assert_eq!(held.ending, Ending::OutOfMemory, "{held:?}");
    assert_eq!(other.stdout.to_text_lossy(), "fine\n", "{other:?}");
}

/// This holds for root too: without a group, the kernel counts none of root's processes, nor
/// those of one run alone.
#[tokio::test]
async fn process_limit_holds_for_the_whole_run() {
    let Some((world, _turn)) = world().await else {
        return;
    };
    let body = "for i in $(seq 30); do sleep 1 & done; wait";
    for level in LEVELS {
        let free = run(&world, level, body, processes(60)).await;
        assert!(free.success(), "at {level}: {free:?}");
        let held = run(&world, level, body, processes(20)).await;
        assert!(!held.success(), "at {level}: {held:?}");
        let said = held.stderr.to_text_lossy();
        assert!(said.contains("fork"), "at {level}: {held:?}");
        assert!(is_held(&held), "at {level}: {held:?}");
    }
}

#[tokio::test]
async fn fork_bomb_is_contained_at_every_level() {
    let Some((world, _turn)) = world().await else {
        return;
    };
    for level in LEVELS {
        let mut limits = processes(40);
        (limits.wall, limits.grace) = (ms(2000), ms(100));
        limits.drain = ms(10_000);
        let bomb = "exec bash -c ':(){ :|:& };: ; sleep 300'";
        run(&world, level, bomb, limits).await;
        world.nothing_left();
    }
}

/// The group is removed after every kind of ending.
#[tokio::test]
async fn control_group_of_a_run_is_removed() {
    let Some((world, _turn)) = world().await else {
        return;
    };
    for level in LEVELS {
        for body in [
            "true",
            "kill -9 $$",
            "setsid sleep 300 & exit 3",
            "sleep 300",
        ] {
            let mut limits = processes(100);
            (limits.wall, limits.grace) = (ms(300), ms(0));
            run(&world, level, body, limits).await;
            let command = world.sh("sleep 300").limits(processes(100));
            let command = command.sandbox(Sandbox::at(level)).current_dir("/");
            let dropped = tokio::time::timeout(ms(50), world.executor.run(command)).await;
            assert!(dropped.is_err(), "{dropped:?}");
        }
        world.end_all();
    }
    none_is_left(world);
}

#[tokio::test(flavor = "multi_thread")]
async fn control_groups_of_a_thousand_runs_are_removed() {
    let Some((world, _turn)) = world().await else {
        return;
    };
    mixed_runs(&world, 1000, &processes(100)).await;
    world.end_all();
    none_is_left(world);
}

fn none_is_left(world: World) {
    drop(world);
    let parent = delegated_group().unwrap();
    let groups = || {
        let entries = fs::read_dir(parent).unwrap().filter_map(Result::ok);
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("run-")).count()
    };
    eventually("no group left", || groups() == 0);
}
