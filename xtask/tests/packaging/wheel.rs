//! Python wheel: its record, and its installation by pip.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcpd_tests::skip;
use sha2::{Digest as _, Sha256};
use zip::ZipArchive;

use super::names::name;
use super::{Packages, VERSION, files_below, program, run};

/// Makes a virtual environment, if Python is there for it.
pub(crate) fn environment(place: &Path) -> bool {
    let made = program("python3").args(["-m", "venv"]).arg(place).output();
    let is_made = made.is_ok_and(|output| output.status.success());
    if !is_made {
        skip("there is no python3 with venv and pip to install a wheel with");
    }
    is_made
}

/// Runs pip without a network.
pub(crate) fn pip(environment: &Path, arguments: &[&str]) -> String {
    let mut pip = program(environment.join("bin/python"));
    pip.args(["-m", "pip", "--disable-pip-version-check", "--no-input"]);
    run(pip.args(arguments).env("PIP_NO_INDEX", "1"))
}

#[test]
fn wheel_records_the_sum_of_each_file() {
    let wheel = Packages::of_stand_in().file(".whl");
    let mut archive = ZipArchive::new(File::open(wheel).unwrap()).unwrap();
    let mut read = |name: &str| {
        let mut file = archive.by_name(name).unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        (bytes, file.unix_mode().unwrap() & 0o777)
    };
    let root = format!(
        "{}-{VERSION}",
        name("python", "distribution").replace('-', "_")
    );
    let information = format!("{root}.dist-info");
    let (record, _) = read(&format!("{information}/RECORD"));
    let record = String::from_utf8(record).unwrap();
    let mut files = 0;
    for line in record.lines() {
        let [path, sum, size] = line.split(',').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        files += 1;
        if path.ends_with("/RECORD") {
            assert_eq!((sum, size), ("", ""));
            continue;
        }
        let (bytes, mode) = read(path);
        let expected = format!("sha256={}", URL_SAFE_NO_PAD.encode(Sha256::digest(&bytes)));
        assert_eq!(
            (sum, size),
            (expected.as_str(), bytes.len().to_string().as_str())
        );
        let is_program = path == format!("{root}.data/scripts/mcpd");
        assert_eq!(mode, if is_program { 0o755 } else { 0o644 }, "{path}");
    }
    let (wheel, _) = read(&format!("{information}/WHEEL"));
    assert!(
        String::from_utf8(wheel)
            .unwrap()
            .contains("\nTag: py3-none-manylinux_")
    );
    assert_eq!(files, archive.len());
}

#[test]
fn wheel_is_installed_and_removed_by_pip() {
    let place = tempfile::tempdir().unwrap();
    if !environment(place.path()) {
        return;
    }
    let before = without_caches(place.path());
    let wheel = Packages::of_stand_in().file(".whl");
    pip(
        place.path(),
        &["install", "--quiet", wheel.to_str().unwrap()],
    );
    let distribution = name("python", "distribution");
    let version = run(program(place.path().join("bin/mcpd")).arg("--version"));
    assert_eq!(version, "mcpd 0.0.0\n");
    assert!(
        pip(place.path(), &["show", &distribution]).contains(&format!("\nVersion: {VERSION}\n"))
    );
    pip(place.path(), &["check"]);
    pip(
        place.path(),
        &["uninstall", "--quiet", "--yes", &distribution],
    );
    assert_eq!(without_caches(place.path()), before);
    fs::remove_dir_all(place.path()).unwrap();
}

/// Returns the files below a directory without those that Python compiles on its own.
fn without_caches(directory: &Path) -> Vec<String> {
    let mut files = files_below(directory);
    files.retain(|name| !name.contains("__pycache__"));
    files
}
