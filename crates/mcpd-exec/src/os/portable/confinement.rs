//! Confinement of one run: the mechanisms that are asked for, as far as the system has them.

use std::path::Path;

use tempfile::TempDir;

use super::group::{CONTAINMENT, GAPS, IS_JOB};
use super::seatbelt;
use crate::command::Command;
use crate::enforcement::{Enforcement, MissingMechanism};
use crate::error::StartError;
use crate::limits::Limits;
use crate::sandbox::{Level, Missing, Network, Sandbox};

/// Confinement of one run.
#[derive(Debug)]
pub(crate) struct Confinement {
    enforced: Enforcement,
    /// Directory of a confined run, removed on drop.
    temporary: Option<TempDir>,
}

impl Confinement {
    /// Prepares the confinement of `command`, whose program is at `program`, with a temporary
    /// directory in `parent`.
    ///
    /// # Errors
    ///
    /// A required mechanism is missing, or the directory can't be made.
    pub(crate) fn prepare(
        command: &Command,
        program: &Path,
        parent: &Path,
    ) -> Result<Self, StartError> {
        let sandbox = &command.parts.sandbox;
        let mut confinement = Self {
            enforced: Enforcement {
                level: sandbox.level,
                job_object: IS_JOB,
                ..Enforcement::default()
            },
            temporary: None,
        };
        let mut refused = missing_features(sandbox);
        if sandbox.level == Level::Guarded {
            refused.extend(confinement.guard(sandbox));
        }
        confinement.misses(missing_limits(&command.parts.limits.at(sandbox.level)));
        if sandbox.missing == Missing::Refuse {
            refused.append(&mut confinement.enforced.missing);
        }
        if let Some(directory) = command.parts.current_dir.as_deref()
            && command.parts.has_fixed_directory
            && directory.canonicalize().ok().as_deref() != Some(directory)
        {
            return Err(StartError::CwdMissing {
                directory: directory.to_owned(),
            });
        }
        if !refused.is_empty() {
            return Err(StartError::Unenforceable {
                program: program.to_owned(),
                missing: refused,
            });
        }
        if sandbox.level >= Level::Guarded {
            let made = make_directory(parent).map_err(|source| StartError::Setup {
                program: program.to_owned(),
                step: "create its temporary directory",
                source,
            })?;
            confinement.temporary = Some(made);
        }
        Ok(confinement)
    }

    /// Sets up level `guarded`, and returns a missing mechanism that it can't do without.
    fn guard(&mut self, sandbox: &Sandbox) -> Option<MissingMechanism> {
        self.enforced.containment = CONTAINMENT;
        let gaps = GAPS
            .iter()
            .map(|(name, reason)| MissingMechanism::new(name, *reason));
        self.misses(gaps);
        let Err(reason) = seatbelt::check() else {
            self.enforced.seatbelt = true;
            return None;
        };
        let missing = MissingMechanism::new("sandbox", reason);
        if seatbelt::IS_NEEDED || sandbox.network == Network::Off {
            return Some(missing);
        }
        self.misses([missing]);
        None
    }

    fn misses(&mut self, missing: impl IntoIterator<Item = MissingMechanism>) {
        self.enforced.missing.extend(missing);
    }

    /// Returns the command that starts the program: itself, or the tool that confines it.
    ///
    /// # Errors
    ///
    /// The program can't be started, and the tool could not report that.
    pub(crate) fn starter(
        &self,
        command: &Command,
        program: &Path,
    ) -> Result<std::process::Command, StartError> {
        match &self.temporary {
            Some(temporary) => seatbelt::starter(command, program, temporary.path()),
            None => Ok(plain_command(program)),
        }
    }

    /// Returns the directory that the program starts in, unless it is that of this process.
    pub(crate) fn directory<'a>(&'a self, command: &'a Command) -> Option<&'a Path> {
        let temporary = self.temporary.as_ref().map(TempDir::path);
        let temporary = temporary.filter(|_| command.parts.starts_in_temporary);
        temporary.or(command.parts.current_dir.as_deref())
    }

    /// Additional variables for the program of `command`.
    pub(crate) fn environment(
        &self,
        command: &Command,
    ) -> impl Iterator<Item = (&'static str, &Path)> {
        const NAMES: &[&str] = if cfg!(windows) {
            &["TMP", "TEMP"]
        } else {
            &["TMPDIR"]
        };
        let names = command.temporary_variables().chain(NAMES.iter().copied());
        let directory = self.temporary.as_ref().map(|temporary| temporary.path());
        names.filter_map(move |name| Some((name, directory?)))
    }

    pub(crate) fn enforcement(&self) -> &Enforcement {
        &self.enforced
    }
}

/// Returns what no run can have on these systems, and without which no run that asks for it is
/// started.
fn missing_features(sandbox: &Sandbox) -> Vec<MissingMechanism> {
    let mut missing = Vec::new();
    if sandbox.run_as.is_some() {
        let reason = "this system cannot run processes as another user";
        missing.push(MissingMechanism::new("user", reason));
    }
    if sandbox.level == Level::Strict {
        let reason = "this system has neither these nor an equivalent";
        missing.push(MissingMechanism::new("namespaces", reason));
    }
    if let Some(backend) = sandbox.backend {
        let reason = "this system has no namespaces to leave to it";
        missing.push(MissingMechanism::new(backend.as_str(), reason));
    }
    if sandbox.level >= Level::Guarded && sandbox.network == Network::Listed {
        let reason = "this system cannot limit the network to destinations";
        missing.push(MissingMechanism::new("network", reason));
    }
    missing
}

/// Returns the requested limits of the kernel, all missing: the standard library can't set any.
fn missing_limits(limits: &Limits) -> Option<MissingMechanism> {
    let limits = [
        ("processor time", limits.cpu.is_some()),
        ("address space", limits.address_space.is_some()),
        ("file size", limits.file_size.is_some()),
        ("open files", limits.open_files.is_some()),
        ("processes", limits.processes.is_some()),
        ("memory", limits.memory.is_some()),
    ];
    let wanted = limits.iter().filter(|(_, is_wanted)| *is_wanted);
    let names: Vec<_> = wanted.map(|(name, _)| *name).collect();
    let reason = format!("not enforced on this system: {}", names.join(", "));
    (!names.is_empty()).then(|| MissingMechanism::new("limits", reason))
}

#[expect(
    clippy::disallowed_methods,
    reason = "where processes are started on these systems"
)]
pub(super) fn plain_command(program: &Path) -> std::process::Command {
    std::process::Command::new(program)
}

/// Makes a directory that only its owner can enter.
fn make_directory(parent: &Path) -> std::io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("mcpd-run-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder.tempdir_in(parent)
}
