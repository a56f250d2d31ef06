//! Failures to start a process, explained for the operator.

use std::io;
use std::path::Path;

use super::fixed_directory::replaced;
use super::raw::{self, SetupStage};
use super::{NAMESPACES, tree, unprepared};
use crate::backend::Backend;
use crate::command::Command;
use crate::enforcement::MissingMechanism;
use crate::error::{StartError, diagnosis};
use crate::sandbox::{Level, Network};

/// Failed start, and whether it is worth a try without `/proc`.
pub(super) struct StartFailure {
    pub(super) error: StartError,
    pub(super) is_refused_mount: bool,
    /// It is worth a try without a network namespace.
    pub(super) is_refused_network: bool,
}

impl From<StartError> for StartFailure {
    fn from(error: StartError) -> Self {
        Self {
            error,
            is_refused_mount: false,
            is_refused_network: false,
        }
    }
}

impl StartFailure {
    pub(super) fn at(
        failure: raw::Failure,
        command: &Command,
        program: &Path,
        directory: Option<&Path>,
    ) -> Self {
        // EPERM is permanent, unlike a lack of resources.
        let is_refused = failure.error.raw_os_error() == Some(libc::EPERM);
        Self {
            is_refused_mount: is_refused && failure.stage == SetupStage::Namespaces,
            is_refused_network: command.parts.sandbox.level == Level::Guarded
                && command.parts.sandbox.network == Network::Listed
                && matches!(failure.stage, SetupStage::Clone | SetupStage::Network)
                && is_refusal(&failure.error),
            error: explain(failure, command, program, directory),
        }
    }
}

/// Explains a failed step in terms of the caller's command.
fn explain(
    failure: raw::Failure,
    command: &Command,
    program: &Path,
    directory: Option<&Path>,
) -> StartError {
    let raw::Failure { stage, error } = failure;
    let program = program.to_owned();
    let unenforceable = |mechanism, reason| StartError::Unenforceable {
        program: program.clone(),
        missing: vec![MissingMechanism::new(mechanism, reason)],
    };
    let is_replaced = matches!(error.raw_os_error(), Some(libc::ESTALE | libc::ELOOP));
    match stage {
        SetupStage::Namespaces | SetupStage::Directory
            if command.parts.has_fixed_directory && is_replaced =>
        {
            let directory = command
                .parts
                .current_dir
                .as_deref()
                .unwrap_or(Path::new("."));
            unprepared(replaced(directory), &program)
        }
        SetupStage::Exec => not_executed(error, command, &program),
        SetupStage::Directory => StartError::CwdMissing {
            directory: directory.map(Path::to_owned).unwrap_or_default(),
        },
        SetupStage::Clone | SetupStage::Namespaces | SetupStage::Network
            if command.parts.sandbox.level == Level::Strict && is_refusal(&error) =>
        {
            let reason = format!(
                "the kernel refuses them ({error}); a container's seccomp profile, `user.max_user_namespaces`, \
                 `kernel.unprivileged_userns_clone` or AppArmor may forbid them"
            );
            unenforceable(NAMESPACES, reason)
        }
        SetupStage::Namespaces if !tree::sees_processes() => {
            let reason = "`/proc` is missing, which is needed to map users into them";
            unenforceable(NAMESPACES, reason.to_owned())
        }
        SetupStage::Seccomp => unenforceable("seccomp", format!("the kernel refuses it ({error})")),
        SetupStage::Clone => StartError::Resource {
            program,
            source: error,
        },
        stage => StartError::Setup {
            program,
            step: stage.describe(),
            source: error,
        },
    }
}

/// Explains a failed `execve`. After a change of user, the limit of processes takes effect only
/// there.
pub(super) fn not_executed(error: io::Error, command: &Command, program: &Path) -> StartError {
    let program = program.to_owned();
    match command
        .parts
        .limits
        .at(command.parts.sandbox.level)
        .processes
    {
        Some(limit) if error.kind() == io::ErrorKind::WouldBlock => {
            StartError::TooManyProcesses { program, limit }
        }
        _ => diagnosis::diagnose(error, command, program),
    }
}

/// Explains that the first process of the namespaces, which starts the program, can't be created.
pub(super) fn lacks_first_process(error: io::Error, program: &Path) -> StartError {
    let program = program.to_owned();
    if !is_refusal(&error) {
        return StartError::Resource {
            program,
            source: error,
        };
    }
    let reason = format!(
        "their first process cannot be created ({error}); `vm.memfd_noexec` or a security module may forbid programs in memory"
    );
    StartError::Unenforceable {
        program,
        missing: vec![MissingMechanism::new(NAMESPACES, reason)],
    }
}

/// Explains that a backend has ended before the program started.
pub(super) fn refused_by(backend: Backend, reason: String, program: &Path) -> StartError {
    StartError::Unenforceable {
        program: program.to_owned(),
        missing: vec![MissingMechanism::new(backend.as_str(), reason)],
    }
}

/// Returns whether the kernel refuses, as opposed to a lack of resources or a path that is
/// missing or in use.
pub(super) fn is_refusal(error: &io::Error) -> bool {
    use crate::os::{Fault, fault};
    let is_refusal = !matches!(
        fault(error),
        Fault::Exhausted | Fault::Missing | Fault::NotDirectory | Fault::Loop
    );
    is_refusal && error.kind() != io::ErrorKind::ResourceBusy
}
