//! Home directories: a confined process sees only entries that are not kept by programs, tool
//! chains, and declared paths, by any name. Each attempt is also made unconfined, where it
//! succeeds.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use mcpd_exec::{Level, Sandbox};

use crate::support::{World, levels};

/// Makes a home with entries of each kind, beside the scripts.
fn world() -> World {
    let world = World::new();
    let home = home(&world);
    for file in [
        ".agent/token",
        ".cargo/bin/tool",
        ".cargo/credentials.toml",
        ".config/app/key",
        ".config/git/config",
        ".gitconfig",
        "dotfiles/agentrc",
        "notes/text",
        "snap/app/key",
    ] {
        let file = home.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "seen\n").unwrap();
    }
    symlink("dotfiles/agentrc", home.join(".agentrc")).unwrap();
    world
}

fn home(world: &World) -> PathBuf {
    world.directory().join("home")
}

fn sandbox(world: &World, level: Level) -> Sandbox {
    let mut sandbox = Sandbox::at(level);
    sandbox.homes = vec![home(world)];
    sandbox.hide(home(world).join(".cargo/credentials.toml"))
}

/// Returns whether a script reads `file` below the home, at each level.
async fn check(file: &str, change: impl Fn(&World, Sandbox) -> Sandbox, expected: [bool; 3]) {
    for level in levels().await {
        let world = world();
        let sandbox = change(&world, sandbox(&world, level));
        let outcome = world
            .run_in(sandbox, world.sh(&format!("cat home/{file}")))
            .await;
        let is_seen = outcome.stdout.to_text_lossy() == "seen\n";
        let expected = expected[level as usize];
        assert_eq!(is_seen, expected, "{file} at {level}: {outcome:?}");
    }
}

#[tokio::test]
async fn home_hides_kept_entries() {
    let unchanged = |_: &World, sandbox| sandbox;
    for file in [
        ".agent/token",
        ".agentrc",
        "dotfiles/agentrc",
        ".cargo/credentials.toml",
        ".config/app/key",
        "snap/app/key",
        "notes/../.agent/token",
    ] {
        check(file, unchanged, [true, false, false]).await;
    }
}

#[tokio::test]
async fn home_shows_tool_chains_and_plain_entries_at_guarded() {
    let unchanged = |_: &World, sandbox| sandbox;
    for file in [
        ".cargo/bin/tool",
        ".config/git/config",
        ".gitconfig",
        "notes/text",
    ] {
        check(file, unchanged, [true, true, false]).await;
    }
}

#[tokio::test]
async fn declared_entries_of_a_home_are_readable() {
    let read = |path: &'static str| {
        move |world: &World, sandbox: Sandbox| sandbox.read(home(world).join(path))
    };
    check(".agent/token", read(".agent"), [true; 3]).await;
    check(".agentrc", read(".agentrc"), [true; 3]).await;
    check("notes/text", read("notes/text"), [true; 3]).await;
    let credentials = ".cargo/credentials.toml";
    check(credentials, read(".cargo"), [true, false, false]).await;
    check(credentials, read(credentials), [true; 3]).await;
    check("notes/text", read(""), [true; 3]).await;
    check(".agent/token", read(""), [true, false, false]).await;
}

#[tokio::test]
async fn writable_home_hides_kept_entries() {
    let write = |world: &World, sandbox: Sandbox| sandbox.write(home(world));
    check("notes/text", write, [true; 3]).await;
    check(".agent/token", write, [true, false, false]).await;
    check(".agentrc", write, [true, false, false]).await;
}

#[tokio::test]
async fn home_as_starting_directory_hides_kept_entries() {
    for level in levels().await {
        let world = world();
        let script = world.sh("cat notes/text .agent/token");
        let script = script
            .current_dir(home(&world))
            .sandbox(sandbox(&world, level));
        let outcome = world.executor.run(script).await.unwrap();
        let seen = outcome.stdout.to_text_lossy();
        let expected = if level == Level::None {
            "seen\nseen\n"
        } else {
            "seen\n"
        };
        assert_eq!(seen, expected, "at {level}: {outcome:?}");
    }
}

/// Scripts are also served from below a home, by programs that keep them there.
#[tokio::test]
async fn program_in_a_kept_entry_runs_and_reads_its_neighbours() {
    for level in levels().await {
        let world = world();
        let script = home(&world).join(".config/app/script");
        fs::rename(
            world.sh("cat \"${0%/*}/key\" .agent/token").program(),
            &script,
        )
        .unwrap();
        let script = world.command(script).current_dir(world.directory());
        let outcome = world
            .executor
            .run(script.sandbox(sandbox(&world, level)))
            .await;
        assert_eq!(outcome.unwrap().stdout.head, "seen\n", "at {level}");
    }
}

/// A script may write there, and plant a link for the next one.
#[tokio::test]
async fn link_that_a_script_has_made_shows_nothing() {
    for level in levels().await {
        let world = world();
        let home = home(&world);
        fs::remove_dir_all(home.join(".config/git")).unwrap();
        let sandbox = || {
            let sandbox = sandbox(&world, level).write(home.join(".config"));
            sandbox.read(home.join(".config/other"))
        };
        let make = "cd home/.config && ln -s ../.agent git && ln -s ../.agent other";
        let made = world.run_in(sandbox(), world.sh(make)).await;
        assert!(made.success(), "at {level}: {made:?}");
        let script = world.sh("cat home/.config/git/token home/.config/other/token");
        let outcome = world.run_in(sandbox(), script).await;
        let is_seen = outcome.stdout.to_text_lossy().contains("seen");
        assert_eq!(is_seen, level == Level::None, "at {level}: {outcome:?}");
    }
}

#[tokio::test]
async fn entry_that_appears_is_hidden_from_the_next_run() {
    for level in levels().await.filter(|level| *level > Level::None) {
        let world = world();
        let read = async || {
            let script = world.sh("cat home/.later");
            world
                .run_in(sandbox(&world, level), script)
                .await
                .stdout
                .to_text_lossy()
        };
        assert_eq!(read().await, "");
        fs::write(home(&world).join(".later"), "seen\n").unwrap();
        assert_eq!(read().await, "", "at {level}");
    }
}
