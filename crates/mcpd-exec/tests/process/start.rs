//! Start errors name their cause; nothing is guessed, and nothing is handed to a shell.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcpd_exec::{Command, Sandbox, StartError};

use crate::support::{World, config, levels, skip, within};

/// Runs the command at each level and compares the kind and the text of the error; `@` stands for
/// the program.
async fn check(world: &World, command: Command, kind: &str, text: &str) {
    let program = command.program().display().to_string();
    for level in levels().await {
        let command = command.clone().sandbox(Sandbox::at(level));
        let error = within(world.executor.run(command)).await.unwrap_err();
        let debug = format!("{error:?}");
        let found = debug.split([' ', '{']).next();
        assert_eq!(found, Some(kind), "at {level}: {debug}");
        assert_eq!(error.to_string().replace(&program, "@"), text);
    }
    world.nothing_left();
}

async fn check_file(bytes: &str, mode: u32, kind: &str, text: &str) {
    let world = World::new();
    let file = world.file(bytes, mode);
    check(&world, world.command(file), kind, text).await;
}

const NO_SHEBANG: &str = "start `@`: it has no `#!` line and is not a binary of this system; add a first line such as `#!/bin/sh`";
const NOT_EXECUTABLE: &str =
    "start `@`: permission denied; make it executable (chmod +x), and its directories accessible";

#[tokio::test]
async fn script_without_shebang() {
    check_file("echo hello\n", 0o755, "NoShebang", NO_SHEBANG).await;
}

#[tokio::test]
async fn empty_file() {
    check_file("", 0o755, "NoShebang", NO_SHEBANG).await;
}

#[tokio::test]
async fn byte_order_mark_before_the_shebang() {
    let text = "start `@`: a byte order mark precedes its `#!` line; save it as UTF-8 without BOM";
    check_file(
        "\u{feff}#!/bin/sh\necho hello\n",
        0o755,
        "ByteOrderMark",
        text,
    )
    .await;
}

#[tokio::test]
async fn binary_of_another_processor() {
    let text = "start `@`: it is neither a binary of this system and processor nor a UTF-8 text with a `#!` line";
    check_file("\x7fELF\0\0", 0o755, "ForeignBinary", text).await;
}

#[tokio::test]
async fn interpreter_that_is_cut_off() {
    let text = "start `@`: its `#!` line names no interpreter within the first 256 bytes; use a shorter path";
    let long = format!("#!/usr/bin{}/env sh\n", "/.".repeat(150));
    check_file(&long, 0o755, "NoInterpreter", text).await;
    check_file("#!\necho hello\n", 0o755, "NoInterpreter", text).await;
    let arguments = format!("#!/bin/sh {}\nexit 0\n", "-".repeat(300));
    let world = World::new();
    let outcome = within(
        world
            .executor
            .run(world.command(world.file(arguments, 0o755))),
    )
    .await;
    assert!(outcome.is_ok(), "only its arguments are cut: {outcome:?}");
}

#[tokio::test]
async fn interpreter_that_is_no_program() {
    let world = World::new();
    let interpreter = world.file("echo hello\n", 0o755);
    let interpreter = interpreter.display();
    let script = world.file(format!("#!{interpreter}\n"), 0o755);
    let text = format!(
        "start `@`: its interpreter `{interpreter}` cannot be executed; install it or fix the `#!` line"
    );
    check(&world, world.command(script), "BadInterpreter", &text).await;
}

/// Shells do that too.
#[cfg(all(target_os = "linux", not(mcpd_portable)))]
#[tokio::test]
async fn program_executable_by_others_only_is_passed_over() {
    use crate::host::{again_as_stranger, is_again};

    if crate::support::is_root() && !is_again() {
        let itself = "start::program_executable_by_others_only_is_passed_over";
        return again_as_stranger(itself);
    }
    let world = World::new();
    let directories = [("first", 0o011), ("second", 0o755)].map(|(name, mode)| {
        let directory = world.directory().join(name);
        fs::create_dir(&directory).unwrap();
        let tool = world.file(format!("#!/bin/sh\necho {name}\n"), mode);
        fs::rename(tool, directory.join("tool")).unwrap();
        directory
    });
    let path = std::env::join_paths(directories).unwrap();
    let outcome = within(world.executor.run(world.command("tool").env("PATH", path))).await;
    assert_eq!(outcome.unwrap().stdout.to_text_lossy(), "second\n");
}

#[tokio::test]
async fn carriage_return_after_the_interpreter() {
    let text = "start `@`: its `#!` line ends with a carriage return after `/bin/sh`; save it with Unix line endings";
    check_file("#!/bin/sh\r\necho\r\n", 0o755, "BadInterpreter", text).await;
}

#[tokio::test]
async fn missing_interpreter() {
    let text = "start `@`: its interpreter `/no/python9` cannot be executed; install it or fix the `#!` line";
    check_file("#!/no/python9 -u\n", 0o755, "BadInterpreter", text).await;
}

#[tokio::test]
async fn interpreter_that_is_not_executable() {
    let text = "start `@`: its interpreter `/etc/passwd` cannot be executed; install it or fix the `#!` line";
    check_file("#! /etc/passwd\n", 0o755, "BadInterpreter", text).await;
}

#[tokio::test]
async fn file_that_is_not_executable() {
    check_file("#!/bin/sh\n", 0o644, "NotExecutable", NOT_EXECUTABLE).await;
}

#[tokio::test]
async fn directory() {
    let world = World::new();
    let command = world.command(world.directory());
    check(
        &world,
        command,
        "IsDirectory",
        "start `@`: it is a directory",
    )
    .await;
}

#[tokio::test]
async fn named_pipe() {
    let world = World::new();
    let pipe = world.directory().join("pipe");
    let mkfifo = world.command("mkfifo").args(["-m", "755"]).arg(&pipe);
    assert!(within(world.executor.run(mkfifo)).await.unwrap().success());
    check(&world, world.command(pipe), "NotExecutable", NOT_EXECUTABLE).await;
}

#[tokio::test]
async fn file_that_is_not_there() {
    let world = World::new();
    for program in [
        "/no/such/file",
        "/etc/passwd/x",
        "no-such-command-anywhere",
        "./no-such-file",
    ] {
        let error = within(world.executor.run(world.command(program)))
            .await
            .unwrap_err();
        assert!(matches!(error, StartError::NotFound { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn symbolic_links_without_end() {
    let world = World::new();
    let link = world.directory().join("loop");
    symlink(&link, &link).unwrap();
    check(
        &world,
        world.command(link),
        "SymlinkLoop",
        "start `@`: its symbolic links form a loop",
    )
    .await;
}

#[tokio::test]
async fn dangling_link() {
    let world = World::new();
    let link = world.directory().join("link");
    symlink("nowhere", &link).unwrap();
    check(
        &world,
        world.command(link),
        "NotFound",
        "start `@`: no such file or command",
    )
    .await;
}

#[tokio::test]
async fn arguments_too_large() {
    let world = World::new();
    let text =
        "start `@`: arguments and environment are too large; pass large values on standard input";
    let command = world.sh("exit 0").arg("x".repeat(200_000));
    check(&world, command, "ArgumentsTooLarge", text).await;
    let command = world.sh("exit 0").env("X", "x".repeat(200_000));
    check(&world, command, "ArgumentsTooLarge", text).await;
}

#[tokio::test]
async fn directory_to_start_in_that_is_gone() {
    let world = World::new();
    let gone = world.directory().join("gone");
    let text = format!(
        "enter the directory `{}`: it is missing or not accessible",
        gone.display()
    );
    check(
        &world,
        world.sh("exit 0").current_dir(&gone),
        "CwdMissing",
        &text,
    )
    .await;
}

#[tokio::test]
async fn impossible_file_names_are_not_found() {
    let world = World::new();
    let text = "start `@`: no such file or command";
    let command = world.command("/bin/\0sh");
    check(&world, command, "NotFound", text).await;
    let text = "enter the directory `/\0`: it is missing or not accessible";
    let command = world.sh("exit 0").current_dir("/\0");
    check(&world, command, "CwdMissing", text).await;
}

#[tokio::test]
async fn file_that_stays_open_for_writing() {
    let world = World::new();
    let file = world.file("#!/bin/sh\n", 0o755);
    let writer = OpenOptions::new().append(true).open(&file).unwrap();
    let text = "start `@`: it is open for writing; try again when it is complete";
    check(&world, world.command(&file), "TextBusy", text).await;
    drop(writer);
    assert!(
        within(world.executor.run(world.command(&file)))
            .await
            .unwrap()
            .success()
    );
}

#[tokio::test]
async fn missing_dynamic_loader() {
    let world = World::new();
    let mut bytes = fs::read("/bin/true").unwrap();
    let name = b"/lib64/ld-linux-x86-64.so.2";
    let Some(at) = bytes.windows(name.len()).position(|window| window == name) else {
        return skip("a missing dynamic loader: programs here have another one than is broken");
    };
    bytes[at + 1] = b'X';
    let file = world.file(bytes, 0o755);
    let text =
        "start `@`: its dynamic loader is missing; it was built for another system or C library";
    check(&world, world.command(file), "NoLoader", text).await;
}

/// Writes a file and runs it, over and over, while another thread starts processes that briefly
/// inherit the open file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn file_just_written_can_be_run() {
    let world = World::new();
    let failures = AtomicUsize::new(0);
    let storm = |name: &'static str| {
        let (world, failures) = (&world, &failures);
        async move {
            for _ in 0..200 {
                let path = world.directory().join(name);
                write_anew(&path);
                if within(world.executor.run(world.command(&path)))
                    .await
                    .is_err()
                {
                    failures.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    };
    tokio::join!(storm("a"), storm("b"), storm("c"));
    assert_eq!(failures.into_inner(), 0);
    world.nothing_left();
}

fn write_anew(path: &Path) {
    fs::remove_file(path).ok();
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o755)
        .open(path)
        .unwrap();
    file.write_all(b"#!/bin/sh\nexit 0\n").unwrap();
}

/// Holds the only slot, changes the script that is queued for it, and returns the result of that
/// run.
async fn changed_while_queued(change: impl FnOnce(&Path)) -> Result<String, StartError> {
    let world = World::with(config(1, 8));
    let go = world.directory().join("go");
    let holder = world
        .sh("until test -e \"$1\"; do sleep 0.01; done")
        .arg(&go);
    let script = world.file("#!/bin/sh\necho old\n", 0o755);
    let wait = async {
        let run = world.executor.run(world.command(&script));
        let change = async {
            while world.executor.queue_length() == 0 {
                tokio::task::yield_now().await;
            }
            change(&script);
            fs::write(&go, "").unwrap();
        };
        tokio::join!(run, change).0
    };
    let (held, outcome) = within(async { tokio::join!(world.executor.run(holder), wait) }).await;
    assert!(held.unwrap().success());
    world.nothing_left();
    outcome.map(|outcome| outcome.stdout.to_text_lossy())
}

#[tokio::test]
async fn script_deleted_while_it_waits() {
    let outcome = changed_while_queued(|script| fs::remove_file(script).unwrap()).await;
    assert!(
        matches!(outcome, Err(StartError::NotFound { .. })),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn script_replaced_while_it_waits() {
    let outcome = changed_while_queued(|script| {
        fs::write(script.with_extension("new"), "#!/bin/sh\necho new\n").unwrap();
        fs::set_permissions(
            script.with_extension("new"),
            fs::metadata(script).unwrap().permissions(),
        )
        .unwrap();
        fs::rename(script.with_extension("new"), script).unwrap();
    })
    .await;
    assert_eq!(outcome.unwrap(), "new\n");
}

#[tokio::test]
async fn precondition_is_checked_before_each_start_and_keeps_a_process_from_it() {
    let world = World::new();
    let marker = world.directory().join("started");
    let checks = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&checks);
    let command = world.sh(&format!("touch '{}'", marker.display()));
    let command = command.precondition(Arc::new(move || {
        match counted.fetch_add(1, Ordering::Relaxed) {
            0 => Err("not yet".to_owned()),
            _ => Ok(()),
        }
    }));
    let refused = within(world.executor.run(command.clone())).await;
    let reason = refused.unwrap_err().to_string();
    assert_eq!(reason, "start a process: not yet");
    assert!(!marker.exists());
    let outcome = within(world.executor.run(command)).await;
    assert!(outcome.unwrap().success() && marker.exists());
    assert_eq!(checks.load(Ordering::Relaxed), 2);
    world.nothing_left();
}
