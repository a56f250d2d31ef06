//! Programs that are no servers, or do not end.

use std::fs;
use std::time::Duration;

use super::{Fixture, PATIENCE};
use crate::{Program, Upstream};

async fn shell(script: &str) -> Fixture {
    let program = Program::new("sh").args(["-c", script]);
    Fixture::new(Upstream::stdio("shell", program)).await
}

#[track_caller]
fn check(fixture: &Fixture, expected: &str) {
    assert_eq!(fixture.server.catalog().offers()[0].faults(), [expected]);
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told() {
    let fixture = Fixture::new(Upstream::stdio("nothing", Program::new("no-such-server"))).await;
    check(
        &fixture,
        "can't be started as `no-such-server`: No such file or directory (os error 2)",
    );
}

#[tokio::test]
async fn what_a_program_last_said_is_told() {
    let fixture = shell("echo starting >&2; echo 'no license' >&2; exit 3").await;
    check(
        &fixture,
        "ended before it had introduced itself; it last said: no license",
    );
}

#[tokio::test]
async fn a_program_that_prints_something_else_is_told() {
    let fixture = shell("echo Hello; head -c 20000000 /dev/zero; echo; echo '[]'").await;
    check(&fixture, "ended before it had introduced itself");
}

#[tokio::test]
async fn a_program_ends_with_what_it_has_started() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    // It does not care that its input ends, nor that it is asked to end.
    let script = format!(
        "trap '' TERM; sleep 1000 & echo $$ $! >{0}.new; mv {0}.new {0}; wait",
        file.display()
    );
    let program = Program::new("sh").args(["-c", &script]);
    let upstream = Upstream::stdio("stubborn", program);
    let server = mcpd_server::Server::builder()
        .source(upstream)
        .start()
        .unwrap();
    let pids = eventually(|| fs::read_to_string(&file).ok()).await;
    drop(server);
    for pid in pids.split_whitespace() {
        eventually(|| has_ended(pid).then_some(())).await;
    }
}

/// Whether there is no such process, or nothing but its remains.
fn has_ended(pid: &str) -> bool {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.contains(") Z"),
        Err(_) => true,
    }
}

async fn eventually<T>(look: impl Fn() -> Option<T>) -> T {
    let found = async {
        loop {
            if let Some(found) = look() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, found)
        .await
        .expect("in time")
}
