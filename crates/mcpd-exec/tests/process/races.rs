//! Fork races: trees that fork faster than a search are ended all the same, in 200 rounds of each
//! at each level, without a survivor.
//!
//! They run inside a limit of processes and give up by themselves, so that a failure does not
//! take down the machine.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use mcpd_exec::{Command, Ending, Level, Sandbox};
use tokio::sync::{Mutex, Notify};

use crate::support::{World, config, is_root, levels, limits, ms, sandbox_counted_alone, within};

const ROUNDS: usize = 200;
/// Room for the tree beside the other processes of the user.
const PROCESSES: u64 = 150;

/// Hops: each process forks and ends, and its child takes a new session and group. The first one
/// stays for this many seconds.
const RABBIT: &str = r#"
    use POSIX; $SIG{TERM} = $SIG{HUP} = 'IGNORE'; $SIG{CHLD} = 'IGNORE';
    my $first = $$;
    for (1 .. $ARGV[0]) { last unless fork }
    if ($$ == $first) { syswrite STDOUT, "begun\n"; sleep $ARGV[1]; exit }
    while (time - $^T < 15) { my $p = fork; exit if $p; if (defined $p) { setsid; setpgrp } }"#;

/// Every process keeps forking, each child in a session of its own.
const STORM: &str = r#"
    use POSIX; $SIG{TERM} = $SIG{HUP} = 'IGNORE'; $SIG{CHLD} = 'IGNORE';
    syswrite STDOUT, "begun\n";
    while (time - $^T < 15) { my $p = fork; if (defined $p and !$p) { setsid; setpgrp } select undef, undef, undef, 0.002 }"#;

/// Ends `code` soon after its start, over and over, and looks for survivors each time, at both
/// levels that must leave none.
async fn check(code: &str, rabbits: &str) {
    // One at a time: another tree would count as processes of the user, and raise the limit.
    static TURN: Mutex<()> = Mutex::const_new(());
    let _turn = TURN.lock().await;
    for level in levels().await.filter(|level| *level > Level::None) {
        let mut config = config(1, 1);
        config.reaper = true;
        let world = World::with(config);
        for round in 0..ROUNDS {
            // Every other round it ends by itself, if it ever does.
            let stays = if round % 2 == 0 { "0" } else { "15" };
            let command = world.command("perl").args(["-e", code, rabbits, stays]);
            race(&world, level, command, round).await;
        }
        world.nothing_left();
    }
}

async fn race(world: &World, level: Level, command: Command, round: usize) {
    let limits = limits(|limits| {
        limits.grace = ms(0);
        limits.drain = ms(10_000);
        limits.processes = Some(own_processes() + PROCESSES);
    });
    let command = command.current_dir("/").limits(limits);
    let begun = Notify::new();
    let soon = async {
        begun.notified().await;
        // Delays in odd steps.
        tokio::time::sleep(Duration::from_micros(round as u64 * 137 % 5003)).await;
    };
    let run = world.executor.run_until(
        command.sandbox(sandbox_counted_alone(level)),
        |_| begun.notify_one(),
        soon,
    );
    let outcome = within(run).await.unwrap();
    let is_ended = matches!(outcome.ending, Ending::Cancelled | Ending::Exited(0));
    assert!(is_ended, "at {level}, round {round}: {outcome:?}");
    assert_eq!(outcome.stdout.head, "begun\n", "at {level}, round {round}");
    // A hopping process may escape a look, but it keeps the pipes.
    let left = (outcome.pipes_held, world.processes());
    assert_eq!(left, (false, 0), "at {level}, round {round}: {outcome:?}");
}

/// Number of threads of this user, as whom the tree runs by default.
fn own_processes() -> u64 {
    if is_root() {
        return 0;
    }
    let user = rustix::process::geteuid().as_raw();
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let own = processes.filter(|entry| entry.metadata().is_ok_and(|data| data.uid() == user));
    own.map(|entry| fs::read_dir(entry.path().join("task")).map_or(0, |tasks| tasks.count() as u64))
        .sum()
}

/// All these tests depend on it.
#[test]
#[expect(clippy::disallowed_methods, reason = "no executor is needed to look")]
fn perl_is_installed() {
    let version = std::process::Command::new("perl").arg("-v").output();
    assert!(version.is_ok_and(|output| output.status.success()));
}

#[tokio::test(flavor = "multi_thread")]
async fn hopping_process_is_caught() {
    check(RABBIT, "1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_hopping_processes_are_caught() {
    check(RABBIT, "8").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fork_storm_is_ended() {
    check(STORM, "").await;
}

/// Without hopping, the tree ends with its leader and leaves nothing to search for.
#[tokio::test]
async fn wide_tree_ends_with_its_leader() {
    let mut config = config(1, 1);
    config.reaper = true;
    let world = World::with(config);
    let code = "use POSIX; for (1 .. 100) { unless (fork) { setsid; sleep 300; exit } }";
    let command: Command = world.command("perl").args(["-e", code]);
    let command = command.current_dir("/").sandbox(Sandbox::guarded());
    let outcome = within(world.executor.run(command)).await.unwrap();
    assert_eq!(outcome.ending, Ending::Exited(0));
    assert_eq!(outcome.leftovers, Some(100));
    world.nothing_left();
}
