//! Environment of one framework below `target/interop`: its packages, and its driver.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use super::{Framework, Language};

/// Virtual environment or directory of packages. Deleted on drop, unless it is kept.
#[derive(Debug)]
pub(super) struct Environment {
    directory: PathBuf,
    interpreter: PathBuf,
    driver: PathBuf,
    keep: bool,
}

impl Environment {
    /// Installs the packages of a framework, unless they are installed.
    ///
    /// # Errors
    ///
    /// Fails if they are not available.
    pub(super) fn install(framework: &Framework, home: &Path, keep: bool) -> anyhow::Result<Self> {
        let name = framework.name.to_lowercase().replace([' ', '/'], "-");
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/interop");
        fs::create_dir_all(&target)?;
        let directory = fs::canonicalize(target)?.join(name);
        let wanted = framework.packages.join("\n");
        let mark = directory.join("installed");
        let is_there = fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted);
        let environment = match framework.language {
            Language::Python => Self::python(framework, home, directory, keep),
            Language::Node => Self::node(framework, home, directory, keep),
        };
        if !is_there {
            environment.fill(framework)?;
            fs::write(mark, wanted)?;
        }
        if framework.language == Language::Node {
            // Modules are looked up beside the program, so it runs as a copy next to them.
            for entry in fs::read_dir(home.join("node"))? {
                let entry = entry?;
                fs::copy(entry.path(), environment.directory.join(entry.file_name()))?;
            }
        }
        Ok(environment)
    }

    fn python(framework: &Framework, home: &Path, directory: PathBuf, keep: bool) -> Self {
        Self {
            interpreter: directory.join("bin/python"),
            driver: home.join("python").join(&framework.driver),
            directory,
            keep,
        }
    }

    fn node(framework: &Framework, _: &Path, directory: PathBuf, keep: bool) -> Self {
        Self {
            interpreter: "node".into(),
            driver: directory.join(&framework.driver),
            directory,
            keep,
        }
    }

    fn fill(&self, framework: &Framework) -> anyhow::Result<()> {
        if self.directory.exists() {
            fs::remove_dir_all(&self.directory)?;
        }
        match framework.language {
            Language::Python => {
                let venv = ["-m", "venv"];
                run(program("python3").args(venv).arg(&self.directory))?;
                let pip = [
                    "-m",
                    "pip",
                    "install",
                    "--quiet",
                    "--no-cache-dir",
                    "--disable-pip-version-check",
                ];
                run(program(&self.interpreter)
                    .args(pip)
                    .args(&framework.packages))
            }
            Language::Node => {
                fs::create_dir_all(&self.directory)?;
                let package = r#"{"private": true, "type": "module"}"#;
                fs::write(self.directory.join("package.json"), package)?;
                let npm = [
                    "install",
                    "--silent",
                    "--no-audit",
                    "--no-fund",
                    "--ignore-scripts",
                    "--prefix",
                ];
                run(program("npm")
                    .args(npm)
                    .arg(&self.directory)
                    .args(&framework.packages))
            }
        }
    }

    /// Runs the driver, and returns its output.
    ///
    /// # Errors
    ///
    /// Fails if it can't be started.
    pub(super) fn drive(&self, target: &[String]) -> anyhow::Result<String> {
        let log = fs::File::create(self.directory.join("stderr"))?;
        let output = program(&self.interpreter)
            .arg(&self.driver)
            .args(target)
            .current_dir(&self.directory)
            // The programs must not write to the repository.
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::null())
            .stderr(log)
            .output()
            .context("the driver doesn't start")?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        if !self.keep {
            // The next run replaces any remains.
            fs::remove_dir_all(&self.directory).ok();
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "installers and drivers are no scripts"
)]
fn program(name: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(name)
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}
