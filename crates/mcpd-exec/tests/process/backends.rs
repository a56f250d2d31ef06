//! Backends: a program outside of the executor confines a run, and everything around the run
//! stays as it is.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use mcpd_exec::backend::Backend;
use mcpd_exec::{
    Command, Config, Containment, Ending, Executor, Level, Missing, Network, RunAs, Sandbox,
    StartError,
};
use tokio::sync::Notify;

use crate::destinations;
use crate::support::{
    World, eventually_async, exit_code, is_root, limits, ms, signal, skip, timed_out, within,
};

/// Returns the sandbox, if this machine has Bubblewrap and lets it work.
async fn bwrap() -> Option<Sandbox> {
    let sandbox = Sandbox::strict().backend(Backend::Bwrap);
    let executor = Executor::new(Config::default()).unwrap();
    let probe = Command::new("true").current_dir("/");
    match within(executor.run(probe.sandbox(sandbox.clone()))).await {
        Ok(_) => Some(sandbox),
        Err(error) if Backend::Bwrap.find().is_err() => {
            skip(&format!("{error}"));
            None
        }
        Err(error) => panic!("bwrap is installed, but: {error}"),
    }
}

fn reaper() -> World {
    let mut config = Config::default();
    config.reaper = true;
    World::with(config)
}

#[tokio::test]
async fn bwrap_enforces_what_the_level_says() {
    let Some(sandbox) = bwrap().await else { return };
    let world = reaper();
    let body = "grep -E 'CapEff|CapBnd|NoNewPrivs|^Seccomp:' /proc/self/status; set -- /proc/[0-9]*; echo $#; ls -A /run | wc -l; ls /proc/self/fd | tr '\\n' ' '";
    let outcome = world.run_in(sandbox, world.sh(body)).await;
    let shown = outcome.stdout.to_text_lossy();
    let expected = "CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n2\n0\n0 1 2 3 ";
    assert_eq!(shown.trim_end_matches('\n'), expected, "{outcome:?}");
    let enforced = outcome.enforced;
    assert_eq!(enforced.backend, Some(Backend::Bwrap));
    assert!(enforced.namespaces && enforced.seccomp);
    assert_eq!(enforced.containment, Containment::Proven);
    world.nothing_left();
}

#[tokio::test]
async fn process_limit_that_bwrap_would_share_is_reported() {
    let Some(sandbox) = bwrap().await else { return };
    let world = reaper();
    let limits = limits(|limits| limits.processes = Some(100));
    let outcome = world.run_in(sandbox, world.sh("true").limits(limits)).await;
    let mut missing = outcome.enforced.missing.iter();
    let is_told = missing.any(|missing| missing.mechanism == "process limit");
    assert_eq!(is_told, !outcome.enforced.cgroup, "{:?}", outcome.enforced);
}

#[tokio::test]
async fn bwrap_hides_what_is_hidden_and_keeps_the_rest_read_only() {
    let Some(sandbox) = bwrap().await else { return };
    let world = reaper();
    let [secret, file, open] =
        ["secret", "file", "secret/open"].map(|name| world.directory().join(name));
    fs::create_dir_all(&open).unwrap();
    fs::write(secret.join("key"), "k3y").unwrap();
    fs::write(open.join("note"), "shown").unwrap();
    fs::write(&file, "k3y").unwrap();
    let sandbox = sandbox.hide(&secret).hide(&file).read(&open);
    let body = r#"
        cat secret/key file; cat secret/open/note; echo
        for place in x secret/x secret/open/x /etc/mcpd-test /dev/x /proc/sys/kernel/hostname; do
            (echo mine > "$place") 2>/dev/null && echo "wrote $place"
        done
        for place in "$TMPDIR/x" /dev/shm/x /var/tmp/x /dev/null; do
            echo mine > "$place" && echo "$place"
        done
        cd "$TMPDIR" && pwd"#;
    let outcome = world.run_in(sandbox, world.sh(body)).await;
    let expected = "shown\n/tmp/x\n/dev/shm/x\n/var/tmp/x\n/dev/null\n/tmp\n";
    let said = outcome.stderr.to_text_lossy();
    assert_eq!(outcome.stdout.to_text_lossy(), expected, "{said}");
    for place in ["/tmp/x", "/dev/shm/x", "/var/tmp/x"] {
        assert!(!fs::exists(place).unwrap(), "{place} was private");
    }
    world.nothing_left();
}

/// Each name has characters that some program gives a meaning, and so do the arguments.
#[tokio::test]
async fn bwrap_takes_no_path_and_no_argument_for_an_option() {
    let Some(sandbox) = bwrap().await else { return };
    let world = reaper();
    for name in [
        "with space",
        "line\nbreak",
        "--dev-bind",
        "-",
        "a:b,c\"*?[x]${HOME}%s\\",
    ] {
        let directory = world.directory().join(name);
        let [write, secret] = ["write", "secret"].map(|inner| directory.join(inner));
        for made in [&write, &secret] {
            fs::create_dir_all(made).unwrap();
        }
        fs::write(secret.join("key"), "k3y").unwrap();
        let script = directory.join("--script");
        let body = "pwd; printf '<%s>' \"$@\"; echo mine > write/file; cat secret/key";
        fs::write(&script, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let sandbox = sandbox.clone().write(&write).hide(&secret);
        let words = [
            "--bind",
            "/",
            "/",
            "--",
            "-h",
            "",
            "--seccomp",
            "5",
            "a\nb",
            "é",
        ];
        let command = world.command(&script).args(words);
        let command = command.current_dir(&directory).sandbox(sandbox);
        let outcome = within(world.executor.run(command)).await.unwrap();
        let shown: String = words.map(|word| format!("<{word}>")).concat();
        let expected = format!("{}\n{shown}", directory.display());
        let said = outcome.stderr.to_text_lossy();
        assert_eq!(outcome.stdout.to_text_lossy(), expected, "{said}");
        assert_eq!(fs::read_to_string(write.join("file")).unwrap(), "mine\n");
    }
    world.nothing_left();
}

#[tokio::test]
async fn planted_link_opens_nothing_with_bwrap() {
    let Some(sandbox) = bwrap().await else { return };
    let world = reaper();
    let [write, outside] = ["write", "outside"].map(|name| world.directory().join(name));
    for made in [&write, &outside] {
        fs::create_dir(made).unwrap();
    }
    symlink(&outside, write.join("link")).unwrap();
    let sandbox = sandbox.write(&write).write(write.join("link"));
    let body = "echo mine > write/link/x; echo mine > write/y";
    let outcome = world.run_in(sandbox, world.sh(body)).await;
    assert!(!outside.join("x").exists() && write.join("y").exists());
    let missing = outcome.enforced.missing.iter();
    assert_eq!(missing.filter(|one| one.mechanism == "write").count(), 1);
}

#[tokio::test]
async fn ending_under_bwrap_is_that_of_the_program() {
    let Some(sandbox) = bwrap().await else { return };
    let world = reaper();
    for code in [0, 3, 137, 255] {
        let script = world.sh(&format!("exit {code}"));
        let outcome = world.run_in(sandbox.clone(), script).await;
        assert_eq!(outcome.ending, Ending::Exited(code));
    }
    for number in [6, 9, 11, 15] {
        let script = world.sh(&format!("kill -{number} $$; sleep 60"));
        let outcome = world.run_in(sandbox.clone(), script).await;
        assert_eq!(signal(&outcome), Some(number), "{outcome:?}");
    }
    world.nothing_left();
}

#[tokio::test]
async fn program_that_bwrap_cannot_start_is_diagnosed() {
    let Some(sandbox) = bwrap().await else { return };
    let world = reaper();
    let script = world.file("#!/no/such/shell\n", 0o755);
    let command = world.command(script).sandbox(sandbox.clone());
    let error = within(world.executor.run(command)).await.unwrap_err();
    assert!(
        matches!(error, StartError::BadInterpreter { .. }),
        "{error}"
    );
    let command = world.sh("true").current_dir("/no/such/directory");
    let command = command.sandbox(sandbox);
    let error = within(world.executor.run(command)).await.unwrap_err();
    assert!(matches!(error, StartError::CwdMissing { .. }), "{error}");
    world.nothing_left();
}

#[tokio::test]
async fn failure_of_bwrap_itself_is_reported_in_its_words() {
    let Some(sandbox) = bwrap().await else { return };
    let world = reaper();
    // A list of arguments that it does not take.
    let mut sandbox = sandbox;
    for index in 0..4000 {
        let path = world.directory().join(format!("hidden-{index}"));
        fs::write(&path, "").unwrap();
        sandbox = sandbox.hide(path);
    }
    let command = world.sh("true").sandbox(sandbox);
    let error = within(world.executor.run(command)).await.unwrap_err();
    assert!(matches!(error, StartError::Unenforceable { .. }), "{error}");
    assert!(error.to_string().contains("bwrap: bwrap: "), "{error}");
    world.nothing_left();
}

#[tokio::test]
async fn time_limit_ends_all_processes_under_bwrap() {
    let Some(sandbox) = bwrap().await else { return };
    let world = reaper();
    let body = "trap '' TERM; for i in 1 2 3; do (trap '' TERM; setsid sleep 300 & sleep 300) & done; echo started; while :; do sleep 1; done";
    let command = world.sh(body).limits(limits(|limits| {
        limits.wall = ms(700);
        limits.grace = ms(200);
    }));
    let outcome = world.run_in(sandbox, command).await;
    assert!(timed_out(&outcome), "{outcome:?}");
    assert_eq!(outcome.stdout.head, "started\n");
    assert_eq!(world.processes(), 0, "no process outlives the run");
    world.nothing_left();
}

#[tokio::test]
async fn cancelled_run_under_bwrap_has_its_grace() {
    let Some(sandbox) = bwrap().await else { return };
    let world = reaper();
    let script =
        world.sh("trap 'echo bye; exit 3' TERM; echo started; while :; do sleep 0.02; done");
    let started = Notify::new();
    let script = script.sandbox(sandbox.clone());
    let run = world
        .executor
        .run_until(script, |_| started.notify_one(), started.notified());
    let outcome = within(run).await.unwrap();
    assert_eq!(outcome.ending, Ending::Cancelled);
    assert_eq!(exit_code(&outcome), Some(3), "{outcome:?}");
    assert_eq!(outcome.stdout.head, "started\nbye\n");
    // A dropped run goes on for its grace, and no longer.
    let script = world.sh("trap '' TERM; while :; do sleep 1; done");
    let script = script.limits(limits(|limits| limits.grace = ms(100)));
    let run = world.executor.run(script.sandbox(sandbox));
    tokio::time::timeout(ms(400), run).await.unwrap_err();
    world.nothing_left();
}

#[tokio::test]
async fn leftovers_under_bwrap_end_with_the_run() {
    let Some(sandbox) = bwrap().await else { return };
    let world = reaper();
    let body = "setsid sleep 300 & (sleep 300 &) ; echo done";
    let outcome = world.run_in(sandbox, world.sh(body)).await;
    assert_eq!(outcome.ending, Ending::Exited(0));
    assert_eq!(
        (outcome.stdout.head.as_ref(), outcome.pipes_held),
        (b"done\n".as_slice(), false)
    );
    assert_eq!(world.processes(), 0, "no process outlives the run");
    world.nothing_left();
}

#[tokio::test]
async fn large_input_and_output_pass_bwrap() {
    let Some(sandbox) = bwrap().await else { return };
    let world = reaper();
    let input = vec![b'x'; 8 << 20];
    let command = world.command("cat").stdin(input);
    let outcome = world.run_in(sandbox.clone(), command).await;
    assert_eq!(outcome.stdout.total_bytes, 8 << 20);
    assert_eq!(outcome.stdin.written, 8 << 20);
    let command = world.sh("exec <&-; echo done").stdin(vec![0; 8 << 20]);
    let outcome = world.run_in(sandbox, command).await;
    assert_eq!(outcome.stdout.head, "done\n");
    world.nothing_left();
}

#[tokio::test]
async fn environment_passes_bwrap_and_is_in_no_command_line() {
    let Some(sandbox) = bwrap().await else { return };
    let world = reaper();
    let gate = world.directory().join("gate");
    fs::create_dir(&gate).unwrap();
    let body = "printf %s \"$KEY\"; echo > gate/ready; while [ ! -e gate/go ]; do sleep 0.01; done";
    let command = world.sh(body).env("KEY", "s3cret\nvalue");
    let run = world.run_in(sandbox.write(&gate), command);
    let look = async {
        eventually_async(|| gate.join("ready").exists()).await;
        let marked = world.marked_processes().into_iter();
        let lines = marked
            .filter_map(|pid| fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).ok());
        let lines: Vec<_> = lines.collect();
        fs::write(gate.join("go"), "").unwrap();
        lines
    };
    let (outcome, lines) = tokio::join!(run, look);
    assert_eq!(outcome.stdout.to_text_lossy(), "s3cret\nvalue");
    let texts = lines.iter().map(|line| String::from_utf8_lossy(line));
    let texts: Vec<_> = texts.collect();
    assert!(
        texts.iter().any(|line| line.contains("--unshare-pid")),
        "{texts:?}"
    );
    assert!(
        !texts.iter().any(|line| line.contains("s3cret")),
        "{texts:?}"
    );
}

/// Such a variable would make Bubblewrap load a file that a script may have written.
#[tokio::test]
async fn variable_of_the_loader_is_refused_with_bwrap() {
    let Some(sandbox) = bwrap().await else { return };
    let world = reaper();
    for name in ["LD_PRELOAD", "LD_LIBRARY_PATH", "GCONV_PATH"] {
        let command = world.sh("true").env(name, world.directory());
        let sandbox = sandbox.clone().missing(Missing::Report);
        let error = within(world.executor.run(command.sandbox(sandbox))).await;
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains(&format!("`{name}` would act on `bwrap`")),
            "{error}"
        );
    }
}

#[tokio::test]
async fn network_under_bwrap_is_that_of_the_sandbox() {
    let Some(sandbox) = bwrap().await else { return };
    let world = reaper();
    let server = destinations::echo().port();
    let connect = "use Socket; socket(my $s, AF_INET, SOCK_STREAM, 0) or die 'no socket'; connect($s, sockaddr_in($ARGV[0], INADDR_LOOPBACK)) or die 'not connected'; print 'connected'";
    let perl = || world.perl(connect).arg(server.to_string());
    let outcome = world.run_in(sandbox.clone(), perl()).await;
    let said = outcome.stderr.to_text_lossy();
    assert!(said.starts_with("no socket"), "{said}");
    let interfaces =
        world.sh("tail -n +3 /proc/net/dev | cut -d: -f1; find /proc -maxdepth 1 -name net");
    let outcome = world.run_in(sandbox.clone(), interfaces).await;
    let shown = outcome.stdout.to_text_lossy();
    assert_eq!(
        shown.split_whitespace().collect::<Vec<_>>(),
        ["lo", "/proc/net"]
    );
    let host = sandbox.network(Network::Host);
    let outcome = world.run_in(host, perl()).await;
    assert_eq!(outcome.stdout.to_text_lossy(), "connected", "{outcome:?}");
}

#[tokio::test]
async fn listed_destinations_are_reached_through_bwrap() {
    let Some(sandbox) = bwrap().await else { return };
    let world = reaper();
    let [allowed, other] = [destinations::echo(), destinations::echo()];
    let body = format!(
        "{}syswrite(my $s = through('127.0.0.1:'.$allowed), \"hello\"); sysread($s, my $back, 9); print $back; my $d = any(AF_INET, SOCK_STREAM, 6); connect($d, at($tcp)) and print 'direct'; print eval {{ through('127.0.0.1:'.$tcp); 1 }} ? ' open' : ' closed'",
        destinations::PRELUDE
    );
    let ports = [allowed, other].map(|address| address.port().to_string());
    let sandbox = sandbox.destinations(destinations::only(&[allowed.to_string()]));
    let outcome = world.run_in(sandbox, world.perl(&body).args(ports)).await;
    assert_eq!(
        outcome.stdout.to_text_lossy(),
        "hello closed",
        "{outcome:?}"
    );
    world.nothing_left();
}

#[tokio::test]
async fn run_as_another_user_works_with_bwrap() {
    let Some(sandbox) = bwrap().await else { return };
    if !is_root() {
        return skip("only root can start a process as another user");
    }
    let world = reaper();
    fs::set_permissions(world.directory(), fs::Permissions::from_mode(0o711)).unwrap();
    let kept = world.file("k3y", 0o600);
    let sandbox = sandbox.run_as(RunAs::new(54321, 54322));
    let body = "id -u; id -g; cat \"$1\"; echo x > $TMPDIR/x && echo wrote";
    let outcome = world.run_in(sandbox, world.sh(body).arg(kept)).await;
    let shown = outcome.stdout.to_text_lossy();
    assert_eq!(shown, "54321\n54322\nwrote\n", "{outcome:?}");
    world.nothing_left();
}

#[tokio::test]
async fn backend_that_cannot_be_had_runs_nothing() {
    let world = reaper();
    let run = async |sandbox: Sandbox| {
        let command = world.sh("true").sandbox(sandbox.missing(Missing::Report));
        within(world.executor.run(command))
            .await
            .unwrap_err()
            .to_string()
    };
    for level in [Level::None, Level::Guarded] {
        let error = run(Sandbox::at(level).backend(Backend::Bwrap)).await;
        assert!(
            error.contains("confines at the level `strict` alone"),
            "{error}"
        );
    }
    for backend in Backend::ALL {
        let Err(reason) = backend.find() else {
            continue;
        };
        let error = run(Sandbox::strict().backend(backend)).await;
        assert!(error.contains(&reason), "{error}");
    }
}
