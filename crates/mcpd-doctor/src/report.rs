//! Report about a machine: everything that is found, as data and as text.

use std::env;
use std::fmt::{self, Write as _};
use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use mcpd_clients::Client;
use mcpd_config::File;
use mcpd_config::listening::Shortage;
use mcpd_exec::backend::Backend;
use mcpd_exec::{Executor, Level};
use mcpd_server::transport::http::DEFAULT_MAX_CONNECTIONS;
use serde::Serialize;
use tokio::runtime::Builder;
use tokio::task::spawn_blocking;

use crate::correction::{self, Correction};
use crate::homes::{self, Home};
use crate::machine::{self, BackendReport, Language, LevelReport, Memory};
use crate::scripts::{self, Scripts, Surroundings};

/// Examination of this machine, for the program that runs it.
#[derive(Debug)]
pub struct Examination {
    executor: Executor,
    /// This program, which certainly exists and has the command `check`.
    program: PathBuf,
    delegated: Option<PathBuf>,
    scripts: Scripts,
    client: Option<&'static Client>,
}

/// Examines this machine with the configuration in a file as it is now, on a thread of its own, as
/// an examination waits for the system often. Returns the report as text.
///
/// # Errors
///
/// Says what failed.
///
/// # Cancel safety
///
/// Dropping the future leaves the examination to its end.
pub async fn examine_with(path: Option<PathBuf>) -> Result<String, String> {
    let examined = spawn_blocking(move || {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let file = path.as_deref().map(File::read).transpose()?;
            let scripts = Scripts::new(Vec::new(), path);
            let examination = Examination::new(None, scripts, None)?;
            let report = examination.report(&file.unwrap_or_default()).await?;
            anyhow::Ok(report.to_string())
        })
    });
    let examined = examined.await.map_err(|error| error.to_string())?;
    examined.map_err(|error| format!("failed to {error:#}"))
}

/// Findings of an examination.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Version of mcpd, and the operating system.
    pub system: String,
    /// Sandbox levels, as they can be enforced.
    pub levels: Vec<LevelReport>,
    /// Backends of confinement.
    pub backends: Vec<BackendReport>,
    /// Limits of whole runs.
    pub memory: Memory,
    /// Reason for fewer connections of `mcpd serve` than the default, if the system limits them.
    pub connections: Option<Shortage>,
    /// Interpreters of scripts that are not executable.
    pub interpreters: Vec<Language>,
    /// Parts of homes that confined scripts see.
    pub homes: Vec<Home>,
    /// The scripts of the directories in question, as each client starts them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scripts: Vec<Surroundings>,
    /// Faults that can be corrected.
    pub corrections: Vec<Correction>,
}

impl Examination {
    /// Prepares an examination. `control_group` is delegated to this program: its own by default.
    /// With a client, only its entries and its environment are examined, besides those of the
    /// shell, and its directories if there are no others.
    ///
    /// # Errors
    ///
    /// The control group can't be used, or the path of this program is unknown.
    pub fn new(
        control_group: Option<PathBuf>,
        scripts: Scripts,
        client: Option<&'static Client>,
    ) -> anyhow::Result<Self> {
        let delegated = control_group.or_else(mcpd_exec::control_group);
        let mut scripts = scripts;
        if let (Some(client), true) = (client, scripts.directories.is_empty()) {
            scripts.directories = correction::served_directories(client)?;
        }
        Ok(Self {
            executor: mcpd_config::executor(None, delegated.as_deref())?,
            program: env::current_exe().context("find the program of this process")?,
            delegated,
            scripts,
            client,
        })
    }

    /// Finds what can be corrected.
    ///
    /// # Errors
    ///
    /// The scripts can't be checked, or a file can't be read.
    pub async fn corrections(&self) -> anyhow::Result<Vec<Correction>> {
        correction::find(&self.executor, &self.program, &self.scripts, self.client).await
    }

    /// Examines everything, with the interpreters of a configuration.
    ///
    /// # Errors
    ///
    /// An experiment can't be made, or the scripts can't be checked.
    pub async fn report(&self, file: &File) -> anyhow::Result<Report> {
        let (executor, program) = (&self.executor, &*self.program);
        let corrections = self.corrections().await?;
        let mut levels = Vec::new();
        for level in machine::LEVELS {
            levels.push(machine::examine(executor, program, level).await?);
        }
        let mut backends = Vec::new();
        for backend in Backend::ALL {
            backends.push(machine::examine_backend(executor, program, backend).await);
        }
        Ok(Report {
            system: system(),
            levels,
            backends,
            memory: machine::memory(executor, program, self.delegated.clone()).await?,
            connections: Shortage::of(DEFAULT_MAX_CONNECTIONS),
            interpreters: machine::interpreters(file, executor).await?,
            homes: homes::homes(),
            scripts: match self.scripts.directories.is_empty() {
                true => Vec::new(),
                false => scripts::check(executor, program, &self.scripts, self.client).await?,
            },
            corrections,
        })
    }
}

/// The report as text for people.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write(&mut text)?;
        f.write_str(&text)
    }
}

impl Report {
    fn write(&self, text: &mut String) -> fmt::Result {
        writeln!(text, "{}", self.system)?;
        for finding in &self.levels {
            let verdict = match (finding.available, finding.missing.is_empty()) {
                (false, _) => "refused",
                (true, true) => "fully enforced",
                (true, false) => "partly enforced",
            };
            writeln!(text, "\n{:8} {verdict}", finding.level)?;
            if finding.level != Level::None.as_str() && finding.available {
                finding.write_mechanisms(text)?;
            }
            for gap in &finding.missing {
                writeln!(text, "  {gap}")?;
            }
        }
        writeln!(text, "\nbackends of the level strict")?;
        for BackendReport {
            backend,
            missing,
            gaps,
            ..
        } in &self.backends
        {
            let verdict = missing.as_deref().unwrap_or("works");
            writeln!(text, "  {backend:8} {verdict}")?;
            for gap in gaps {
                writeln!(text, "  {:8} {gap}", "")?;
            }
        }
        if let Some(group) = &self.memory.control_group {
            let group = group.display();
            let limits = match self.memory.counts_processes {
                true => "limits of memory and processes",
                false => "limits of memory, but not of processes,",
            };
            writeln!(text, "\nruns have {limits} in control groups below {group}")?;
        }
        if let Some(reason) = &self.memory.missing {
            writeln!(text, "\nno limits per run: {reason}")?;
        }
        if let Some(shortage) = &self.connections {
            writeln!(text, "\n`mcpd serve` has {shortage}")?;
        }
        self.write_interpreters(text)?;
        for home in &self.homes {
            home.write(text)?;
        }
        if !self.scripts.is_empty() {
            writeln!(text, "\nscripts, as they are started by")?;
        }
        for surroundings in &self.scripts {
            surroundings.write(text)?;
        }
        if !self.corrections.is_empty() {
            writeln!(text, "\nfaults that `--fix` corrects")?;
        }
        for correction in &self.corrections {
            writeln!(text, "  {}", correction.text())?;
        }
        Ok(())
    }

    fn write_interpreters(&self, text: &mut String) -> fmt::Result {
        writeln!(
            text,
            "\ninterpreters of scripts that are not executable programs"
        )?;
        for language in &self.interpreters {
            let extension = &language.extension;
            match (&language.program, &language.missing) {
                (Some(program), _) => writeln!(text, "  {extension:5} {}", program.display())?,
                (None, reason) => writeln!(
                    text,
                    "  {extension:5} {}",
                    reason.as_deref().unwrap_or_default()
                )?,
            }
        }
        Ok(())
    }
}

impl LevelReport {
    fn write_mechanisms(&self, text: &mut String) -> fmt::Result {
        if let Some(version) = self.landlock {
            writeln!(text, "  Landlock, version {version}")?;
        }
        let mechanisms = [
            ("seccomp", self.seccomp),
            ("namespaces", self.namespaces),
            ("Seatbelt", self.seatbelt),
            ("a job object", self.job_object),
        ];
        for (mechanism, is_used) in mechanisms {
            if is_used {
                writeln!(text, "  {mechanism}")?;
            }
        }
        if self.level != "none" {
            let mechanism = self.destinations.unwrap_or("not possible");
            writeln!(text, "  network by destination: {mechanism}")?;
        }
        writeln!(text, "  descendants: {}", self.descendants)
    }
}

fn system() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    let space = if release.is_empty() { "" } else { " " };
    let (version, system) = (env!("CARGO_PKG_VERSION"), env::consts::OS);
    format!(
        "mcpd {version} on {system}{space}{release}, {}",
        env::consts::ARCH
    )
}
