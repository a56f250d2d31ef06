//! Packages of `cargo xtask dist`: their content, and their installation from the files. Most are
//! made from a stand-in for mcpd; `built.rs` takes the built binary if there is one.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod built;
mod content;
mod install_script;
mod launcher;
mod names;
mod wheel;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use tempfile::TempDir;

/// Version of the workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Target of the binaries here.
const TARGET: &str = if cfg!(target_arch = "aarch64") {
    "aarch64-unknown-linux-gnu"
} else {
    "x86_64-unknown-linux-gnu"
};

/// Packages of one run.
struct Packages {
    directory: TempDir,
}

impl Packages {
    /// Makes packages of a binary.
    fn make(binary: &Path, options: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let output = dist(binary, directory.path(), options);
        assert!(output.status.success(), "{}", transcript(&output));
        Self { directory }
    }

    /// Returns the packages of the stand-in.
    fn of_stand_in() -> &'static Self {
        static PACKAGES: OnceLock<Packages> = OnceLock::new();
        PACKAGES.get_or_init(|| Self::make(stand_in(), &[]))
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the names of the files.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    /// Returns the only file with this end.
    #[track_caller]
    fn file(&self, end: &str) -> PathBuf {
        let names = self.names();
        let mut found = names.iter().filter(|name| name.ends_with(end));
        let name = found
            .next()
            .unwrap_or_else(|| panic!("no {end} in {names:?}"));
        assert_eq!(found.next(), None, "several files with {end}");
        self.path().join(name)
    }

    /// Returns the package of npm that starts the other.
    fn npm_launcher(&self) -> PathBuf {
        let name = names::name("npm", "package");
        self.path().join(format!("{name}-{VERSION}.tgz"))
    }

    /// Returns the package of npm with the binary.
    fn npm_binary(&self) -> PathBuf {
        let end = format!("64-{VERSION}.tgz");
        self.file(&end)
    }
}

/// Runs `cargo xtask dist` on a binary.
fn dist(binary: &Path, out: &Path, options: &[&str]) -> Output {
    let mut command = program(env!("CARGO_BIN_EXE_xtask"));
    command.arg("dist").arg("--binary").arg(binary);
    command.arg("--out").arg(out).args(options);
    command.output().unwrap()
}

/// Returns the stand-in, compiled.
fn stand_in() -> &'static Path {
    static PROGRAM: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, program) = PROGRAM.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("mcpd");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/packaging/stand_in.rs");
        let mut compiler = program("rustc");
        compiler.args(["--edition", "2024", "-C", "strip=symbols", "-o"]);
        run(compiler.arg(&file).arg(source));
        (directory, file)
    });
    program
}

/// Returns a command.
#[expect(clippy::disallowed_methods, reason = "packagers are no scripts")]
fn program(name: impl AsRef<OsStr>) -> Command {
    Command::new(name)
}

/// Returns whether a program is installed.
fn has(name: &str) -> bool {
    program(name).arg("--version").output().is_ok()
}

/// Runs a command that must succeed, and returns its standard output.
#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        transcript(&output)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Returns all that a command printed.
fn transcript(output: &Output) -> String {
    let printed = String::from_utf8_lossy(&output.stdout);
    let log = String::from_utf8_lossy(&output.stderr);
    format!("{}\n{printed}{log}", output.status)
}

/// Returns the names of all files below a directory.
fn files_below(directory: &Path) -> Vec<String> {
    fn add(directory: &Path, above: &str, names: &mut Vec<String>) {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{above}{}", entry.file_name().to_string_lossy());
            if entry.file_type().unwrap().is_dir() {
                add(&entry.path(), &format!("{name}/"), names);
            } else {
                names.push(name);
            }
        }
    }
    let mut names = Vec::new();
    add(directory, "", &mut names);
    names.sort();
    names
}
