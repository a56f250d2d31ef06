//! Temporary directories: each confined run has one, without anything of another run.

use std::error::Error as _;
use std::fs;
use std::mem;
use std::path::{Path, PathBuf};

use mcpd_exec::{Config, Executor, Level, Outcome, Sandbox};
use tokio::sync::Notify;

use crate::support::{World, eventually, levels, skip, within};

/// Makes a world whose runs have their temporary directories in it, in `temporary`.
fn world() -> World {
    let mut config = Config::default();
    config.reaper = true;
    let mut world = World::new();
    fs::create_dir(world.directory().join("temporary")).unwrap();
    config.temporary = Some(world.directory().join("temporary"));
    world.executor = Executor::new(config).unwrap();
    world
}

async fn run(world: &World, sandbox: Sandbox, body: &str) -> Outcome {
    let outcome = world.run_in(sandbox, world.sh(body)).await;
    assert!(outcome.success(), "{body}: {outcome:?}");
    outcome
}

/// Checks that what one run does to its directory does not affect later runs.
async fn check(body: &str) {
    for level in levels().await.filter(|level| *level > Level::None) {
        let world = world();
        run(&world, Sandbox::at(level), body).await;
        followed_by_clean_runs(&world, level).await;
    }
}

/// Checks this even for a run that may write the parent of all these directories.
async fn check_writing(body: &str) {
    if levels().await.any(|level| level == Level::Guarded) {
        let world = world();
        let writing = Sandbox::guarded().write(world.directory().join("temporary"));
        run(&world, writing, body).await;
        followed_by_clean_runs(&world, Level::Guarded).await;
    }
}

async fn followed_by_clean_runs(world: &World, level: Level) {
    // At `strict` the scripts are visible there too.
    let look =
        "ls -A $TMPDIR | grep -v '^.tmp'; stat -c %a $TMPDIR; echo x > $(mktemp); cat $TMPDIR/*";
    let mode = if level == Level::Strict { 1777 } else { 700 };
    for _ in 0..3 {
        let outcome = run(world, Sandbox::at(level), look).await;
        let text = outcome.stdout.to_text_lossy();
        assert_eq!(text, format!("{mode}\nx\n"), "at {level}");
    }
}

#[tokio::test]
async fn temporary_directory_is_empty_for_the_next_run() {
    check("true").await;
    check("cd $TMPDIR; echo x > file; mkdir -p a/b/c; ln -s / link; mkfifo pipe").await;
    check("cd $TMPDIR; mkdir -p a/b; echo x > a/b/c; chmod 0 a/b a").await;
}

#[tokio::test]
async fn run_can_not_hide_leftover_files() {
    check("t=$(stat -c %y $TMPDIR); echo x > $TMPDIR/x; touch -d \"$t\" $TMPDIR").await;
    check("chmod 777 $TMPDIR").await;
    check("chmod 0 $TMPDIR").await;
    // At `strict` that is the root of the system.
    check("chmod 0 $TMPDIR/.. || test $TMPDIR = /tmp").await;
}

/// Access lists would rule over the files of the next run.
#[tokio::test]
async fn attributes_are_removed_after_a_run() {
    const SET: &str = r#"python3 -c '
import os, struct
entries = b"".join(struct.pack("<HHI", who, 0, 0xffffffff) for who in (1, 4, 0x20))
for place in os.environ["TMPDIR"], os.environ["TMPDIR"] + "/..":
    if place != "/tmp/..":
        os.setxattr(place, "system.posix_acl_default", struct.pack("<I", 2) + entries)
        os.setxattr(place, "user.note", b"x")'"#;
    const LIST: &str = r#"python3 -c 'import os; print(os.listxattr(os.environ["TMPDIR"]))'"#;
    for level in levels().await.filter(|level| *level > Level::None) {
        let world = world();
        let set = world.run_in(Sandbox::at(level), world.sh(SET)).await;
        if !set.success() {
            skip(&format!("attributes of files, at {level}: {set:?}"));
            continue;
        }
        // One of them gets another directory.
        tokio::join!(
            followed_by_clean_runs(&world, level),
            followed_by_clean_runs(&world, level)
        );
        let outcome = run(&world, Sandbox::at(level), LIST).await;
        let kept = outcome.stdout.to_text_lossy();
        let is_none = !kept.contains("posix_acl") && !kept.contains("user.note");
        assert!(is_none, "at {level}: {kept}");
    }
}

#[tokio::test]
async fn removed_directory_is_made_again() {
    check_writing("rm -r $TMPDIR").await;
    check_writing("rm -rf temporary/*").await;
    check_writing("mv $TMPDIR temporary/elsewhere").await;
}

/// Directories that wait to be emptied hold no descriptors, in any number.
#[tokio::test]
async fn run_that_leaves_many_files_does_not_exhaust_the_host() {
    if levels().await.all(|level| level != Level::Guarded) {
        return;
    }
    let world = world();
    let much = "perl -e 'for (1 .. 100_000) { open F, q(>), qq($ENV{TMPDIR}/$_) or die $! }'";
    run(&world, Sandbox::guarded(), much).await;
    let rulesets = || {
        let descriptors = fs::read_dir("/proc/self/fd").unwrap();
        let links = descriptors.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
        let is_ruleset = |link: &PathBuf| link.to_string_lossy().contains("landlock");
        links.filter(is_ruleset).count()
    };
    let before = rulesets();
    for _ in 0..150 {
        run(&world, Sandbox::guarded(), "echo x > $TMPDIR/x").await;
    }
    let more = rulesets().saturating_sub(before);
    assert!(more < 100, "{more}");
}

/// The executor follows no link to files that the run may not touch; it rather starts nothing any
/// more.
#[tokio::test]
async fn link_in_place_of_the_directory_is_not_followed() {
    for body in [
        "rmdir $TMPDIR && ln -s $PWD/precious $TMPDIR",
        "cd temporary; root=$(echo *); mv $root old && ln -s $OLDPWD/precious $root",
    ] {
        let world = world();
        let precious = world.directory().join("precious");
        fs::create_dir(&precious).unwrap();
        fs::write(precious.join("file"), "kept").unwrap();
        let writing = Sandbox::guarded().write(world.directory().join("temporary"));
        run(&world, writing, body).await;
        for _ in 0..3 {
            let attempt = world.sh("echo x > $TMPDIR/x; echo x > precious/x");
            let attempt = attempt
                .current_dir(world.directory())
                .sandbox(Sandbox::guarded());
            within(world.executor.run(attempt)).await.ok();
        }
        assert_eq!(names(&precious), ["file"], "{body}");
    }
}

/// Otherwise the reader would look for the fault in the program.
#[tokio::test]
async fn unusable_temporary_directory_is_named() {
    if levels().await.all(|level| level != Level::Guarded) {
        return;
    }
    let world = World::new();
    let file = world.file("", 0o644);
    for place in [world.directory().join("missing"), file] {
        let mut config = Config::default();
        config.temporary = Some(place.clone());
        let executor = Executor::new(config).unwrap();
        let command = world.command("true").current_dir("/");
        let refused = within(executor.run(command.sandbox(Sandbox::guarded()))).await;
        let reason = refused.unwrap_err().source().unwrap().to_string();
        let expected = format!("create a temporary directory in `{}`: ", place.display());
        assert!(reason.starts_with(&expected), "{reason}");
    }
}

#[tokio::test]
async fn dropped_executor_leaves_no_directory() {
    for level in levels().await {
        let world = world();
        let body = "test -z \"$TMPDIR\" || echo x > $TMPDIR/file";
        run(&world, Sandbox::at(level), body).await;
        let temporary = world.directory().join("temporary");
        drop(world.executor);
        eventually("no directory left", || names(&temporary).is_empty());
    }
}

/// The host may end as soon as it has dropped its executor, and nothing would be ended or removed
/// after that.
#[tokio::test]
async fn dropped_executor_leaves_nothing_to_do() {
    let files = "seq -f \"$TMPDIR/%g\" 300 | xargs touch";
    let daemons = "for i in $(seq 40); do setsid sleep 300 >/dev/null 2>&1 & done; trap '' TERM";
    for level in levels().await.filter(|level| *level > Level::None) {
        let mut world = world();
        let temporary = world.directory().join("temporary");
        let body = format!("{files}; {daemons}; echo started; while :; do sleep 1; done");
        let lasting = world.sh(&body).sandbox(Sandbox::at(level));
        let started = Notify::new();
        tokio::select! {
            outcome = world.executor.run_with(lasting, |_| started.notify_one()) => panic!("{outcome:?}"),
            () = within(started.notified()) => {}
        }
        run(&world, Sandbox::at(level), files).await;
        drop(mem::replace(&mut world.executor, World::new().executor));
        let left = (world.processes(), names(&temporary));
        assert_eq!(left, (0, vec![]), "at {level}");
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[tokio::test]
async fn run_starts_in_its_temporary_directory_if_it_has_one() {
    for level in levels().await {
        let world = world();
        let command = world.sh("ls -A | grep -v '^.tmp'; pwd -P; echo $TMPDIR; echo x > here");
        let command = command
            .current_dir(world.directory())
            .start_in_temporary_directory();
        let outcome = world.run_in(Sandbox::at(level), command).await;
        assert!(outcome.success(), "at {level}: {outcome:?}");
        let text = outcome.stdout.to_text_lossy();
        let lines: Vec<_> = text.lines().collect();
        if level == Level::None {
            let directory = world.directory().canonicalize().unwrap();
            assert!(lines.contains(&directory.to_str().unwrap()), "{text}");
            assert!(world.directory().join("here").exists());
        } else {
            // It is empty, so the first line is its path.
            assert_eq!(lines[0], lines[1], "at {level}");
            assert!(!world.directory().join("here").exists());
        }
    }
}
