//! Scripts in a directory of their own, and a mark by which their processes are found.

use std::fs;
use std::future::Future;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mcpd_exec::{
    Command, Config, Ending, Executor, Level, Limits, Outcome, RunAs, Sandbox, StartError,
};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::sync::OnceCell;

pub(crate) use crate::skip::skip;

/// Reports and counts the tests that a copy of this process has skipped.
pub(crate) fn skip_as(copy: &Output) {
    let said = String::from_utf8_lossy(&copy.stderr);
    let lines = said
        .lines()
        .filter(|line| line.starts_with("skipped (no. "));
    for (_, reason) in lines.filter_map(|line| line.split_once("): ")) {
        skip(reason);
    }
}

/// Longer than any test takes on a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// Directory, executor and mark of one test.
pub(crate) struct World {
    pub(crate) executor: Executor,
    directory: TempDir,
    mark: String,
    scripts: AtomicUsize,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Config::default())
    }

    pub(crate) fn with(config: Config) -> Self {
        let directory = TempDir::new().unwrap();
        Self {
            executor: Executor::new(config).unwrap(),
            mark: format!("MCPD_EXEC_TEST={}", directory.path().display()),
            directory,
            scripts: AtomicUsize::new(0),
        }
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Variable that all its processes have.
    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    /// Makes a file with these bytes and this mode.
    pub(crate) fn file(&self, bytes: impl AsRef<[u8]>, mode: u32) -> PathBuf {
        let index = self.scripts.fetch_add(1, Ordering::Relaxed);
        let path = self.directory.path().join(format!("script-{index}"));
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    /// Returns a marked command.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let (name, value) = self.mark.split_once('=').unwrap();
        Command::new(program).env(name, value)
    }

    /// Returns a marked shell script.
    pub(crate) fn sh(&self, body: &str) -> Command {
        self.command(self.file(format!("#!/bin/sh\n{body}\n"), 0o755))
    }

    /// Runs a shell script to its end.
    pub(crate) async fn run(&self, body: &str) -> Outcome {
        within(self.executor.run(self.sh(body))).await.unwrap()
    }

    /// Returns a marked Perl script, for system calls that have no command.
    pub(crate) fn perl(&self, body: &str) -> Command {
        self.command(self.file(format!("#!/usr/bin/env perl\n{body}\n"), 0o755))
    }

    /// Runs a command to its end, confined.
    pub(crate) async fn run_in(&self, sandbox: Sandbox, command: Command) -> Outcome {
        let command = command.current_dir(self.directory()).sandbox(sandbox);
        within(self.executor.run(command)).await.unwrap()
    }

    /// Lists the processes that carry the mark.
    pub(crate) fn marked_processes(&self) -> Vec<Pid> {
        let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        // A process that ends meanwhile can't be read, and a zombie has no environment.
        let marked = entries.filter(|entry| self.is_marked(&entry.path()));
        let numbers = marked.map(|entry| entry.file_name().to_str().unwrap().parse().unwrap());
        numbers
            .map(|number| Pid::from_raw(number).unwrap())
            .collect()
    }

    /// Number of processes that carry the mark.
    pub(crate) fn processes(&self) -> usize {
        self.marked_processes().len()
    }

    /// Kills the processes that carry the mark, for tests that leave some on purpose.
    pub(crate) fn end_all(&self) {
        for pid in self.marked_processes() {
            kill_process(pid, Signal::KILL).ok();
        }
        self.nothing_left();
    }

    fn is_marked(&self, process: &Path) -> bool {
        fs::read(process.join("environ")).is_ok_and(|text| {
            text.split(|byte| *byte == 0)
                .any(|var| var == self.mark.as_bytes())
        })
    }

    /// Asserts that no process carries the mark any more, and that every slot is free.
    #[track_caller]
    pub(crate) fn nothing_left(&self) {
        eventually("no process left", || self.processes() == 0);
        eventually("every turn given back", || self.executor.running() == 0);
        assert_eq!(self.executor.queue_length(), 0);
    }
}

/// Returns the levels of this machine, from the loosest on, and reports those it lacks.
pub(crate) async fn levels() -> impl DoubleEndedIterator<Item = Level> {
    static LEVELS: OnceCell<Vec<Level>> = OnceCell::const_new();
    LEVELS.get_or_init(probe).await.iter().copied()
}

/// Runs a command at each level, inspects the outcome, and checks that nothing is left.
pub(crate) async fn at_each_level(
    command: impl Fn(&World) -> Command,
    look: impl Fn(Level, &Outcome),
) {
    for level in levels().await {
        let world = World::new();
        look(
            level,
            &world.run_in(Sandbox::at(level), command(&world)).await,
        );
        world.nothing_left();
    }
}

async fn probe() -> Vec<Level> {
    let mut levels = vec![Level::None];
    for level in [Level::Guarded, Level::Strict] {
        match probe_at(level).await {
            // At `strict` the namespaces protect files.
            Ok(probe) if probe.enforced.landlock.is_some() || probe.enforced.namespaces => {
                levels.push(level);
            }
            other => skip(&format!("level {level}: {other:?}")),
        }
    }
    levels
}

async fn probe_at(level: Level) -> Result<Outcome, StartError> {
    let executor = Executor::new(Config::default()).unwrap();
    let probe = Command::new("true").current_dir("/");
    within(executor.run(probe.sandbox(Sandbox::at(level)))).await
}

/// Returns whether this machine has an older Landlock than `version`, and reports the skipped
/// test then.
pub(crate) async fn landlock_is_older_than(version: u32, what: &str) -> bool {
    static VERSION: OnceCell<u32> = OnceCell::const_new();
    let found = VERSION.get_or_init(async || {
        let probe = probe_at(Level::Guarded).await.unwrap();
        probe.enforced.landlock.unwrap_or(0)
    });
    let found = *found.await;
    if found < version {
        skip(&format!(
            "{what}: that takes Landlock {version}, and this system has {found}"
        ));
    }
    found < version
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns a sandbox for a user whose processes the kernel counts alone: no other process or test
/// has its number.
pub(crate) fn sandbox_counted_alone(level: Level) -> Sandbox {
    let sandbox = Sandbox::at(level);
    if is_root() {
        static NEXT: AtomicU32 = AtomicU32::new(1 << 30);
        let user = NEXT.fetch_add(1, Ordering::Relaxed) + (std::process::id() << 6);
        sandbox.run_as(RunAs::new(user, user))
    } else {
        sandbox
    }
}

pub(crate) fn config(concurrency: usize, queue: usize) -> Config {
    let mut config = Config::default();
    config.concurrency = concurrency;
    config.queue = queue;
    config
}

pub(crate) fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

pub(crate) const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Returns the future's output, or fails at the deadline.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(DEADLINE, future)
        .await
        .expect("an answer before the deadline")
}

/// Waits for a condition that is not announced.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::yield_now();
    }
}

/// Waits like [`eventually`], while other tasks go on.
pub(crate) async fn eventually_async(mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    within(waiting).await;
}

/// Number of the signal that ended the process, with any ending.
pub(crate) fn signal(outcome: &Outcome) -> Option<i32> {
    use std::os::unix::process::ExitStatusExt as _;
    outcome.status.and_then(|status| status.signal())
}

pub(crate) fn exit_code(outcome: &Outcome) -> Option<i32> {
    outcome.status.and_then(|status| status.code())
}

pub(crate) fn timed_out(outcome: &Outcome) -> bool {
    matches!(outcome.ending, Ending::TimedOut { .. })
}
