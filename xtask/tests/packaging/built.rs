//! Built mcpd in its packages: from the file of each package to the answer of a script, timed. The
//! Debian package is unpacked beside this system, not installed, so its removal is not tried.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use mcpd_tests::skip;

use super::{Packages, TARGET, VERSION, has, launcher, program, run, wheel};

/// Returns the binary beside these tests without its symbols, if it has been built.
fn built(place: &Path) -> Option<PathBuf> {
    let tests = std::env::current_exe().unwrap();
    let binary = tests.ancestors().nth(2).unwrap().join("mcpd");
    if !binary.exists() {
        skip("mcpd is not built beside the tests: `cargo build -p mcpd-cli`");
        return None;
    }
    let stripped = place.join("mcpd");
    let strip = program("strip")
        .arg("-o")
        .args([&stripped, &binary])
        .output();
    if !strip.is_ok_and(|output| output.status.success()) {
        skip("there is no strip, and mcpd with its symbols is too large to package quickly");
        return None;
    }
    Some(stripped)
}

/// Creates a script and calls it, and prints the time since the beginning past the harness, which
/// swallows it.
#[track_caller]
fn check_call(package: &str, program_file: &Path, place: &Path, start: Instant) {
    let scripts = tempfile::tempdir_in(place).unwrap();
    let script = scripts.path().join("hello");
    let command = |name: &str| {
        let mut command = program(program_file);
        command.arg(name).env("XDG_STATE_HOME", place.join("state"));
        command
    };
    run(command("new").arg(&script));
    let mut call = command("call");
    call.arg(scripts.path()).args(["hello", "name=World"]);
    assert_eq!(run(&mut call), "Hello, World!\n");
    let time = start.elapsed().as_secs_f32();
    let line = format!("{package}: from the file to the first answer in {time:.1} s\n");
    io::stderr().write_all(line.as_bytes()).ok();
}

#[test]
fn built_mcpd_answers_from_each_package() {
    let place = tempfile::tempdir().unwrap();
    let Some(binary) = built(place.path()) else {
        return;
    };
    let packages = Packages::make(&binary, &[]);

    let start = Instant::now();
    let archive = format!("mcpd-{VERSION}-{TARGET}");
    let mut tar = program("tar");
    tar.arg("-xzf")
        .arg(packages.file(&format!("{archive}.tar.gz")));
    run(tar.arg("-C").arg(place.path()));
    let installed = place.path().join(archive).join("mcpd");
    check_call("archive", &installed, place.path(), start);

    if has("dpkg-deb") {
        let (start, root) = (Instant::now(), place.path().join("debian"));
        run(program("dpkg-deb")
            .arg("-x")
            .args([&packages.file(".deb"), &root]));
        check_call(
            "Debian package",
            &root.join("usr/bin/mcpd"),
            place.path(),
            start,
        );
    } else {
        skip("there is no dpkg-deb to unpack the Debian package with");
    }
    let (start, environment) = (Instant::now(), place.path().join("venv"));
    if wheel::environment(&environment) {
        let file = packages.file(".whl");
        wheel::pip(
            &environment,
            &["install", "--quiet", file.to_str().unwrap()],
        );
        check_call("wheel", &environment.join("bin/mcpd"), place.path(), start);
    }
    if has("npm") && has("node") {
        let (start, prefix) = (Instant::now(), place.path().join("npm"));
        fs::create_dir(&prefix).unwrap();
        let launcher = launcher::install(&packages, &prefix);
        check_call("npm", &launcher, place.path(), start);
    } else {
        skip("there is no npm to install its packages with");
    }
}
