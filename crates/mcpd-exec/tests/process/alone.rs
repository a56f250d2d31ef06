//! What can only be measured in a process that does nothing else: memory, descriptors, threads.
//!
//! Each of these runs again, alone, in a process of its own.

use std::fs::{self, File};
use std::future::Future;
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use mcpd_exec::{Command, Ending, Executor, Sandbox};

use crate::support::{World, config, eventually, levels, limits, ms, within};

const ALONE: &str = "MCPD_EXEC_ALONE";

/// Runs `body` in a copy of this process that runs this one test.
#[track_caller]
fn alone<F: Future<Output = ()>>(name: &str, body: impl FnOnce() -> F) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    if std::env::var_os(ALONE).is_some() {
        return runtime.block_on(body());
    }
    let executor = Executor::new(config(1, 1)).unwrap();
    let again = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--test-threads=1", "--nocapture"])
        .env(ALONE, "1");
    let outcome = runtime.block_on(executor.run(again)).unwrap();
    let (stdout, stderr) = (
        outcome.stdout.to_text_lossy(),
        outcome.stderr.to_text_lossy(),
    );
    assert!(
        outcome.success(),
        "{:?}\n{stdout}\n{stderr}",
        outcome.ending
    );
    assert!(stdout.contains("1 passed"), "no test `{name}`:\n{stdout}");
}

/// A number out of `/proc/self/status`.
fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_gigabyte_of_output_takes_no_memory() {
    alone("alone::a_gigabyte_of_output_takes_no_memory", || async {
        let world = World::new();
        let limits = limits(|limits| limits.output_hard = u64::MAX);
        let script = world.sh("exec head -c 1000000005 /dev/zero").limits(limits);
        let mut bytes = 0;
        let run = world
            .executor
            .run_with(script, |line| bytes += line.bytes.len());
        let outcome = within(run).await.unwrap();
        assert_eq!(outcome.ending, Ending::Exited(0));
        assert_eq!(
            (outcome.stdout.total_bytes, bytes),
            (1_000_000_005, 1_000_000_005)
        );
        let peak = status("VmHWM:");
        assert!(peak < 20 * 1024, "{peak} KiB");
        world.nothing_left();
    });
}

/// A process gets its descriptors by number, and none that the host has lying there may be in the way.
#[test]
fn the_lowest_descriptors_of_the_host_may_be_free() {
    let hole = File::open("/dev/null").unwrap();
    let name = "alone::the_lowest_descriptors_of_the_host_may_be_free";
    alone(name, || async {
        assert_eq!(hole.as_raw_fd(), 3);
        let (levels, world) = (levels().await, World::new());
        drop(hole);
        // From the strictest on: what the looser ones keep fills the hole.
        for level in levels.rev() {
            let outcome = world.run_in(Sandbox::at(level), world.sh("cat")).await;
            assert!(outcome.success(), "at {level}: {outcome:?}");
        }
    });
}

#[test]
fn output_on_its_way_to_disk_takes_no_memory() {
    alone(
        "alone::output_on_its_way_to_disk_takes_no_memory",
        || async {
            let world = World::new();
            world.run("exit 0").await;
            let descriptors = || fs::read_dir("/proc/self/fd").unwrap().count();
            let before = descriptors();
            let limits = limits(|limits| limits.keep = 100_000_000);
            let script = world.sh("exec head -c 100000005 /dev/zero").limits(limits);
            let outcome = within(world.executor.run(script)).await.unwrap();
            assert_eq!(outcome.stdout.total_bytes, 100_000_005);
            assert_eq!(outcome.stdout.file.as_ref().unwrap().size(), 100_000_000);
            let peak = status("VmHWM:");
            assert!(peak < 20 * 1024, "{peak} KiB");
            drop(outcome);
            eventually("the file is gone", || descriptors() == before);
        },
    );
}

#[test]
fn a_large_host_starts_processes_as_fast() {
    alone("alone::a_large_host_starts_processes_as_fast", || async {
        let world = World::new();
        let ballast = vec![1_u8; 512 * 1024 * 1024];
        let mut fastest = Duration::MAX;
        for _ in 0..20 {
            let command = world
                .command("true")
                .current_dir("/")
                .stdin("")
                .env("PATH", "/usr/bin:/bin");
            let outcome = within(world.executor.run(command)).await.unwrap();
            fastest = fastest.min(outcome.timing.spawn);
        }
        assert!(status("VmRSS:") > 512 * 1024);
        // A fork of this takes 20 ms.
        assert!(fastest < ms(10), "{fastest:?}");
        drop(ballast);
    });
}

#[test]
fn nothing_accumulates() {
    alone("alone::nothing_accumulates", || async {
        let descriptors = || fs::read_dir("/proc/self/fd").unwrap().count();
        let before = (descriptors(), status("Threads:"));
        {
            let world = World::with(config(16, 1000));
            mixed_runs(&world, 20).await;
            world.nothing_left();
            let warm = (descriptors(), status("Threads:"));
            mixed_runs(&world, 300).await;
            world.nothing_left();
            eventually("descriptors and threads as before", || {
                (descriptors(), status("Threads:")) == warm
            });
        }
        eventually("descriptors and threads of the executor are gone", || {
            (descriptors(), status("Threads:")) <= before
        });
        let me = std::process::id();
        let children = fs::read_to_string(format!("/proc/{me}/task/{me}/children")).unwrap();
        assert_eq!(children, "", "not even a zombie");
    });
}

async fn mixed_runs(world: &World, count: usize) {
    let quick = limits(|limits| {
        (limits.wall, limits.grace, limits.drain, limits.output_hard) =
            (ms(50), ms(20), ms(20), 100_000);
    });
    let kinds = [
        world.sh("exit 0"),
        world.sh("exit 5").stdin(vec![b'x'; 200_000]),
        world.sh("trap '' TERM; sleep 300").limits(quick.clone()),
        world.sh("sleep 0.1 &").limits(quick.clone()),
        world.command("yes").limits(quick),
        world.command("/no/such/program"),
        world.sh("sleep 300"),
    ];
    let mut runs = tokio::task::JoinSet::new();
    for index in 0..count {
        let (executor, command) = (world.executor.clone(), kinds[index % kinds.len()].clone());
        // The last kind never ends; all of them are dropped if they take as long.
        runs.spawn(async move {
            tokio::time::timeout(ms(2000), executor.run(command))
                .await
                .is_ok()
        });
    }
    while let Some(run) = within(runs.join_next()).await {
        run.unwrap();
    }
}
