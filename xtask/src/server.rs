//! Server under test, and its usage of resources.

use std::fmt;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use rustix::process::{Gid, Pid, Signal, Uid, geteuid, kill_process};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;

use crate::cores::ForServer;
use crate::process;

/// Time limit for its start and its end, also under callgrind on a busy machine.
const LIFECYCLE_TIMEOUT: Duration = Duration::from_secs(120);

/// Memory that an allocator may keep after an attack, in KiB.
const ALLOCATOR_ALLOWANCE: u64 = 32 * 1024;

/// Returns the user for servers started by root: an ordinary user, as in most deployments, who can
/// read fewer of the files that scripts must not read. Without root, servers keep the user who
/// starts them.
fn user() -> Option<u32> {
    const NOBODY: u32 = 65534;
    geteuid().is_root().then_some(NOBODY)
}

/// Calls `start` on a thread whose child processes are those of the user for servers.
///
/// A command with a user of its own would be started by a fork, which takes longer the more memory
/// this process has. The peers are started without one.
///
/// # Errors
///
/// Fails as `start` does, or if the thread can't become that user.
pub(crate) fn as_user<T: Send>(
    start: impl FnOnce() -> anyhow::Result<T> + Send,
) -> anyhow::Result<T> {
    let runtime = Handle::current();
    let on_thread = || {
        let _entered = runtime.enter();
        if let Some(user) = user() {
            set_thread_groups(&[])?;
            set_thread_gid(Gid::from_raw(user))?;
            set_thread_uid(Uid::from_raw(user))?;
        }
        start()
    };
    thread::scope(|scope| scope.spawn(on_thread).join()).expect("it does not panic")
}

/// Script that greets.
pub(crate) const GREET: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Greets someone by name."}'
  echo '{"name": {"description": "Whom to greet.", "required": true, "value_type": "string"}}' >&2
  exit 0
fi
printf 'Hello, %s!' "$MCPD_OPT_name"
"#;

/// `mcpd serve` in a directory of its own. It is killed on drop.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    home: Home,
    address: String,
    token: String,
}

/// Resources of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Resident memory of the server, in KiB.
    pub(crate) memory: u64,
    pub(crate) descriptors: usize,
    pub(crate) threads: usize,
    /// The server and all its descendants.
    pub(crate) processes: usize,
    /// Temporary files and directories of runs.
    pub(crate) temporaries: usize,
}

impl Usage {
    /// Returns whether this is at most `rest`, with allowances for the allocator and for threads
    /// and descriptors that fluctuate.
    pub(crate) fn is_within(self, rest: Self) -> bool {
        self.memory <= rest.memory + ALLOCATOR_ALLOWANCE
            && self.descriptors <= rest.descriptors + 2
            && self.threads <= rest.threads + 2
            && self.processes <= rest.processes
            && self.temporaries <= rest.temporaries
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            memory,
            descriptors,
            threads,
            processes,
            temporaries,
        } = self;
        write!(
            f,
            "{memory} KiB, {descriptors} descriptors, {threads} threads, {processes} processes, {temporaries} temporary files"
        )
    }
}

/// Builds mcpd for a siege or a soak.
///
/// # Errors
///
/// Fails if it can't be built.
pub(crate) fn build() -> anyhow::Result<PathBuf> {
    Ok(build_packages("bench", &["mcpd-cli"])?.join("mcpd"))
}

/// Builds the programs of these packages, and returns their directory.
///
/// # Errors
///
/// Fails if they can't be built.
pub(crate) fn build_packages(profile: &str, packages: &[&str]) -> anyhow::Result<PathBuf> {
    build_with(profile, packages, &[])
}

/// Builds the programs of these packages with further options of cargo, and returns their
/// directory.
///
/// # Errors
///
/// Fails if they can't be built.
#[expect(clippy::disallowed_methods, reason = "cargo is no script")]
pub(crate) fn build_with(
    profile: &str,
    packages: &[&str],
    options: &[&str],
) -> anyhow::Result<PathBuf> {
    let mut cargo = std::process::Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--profile", or_dev(profile)]);
    cargo.args(options);
    for package in packages {
        cargo.args(["--package", package]);
    }
    let status = cargo.status().context("cargo doesn't start")?;
    ensure!(status.success(), "{} can't be built", packages.join(", "));
    let mut directory = std::env::current_exe().context("a running program has a path")?;
    directory.pop();
    // The profiles `bench` and `release` share the directory of this program, as `dev` does.
    if !matches!(or_dev(profile), "dev" | "bench" | "release") {
        directory.set_file_name(profile);
    }
    Ok(directory)
}

/// Returns the profile to build with: `dev` if this program itself was built with it.
pub(crate) fn or_dev(profile: &str) -> &str {
    if cfg!(debug_assertions) {
        "dev"
    } else {
        profile
    }
}

/// Directory of one server, with its scripts and its configuration.
#[derive(Debug)]
pub(crate) struct Home(TempDir);

impl Home {
    /// Writes these scripts and this configuration.
    ///
    /// # Errors
    ///
    /// Fails if a file can't be written.
    pub(crate) fn new(scripts: &[(&str, &str)], configuration: &str) -> anyhow::Result<Self> {
        let home = Self(tempfile::tempdir()?);
        chown(home.path(), user(), user())?;
        for name in ["scripts", "state", "tmp", "home"] {
            let directory = home.path().join(name);
            fs::create_dir(&directory)?;
            chown(directory, user(), user())?;
        }
        for (name, text) in scripts {
            home.add(name, text)?;
        }
        fs::write(home.path().join("mcpd.toml"), configuration)?;
        Ok(home)
    }

    /// Writes a script.
    ///
    /// # Errors
    ///
    /// Fails if it can't be written.
    pub(crate) fn add(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let file = self.scripts().join(name);
        fs::write(&file, text)?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
        Ok(())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the directory of the scripts.
    pub(crate) fn scripts(&self) -> PathBuf {
        self.path().join("scripts")
    }

    /// Returns a command of mcpd with these scripts and this configuration, to be started
    /// [as the user for servers](as_user).
    pub(crate) fn command(&self, binary: &Path, subcommand: &str) -> Command {
        let mut command = Command::new(binary);
        command
            .args([subcommand, "scripts", "--config", "mcpd.toml"])
            .current_dir(self.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path().join("home"))
            .env("XDG_STATE_HOME", self.path().join("state"))
            .env("TMPDIR", self.path().join("tmp"))
            .kill_on_drop(true);
        command
    }
}

impl Server {
    /// Serves these scripts with this configuration.
    ///
    /// # Errors
    ///
    /// Fails if the server doesn't start.
    pub(crate) async fn start(
        binary: &Path,
        scripts: &[(&str, &str)],
        configuration: &str,
    ) -> anyhow::Result<Self> {
        Self::serve(binary, Home::new(scripts, configuration)?, &[]).await
    }

    /// Serves the scripts of this directory, with more arguments.
    ///
    /// # Errors
    ///
    /// Fails if the server doesn't start.
    pub(crate) async fn serve(
        binary: &Path,
        home: Home,
        arguments: &[&str],
    ) -> anyhow::Result<Self> {
        let mut command = home.command(binary, "serve");
        command
            .args(["--port", "0"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(home.path().join("log"))?);
        let for_server = ForServer::new()?;
        let child = as_user(|| command.spawn().context("mcpd doesn't start"))?;
        drop(for_server);
        let mut server = Self {
            child,
            home,
            address: String::new(),
            token: String::new(),
        };
        let started = tokio::time::timeout(LIFECYCLE_TIMEOUT, server.listening()).await;
        started.context("mcpd doesn't listen")??;
        Ok(server)
    }

    async fn listening(&mut self) -> anyhow::Result<()> {
        loop {
            let log = self.log()?;
            if log.contains("  tools: ") {
                let address = log.split("http://").nth(1).context("no address")?;
                self.address = address.split('/').next().unwrap_or_default().to_owned();
                let token = self.home.path().join("state/mcpd/agent-token");
                fs::read_to_string(token)?
                    .trim()
                    .clone_into(&mut self.token);
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("{status}: {log}");
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Writes a script.
    ///
    /// # Errors
    ///
    /// Fails if it can't be written.
    pub(crate) fn add(&self, name: &str, text: &str) -> anyhow::Result<()> {
        self.home.add(name, text)
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Returns its log.
    ///
    /// # Errors
    ///
    /// Fails if the file can't be read.
    pub(crate) fn log(&self) -> anyhow::Result<String> {
        Ok(fs::read_to_string(self.home.path().join("log"))?)
    }

    /// Returns the path of a script.
    pub(crate) fn script(&self, name: &str) -> PathBuf {
        self.home.scripts().join(name)
    }

    /// Returns its process id.
    ///
    /// # Errors
    ///
    /// Fails if it has ended.
    pub(crate) fn id(&self) -> anyhow::Result<u32> {
        self.child.id().context("mcpd has ended")
    }

    /// Sends it a signal.
    ///
    /// # Errors
    ///
    /// Fails if it has ended.
    pub(crate) fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let id = i32::try_from(self.id()?)?;
        kill_process(Pid::from_raw(id).context("a process")?, signal)?;
        Ok(())
    }

    /// Ends it as a service manager does.
    ///
    /// # Errors
    ///
    /// Fails if it does not end, or not by itself.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        self.signal(Signal::TERM)?;
        let status = tokio::time::timeout(LIFECYCLE_TIMEOUT, self.child.wait()).await;
        let status = status.context("it doesn't end")??;
        ensure!(status.success(), "it ended with {status}");
        Ok(())
    }

    /// Returns its current usage.
    ///
    /// # Errors
    ///
    /// Fails if it has ended.
    pub(crate) fn usage(&self) -> anyhow::Result<Usage> {
        let process = self.id()?;
        Ok(Usage {
            memory: process::status(process, "VmRSS")?,
            threads: usize::try_from(process::status(process, "Threads")?)?,
            descriptors: fs::read_dir(format!("/proc/{process}/fd"))?.count(),
            processes: self.processes(),
            temporaries: fs::read_dir(self.home.path().join("tmp"))?.count(),
        })
    }

    /// Returns the number of processes with its environment.
    fn processes(&self) -> usize {
        let mark = format!("HOME={}", self.home.path().join("home").display());
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let is_marked = |process: &u32| {
            fs::read(format!("/proc/{process}/environ")).is_ok_and(|environment| {
                let mut variables = environment.split(|byte| *byte == 0);
                variables.any(|variable| variable == mark.as_bytes())
            })
        };
        numbers.filter(is_marked).count()
    }
}
