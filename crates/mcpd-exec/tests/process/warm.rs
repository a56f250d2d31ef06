//! Warm starts: a fork of an interpreter that has started gives the same outcome as a process of
//! its own, for ordinary and for hostile scripts, and leaves nothing for the next run.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use mcpd_exec::warm::{WarmStart, Warmth};
use mcpd_exec::{Command, Ending, Level, Limits, Network, Outcome, Sandbox, StartError};

use crate::support::{World, config, levels, limits, ms, skip, within};
use crate::warm_scripts::{HOSTILE, ORDINARY};

/// Time in which an interpreter gets ready on a busy machine.
const ENDLESS_WALL: Duration = ms(5000);

fn world() -> World {
    let mut config = config(8, 64);
    config.reaper = true;
    World::with(config)
}

/// Returns a script of Python in a file of its own.
fn python(world: &World, body: &str) -> Command {
    python_with(world, "", body)
}

fn python_with(world: &World, options: &str, body: &str) -> Command {
    let text = format!("#!{} {options}\n{body}\n", interpreter());
    let command = world.command(world.file(text, 0o755));
    let command = command
        .stdin("{\"name\": \"Ada\"}")
        .current_dir(world.directory());
    command
        .env("MCPD_OPT_NAME", "Ada")
        .env("PYTHONUNBUFFERED", "")
}

/// Path of Python itself: a launcher in its place may change the environment.
fn interpreter() -> String {
    let found = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&found).map(|directory| directory.join("python3"));
    let is_program = |path: &std::path::PathBuf| {
        fs::read(path).is_ok_and(|content| content.starts_with(b"\x7fELF"))
    };
    let found = found.into_iter().find(is_program);
    found
        .unwrap_or_else(|| "/usr/bin/python3".into())
        .display()
        .to_string()
}

fn modules() -> WarmStart {
    WarmStart::new(["json", "random"].map(str::to_owned))
}

/// Runs a command until its start was warm. `None` if this machine can't do that.
async fn run_warm(world: &World, command: &Command) -> Option<Outcome> {
    run_warm_with(world, &command.clone().warm(modules())).await
}

/// Reasons of a cold start that pass. A script just written is open for writing in a process that
/// another test forked meanwhile, until that one has executed its program.
const PASSING: [&str; 3] = ["ahead yet", "being", "open for writing"];

/// Runs a command that asks for a warm start until it was one.
async fn run_warm_with(world: &World, command: &Command) -> Option<Outcome> {
    let mut last = None;
    for _ in 0..300 {
        let outcome = within(world.executor.run(command.clone())).await.unwrap();
        match &outcome.warmth {
            Some(Warmth::Warm) => return Some(outcome),
            Some(Warmth::Cold(reason)) if PASSING.iter().any(|part| reason.contains(part)) => {}
            other => {
                skip(&format!("warm start: {other:?}"));
                return None;
            }
        }
        last = outcome.warmth;
        tokio::time::sleep(ms(50)).await;
    }
    panic!("never warm: {last:?}");
}

/// Returns whether a warm run is possible here.
async fn is_possible(world: &World, level: Level) -> bool {
    let command = python(world, "pass").sandbox(Sandbox::at(level));
    run_warm(world, &command).await.is_some()
}

/// Levels at which a start can be warm.
async fn warm_levels() -> Vec<Level> {
    levels()
        .await
        .filter(|level| *level < Level::Strict)
        .collect()
}

/// Part of an outcome that must not depend on the start.
fn comparable(outcome: &Outcome) -> String {
    // How much of a flood is read is a matter of time.
    let text = |text: String| text.chars().take(4000).collect::<String>();
    format!(
        "{:?} {:?} leftovers={:?} held={} enforced={:?}\n--- stdout\n{}\n--- stderr\n{}",
        outcome.ending,
        outcome.status,
        outcome.leftovers,
        outcome.pipes_held,
        outcome.enforced,
        text(outcome.stdout.to_text_lossy()),
        text(outcome.stderr.to_text_lossy()),
    )
}

/// Compares both starts of each script at each level, and that the zygote serves on.
async fn compare(scripts: &[(&str, &str)], change: impl Fn(&mut Limits)) {
    for level in warm_levels().await {
        let world = world();
        if !is_possible(&world, level).await {
            return;
        }
        for (name, body) in scripts {
            let sandbox = Sandbox::at(level).network(Network::Off);
            let command = python(&world, body)
                .sandbox(sandbox)
                .limits(limits(|limits| {
                    change(limits);
                    if body.contains("while True: time") {
                        limits.wall = ENDLESS_WALL;
                    }
                }));
            let cold = within(world.executor.run(command.clone()));
            let (cold, warm) = tokio::join!(cold, run_warm(&world, &command));
            let (cold, warm) = (cold.unwrap(), warm.unwrap());
            assert_eq!(cold.warmth, None);
            assert_eq!(comparable(&cold), comparable(&warm), "{name} at {level}");
        }
        world.end_all();
        world.nothing_left();
    }
}

#[tokio::test]
async fn warm_run_of_an_ordinary_script_is_as_a_cold_one() {
    compare(ORDINARY, |_| {}).await;
}

#[tokio::test]
async fn warm_run_of_a_hostile_script_is_as_a_cold_one() {
    compare(HOSTILE, |limits| {
        limits.grace = ms(200);
        limits.output_hard = 1 << 20;
        limits.open_files = Some(50);
        limits.file_size = Some(1 << 16);
    })
    .await;
}

#[tokio::test]
async fn warm_run_is_cancelled_as_a_cold_one() {
    let world = world();
    for level in warm_levels().await {
        if !is_possible(&world, level).await {
            return;
        }
        let command = python(
            &world,
            "import time\nprint('on', flush=True)\ntime.sleep(60)",
        );
        let command = command.sandbox(Sandbox::at(level)).warm(modules());
        let (line, mut seen) = tokio::sync::mpsc::channel(1);
        let on_line = |_: mcpd_exec::Line<'_>| {
            line.try_send(()).ok();
        };
        let cancel = async {
            seen.recv().await;
        };
        let run = world.executor.run_until(command, on_line, cancel);
        let outcome = within(run).await.unwrap();
        assert_eq!(outcome.warmth, Some(Warmth::Warm));
        assert_eq!(outcome.ending, Ending::Cancelled);
        assert_eq!(outcome.stdout.head, "on\n");
        world.nothing_left();
    }
}

#[tokio::test]
async fn warm_runs_share_nothing() {
    let world = world();
    let body = "import os, sys, json, random, tempfile\n\
        left = [hasattr(json, 'left'), 'LEFT' in os.environ, os.listdir(tempfile.gettempdir())]\n\
        json.left = os.environ['LEFT'] = '1'\n\
        if os.environ.get('TMPDIR'): open(os.environ['TMPDIR'] + '/left', 'w').close()\n\
        print(left if os.environ.get('TMPDIR') else left[:2], file=sys.stderr)\n\
        print(random.random(), next(tempfile._get_candidate_names()))";
    for level in warm_levels().await {
        if !is_possible(&world, level).await {
            return;
        }
        let command = python(&world, body)
            .env_remove("TMPDIR")
            .sandbox(Sandbox::at(level));
        let mut printed = Vec::new();
        for _ in 0..4 {
            let outcome = run_warm(&world, &command).await.unwrap();
            let told = outcome.stderr.to_text_lossy();
            assert!(
                ["[False, False]\n", "[False, False, []]\n"].contains(&&*told),
                "{told}"
            );
            printed.push(outcome.stdout.to_text_lossy());
        }
        printed.sort();
        printed.dedup();
        assert_eq!(printed.len(), 4, "random numbers of two runs are the same");
    }
}

#[tokio::test]
async fn warm_run_uses_the_script_of_this_moment() {
    let world = world();
    if !is_possible(&world, Level::None).await {
        return;
    }
    let command = python(&world, "print('one')");
    let first = run_warm(&world, &command).await.unwrap();
    assert_eq!(first.stdout.to_text_lossy(), "one\n");
    let file = command.program().to_owned();
    fs::write(&file, format!("#!{}\nprint('two')\n", interpreter())).unwrap();
    let second = run_warm(&world, &command).await.unwrap();
    assert_eq!(second.stdout.to_text_lossy(), "two\n");
    fs::write(&file, "#!/bin/sh\necho three\n").unwrap();
    let command = command.warm(modules());
    let third = within(world.executor.run(command.clone())).await.unwrap();
    assert!(
        matches!(third.warmth, Some(Warmth::Cold(_))),
        "{:?}",
        third.warmth
    );
    assert_eq!(third.stdout.to_text_lossy(), "three\n");
    fs::write(&file, format!("#!{}\n", interpreter())).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let refused = within(world.executor.run(command)).await;
    assert!(
        matches!(refused, Err(StartError::NotExecutable { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn changed_module_is_loaded_anew() {
    let world = world();
    let module = world.directory().join("changing.py");
    fs::write(&module, "value = 'one'").unwrap();
    tokio::time::sleep(ms(50)).await;
    let command = python(&world, "import changing\nprint(changing.value)");
    let command = command
        .env("PYTHONPATH", world.directory())
        .warm(WarmStart::new(["changing".to_owned()]));
    if run_warm_with(&world, &command).await.is_none() {
        return;
    }
    fs::write(&module, "value = 'changed'").unwrap();
    tokio::time::sleep(ms(50)).await;
    let cold = within(world.executor.run(command.clone())).await.unwrap();
    assert!(
        matches!(cold.warmth, Some(Warmth::Cold(_))),
        "{:?}",
        cold.warmth
    );
    assert_eq!(cold.stdout.to_text_lossy(), "changed\n");
    let warm = run_warm_with(&world, &command).await.unwrap();
    assert_eq!(warm.stdout.to_text_lossy(), "changed\n");
}

#[tokio::test]
async fn zygote_that_was_killed_is_started_again() {
    let world = world();
    if !is_possible(&world, Level::None).await {
        return;
    }
    // Its option tells this zygote from those of other tests, its parent from other test runs.
    let killer = "import os, sys\n\
        for p in filter(str.isdigit, os.listdir('/proc')):\n\
        \x20 try: line, status = (open(f'/proc/{p}/{n}').read() for n in ('cmdline', 'status'))\n\
        \x20 except OSError: continue\n\
        \x20 ours = f'PPid:\\t{sys.argv[2]}\\n' in status and int(p) != os.getpid()\n\
        \x20 if ours and '\\0-bB\\0' in line and 'mcpd-warm' in line:\n\
        \x20   os.kill(int(p), int(sys.argv[1])); print('sent')";
    for signal in ["9", "19"] {
        let command = python_with(&world, "-bB", killer)
            .arg(signal)
            .arg(std::process::id().to_string());
        run_warm(&world, &python_with(&world, "-bB", "pass")).await;
        let killed = run_warm(&world, &command).await.unwrap();
        assert_eq!(killed.stdout.to_text_lossy(), "sent\n", "{killed:?}");
        let next = python_with(&world, "-bB", "print('on')");
        let cold = within(world.executor.run(next.clone().warm(modules())))
            .await
            .unwrap();
        assert_eq!(cold.stdout.to_text_lossy(), "on\n");
        assert!(
            matches!(cold.warmth, Some(Warmth::Cold(_))),
            "{signal}: {:?}",
            cold.warmth
        );
        let warm = run_warm_again(&world, &next).await;
        assert_eq!(warm.stdout.to_text_lossy(), "on\n");
    }
}

/// Runs a command until its start is warm again.
async fn run_warm_again(world: &World, command: &Command) -> Outcome {
    for _ in 0..300 {
        let outcome = within(world.executor.run(command.clone().warm(modules())))
            .await
            .unwrap();
        if outcome.warmth == Some(Warmth::Warm) {
            return outcome;
        }
        tokio::time::sleep(ms(50)).await;
    }
    panic!("never warm again");
}

#[tokio::test]
async fn zygote_ends_with_its_executor_and_holds_no_secrets() {
    let world = world();
    if !is_possible(&world, Level::None).await {
        return;
    }
    let command = python(&world, "pass")
        .env("API_KEY", "secret")
        .env("PYTHONIOENCODING", "utf-8");
    run_warm(&world, &command).await.unwrap();
    let zygotes = || {
        let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let own = format!("PPid:\t{}\n", std::process::id());
        let is_ours = |path: &Path| {
            let status = fs::read_to_string(path.join("status")).unwrap_or_default();
            let line = fs::read(path.join("cmdline")).unwrap_or_default();
            status.contains(&own) && String::from_utf8_lossy(&line).contains("mcpd-warm")
        };
        entries
            .map(|entry| entry.path())
            .filter(|path| is_ours(path))
            .collect::<Vec<_>>()
    };
    let found = zygotes();
    assert!(!found.is_empty());
    for zygote in &found {
        // Only root may read it: it is not dumpable.
        let environment = fs::read(zygote.join("environ")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&environment).contains("secret"));
    }
    drop(world);
    // Other tests of this process have their own.
    assert!(found.iter().any(|zygote| !zygote.exists()));
}

#[tokio::test]
async fn run_that_cannot_be_warm_is_cold_and_says_why() {
    let world = world();
    let cold = async |command: Command| {
        let outcome = within(world.executor.run(command.warm(modules())))
            .await
            .unwrap();
        match outcome.warmth {
            Some(Warmth::Cold(reason)) => reason,
            other => panic!("{other:?}"),
        }
    };
    assert!(
        cold(world.sh("true").stdin(""))
            .await
            .contains("does not name Python")
    );
    let mut command = python(&world, "pass");
    command = command.sandbox(Sandbox::none());
    let without = world.command(command.program());
    assert!(cold(without).await.contains("no standard input"));
    if levels().await.any(|level| level == Level::Strict) {
        let strict = python(&world, "pass").sandbox(Sandbox::strict());
        assert!(cold(strict).await.contains("strict"));
    }
    let broken = WarmStart::new(["no_such_module".to_owned()]);
    let command = python(&world, "pass").warm(broken);
    let mut reason = String::new();
    for _ in 0..300 {
        let outcome = within(world.executor.run(command.clone())).await.unwrap();
        assert_eq!(outcome.ending, Ending::Exited(0));
        let Some(Warmth::Cold(why)) = outcome.warmth else {
            panic!("{outcome:?}")
        };
        reason = why;
        if reason.contains("no_such_module") {
            return;
        }
        tokio::time::sleep(ms(50)).await;
    }
    panic!("{reason}");
}
