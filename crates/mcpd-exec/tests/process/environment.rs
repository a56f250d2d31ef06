//! Environment and working directory reach the process literally.

use mcpd_exec::{Command, Sandbox, StartError, Variables};

use crate::support::{World, levels, within};

#[tokio::test]
async fn values_arrive_literally() {
    let world = World::new();
    for value in [
        "() { :;}; echo X",
        "$(id) `id`",
        "two\nlines",
        "O'Brien \"x\"",
        "",
        "é\u{1F600}",
    ] {
        let script = world
            .sh("printf %s \"$MCPD_OPT_x\"")
            .env("MCPD_OPT_x", value);
        let outcome = within(world.executor.run(script)).await.unwrap();
        assert_eq!(outcome.stdout.to_text_lossy(), value);
    }
}

async fn check(change: impl FnOnce(Command) -> Command, expected: &str) {
    let world = World::new();
    let command = change(Command::new("/usr/bin/env"));
    let outcome = within(world.executor.run(command)).await.unwrap();
    let mut lines: Vec<_> = outcome
        .stdout
        .to_text_lossy()
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort();
    assert_eq!(lines.join(" "), expected);
}

#[tokio::test]
async fn cleared_environment_holds_only_what_was_set() {
    check(|env| env.env("A", "1").env_clear().env("B", "2"), "A=1 B=2").await;
}

#[tokio::test]
async fn chosen_variables_are_inherited_and_may_be_overridden() {
    let home = std::env::var("HOME").unwrap();
    let only = Variables::of_this_process(|name| name == "HOME");
    check(|env| env.inherit(&only), &format!("HOME={home}")).await;
    check(|env| env.inherit(&only).env("HOME", "/"), "HOME=/").await;
    check(|env| env.env("HOME", "/").inherit(&only), "HOME=/").await;
    check(|env| env.inherit(&only).env_remove("HOME"), "").await;
}

#[tokio::test]
async fn invalid_variable_names_are_refused() {
    let world = World::new();
    for (name, value) in [("A=B", "1"), ("", "1"), ("A\0", "1"), ("A", "1\0")] {
        let error = world
            .executor
            .run(world.sh("exit 0").env(name, value))
            .await
            .unwrap_err();
        assert!(
            matches!(error, StartError::InvalidEnv { .. }),
            "{name:?}: {error}"
        );
    }
    let error = world
        .executor
        .run(world.sh("exit 0").arg("a").arg("b\0"))
        .await
        .unwrap_err();
    assert!(
        matches!(error, StartError::InvalidArgument { position: 2, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn program_is_found_in_the_path_of_the_process() {
    let world = World::new();
    let script = world.file("#!/bin/sh\necho mine\n", 0o755);
    std::fs::rename(script, world.directory().join("sort")).unwrap();
    let command = world.command("sort").env("PATH", world.directory());
    let outcome = within(world.executor.run(command)).await.unwrap();
    assert_eq!(outcome.stdout.head, "mine\n");
}

#[tokio::test]
async fn directory_is_the_given_one() {
    let world = World::new();
    let directory = world.directory().canonicalize().unwrap();
    let command = world.command("pwd").current_dir(&directory);
    let outcome = within(world.executor.run(command)).await.unwrap();
    assert_eq!(
        outcome.stdout.to_text_lossy().trim_end(),
        directory.to_str().unwrap()
    );
}

#[test]
fn secrets_stay_out_of_the_debug_text() {
    let command = Command::new("x")
        .arg("hush")
        .env("TOKEN", "hush")
        .stdin("hush");
    let text = format!("{command:?}");
    assert!(text.contains("TOKEN") && !text.contains("hush"), "{text}");
}

#[tokio::test]
async fn secrets_stay_out_of_errors() {
    let world = World::new();
    let commands = [
        world.command("/no/such/program"),
        world.command(world.file("echo\n", 0o755)),
        world.command(world.file("#!/no/interpreter\n", 0o755)),
        world.sh("exit").current_dir("/no/such/directory"),
        world.sh("exit").arg(vec!["x"; 200_000].concat()),
        world.sh("exit").env("HUSH", "\0"),
    ];
    for command in commands {
        let command = command.arg("hush").env("TOKEN", "hush").stdin("hush");
        for level in levels().await {
            let command = command.clone().sandbox(Sandbox::at(level));
            let error = within(world.executor.run(command)).await.unwrap_err();
            let text = format!("{error} {error:?}");
            assert!(!text.contains("hush"), "at {level}: {text}");
        }
    }
}
