//! Measurements that need a process without other activity: memory, descriptors, threads.
//!
//! Each test runs again, alone, in a process of its own.

use std::fs::{self, File};
use std::future::Future;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::time::Duration;

use mcpd_exec::{Ending, Level, Limits, Sandbox};

use crate::support::{World, config, eventually, levels, limits, ms, skip_as, within};

const ALONE: &str = "MCPD_EXEC_ALONE";

/// Runs `body` in a copy of this process that runs this one test. No executor starts the copy,
/// since it would be a run itself.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "it is a host, not a run")]
fn alone<F: Future<Output = ()>>(name: &str, body: impl FnOnce() -> F) {
    if std::env::var_os(ALONE).is_some() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        return runtime.block_on(body());
    }
    let again = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--test-threads=1", "--nocapture"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    skip_as(&again);
    let [stdout, stderr] = [&again.stdout, &again.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(
        again.status.success(),
        "{}\n{stdout}\n{stderr}",
        again.status
    );
    assert!(stdout.contains("1 passed"), "no test `{name}`:\n{stdout}");
}

/// Returns a number from `/proc/self/status`.
fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn output_of_a_gigabyte_takes_no_memory() {
    alone("alone::output_of_a_gigabyte_takes_no_memory", || async {
        let world = World::new();
        for level in levels().await {
            // A gigabyte takes seconds. At the other levels any size beyond the memory bound will
            // do.
            let size = match level {
                Level::None => 1_000_000_005,
                _ => 100_000_005,
            };
            let limits = limits(|limits| limits.output_hard = u64::MAX);
            let flood = world
                .command("head")
                .args(["-c", &size.to_string(), "/dev/zero"]);
            let flood = flood.limits(limits).sandbox(Sandbox::at(level));
            let mut bytes = 0;
            let run = world
                .executor
                .run_with(flood, |line| bytes += line.bytes.len() as u64);
            let outcome = within(run).await.unwrap();
            assert_eq!(outcome.ending, Ending::Exited(0), "at {level}");
            assert_eq!((outcome.stdout.total_bytes, bytes), (size, size));
            let peak = status("VmHWM:");
            assert!(peak < 20 * 1024, "at {level}: {peak} KiB");
            world.nothing_left();
        }
    });
}

/// A process gets its descriptors by number, so foreign descriptors of the host must not be in
/// the way.
#[test]
fn host_may_have_free_low_descriptors() {
    let hole = File::open("/dev/null").unwrap();
    let name = "alone::host_may_have_free_low_descriptors";
    alone(name, || async {
        assert_eq!(hole.as_raw_fd(), 3);
        let (levels, world) = (levels().await, World::new());
        drop(hole);
        // The strictest level first: descriptors cached by others would fill the hole.
        for level in levels.rev() {
            let outcome = world.run_in(Sandbox::at(level), world.sh("cat")).await;
            assert!(outcome.success(), "at {level}: {outcome:?}");
        }
    });
}

#[test]
fn spilled_output_takes_no_memory() {
    alone("alone::spilled_output_takes_no_memory", || async {
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
    });
}

#[test]
fn large_host_starts_processes_as_fast() {
    alone("alone::large_host_starts_processes_as_fast", || async {
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
        // Forking this process takes 20 ms.
        assert!(fastest < ms(10), "{fastest:?}");
        drop(ballast);
    });
}

/// A thousand runs. `groups.rs` checks the removal of control groups.
#[test]
fn thousand_runs_leak_nothing() {
    alone("alone::thousand_runs_leak_nothing", || async {
        let place = tempfile::tempdir().unwrap();
        let entries = |path: &Path| fs::read_dir(path).unwrap().count();
        let descriptors = || entries(Path::new("/proc/self/fd"));
        let before = (descriptors(), status("Threads:"));
        {
            let mut config = config(16, 1000);
            config.reaper = true;
            config.temporary = Some(place.path().to_owned());
            let world = World::with(config);
            mixed_runs(&world, 100, &Limits::default()).await;
            world.nothing_left();
            let warm = (descriptors(), status("Threads:"));
            mixed_runs(&world, 1000, &Limits::default()).await;
            world.nothing_left();
            // One ruleset is cached per concurrent run, and more threads start as runs meet.
            eventually("descriptors and threads as before", || {
                descriptors() <= warm.0 + 16 && status("Threads:") <= warm.1 + 64
            });
        }
        eventually("descriptors and threads of the executor are gone", || {
            // Those of the whole process stay: the list of its orphans, that of mounts, and the
            // program that starts strict runs.
            descriptors() <= before.0 + 3 && status("Threads:") <= before.1
        });
        eventually("no temporary file left", || entries(place.path()) == 0);
        let me = std::process::id();
        let children = fs::read_to_string(format!("/proc/{me}/task/{me}/children")).unwrap();
        assert_eq!(children, "", "not even a zombie");
    });
}

/// Runs of every kind and every ending, at every level. Some have tighter limits than `limits`.
pub(crate) async fn mixed_runs(world: &World, count: usize, limits: &Limits) {
    let mut quick = limits.clone();
    (quick.wall, quick.grace, quick.drain, quick.output_hard) = (ms(50), ms(20), ms(20), 100_000);
    let within_limits = |body| world.sh(body).limits(limits.clone());
    let kinds = [
        within_limits("exit 0"),
        within_limits("exit 5").stdin(vec![b'x'; 200_000]),
        within_limits("cd \"${TMPDIR:?}\" && echo x > file && mkdir directory"),
        within_limits("kill -SEGV $$"),
        world.sh("trap '' TERM; sleep 300").limits(quick.clone()),
        world.sh("setsid sleep 0.1 &").limits(quick.clone()),
        world.command("yes").limits(quick),
        world.command("/no/such/program"),
        within_limits("sleep 300"),
        within_limits("sleep 300"),
    ];
    let levels: Vec<_> = levels().await.collect();
    let mut runs = tokio::task::JoinSet::new();
    for index in 0..count {
        let executor = world.executor.clone();
        let kind = index % kinds.len();
        let level = levels[index / kinds.len() % levels.len()];
        let command = kinds[kind].clone().sandbox(Sandbox::at(level));
        runs.spawn(async move {
            // Of those that never end, one is cancelled and one is dropped.
            let soon = || tokio::time::sleep(ms(20));
            match kind {
                8 => drop(executor.run_until(command, |_| {}, soon()).await),
                9 => drop(tokio::time::timeout(ms(20), executor.run(command)).await),
                _ => drop(executor.run(command).await),
            }
        });
    }
    while let Some(run) = within(runs.join_next()).await {
        run.unwrap();
    }
}
