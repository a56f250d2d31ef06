//! Whatever system call fails on the way to a program: a typed error, nothing left, no hang.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use super::{Lane, System, fault};
use crate::command::Command;
use crate::error::StartError;
use crate::executor::Config;
use crate::process::Progress;
use crate::sandbox::Sandbox;

/// Fails the first system call for want of memory, then the second, and so on until all go well, and says how many there
/// were.
#[track_caller]
fn check(sandbox: &Sandbox) -> u32 {
    check_with(libc::ENOMEM, sandbox)
}

#[track_caller]
fn check_with(error: i32, sandbox: &Sandbox) -> u32 {
    let config = Config {
        reaper: true,
        ..Config::default()
    };
    let system = System::new(&config).unwrap();
    let lane = Lane::Open.enter(&system);
    let command = Command::new("/bin/true")
        .stdin("input")
        .current_dir("/")
        .sandbox(sandbox.clone());
    let mut calls = 0;
    loop {
        let start = || system.start(&command, Path::new("/bin/true"), &lane);
        match fault::in_call(calls, error, start) {
            (Err(error), true) => assert!(is_typed(&error), "call {calls}: {error:?}"),
            // Some may fail without harm: an old kernel, or a caller without privileges.
            (Ok(born), failed) => {
                let mut child = born.child;
                child.kill();
                while child.end_round() != Progress::Over {
                    std::thread::yield_now();
                }
                assert!(child.reap().unwrap().is_some());
                if !failed {
                    return calls;
                }
            }
            (Err(error), false) => panic!("it fails by itself: {error:?}"),
        }
        assert!(!system.no_proc.load(Relaxed), "after call {calls}");
        assert_eq!(children(), "", "after a failure of call {calls}");
        calls += 1;
    }
}

fn is_typed(error: &StartError) -> bool {
    matches!(
        error,
        StartError::Resource { .. }
            | StartError::Setup { .. }
            | StartError::CwdMissing { .. }
            | StartError::Unenforceable { .. }
            | StartError::Io { .. }
    )
}

#[test]
fn what_a_process_has_ended_with_is_known_before_it_is_reaped() {
    let system = System::new(&Config::default()).unwrap();
    let lane = Lane::Open.enter(&system);
    for body in ["exit 0", "exit 3", "kill -TERM $$"] {
        let command = Command::new("/bin/sh").args(["-c", body]);
        let born = system.start(&command, Path::new("/bin/sh"), &lane).unwrap();
        let mut child = born.child;
        while !child.has_exited() {
            std::thread::yield_now();
        }
        let status = child.status();
        let (reaped, _) = child.reap().unwrap().unwrap();
        assert_eq!(status, Some(reaped), "{body}");
    }
}

/// Those of this thread alone, dead or alive.
fn children() -> String {
    fs::read_to_string("/proc/thread-self/children").unwrap()
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn a_failed_call_on_the_way_to_an_unconfined_program_leaves_nothing() {
    assert!(check(&Sandbox::none()) > 8, "every step is a call");
}

#[test]
fn a_failed_call_on_the_way_to_a_confined_program_leaves_nothing() {
    assert!(check(&Sandbox::guarded()) > 14, "every step is a call");
}

#[test]
fn a_failed_call_on_the_way_to_an_isolated_program_leaves_nothing() {
    assert!(check(&Sandbox::strict()) > 30, "every step is a call");
}

#[test]
fn a_shortage_that_passes_takes_proc_from_no_later_run() {
    check_with(libc::ENOSPC, &Sandbox::strict());
}

#[test]
fn failures_leak_no_descriptor() {
    let before = descriptors();
    for _ in 0..5 {
        check(&Sandbox::guarded());
        check(&Sandbox::strict());
    }
    // Other tests have some open at any time; one leaked by each failure would be far more.
    let after = descriptors();
    assert!(after < before + 40, "{before} before, {after} after");
}
