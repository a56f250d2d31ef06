//! `mcpd doctor`: restrictions that this machine can enforce, found by experiment, interpreters of
//! scripts as clients would find them, and faults that it can correct.

mod fix;
mod homes;
mod scripts;

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use mcpd_clients::Client;
use mcpd_config::File;
use mcpd_config::listening::Shortage;
use mcpd_exec::{
    Command, Containment, Enforcement, Executor, Level, Limits, Missing, MissingMechanism, Sandbox,
    StartError,
};
use mcpd_server::transport::http::DEFAULT_MAX_CONNECTIONS;
use serde::Serialize;

use self::fix::Fix;
use self::homes::Home;
use self::scripts::{Scripts, Surroundings};
use crate::args::Doctor;
use crate::exit_code::ExitCode;
use crate::output;

const LEVELS: [Level; 3] = [Level::None, Level::Guarded, Level::Strict];

pub(crate) async fn run(options: Doctor, file: &File) -> anyhow::Result<ExitCode> {
    let delegated = options.cgroup.or_else(mcpd_exec::control_group);
    let executor = mcpd_config::executor(None, delegated.as_deref())?;
    let program = env::current_exe().context("find the program of this process")?;
    let client = options.client.as_deref().and_then(Client::find);
    let directories = match client {
        Some(client) if options.directories.is_empty() => fix::served_directories(client)?,
        _ => options.directories.clone(),
    };
    let scripts = Scripts {
        directories: &directories,
        configuration: options.configuration.named(),
    };
    let fixes = fix::find(&executor, &program, &scripts, client).await?;
    if options.fix {
        return fix::make(&fixes, options.yes);
    }
    let mut levels = Vec::new();
    for level in LEVELS {
        levels.push(examine(&executor, &program, level).await?);
    }
    let report = Report {
        system: system(),
        levels,
        memory: memory(&executor, &program, delegated).await?,
        connections: Shortage::of(DEFAULT_MAX_CONNECTIONS),
        interpreters: interpreters(file, &executor).await?,
        homes: homes::homes(),
        scripts: match directories.is_empty() {
            true => Vec::new(),
            false => scripts::check(&executor, &program, &scripts, client).await?,
        },
        corrections: fixes,
    };
    if options.json {
        output::write_json(&report)?;
    } else {
        output::write_text(&report.to_text()?)?;
    }
    Ok(ExitCode::Success)
}

/// Results of the experiments.
#[derive(Serialize)]
struct Report {
    system: String,
    levels: Vec<LevelReport>,
    memory: Memory,
    /// Reason for fewer connections of `mcpd serve` than the default, if the system limits them.
    connections: Option<Shortage>,
    interpreters: Vec<Language>,
    /// Parts of homes that confined scripts see.
    homes: Vec<Home>,
    /// The scripts of the directories in question, as each client starts them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scripts: Vec<Surroundings>,
    /// Faults that `--fix` corrects.
    corrections: Vec<Fix>,
}

/// Enforcement of memory and process limits for whole runs.
#[derive(Debug, Serialize)]
struct Memory {
    /// The control group for the limits.
    control_group: Option<PathBuf>,
    /// Processes of a run are counted there, rather than those of a user.
    counts_processes: bool,
    /// Reason for the absence of a control group.
    missing: Option<String>,
}

/// Interpreter of files with an extension.
#[derive(Debug, Serialize)]
struct Language {
    extension: String,
    program: Option<PathBuf>,
    /// Reason for the absence of a program.
    missing: Option<String>,
}

/// Enforcement of a sandbox level on this machine.
#[derive(Debug, Serialize)]
struct LevelReport {
    level: &'static str,
    /// A script that requests the level runs.
    available: bool,
    landlock: Option<u32>,
    seccomp: bool,
    namespaces: bool,
    seatbelt: bool,
    job_object: bool,
    /// Certainty that no process of a run remains.
    descendants: &'static str,
    missing: Vec<Gap>,
}

#[derive(Debug, Serialize)]
struct Gap {
    mechanism: &'static str,
    reason: String,
}

/// Runs this program, which certainly exists, at a level.
async fn examine(executor: &Executor, program: &Path, level: Level) -> anyhow::Result<LevelReport> {
    let sandbox = Sandbox::at(level).missing(Missing::Report);
    let command = Command::new(program).arg("--version").sandbox(sandbox);
    match executor.run(command).await {
        Ok(outcome) => Ok(LevelReport::new(
            level,
            outcome.success(),
            &outcome.enforced,
        )),
        Err(StartError::Unenforceable { missing, .. }) => {
            let mut finding = LevelReport::new(level, false, &Enforcement::default());
            finding.missing = missing.into_iter().map(Gap::from).collect();
            Ok(finding)
        }
        // One feature of the machine is faulty, and the other levels may not need it.
        Err(StartError::Setup { step, source, .. }) => {
            let mut finding = LevelReport::new(level, false, &Enforcement::default());
            finding.missing.push(Gap {
                mechanism: "confinement",
                reason: format!("failed to {step}: {source}"),
            });
            Ok(finding)
        }
        Err(error) => Err(error).with_context(|| format!("test the sandbox level {level}")),
    }
}

/// Runs this program with a memory limit, below the `delegated` control group.
async fn memory(
    executor: &Executor,
    program: &Path,
    delegated: Option<PathBuf>,
) -> anyhow::Result<Memory> {
    let mut limits = Limits::default();
    limits.memory = Some(1 << 30);
    let command = Command::new(program).arg("--version").limits(limits);
    let outcome = executor
        .run(command)
        .await
        .context("limit the memory of a run")?;
    let Enforcement {
        cgroup, missing, ..
    } = outcome.enforced;
    let mut missing = missing.into_iter();
    let control_group = delegated.filter(|_| cgroup);
    Ok(Memory {
        counts_processes: control_group.as_deref().is_some_and(counts_processes),
        control_group,
        missing: missing
            .find(|missing| missing.mechanism == "cgroup")
            .map(|missing| missing.reason),
    })
}

fn counts_processes(group: &Path) -> bool {
    let controllers = fs::read_to_string(group.join("cgroup.subtree_control"));
    controllers.is_ok_and(|names| names.split_whitespace().any(|name| name == "pids"))
}

/// Looks for the interpreters of scripts that are not executable.
async fn interpreters(file: &File, executor: &Executor) -> anyhow::Result<Vec<Language>> {
    let interpreters = mcpd_config::interpreters(file)?;
    let mut languages = Vec::new();
    for extension in interpreters.extensions() {
        let (program, missing) = match interpreters.find(extension, executor).await {
            Ok(found) => (Some(found.program.clone()), None),
            Err(missing) => (None, Some(missing.to_string())),
        };
        languages.push(Language {
            extension: extension.to_owned(),
            program,
            missing,
        });
    }
    Ok(languages)
}

impl LevelReport {
    fn new(level: Level, available: bool, enforced: &Enforcement) -> Self {
        Self {
            level: level.as_str(),
            available,
            landlock: enforced.landlock,
            seccomp: enforced.seccomp,
            namespaces: enforced.namespaces,
            seatbelt: enforced.seatbelt,
            job_object: enforced.job_object,
            descendants: match enforced.containment {
                Containment::Proven => "none survives",
                Containment::Search => "searched for and killed",
                _ if level == Level::None => "reported, not killed",
                _ => "killed, unless they leave its process group",
            },
            missing: enforced.missing.iter().cloned().map(Gap::from).collect(),
        }
    }
}

impl From<MissingMechanism> for Gap {
    fn from(missing: MissingMechanism) -> Self {
        Self {
            mechanism: missing.mechanism,
            reason: missing.reason,
        }
    }
}

impl Report {
    fn to_text(&self) -> Result<String, std::fmt::Error> {
        let mut text = format!("{}\n", self.system);
        for finding in &self.levels {
            let verdict = match (finding.available, finding.missing.is_empty()) {
                (false, _) => "refused",
                (true, true) => "fully enforced",
                (true, false) => "partly enforced",
            };
            writeln!(text, "\n{:8} {verdict}", finding.level)?;
            if finding.level != Level::None.as_str() && finding.available {
                finding.write_mechanisms(&mut text)?;
            }
            for gap in &finding.missing {
                writeln!(text, "  without {}: {}", gap.mechanism, gap.reason)?;
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
        self.write_interpreters(&mut text)?;
        for home in &self.homes {
            home.write(&mut text)?;
        }
        if !self.scripts.is_empty() {
            writeln!(text, "\nscripts, as they are started by")?;
        }
        for surroundings in &self.scripts {
            surroundings.write(&mut text)?;
        }
        if !self.corrections.is_empty() {
            writeln!(text, "\nfaults that `--fix` corrects")?;
        }
        for fix in &self.corrections {
            writeln!(text, "  {}", fix.text())?;
        }
        Ok(text)
    }

    fn write_interpreters(&self, text: &mut String) -> std::fmt::Result {
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
    fn write_mechanisms(&self, text: &mut String) -> std::fmt::Result {
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

#[cfg(test)]
mod tests {
    use mcpd_exec::Config;

    use super::*;

    #[tokio::test]
    async fn level_without_a_temporary_directory_is_reported() {
        let mut config = Config::default();
        config.temporary = Some(PathBuf::from("/dev/null"));
        let executor = Executor::new(config).unwrap();
        let program = Path::new("/bin/true");
        let finding = examine(&executor, program, Level::Guarded).await.unwrap();
        let [gap] = &finding.missing[..] else {
            panic!("{finding:?}");
        };
        assert!(
            !finding.available && gap.reason.contains("/dev/null"),
            "{gap:?}"
        );
        let finding = examine(&executor, program, Level::None).await.unwrap();
        assert!(finding.available, "{finding:?}");
    }
}
