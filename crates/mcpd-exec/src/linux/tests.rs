//! Fault injection into the start of a process: any failing system call gives a typed error, no
//! leftover, no hang.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use rustix::process::geteuid;

use super::filter::Sockets;
use super::raw::injection;
use super::skip::skip;
use super::{SpawnerClass, System};
use crate::command::Command;
use crate::error::StartError;
use crate::executor::Config;
use crate::os::SpawnedChild;
use crate::process::Progress;
use crate::sandbox::{RunAs, Sandbox};

/// Fails the first system call with `error`, then the second, up to the last, and returns which
/// those were.
#[track_caller]
fn check(
    error: i32,
    class: SpawnerClass,
    change: impl Fn(Command) -> Command + Sync,
) -> BTreeSet<i32> {
    let calls = match check_call(u32::MAX, error, class, &change) {
        Err(reason) => {
            skip(&format!(
                "calls that fail, which takes the kernel to ask: {reason}"
            ));
            return BTreeSet::new();
        }
        Ok(Ok(call)) => panic!("call {call} of more than there are"),
        Ok(Err(calls)) => calls,
    };
    // Hundreds of files beside a hidden path cause as many rules, which all fail alike.
    let is_checked = |call: &u32| *call < 150 || *call + 150 > calls || call.is_multiple_of(23);
    // A later start may need a few calls more than the one that was counted.
    let failed = (0..calls + 20)
        .filter(is_checked)
        .filter_map(|call| check_call(call, error, class, &change).unwrap().ok());
    failed.collect()
}

/// Fails the n-th system call, and returns which that is, or the count of calls.
#[track_caller]
fn check_call(
    call: u32,
    error: i32,
    class: SpawnerClass,
    change: &(impl Fn(Command) -> Command + Sync),
) -> io::Result<Result<i32, u32>> {
    let temporary = tempfile::tempdir().unwrap();
    let system = system(temporary.path());
    let work = || {
        let command = Command::new("/bin/true").stdin("input").current_dir("/");
        let class = class.install(&system);
        system.start(&change(command), Path::new("/bin/true"), &class)
    };
    let after = |started| {
        match started {
            Err(error) => assert!(is_typed(&error), "call {call}: {error:?}"),
            // Some calls may fail without harm, as on an old kernel or without privileges.
            Ok(SpawnedChild { mut child, .. }) => {
                child.kill();
                while child.end_round() != Progress::Over {
                    thread::yield_now();
                }
                assert!(child.reap().unwrap().is_some());
            }
        }
        assert_eq!(children(), "", "after a failure of call {call}");
    };
    let ((), failed) = injection::in_call(call, error, work, after)?;
    // A missing right is permanent, unlike a lack of memory.
    let has_proc = !system.no_proc.load(Relaxed);
    assert!(has_proc || error == libc::EPERM, "after call {call}");
    drop(system);
    let left = leftovers(temporary.path());
    assert!(left.is_empty(), "after a failure of call {call}: {left:?}");
    Ok(failed)
}

fn system(temporary: &Path) -> System {
    let config = Config {
        reaper: true,
        temporary: Some(temporary.to_owned()),
        ..Config::default()
    };
    System::new(&config).unwrap()
}

/// Lists what is left below the directories of runs.
fn leftovers(temporary: &Path) -> Vec<String> {
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    let below = entries(temporary).flat_map(|entry| entries(&entry.path()));
    below
        .map(|entry| entry.path().display().to_string())
        .collect()
}

fn is_typed(error: &StartError) -> bool {
    matches!(
        error,
        StartError::Resource { .. }
            | StartError::Setup { .. }
            | StartError::CwdMissing { .. }
            | StartError::Unenforceable { .. }
            | StartError::Io { .. }
            | StartError::NotExecutable { .. }
    )
}

#[test]
fn exit_status_is_known_before_reaping() {
    let system = System::new(&Config::default()).unwrap();
    let class = SpawnerClass::Open.install(&system);
    for body in ["exit 0", "exit 3", "kill -TERM $$"] {
        let command = Command::new("/bin/sh").args(["-c", body]);
        let spawned = system
            .start(&command, Path::new("/bin/sh"), &class)
            .unwrap();
        let mut child = spawned.child;
        while !child.has_exited() {
            thread::yield_now();
        }
        let status = child.status();
        let (reaped, _) = child.reap().unwrap().unwrap();
        assert_eq!(status, Some(reaped), "{body}");
    }
}

/// Lists the children of this thread, dead or alive.
fn children() -> String {
    fs::read_to_string("/proc/thread-self/children").unwrap()
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// A single test: descriptors are counted, and each case takes some for a moment.
#[test]
fn failed_system_call_of_a_start_leaves_nothing() {
    let before = descriptors();
    let at = |sandbox: Sandbox| move |command: Command| command.sandbox(sandbox.clone());
    let host = SpawnerClass::Filtered(Sockets::All);
    check_all(
        &[libc::SYS_pipe2, libc::SYS_clone, libc::SYS_execve],
        || check(libc::ENOMEM, SpawnerClass::Open, at(Sandbox::none())),
    );
    check_all(&[libc::SYS_landlock_add_rule, libc::SYS_execve], || {
        check(libc::ENOMEM, host, at(Sandbox::guarded()))
    });
    check(libc::EPERM, host, at(Sandbox::guarded()));
    check_all(&[libc::SYS_mount, libc::SYS_execve], || {
        check(libc::ENOMEM, SpawnerClass::Open, at(Sandbox::strict()))
    });
    check(libc::EPERM, SpawnerClass::Open, at(Sandbox::strict()));
    // A transient shortage must not take `/proc` from later runs.
    check(libc::ENOSPC, SpawnerClass::Open, at(Sandbox::strict()));
    if geteuid().is_root() {
        let somebody = Sandbox::guarded().run_as(RunAs::new(65534, 65534));
        check_all(&[libc::SYS_setresuid, libc::SYS_setgroups], || {
            check(libc::ENOMEM, host, at(somebody.clone()))
        });
    }
    // Other tests hold a few at any time; a leak per failure would be far more.
    let after = descriptors();
    assert!(after < before + 40, "{before} before, {after} after");
}

/// Checks that these calls are among those that fail, if any can. A call that is made only now and
/// then moves the numbers of the others, so that one pass may leave one out.
#[track_caller]
fn check_all(expected: &[i64], pass: impl Fn() -> BTreeSet<i32>) {
    const PASSES: usize = 5;
    let mut failed = BTreeSet::new();
    for _ in 0..PASSES {
        failed.extend(pass());
        let is_failed = |call: &i64| failed.contains(&(*call as i32));
        if failed.is_empty() || expected.iter().all(is_failed) {
            return;
        }
    }
    panic!("{expected:?} are not all among {failed:?}");
}
