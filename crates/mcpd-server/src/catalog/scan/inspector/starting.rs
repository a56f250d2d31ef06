//! Start commands of files and parts of files, and their checks where no probe runs.

use std::borrow::Cow;
use std::io;
use std::path::Path;
use std::sync::Arc;

use mcpd_exec::StartError;
use mcpd_scriptspec::dialect::Variant;
use mcpd_scriptspec::{Diagnostic, ScriptPath};
use tokio::runtime::Handle;

use super::{Inspector, ProbeResult};
use crate::catalog::scan::probe;
use crate::catalog::walk::Candidate;
use crate::script::interpreter::{Interpreter, MissingInterpreter};
use crate::script::start_command::{FileVariant, StartCommand};
use crate::support::sync::lock;

impl Inspector {
    /// Checks that a script that is not probed can be started; otherwise only its first call
    /// would fail.
    pub(super) fn check_start(
        &self,
        start_command: StartCommand,
        candidate: &Candidate,
        path: &ScriptPath,
    ) -> Result<StartCommand, Diagnostic> {
        let effective = self
            .policy
            .effective_policy(path, candidate.directory(), None);
        let command = start_command.command().current_dir(&candidate.root);
        match self.executor.inspect(&effective.apply(command)) {
            Ok(()) => Ok(start_command),
            Err(error) if self.is_static && !is_of_file(&error) => Ok(start_command),
            Err(error) => Err(probe::start_fault(&error)),
        }
    }

    /// Checks a script whose result is cached: its interpreter may have gone since. Each first
    /// line is checked once.
    pub(super) fn recheck_start(
        &self,
        start_command: StartCommand,
        candidate: &Candidate,
        answer: &ProbeResult,
    ) -> Result<StartCommand, Diagnostic> {
        let Some(line) = &answer.shebang else {
            return Ok(start_command);
        };
        if lock(&self.checked_lines).contains(line) {
            return Ok(start_command);
        }
        let start_command = self.check_start(start_command, candidate, &candidate.path)?;
        lock(&self.checked_lines).insert(line.clone());
        Ok(start_command)
    }

    /// Returns the start command of a file whose first line is `shebang` if that names an
    /// interpreter: the file itself, or the interpreter for its extension.
    pub(super) fn start_command(
        &self,
        candidate: &Candidate,
        shebang: Option<&str>,
    ) -> Result<StartCommand, Diagnostic> {
        if self.is_program(candidate, shebang.is_some()) {
            return Ok(StartCommand::of_program(&candidate.file, shebang));
        }
        self.start_command_by(
            &extension(&candidate.file),
            &candidate.file,
            |interpreter| StartCommand::by(interpreter, &candidate.file),
        )
    }

    /// Returns the start command of a script of Script Kit, which needs an interpreter.
    pub(super) fn start_command_for_script_kit(
        &self,
        candidate: &Candidate,
    ) -> Result<StartCommand, Diagnostic> {
        self.start_command_by(
            &extension(&candidate.file),
            &candidate.file,
            |interpreter| StartCommand::by(&interpreter.for_script_kit(), &candidate.file),
        )
    }

    /// Returns whether a file is started as a program itself.
    pub(super) fn is_program(&self, candidate: &Candidate, has_shebang: bool) -> bool {
        let is_known = || {
            self.interpreters
                .has_interpreter(&extension(&candidate.file))
        };
        candidate.is_executable && (has_shebang || !is_known())
    }

    /// Returns the start command of a part of a file, which gets a file of its own.
    pub(super) fn start_command_of_part(
        &self,
        path: &ScriptPath,
        extension: &str,
        variants: Vec<Variant>,
    ) -> Result<StartCommand, Diagnostic> {
        if self.is_static && self.interpreters.has_interpreter(extension) {
            return Ok(StartCommand::of_program(Path::new(""), None));
        }
        let found = self.interpreter(extension)?;
        let for_script_kit = matches!(extension, "js" | "ts").then(|| found.for_script_kit());
        let interpreter = for_script_kit.as_ref().unwrap_or(found);
        let run_as = self
            .policy
            .effective_policy(path, Path::new(""), None)
            .sandbox()
            .run_as;
        let write = |variant: Variant| {
            let file = self.excerpts.write(extension, &variant.text, run_as)?;
            Ok(FileVariant {
                conditions: variant.conditions,
                file,
            })
        };
        let written = variants.into_iter().map(write).collect::<io::Result<_>>();
        let written = written.map_err(|error| {
            Diagnostic::help_not_started(&format!(
                "failed to write the file of the program: {error}"
            ))
        })?;
        let excerpts = Arc::clone(&self.excerpts);
        Ok(StartCommand::of_excerpts(interpreter, written, excerpts))
    }

    /// Starts `file` by the interpreter for an extension. In a static scan the interpreter need
    /// not be installed, because a query of its version would run it.
    fn start_command_by(
        &self,
        extension: &str,
        file: &Path,
        start_command: impl FnOnce(&Interpreter) -> StartCommand,
    ) -> Result<StartCommand, Diagnostic> {
        if self.is_static && self.interpreters.has_interpreter(extension) {
            return Ok(StartCommand::of_program(file, None));
        }
        self.interpreter(extension).map(start_command)
    }

    /// Returns the interpreter for an extension, which is searched for once.
    pub(super) fn interpreter(&self, extension: &str) -> Result<&Interpreter, Diagnostic> {
        let found = self.interpreters.find(extension, &self.executor);
        Handle::current().block_on(found).map_err(missing)
    }
}

/// Returns whether the cause of a failed start lies in the file, not in the machine.
fn is_of_file(error: &StartError) -> bool {
    matches!(
        error,
        StartError::ByteOrderMark { .. }
            | StartError::NoInterpreter { .. }
            | StartError::BadInterpreter { crlf: true, .. }
    )
}

pub(super) fn extension(file: &Path) -> Cow<'_, str> {
    file.extension().unwrap_or_default().to_string_lossy()
}

fn missing(interpreter: MissingInterpreter) -> Diagnostic {
    Diagnostic::missing_interpreter(&interpreter.to_string(), &interpreter.help())
}
