//! What happens to runs if their host is killed, or stands on a system that lacks something. The host is the example `run`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use mcpd_exec::Level;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{World, eventually, levels, skip};

/// Built with the tests, unless only one of them was asked for by its name.
fn example() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.ancestors().nth(2).unwrap().join("examples/run");
    assert!(
        path.exists(),
        "no {}: build it with `cargo build --examples`",
        path.display()
    );
    path
}

#[expect(clippy::disallowed_methods, reason = "it is the host of the executor")]
fn host(program: &Path) -> Command {
    Command::new(program)
}

/// A host with a run at a level, of which at least `processes` are alive, and a place for its temporary directories.
fn running(world: &World, level: Level, body: &str, processes: usize) -> Child {
    let temporary = world.directory().join("temporary");
    fs::create_dir(&temporary).unwrap();
    // Marked by another program, so that the host is not.
    let script = world.file(format!("#!/bin/sh\n{body}\n"), 0o755);
    let host = host(&example())
        .args([level.as_str(), "env", world.mark()])
        .arg(script)
        .env("TMPDIR", temporary)
        .current_dir(world.directory())
        .stdout(Stdio::null())
        .spawn();
    eventually("a run", || world.processes() >= processes);
    host.unwrap()
}

fn kill(host: &mut Child) {
    host.kill().unwrap();
    host.wait().unwrap();
}

/// Nothing of the run, and no directory of its.
fn gone(world: &World) {
    world.nothing_left();
    let temporary = world.directory().join("temporary");
    let is_empty = || fs::read_dir(&temporary).unwrap().next().is_none();
    eventually("no directory left", is_empty);
}

const DAEMONS: &str = "for i in 1 2 3; do setsid sh -c '(sleep 300 &)'; done
    echo x > ${TMPDIR:-/tmp}/mcpd-file; sleep 300; true";

#[tokio::test]
async fn nothing_outlives_a_host_that_is_killed() {
    for level in levels().await.filter(|level| *level > Level::None) {
        let world = World::new();
        let mut host = running(&world, level, DAEMONS, 5);
        kill(&mut host);
        gone(&world);
    }
}

#[tokio::test]
async fn a_watchdog_that_is_killed_is_replaced() {
    if levels().await.all(|level| level != Level::Guarded) {
        return;
    }
    let world = World::new();
    let mut host = running(&world, Level::Guarded, DAEMONS, 5);
    let first = watchdog(&host).unwrap();
    kill_process(first, Signal::KILL).unwrap();
    eventually("another", || {
        watchdog(&host).is_some_and(|pid| pid != first)
    });
    kill(&mut host);
    gone(&world);
}

/// The second process of a host, whichever of its threads has started it.
fn watchdog(host: &Child) -> Option<Pid> {
    let tasks = fs::read_dir(format!("/proc/{}/task", host.id())).unwrap();
    let children = tasks.map(|task| fs::read_to_string(task.unwrap().path().join("children")));
    let children = children.filter_map(Result::ok).collect::<String>();
    let mut numbers = children.split_whitespace();
    let number = numbers.find(|number| {
        let line = fs::read_to_string(format!("/proc/{number}/cmdline"));
        line.is_ok_and(|line| line.contains("watchdog"))
    });
    Pid::from_raw(number?.parse().unwrap())
}

/// Runs something in a host that can't do all.
fn lacking(wrapper: &[&str], level: Level, body: &str) -> Output {
    let (program, arguments) = wrapper.split_first().unwrap();
    let mut host = host(Path::new(program));
    let host = host.args(arguments).arg(example()).arg(level.as_str());
    host.args(["/usr/bin/sh", "-c", body])
        .current_dir("/")
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    let [stdout, stderr] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    format!("{stdout}{stderr}")
}

/// A host for which some calls fail.
fn without(calls: &[(i64, i32)], level: Level) -> Output {
    const SCRIPT: &str = r#"
        my @calls = split ",", shift;
        my $code = pack "SCCL", 0x20, 0, 0, 0;
        for (@calls) { my ($call, $error) = split ":"; $code .= pack "SCCLSCCL", 0x15, 0, 1, $call, 0x06, 0, 0, 0x50000 | $error }
        $code .= pack "SCCL", 0x06, 0, 0, 0x7fff0000;
        my $program = pack "S x6 P", length($code) / 8, $code;
        my ($prctl, $seccomp) = (shift, shift);
        syscall($prctl + 0, 38, 1, 0, 0, 0) == 0 && syscall($seccomp + 0, 1, 0, $program) == 0 or die $!;
        exec @ARGV or die $!;
    "#;
    let calls: Vec<_> = calls
        .iter()
        .map(|(call, error)| format!("{call}:{error}"))
        .collect();
    let numbers = [libc::SYS_prctl, libc::SYS_seccomp].map(|number| number.to_string());
    let wrapper = [
        "perl",
        "-e",
        SCRIPT,
        &calls.join(","),
        &numbers[0],
        &numbers[1],
    ];
    lacking(&wrapper, level, "echo ran")
}

#[tokio::test]
async fn without_landlock_guarded_says_so_and_strict_does_with_namespaces() {
    if levels().await.count() < 3 {
        return;
    }
    for error in [libc::ENOSYS, libc::EOPNOTSUPP] {
        let calls = [(libc::SYS_landlock_create_ruleset, error)];
        let said = text(&without(&calls, Level::Guarded));
        assert!(said.starts_with("ran\nExited(0)"), "{said}");
        assert!(said.contains("not enforced: landlock:"), "{said}");
        let said = text(&without(&calls, Level::Strict));
        assert!(said.starts_with("ran\nExited(0)"), "{said}");
    }
}

#[tokio::test]
async fn without_filters_guarded_says_so_and_strict_is_refused() {
    if levels().await.count() < 3 {
        return;
    }
    let calls = [(libc::SYS_seccomp, libc::EPERM)];
    let said = text(&without(&calls, Level::Guarded));
    assert!(said.starts_with("ran\nExited(0)"), "{said}");
    assert!(said.contains("not enforced: seccomp:"), "{said}");
    let said = text(&without(&calls, Level::Strict));
    let refusal = "run: failed to confine `/usr/bin/sh` as asked: seccomp:";
    assert!(said.starts_with(refusal), "{said}");
}

/// As an ordinary user may be kept from them by the system.
#[tokio::test]
async fn without_namespaces_strict_is_refused_and_guarded_is_not() {
    if levels().await.count() < 3 {
        return;
    }
    let forbid = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
    let wrapper = [
        "unshare",
        "--user",
        "--map-root-user",
        "sh",
        "-c",
        forbid,
        "sh",
    ];
    let output = lacking(&wrapper, Level::Guarded, "echo ran");
    if !output.status.success() {
        return skip(&format!("a host without namespaces: {}", text(&output)));
    }
    assert!(text(&output).starts_with("ran\n"));
    let said = text(&lacking(&wrapper, Level::Strict, "echo ran"));
    assert!(
        said.contains("namespaces: the kernel refuses them") && !said.contains("ran\n"),
        "{said}"
    );
}

/// Something of ours is in the way then.
#[tokio::test]
async fn a_mount_that_is_busy_is_no_refusal_of_namespaces() {
    if levels().await.count() < 3 {
        return;
    }
    let busy = [(libc::SYS_mount_setattr, libc::EBUSY)];
    let said = text(&without(&busy, Level::Strict));
    let failure = "run: failed to start `/usr/bin/sh`: ";
    assert!(
        said.starts_with(failure) && !said.contains("refuses"),
        "{said}"
    );
}

/// As in most containers.
#[tokio::test]
async fn where_proc_is_masked_a_strict_run_has_none_and_says_so() {
    if levels().await.count() < 3 {
        return;
    }
    let mask = "mount --bind /dev/null /proc/uptime && exec \"$@\"";
    let wrapper = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        mask,
        "sh",
    ];
    let output = lacking(&wrapper, Level::Strict, "ls -A /proc; echo ran");
    let said = text(&output);
    if !output.status.success() {
        return skip(&format!("a masked /proc: {said}"));
    }
    assert!(
        said.starts_with("ran\n") && said.contains("not enforced: /proc:"),
        "{said}"
    );
}
