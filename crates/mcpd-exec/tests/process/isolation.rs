//! Isolation: a confined process can't affect processes outside its run, nor learn their secrets.
//! Each attempt is also made unconfined, where it succeeds.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Stdio};

use mcpd_exec::{Level, Sandbox};

use crate::support::{World, eventually_async, landlock_is_older_than, levels};

/// Process of the host, with a secret.
struct Victim(Child);

impl Victim {
    #[expect(clippy::disallowed_methods, reason = "it is nobody's run")]
    fn new() -> Self {
        let sleep = std::process::Command::new("sleep")
            .arg("300")
            .env("SECRET", "kept")
            .process_group(0)
            .stdin(Stdio::piped())
            .spawn();
        Self(sleep.unwrap())
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Runs an attempt on the process with the number `$1`, which succeeds at the levels up to
/// `open`.
async fn check_up_to(open: Level, body: &str) {
    for level in levels().await {
        let world = World::new();
        let mut victim = Victim::new();
        let script = world.sh(body).arg(victim.0.id().to_string());
        let outcome = world.run_in(Sandbox::at(level), script).await;
        let said = outcome.stderr.to_text_lossy();
        assert_eq!(
            outcome.success(),
            level <= open,
            "at {level}: {body}: {said}"
        );
        if level > open {
            assert!(victim.0.try_wait().unwrap().is_none(), "at {level}: {body}");
        }
    }
}

async fn check(body: &str) {
    check_up_to(Level::None, body).await;
}

#[tokio::test]
async fn outside_processes_are_not_signalled() {
    if landlock_is_older_than(6, "signals to others").await {
        return;
    }
    check("kill -0 $1").await;
    check("kill -KILL $1").await;
    check("kill -STOP $1").await;
}

#[tokio::test]
async fn outside_processes_are_not_inspected() {
    check("tr '\\0' '\\n' < /proc/$1/environ | grep -x SECRET=kept").await;
    check("grep stack /proc/$1/maps").await;
    check("readlink /proc/$1/fd/0").await;
    check("readlink /proc/$1/cwd").await;
    check("exec 3< /proc/$1/mem").await;
    check("ls /proc/$1/root/").await;
}

#[tokio::test]
async fn outside_processes_are_not_controlled() {
    check("prlimit --pid $1 --nofile=64:64").await;
    check("echo 500 > /proc/$1/oom_score_adj").await;
    check("ionice -c 3 -p $1").await;
    check("renice -n 19 -g $1").await;
}

/// Every process can read its command line.
#[tokio::test]
async fn other_processes_are_visible_at_guarded() {
    check_up_to(Level::Guarded, "grep sleep /proc/$1/cmdline").await;
}

#[tokio::test]
async fn executor_can_not_be_attacked() {
    if landlock_is_older_than(6, "signals to others").await {
        return;
    }
    let own = std::process::id();
    for level in levels().await {
        let world = World::new();
        let script = world.sh(&format!("kill -0 {own} || head -c 1 /proc/{own}/environ"));
        let outcome = world.run_in(Sandbox::at(level), script).await;
        assert_eq!(outcome.success(), level == Level::None, "at {level}");
    }
}

/// Each run has a world of its own, so that they can be told apart.
#[tokio::test]
async fn runs_can_not_attack_each_other() {
    if landlock_is_older_than(6, "signals to others").await {
        return;
    }
    for level in levels().await {
        let (one, other) = (World::new(), World::new());
        let waiting = one.sh("sleep 300; true").current_dir(one.directory());
        let executor = one.executor.clone();
        let run = async move { executor.run(waiting.sandbox(Sandbox::at(level))).await };
        let run = tokio::spawn(run);
        eventually_async(|| one.processes() >= 2).await;
        for pid in one.marked_processes() {
            let pid = pid.as_raw_nonzero();
            let attack = other.sh(&format!("kill -0 {pid} || head -c 1 /proc/{pid}/environ"));
            let outcome = other.run_in(Sandbox::at(level), attack).await;
            assert_eq!(outcome.success(), level == Level::None, "at {level}");
        }
        run.abort();
        run.await.unwrap_err();
        one.nothing_left();
    }
}

/// A run may do anything to its own processes.
#[tokio::test]
async fn run_signals_its_own_processes() {
    let body = "sleep 300 & kill -0 $! && renice -n 19 -p $! >&2 && echo reniced; kill $!; wait $!; echo $?
        trap 'echo caught; exit 0' TERM; kill -TERM $$";
    for level in levels().await {
        let world = World::new();
        let outcome = world.run_in(Sandbox::at(level), world.sh(body)).await;
        let text = outcome.stdout.to_text_lossy();
        assert_eq!(text, "reniced\n143\ncaught\n", "at {level}: {outcome:?}");
    }
}

/// Runs a script at `strict`, if the system has that level.
async fn strict(body: &str) -> Option<String> {
    levels().await.find(|level| *level == Level::Strict)?;
    let world = World::new();
    let outcome = world.run_in(Sandbox::strict(), world.sh(body)).await;
    Some(outcome.stdout.to_text_lossy())
}

async fn check_strict(body: &str, expected: &str) {
    if let Some(text) = strict(body).await {
        assert_eq!(text, expected, "{body}");
    }
}

#[tokio::test]
async fn strict_run_sees_its_own_processes_only() {
    check_strict("echo $PPID; cd /proc; echo [0-9]*", "1\n1 2\n").await;
    check_up_to(Level::Guarded, "test -d /proc/$1").await;
}

/// The first process reaps orphans, and gives nothing away.
#[tokio::test]
async fn first_process_of_a_strict_run_can_not_be_attacked() {
    check_strict(
        "kill -KILL 1; kill -TERM 1; kill -STOP 1; echo alive",
        "alive\n",
    )
    .await;
    check_strict("cat /proc/1/environ /proc/1/fd/3; echo 1 >/proc/1/fd/3; ls /proc/1/root/; head -c 1 /proc/1/mem", "").await;
    let no_zombie = "for i in 1 2 3 4 5 6 7 8; do (true &); done
        until ! grep -q ') Z' /proc/[0-9]*/stat 2>/dev/null; do :; done; echo none";
    check_strict(no_zombie, "none\n").await;
}

#[tokio::test]
async fn strict_run_has_its_own_terminals_names_and_directories() {
    check_strict(
        "ls /dev/pts; ls -A /run /var/tmp /dev/shm | grep -v : | grep -v '^$'",
        "ptmx\n",
    )
    .await;
    check_strict(
        "for d in /tmp /var/tmp /dev/shm; do echo x > $d/f && stat -c %a $d; done",
        "1777\n1777\n1777\n",
    )
    .await;
    let name = format!("mcpd-exec-test-{}", std::process::id());
    for level in levels().await.filter(|level| *level != Level::Guarded) {
        for place in ["/tmp", "/var/tmp", "/dev/shm"] {
            let file = Path::new(place).join(&name);
            let world = World::new();
            let script = world.sh("echo x > $1").arg(&file);
            assert!(world.run_in(Sandbox::at(level), script).await.success());
            let is_there = fs::remove_file(&file).is_ok();
            assert_eq!(is_there, level == Level::None, "at {level}: {place}");
        }
    }
}

#[tokio::test]
async fn strict_run_opens_harmless_devices_only() {
    check_strict(
        "head -c 2 /dev/zero | wc -c; head -c 2 /dev/urandom | wc -c; cat /dev/null",
        "2\n2\n",
    )
    .await;
    let others = "for d in /dev/*; do
            case $d in */null|*/zero|*/full|*/random|*/urandom|*/tty|*/ptmx|*/std*|*/fd|*/shm|*/pts) continue;; esac
            if [ -c $d ] || [ -b $d ]; then (: <$d) 2>/dev/null && echo $d; fi
        done";
    check_strict(others, "").await;
}

#[tokio::test]
async fn host_mounts_stay_unchanged() {
    let mounts = || fs::read_to_string("/proc/self/mountinfo").unwrap();
    let before = mounts();
    strict("mount -t tmpfs x /tmp; true").await;
    assert_eq!(mounts(), before);
}
