//! Host failures: runs whose host is killed, or whose system lacks something. The host is the
//! example `run`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use mcpd_exec::{Config, Containment, Executor, Level, Sandbox};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{World, eventually, levels, skip, skip_as};

/// Path of the example. It is built with the tests, unless a single test is selected by name.
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

/// Starts a host with a run at a level. Returns when at least `processes` of it are alive, with
/// its temporary directories in place.
fn start_host(world: &World, level: Level, body: &str, processes: usize) -> Child {
    let temporary = world.directory().join("temporary");
    fs::create_dir(&temporary).unwrap();
    // `env` sets the mark, so that the host itself is not marked.
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

/// Checks that nothing of the run is left, and no directory of it.
fn check_gone(world: &World) {
    world.nothing_left();
    let temporary = world.directory().join("temporary");
    let is_empty = || fs::read_dir(&temporary).unwrap().next().is_none();
    eventually("no directory left", is_empty);
}

const DAEMONS: &str = "for i in 1 2 3; do setsid sh -c '(sleep 300 &)'; done
    echo x > ${TMPDIR:-/tmp}/mcpd-file; sleep 300; true";

#[tokio::test]
async fn killed_host_leaves_nothing() {
    for level in levels().await {
        let world = World::new();
        let mut host = start_host(&world, level, DAEMONS, 5);
        kill(&mut host);
        match level {
            // It has no temporary directory.
            Level::None => world.nothing_left(),
            _ => check_gone(&world),
        }
    }
}

/// An empty `TMPDIR` counts as unset, as for shells and `mktemp`.
#[tokio::test]
async fn empty_tmpdir_means_the_temporary_directory_of_the_system() {
    for level in levels().await.filter(|level| *level > Level::None) {
        let world = World::new();
        let body = "case $TMPDIR in /*) touch $TMPDIR/file && mktemp && echo ran ;; esac";
        let output = host(&example())
            .args([level.as_str(), "sh", "-c", body])
            .env("TMPDIR", "")
            .current_dir(world.directory())
            .output()
            .unwrap();
        let said = text(&output);
        assert!(said.contains("ran\nExited(0)"), "at {level}: {said}");
        let left = fs::read_dir(world.directory()).unwrap().count();
        assert_eq!(left, 0, "at {level}");
    }
}

#[tokio::test]
async fn watchdog_that_is_killed_is_replaced() {
    if levels().await.all(|level| level != Level::Guarded) {
        return;
    }
    let world = World::new();
    let mut host = start_host(&world, Level::Guarded, DAEMONS, 5);
    let first = watchdog(host.id()).unwrap();
    kill_process(first, Signal::KILL).unwrap();
    eventually("another", || {
        watchdog(host.id()).is_some_and(|pid| pid != first)
    });
    kill(&mut host);
    check_gone(&world);
}

#[test]
fn watchdog_starts_with_the_first_run() {
    if !is_again() {
        let itself = "host::watchdog_starts_with_the_first_run";
        return again(&["env"], &[], itself);
    }
    let mut config = Config::default();
    config.watchdog = true;
    let _executors = [config.clone(), config].map(|config| Executor::new(config).unwrap());
    assert_eq!(watchdog(std::process::id()), None);
}

/// The parent of the host would take it for a leftover.
#[tokio::test]
async fn watchdog_ends_before_its_host() {
    let mut config = Config::default();
    config.reaper = true;
    let world = World::with(config);
    for _ in 0..30 {
        let host = world.command(example()).args(["none", "/usr/bin/true"]);
        let outcome = world.run_in(Sandbox::none(), host).await;
        assert_eq!(outcome.leftovers, Some(0), "{outcome:?}");
    }
}

/// Returns the watchdog of a host, started by any of its threads.
fn watchdog(host: u32) -> Option<Pid> {
    let tasks = fs::read_dir(format!("/proc/{host}/task")).unwrap();
    let children = tasks.map(|task| fs::read_to_string(task.unwrap().path().join("children")));
    let children = children.filter_map(Result::ok).collect::<String>();
    let mut numbers = children.split_whitespace();
    let number = numbers.find(|number| {
        let line = fs::read_to_string(format!("/proc/{number}/cmdline"));
        line.is_ok_and(|line| line.contains("watchdog"))
    });
    Pid::from_raw(number?.parse().unwrap())
}

/// Runs a script in a host that lacks something.
fn run_in_wrapper(wrapper: &[&str], level: Level, body: &str) -> Output {
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

/// Runs a host for which some calls fail.
fn run_without_calls(calls: &[(i64, i32)], level: Level) -> Output {
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
    run_in_wrapper(&wrapper, level, "echo ran")
}

#[tokio::test]
async fn missing_landlock_is_reported_at_guarded_and_replaced_at_strict() {
    if levels().await.count() < 3 {
        return;
    }
    for error in [libc::ENOSYS, libc::EOPNOTSUPP] {
        let calls = [(libc::SYS_landlock_create_ruleset, error)];
        let said = text(&run_without_calls(&calls, Level::Guarded));
        assert!(said.starts_with("ran\nExited(0)"), "{said}");
        assert!(said.contains("not enforced: landlock:"), "{said}");
        let said = text(&run_without_calls(&calls, Level::Strict));
        assert!(said.starts_with("ran\nExited(0)"), "{said}");
    }
}

#[tokio::test]
async fn missing_filters_are_reported_at_guarded_and_refused_at_strict() {
    if levels().await.count() < 3 {
        return;
    }
    let calls = [(libc::SYS_seccomp, libc::EPERM)];
    let said = text(&run_without_calls(&calls, Level::Guarded));
    assert!(said.starts_with("ran\nExited(0)"), "{said}");
    assert!(said.contains("not enforced: seccomp:"), "{said}");
    let said = text(&run_without_calls(&calls, Level::Strict));
    let refusal = "run: failed to enforce the sandbox of `/usr/bin/sh`: seccomp:";
    assert!(said.starts_with(refusal), "{said}");
}

/// The system may deny them to an ordinary user.
#[tokio::test]
async fn missing_namespaces_are_refused_at_strict_only() {
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
    let output = run_in_wrapper(&wrapper, Level::Guarded, "echo ran");
    if !output.status.success() {
        return skip(&format!("a host without namespaces: {}", text(&output)));
    }
    assert!(text(&output).starts_with("ran\n"));
    let said = text(&run_in_wrapper(&wrapper, Level::Strict, "echo ran"));
    assert!(
        said.contains("namespaces: the kernel refuses them") && !said.contains("ran\n"),
        "{said}"
    );
}

/// The error means that a mount is in use, not that the kernel refuses.
#[tokio::test]
async fn busy_mount_is_no_refusal_of_namespaces() {
    if levels().await.count() < 3 {
        return;
    }
    let busy = [(libc::SYS_mount_setattr, libc::EBUSY)];
    let said = text(&run_without_calls(&busy, Level::Strict));
    let failure = "run: failed to start `/usr/bin/sh`: ";
    assert!(
        said.starts_with(failure) && !said.contains("refuses"),
        "{said}"
    );
}

/// Wrapper that runs a shell command in a mount namespace of its own.
const WITH_MOUNTS: [&str; 6] = [
    "unshare",
    "--user",
    "--map-root-user",
    "--mount",
    "sh",
    "-c",
];

/// Most containers are like that.
#[tokio::test]
async fn masked_proc_is_empty_at_strict_and_reported() {
    if levels().await.count() < 3 {
        return;
    }
    let mask = "mount --bind /dev/null /proc/uptime && exec \"$@\"";
    let wrapper = [&WITH_MOUNTS[..], &[mask, "sh"]].concat();
    let output = run_in_wrapper(&wrapper, Level::Strict, "ls -A /proc; echo ran");
    let said = text(&output);
    if !output.status.success() {
        return skip(&format!("a masked /proc: {said}"));
    }
    assert!(
        said.starts_with("ran\n") && said.contains("not enforced: /proc:"),
        "{said}"
    );
}

/// Wrapper that ignores SIGCHLD, as some shells and supervisors do.
const CHILDREN_IGNORED: [&str; 3] = ["perl", "-e", "$SIG{CHLD} = 'IGNORE'; exec @ARGV or die $!"];

#[tokio::test]
async fn ignored_children_of_a_host_are_reset() {
    for level in levels().await {
        let output = run_in_wrapper(&CHILDREN_IGNORED, level, "sleep 0.1; exit 3");
        let said = text(&output);
        assert!(said.contains("Exited(3)"), "at {level}: {said}");
    }
}

/// Variable that makes a test process a host of its own.
const IS_HOST: &str = "MCPD_EXEC_TEST_HOST";

/// Runs one of these tests again in another process, with `first` before its arguments.
pub(crate) fn again(wrapper: &[&str], first: &[&str], test: &str) {
    let mut words = wrapper.iter().map(OsString::from).collect::<Vec<_>>();
    words.push(std::env::current_exe().unwrap().into());
    let mut host = host(Path::new(&words[0]));
    let host = host.args(&words[1..]).args(first).args(["--exact", test]);
    let output = host.env(IS_HOST, "1").output().unwrap();
    skip_as(&output);
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

/// Runs one of these tests again as another user, if this one is root.
pub(crate) fn again_as_stranger(test: &str) {
    again_beside("exec \"$@\"", test);
}

/// Runs one of these tests again as another user, beside a script of root's that executes its
/// arguments.
pub(crate) fn again_beside(script: &str, test: &str) {
    const STRANGER: [&str; 4] = [
        "setpriv",
        "--reuid=23456",
        "--regid=23456",
        "--clear-groups",
    ];
    let tests = std::env::current_exe().unwrap();
    let mut can = host(Path::new(STRANGER[0]));
    let can = can.args(&STRANGER[1..]).args(["test", "-x"]).arg(&tests);
    if !can.status().is_ok_and(|status| status.success()) {
        return skip(&format!(
            "`{test}`: an ordinary user can't execute the tests"
        ));
    }
    let root = ["sh", "-c", script, "sh"];
    again(&[&root[..], &STRANGER].concat(), &[], test);
}

/// Runs one of these tests again in a mount namespace, by a script that executes its arguments.
pub(crate) fn again_with_mounts(script: &str, test: &str) {
    let wrapper = [&WITH_MOUNTS[..], &[script, "sh"]].concat();
    let mut can = host(Path::new(wrapper[0]));
    let can = can.args(&wrapper[1..]).arg("true");
    if !can.status().is_ok_and(|status| status.success()) {
        return skip(&format!("`{test}`: nothing can be mounted here"));
    }
    again(&wrapper, &[], test);
}

pub(crate) fn is_again() -> bool {
    std::env::var_os(IS_HOST).is_some()
}

#[test]
fn executor_is_refused_to_a_host_that_ignores_its_children() {
    if !is_again() {
        let itself = "host::executor_is_refused_to_a_host_that_ignores_its_children";
        return again(&CHILDREN_IGNORED, &[], itself);
    }
    let refused = Executor::new(Config::default()).unwrap_err();
    assert!(refused.to_string().contains("SIGCHLD"), "{refused}");
    mcpd_exec::prepare_signals();
    Executor::new(Config::default()).unwrap();
}

/// Otherwise it would start itself without end.
#[test]
fn watchdog_process_starts_no_watchdog() {
    if !is_again() {
        let itself = "host::watchdog_process_starts_no_watchdog";
        return again(&["env"], &["__mcpd-exec-watchdog"], itself);
    }
    let mut config = Config::default();
    config.watchdog = true;
    let refused = Executor::new(config).unwrap_err();
    assert!(refused.to_string().contains("run_watchdog"), "{refused}");
}

/// Covers `/proc`, as in a changed root directory.
const COVER_PROC: &str = "mount -t tmpfs none /proc && exec \"$@\"";

#[tokio::test]
async fn missing_proc_at_guarded_limits_kills_to_groups_and_is_reported() {
    if levels().await.all(|level| level != Level::Guarded) {
        return;
    }
    if !is_again() {
        let itself = "host::missing_proc_at_guarded_limits_kills_to_groups_and_is_reported";
        return again_with_mounts(COVER_PROC, itself);
    }
    let executor = Executor::new(Config::default()).unwrap();
    for _ in 0..3 {
        let body = "ls $TMPDIR; echo x > $TMPDIR/file";
        let command = mcpd_exec::Command::new("sh").args(["-c", body]);
        let outcome = executor.run(command.sandbox(Sandbox::guarded())).await;
        let outcome = outcome.unwrap();
        assert_eq!(outcome.stdout.to_text_lossy(), "", "{outcome:?}");
        assert_eq!(outcome.enforced.containment, Containment::Group);
        let mut missing = outcome.enforced.missing.iter();
        assert!(missing.any(|missing| missing.mechanism == "/proc"));
    }
}

#[tokio::test]
async fn missing_proc_is_refused_at_strict() {
    if !is_again() {
        if levels().await.any(|level| level == Level::Strict) {
            let itself = "host::missing_proc_is_refused_at_strict";
            again_with_mounts(COVER_PROC, itself);
        }
        return;
    }
    let executor = Executor::new(Config::default()).unwrap();
    let command = mcpd_exec::Command::new("true").sandbox(Sandbox::strict());
    let refused = executor.run(command).await.unwrap_err().to_string();
    assert!(refused.contains("`/proc` is missing"), "{refused}");
}

/// Runs a script in a host with a file size limit, in bytes.
fn with_small_files(size: u32, level: Level, body: &str) -> Output {
    let limit = "prlimit --pid $$ --fsize=$0 && exec \"$@\"";
    run_in_wrapper(&["sh", "-c", limit, &size.to_string()], level, body)
}

#[tokio::test]
async fn spill_file_is_bounded_by_the_file_size_limit_of_the_host() {
    for level in levels().await {
        let output = with_small_files(5000, level, "head -c 1000000 /dev/zero");
        let said = text(&output);
        assert!(output.status.success(), "at {level}: {}", output.status);
        assert!(said.contains("Exited(0)"), "at {level}: {said}");
        assert_eq!(output.stdout.len(), 5000, "at {level}");
    }
}

#[tokio::test]
async fn file_size_limit_of_zero_is_reported() {
    if levels().await.count() < 3 {
        return;
    }
    let said = text(&with_small_files(0, Level::Strict, "echo ran"));
    let refusal = "run: failed to enforce the sandbox of `/usr/bin/sh`: namespaces: their first process cannot be created";
    assert!(said.starts_with(refusal), "{said}");
    let body = "kill -XFSZ $$; echo ignored";
    let said = text(&with_small_files(0, Level::Guarded, body));
    assert!(said.contains("Signaled { signal: 25"), "{said}");
}
