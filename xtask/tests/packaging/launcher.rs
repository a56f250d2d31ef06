//! npm packages, installed by npm from their files, and the launcher: it passes on streams,
//! signals, the exit code, and says what to do if the package of the platform is missing.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::OnceLock;

use mcpd_tests::{eventually, skip};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tempfile::TempDir;

use super::names::name;
use super::{Packages, has, program, run};

/// Installs packages from their files, and returns the launcher.
pub(crate) fn install(packages: &Packages, prefix: &Path) -> PathBuf {
    let mut npm = program("npm");
    npm.args([
        "install",
        "--offline",
        "--no-audit",
        "--no-fund",
        "--silent",
    ]);
    npm.arg("--cache").arg(prefix.join("cache"));
    npm.arg("--prefix").arg(prefix);
    run(npm.args([packages.npm_launcher(), packages.npm_binary()]));
    prefix.join("node_modules/.bin/mcpd")
}

/// Returns the installed launcher for the stand-in, if npm is there to install it.
fn launcher() -> Option<&'static Path> {
    static INSTALLED: OnceLock<Option<(TempDir, PathBuf)>> = OnceLock::new();
    let installed = INSTALLED.get_or_init(|| {
        (has("npm") && has("node")).then(|| {
            let place = tempfile::tempdir().unwrap();
            let launcher = install(Packages::of_stand_in(), place.path());
            (place, launcher)
        })
    });
    if installed.is_none() {
        skip("there is no npm to install its packages with");
    }
    installed.as_ref().map(|(_, launcher)| launcher.as_path())
}

#[test]
fn launcher_passes_on_the_exit_code() {
    let Some(launcher) = launcher() else { return };
    for code in [0, 5, 130] {
        let output = program(launcher).args(["exit", &code.to_string()]).output();
        assert_eq!(output.unwrap().status.code(), Some(code));
    }
    assert_eq!(run(program(launcher).arg("--version")), "mcpd 0.0.0\n");
}

#[test]
fn launcher_passes_on_the_streams() {
    let Some(launcher) = launcher() else { return };
    let mut echo = program(launcher);
    echo.arg("echo")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = echo.spawn().unwrap();
    // More than a pipe holds.
    let text = "line\n".repeat(100_000);
    let mut stdin = child.stdin.take().unwrap();
    let sent = text.clone();
    let writer = std::thread::spawn(move || stdin.write_all(sent.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success() && output.stdout == text.as_bytes());
}

/// Starts the launcher, and returns it with the process that it started.
fn start_waiting(launcher: &Path) -> (Child, Pid) {
    let mut wait = program(launcher);
    wait.arg("wait").stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = wait.spawn().unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    let program = Pid::from_raw(line.trim().parse().unwrap()).unwrap();
    (child, program)
}

#[test]
fn launcher_passes_on_signals_and_ends_by_them() {
    let Some(launcher) = launcher() else { return };
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let (mut child, program) = start_waiting(launcher);
        kill_process(Pid::from_child(&child), signal).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(signal.as_raw()));
        assert!(test_kill_process(program).is_err(), "the program is left");
    }
}

#[test]
fn launcher_ends_as_the_program_does() {
    let Some(launcher) = launcher() else { return };
    let (mut child, program) = start_waiting(launcher);
    kill_process(program, Signal::KILL).unwrap();
    let status = eventually("the launcher ends", || child.try_wait().unwrap());
    assert_eq!(status.signal(), Some(Signal::KILL.as_raw()));
}

#[test]
fn launcher_without_its_platform_says_what_to_do() {
    if !has("node") {
        return skip("there is no node to run the launcher with");
    }
    let place = tempfile::tempdir().unwrap();
    run(program("tar")
        .args(["-xzf"])
        .arg(Packages::of_stand_in().npm_launcher())
        .arg("-C")
        .arg(place.path()));
    let output = program("node")
        .arg(place.path().join("package/bin/mcpd.js"))
        .output();
    let output = output.unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        log.starts_with("error: the npm package with mcpd for linux "),
        "{log}"
    );
    let npm = name("npm", "package");
    assert!(
        log.contains(&format!(
            "Install `{npm}` again, with optional dependencies"
        )),
        "{log}"
    );
    assert!(
        log.contains(&format!("{}/{npm}-darwin-arm64", name("npm", "scope"))),
        "{log}"
    );
    fs::remove_dir_all(place.path()).unwrap();
}
