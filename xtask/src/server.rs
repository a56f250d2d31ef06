//! The server that is put to the test, and what the system says of it.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// How long it may take to start and to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// Memory that an allocator may keep after an attack, in KiB.
const KEPT: u64 = 32 * 1024;

/// `mcpd serve` in a directory of its own. It is killed when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    directory: TempDir,
    address: String,
    token: String,
}

/// What a server has and holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Resident memory of the server, in KiB.
    pub(crate) memory: u64,
    pub(crate) descriptors: usize,
    pub(crate) threads: usize,
    /// The server, and all that has come of it.
    pub(crate) processes: usize,
    /// Files and directories of runs.
    pub(crate) temporaries: usize,
}

impl Usage {
    /// Whether this is no more than `rest`, but for memory that the allocator keeps and what comes and goes by itself.
    pub(crate) fn is_within(self, rest: Self) -> bool {
        self.memory <= rest.memory + KEPT
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

/// Builds the binary in the profile that this program was built in.
///
/// # Errors
///
/// When it can't be built.
#[expect(clippy::disallowed_methods, reason = "cargo is no script")]
pub(crate) fn build() -> anyhow::Result<PathBuf> {
    let profile = if cfg!(debug_assertions) {
        "dev"
    } else {
        "bench"
    };
    let mut cargo = std::process::Command::new(env!("CARGO"));
    let status = cargo
        .args([
            "build",
            "--quiet",
            "--package",
            "mcpd-cli",
            "--profile",
            profile,
        ])
        .status()
        .context("cargo doesn't start")?;
    ensure!(status.success(), "mcpd can't be built");
    let own = std::env::current_exe().context("a running program has a path")?;
    Ok(own.with_file_name("mcpd"))
}

impl Server {
    /// Serves these scripts with this configuration.
    ///
    /// # Errors
    ///
    /// When it doesn't start.
    pub(crate) async fn start(
        binary: &Path,
        scripts: &[(&str, &str)],
        configuration: &str,
    ) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let path = directory.path();
        for name in ["scripts", "state", "tmp", "home"] {
            fs::create_dir(path.join(name))?;
        }
        for (name, text) in scripts {
            let file = path.join("scripts").join(name);
            fs::write(&file, text)?;
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
        }
        fs::write(path.join("mcpd.toml"), configuration)?;
        let mut command = Command::new(binary);
        command
            .args(["serve", "scripts", "--port", "0", "--config", "mcpd.toml"])
            .current_dir(path)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", path.join("home"))
            .env("XDG_STATE_HOME", path.join("state"))
            .env("TMPDIR", path.join("tmp"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(path.join("log"))?)
            .kill_on_drop(true);
        let mut server = Self {
            child: command.spawn().context("mcpd doesn't start")?,
            directory,
            address: String::new(),
            token: String::new(),
        };
        let started = tokio::time::timeout(PATIENCE, server.listening()).await;
        started.context("mcpd doesn't listen")??;
        Ok(server)
    }

    async fn listening(&mut self) -> anyhow::Result<()> {
        loop {
            let log = self.log()?;
            if log.contains("  tools: ") {
                let address = log.split("http://").nth(1).context("no address")?;
                self.address = address.split('/').next().unwrap_or_default().to_owned();
                let token = self.directory.path().join("state/mcpd/agent-token");
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

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// What it has logged.
    ///
    /// # Errors
    ///
    /// When the file can't be read.
    pub(crate) fn log(&self) -> anyhow::Result<String> {
        Ok(fs::read_to_string(self.directory.path().join("log"))?)
    }

    /// The file of a script.
    pub(crate) fn script(&self, name: &str) -> PathBuf {
        self.directory.path().join("scripts").join(name)
    }

    fn id(&self) -> anyhow::Result<u32> {
        self.child.id().context("mcpd has ended")
    }

    /// Sends it a signal.
    ///
    /// # Errors
    ///
    /// When it has ended.
    pub(crate) fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let id = i32::try_from(self.id()?)?;
        kill_process(Pid::from_raw(id).context("a process")?, signal)?;
        Ok(())
    }

    /// Ends it as a service manager does.
    ///
    /// # Errors
    ///
    /// When it does not end, or not by itself.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        self.signal(Signal::TERM)?;
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        let status = status.context("it doesn't end")??;
        ensure!(status.success(), "it ended with {status}");
        Ok(())
    }

    /// What it has and holds at this moment.
    ///
    /// # Errors
    ///
    /// When it has ended.
    pub(crate) fn usage(&self) -> anyhow::Result<Usage> {
        let process = format!("/proc/{}", self.id()?);
        let status = fs::read_to_string(format!("{process}/status"))?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.split_whitespace().next());
            number.and_then(|number| number.parse().ok()).unwrap_or(0)
        };
        Ok(Usage {
            memory: field("VmRSS:"),
            threads: usize::try_from(field("Threads:"))?,
            descriptors: fs::read_dir(format!("{process}/fd"))?.count(),
            processes: self.processes(),
            temporaries: fs::read_dir(self.directory.path().join("tmp"))?.count(),
        })
    }

    /// How many processes have its environment.
    fn processes(&self) -> usize {
        let mark = format!("HOME={}", self.directory.path().join("home").display());
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
