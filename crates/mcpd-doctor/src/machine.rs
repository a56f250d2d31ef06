//! Restrictions that this machine can enforce, found by experiment, and its interpreters.

use std::borrow::Cow;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use mcpd_config::File;
use mcpd_exec::backend::Backend;
use mcpd_exec::{
    Command, Containment, Enforcement, Executor, Level, Limits, Missing, MissingMechanism, Sandbox,
    StartError,
};
use serde::Serialize;

/// Levels that are tried.
pub(crate) const LEVELS: [Level; 3] = [Level::None, Level::Guarded, Level::Strict];

/// Enforcement of memory and process limits for whole runs.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Memory {
    /// The control group for the limits.
    pub control_group: Option<PathBuf>,
    /// Processes of a run are counted there, rather than those of a user.
    pub counts_processes: bool,
    /// Reason for the absence of a control group.
    pub missing: Option<String>,
}

/// Interpreter of files with an extension.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Language {
    /// Extension of the files, without the dot.
    pub extension: String,
    /// The program, if it is found.
    pub program: Option<PathBuf>,
    /// Reason for the absence of a program.
    pub missing: Option<String>,
}

/// Enforcement of a sandbox level on this machine.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct LevelReport {
    /// Name of the level.
    pub level: &'static str,
    /// A script that requests the level runs.
    pub available: bool,
    /// Version of Landlock, if it is used.
    pub landlock: Option<u32>,
    /// Seccomp is used.
    pub seccomp: bool,
    /// Namespaces are used.
    pub namespaces: bool,
    /// Seatbelt is used.
    pub seatbelt: bool,
    /// A job object is used.
    pub job_object: bool,
    /// Certainty that no process of a run remains.
    pub descendants: &'static str,
    /// Mechanism that limits the network to destinations, if there is one.
    pub destinations: Option<&'static str>,
    /// Mechanisms that are missing.
    pub missing: Vec<Gap>,
}

/// Backend of confinement on this machine.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct BackendReport {
    /// Name of the backend.
    pub backend: &'static str,
    /// A script runs with it.
    pub available: bool,
    /// Reason that none does.
    pub missing: Option<String>,
    /// Mechanisms that such a script lacks.
    pub gaps: Vec<Gap>,
}

/// Mechanism that is missing.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Gap {
    /// Its name.
    pub mechanism: Cow<'static, str>,
    /// The reason, as a clause.
    pub reason: String,
}

/// Runs this program, which certainly exists, at a level.
pub(crate) async fn examine(
    executor: &Executor,
    program: &Path,
    level: Level,
) -> anyhow::Result<LevelReport> {
    let sandbox = Sandbox::at(level).missing(Missing::Report);
    let command = Command::new(program).arg("--version").sandbox(sandbox);
    match executor.run(command).await {
        Ok(outcome) => {
            let mut finding = LevelReport::new(level, outcome.success(), &outcome.enforced);
            finding.destinations = destinations(executor, program, level).await;
            Ok(finding)
        }
        Err(StartError::Unenforceable { missing, .. }) => {
            let mut finding = LevelReport::new(level, false, &Enforcement::default());
            finding.missing = missing.into_iter().map(Gap::from).collect();
            Ok(finding)
        }
        // One feature of the machine is faulty, and the other levels may not need it.
        Err(StartError::Setup { step, source, .. }) => {
            let mut finding = LevelReport::new(level, false, &Enforcement::default());
            finding.missing.push(Gap {
                mechanism: "confinement".into(),
                reason: format!("failed to {step}: {source}"),
            });
            Ok(finding)
        }
        Err(error) => Err(error).with_context(|| format!("test the sandbox level {level}")),
    }
}

/// Runs this program with a backend, if that is installed.
pub(crate) async fn examine_backend(
    executor: &Executor,
    program: &Path,
    backend: Backend,
) -> BackendReport {
    let sandbox = Sandbox::strict().backend(backend).missing(Missing::Report);
    let command = Command::new(program).arg("--version").sandbox(sandbox);
    let tried = match executor.run(command).await {
        Ok(outcome) if outcome.success() => Ok(outcome.enforced.missing),
        Ok(outcome) => {
            let said = outcome.stderr.to_text_lossy();
            let said = said.trim();
            Err(match said.lines().next() {
                Some(first) => first.escape_debug().to_string(),
                None => format!("a program that it starts fails: {:?}", outcome.ending),
            })
        }
        Err(StartError::Unenforceable { missing, .. }) => {
            let reasons: Vec<_> = missing.into_iter().map(|missing| missing.reason).collect();
            Err(reasons.join("; "))
        }
        Err(error) => Err(format!("failed to {error}")),
    };
    BackendReport {
        backend: backend.as_str(),
        available: tried.is_ok(),
        missing: tried.as_ref().err().cloned(),
        gaps: tried.into_iter().flatten().map(Gap::from).collect(),
    }
}

/// Runs this program with a destination, and returns the mechanism that limits its network.
async fn destinations(executor: &Executor, program: &Path, level: Level) -> Option<&'static str> {
    if level == Level::None {
        return None;
    }
    let sandbox = Sandbox::at(level).missing(Missing::Report);
    let sandbox = sandbox.destinations("localhost:1".parse().ok());
    let command = Command::new(program).arg("--version").sandbox(sandbox);
    // Whatever keeps it from running is reported for the level.
    let enforced = executor.run(command).await.ok()?.enforced;
    let mut missing = enforced.missing.iter();
    Some(
        match missing.any(|missing| missing.mechanism == "network namespace") {
            true => "ports only, those of any machine",
            false => "a network namespace",
        },
    )
}

/// Runs this program with a memory limit, below the `delegated` control group.
pub(crate) async fn memory(
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
pub(crate) async fn interpreters(
    file: &File,
    executor: &Executor,
) -> anyhow::Result<Vec<Language>> {
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
            destinations: None,
            missing: enforced.missing.iter().cloned().map(Gap::from).collect(),
        }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "without {}: {}", self.mechanism, self.reason)
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
