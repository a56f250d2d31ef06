//! Examination of a single file: its own description or the result of a probe, and the way in
//! which the described scripts are started.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::panic;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpd_exec::Executor;
use mcpd_scriptspec::dialect::{Body, DescribedTool};
use mcpd_scriptspec::{Diagnostic, Dialect, Parsed, ScriptPath, Severity, parse};

use super::conditions::Conditions;
use super::file_debounce::FileActivity;
use super::files::PassOverKind;
use super::kit::is_kit_script;
use super::program_check;
use super::reading::{self, Description, Reading, Unreadable};
use super::script::ScriptDescription;
use super::{HelpText, ScannedScript};
use crate::catalog::pins::LockCheck;
use crate::catalog::probe_cache::CachedResult;
use crate::catalog::walk::Candidate;
use crate::database::rows::{ProbeRefusal, ProbeResult};
use crate::observe::missing_enforcement::MissingEnforcement;
use crate::policy::{Policy, Root};
use crate::script::interpreter::Interpreters;
use crate::script::start_command::{Excerpts, StartCommand};

mod inspection;
mod probing;
mod starting;

pub(crate) use inspection::InspectedFile;
pub(super) use inspection::{Inspection, NeedsProbe};
use starting::extension;

/// Maximum number of probes in a row that exceed the time limit: the machine may have just
/// started.
const MAX_TIME_OUTS: u8 = 3;

/// Dependencies for the examination of files.
#[derive(Debug)]
pub(super) struct Inspector {
    executor: Executor,
    policy: Policy,
    interpreters: Interpreters,
    excerpts: Arc<Excerpts>,
    /// First lines whose interpreters exist.
    checked_lines: Mutex<BTreeSet<String>>,
    missing_enforcement: Arc<MissingEnforcement>,
    conditions: Conditions,
    /// Check of what is approved, if only that is served.
    lock_check: Option<Arc<LockCheck>>,
    /// Tells whether nothing may be run.
    is_static: bool,
}

impl Inspector {
    pub(super) fn new(executor: Executor, policy: Policy, interpreters: Interpreters) -> Self {
        Self {
            executor,
            policy,
            interpreters,
            excerpts: Arc::default(),
            checked_lines: Mutex::default(),
            missing_enforcement: Arc::default(),
            conditions: Conditions::default(),
            lock_check: None,
            is_static: false,
        }
    }

    /// Returns an inspector with another policy and other interpreters, which shares the files it
    /// has written.
    pub(super) fn with_configuration(&self, policy: Policy, interpreters: Interpreters) -> Self {
        Self {
            executor: self.executor.clone(),
            policy,
            interpreters: interpreters.with_versions_of(&self.interpreters),
            excerpts: Arc::clone(&self.excerpts),
            checked_lines: Mutex::default(),
            missing_enforcement: Arc::clone(&self.missing_enforcement),
            conditions: Conditions::default(),
            lock_check: self.lock_check.clone(),
            is_static: self.is_static,
        }
    }

    /// Returns an inspector that keeps the versions of interpreters in a database.
    #[cfg(feature = "database")]
    pub(super) fn keep_versions_in(&self, database: crate::database::Database) -> Self {
        let mut inspector = self.with_configuration(self.policy.clone(), self.interpreters.clone());
        inspector.interpreters = inspector.interpreters.keep_versions_in(database);
        inspector
    }

    /// Returns an inspector that runs nothing.
    pub(super) fn static_only(&self) -> Self {
        let lock_check = self.lock_check.as_ref();
        Self {
            lock_check: lock_check.map(|check| Arc::new(check.static_only())),
            is_static: true,
            ..self.with_configuration(self.policy.clone(), self.interpreters.clone())
        }
    }

    /// Returns an inspector that probes only what is approved, if there is a check for that.
    pub(super) fn with_lock(&self, check: Option<Arc<LockCheck>>) -> Self {
        let is_static = self.is_static;
        Self {
            lock_check: match check {
                Some(check) if is_static => Some(Arc::new(check.static_only())),
                check => check,
            },
            ..self.with_configuration(self.policy.clone(), self.interpreters.clone())
        }
    }

    /// Check of what is approved.
    pub(super) fn lock_check(&self) -> Option<&Arc<LockCheck>> {
        self.lock_check.as_ref()
    }

    /// Returns the operator's rule for the root at `path`.
    pub(super) fn rule(&self, path: &Path) -> Option<&Root> {
        self.policy.root_of(path)
    }

    /// Examines a file without running it: by its cached result, or by its contents. Blocks, and
    /// must be called on a tokio runtime.
    ///
    /// # Errors
    ///
    /// Returns the candidate if it was written within the `quiet_time`, or is still being
    /// written.
    pub(super) fn inspect(
        &self,
        candidate: Candidate,
        cached: CachedResult,
        quiet_time: Duration,
    ) -> Result<Inspection, Box<Candidate>> {
        if let Some((answer, conditions)) = cached.answer
            && *conditions == *self.conditions(&candidate, answer.shebang.as_deref())
        {
            return Ok(Inspection::Done(
                self.restore(candidate, answer, conditions),
            ));
        }
        // A scan that runs nothing cannot run a half-written file.
        if !self.is_static && FileActivity::of(&candidate, quiet_time).is_some() {
            return Err(Box::new(candidate));
        }
        Ok(self.inspect_contents(candidate, cached.was_tool))
    }

    /// Examines a file that is still being written, without waiting any longer.
    pub(super) fn inspect_changing(
        &self,
        candidate: Candidate,
        was_tool: bool,
        activity: FileActivity,
    ) -> InspectedFile {
        let inspected = match self.inspect_contents(candidate, was_tool) {
            Inspection::Done(inspected) => inspected,
            Inspection::NeedsProbe(script) if script.concerns_operator => {
                let fault = Diagnostic::help_not_started(activity.reason());
                self.faulty_file(script.candidate, HelpText::default(), fault)
            }
            Inspection::NeedsProbe(script) => InspectedFile::passed_over_file(
                script.candidate,
                PassOverKind::StillWritten,
                activity.reason(),
            ),
        };
        InspectedFile {
            is_transient: true,
            ..inspected
        }
    }

    /// Examines the contents of a file.
    fn inspect_contents(&self, candidate: Candidate, was_tool: bool) -> Inspection {
        // A panic of the parser on one file must not affect the others.
        let reading = panic::catch_unwind(|| reading::read(&candidate));
        let fault = match reading {
            Ok(Ok(Reading {
                shebang,
                description: Some(description),
                ..
            })) => {
                return Inspection::Done(self.build_scripts(
                    candidate,
                    description,
                    shebang.as_deref(),
                ));
            }
            Ok(Ok(_)) if !candidate.is_executable => {
                let (kind, reason) = unmarked_reason(&candidate.file);
                return Inspection::Done(InspectedFile::passed_over_file(candidate, kind, reason));
            }
            Ok(Ok(reading)) => {
                return self.inspect_undescribed(candidate, reading, was_tool);
            }
            // Permission to execute a file does not imply permission to read it.
            Ok(Err(Unreadable::Io(_)))
                if candidate.is_executable && candidate.sidecar.is_none() =>
            {
                let concerns_operator = candidate.is_named || was_tool;
                return self.plan_probe(candidate, Some(String::new()), concerns_operator);
            }
            Ok(Err(Unreadable::Io(error))) => {
                Diagnostic::help_not_started(&format!("not readable: {error}"))
            }
            Ok(Err(Unreadable::TooLarge)) => Diagnostic::file_too_large(reading::MAX_SIZE),
            Err(_) => Diagnostic::help_not_started("internal error while reading it"),
        };
        Inspection::Done(self.faulty_file(candidate, HelpText::default(), fault))
    }

    /// Returns the conditions beside its file on which a result for a script depends.
    fn conditions(&self, candidate: &Candidate, shebang: Option<&str>) -> Arc<str> {
        self.conditions.of(candidate, shebang, &self.policy)
    }

    /// Rebuilds the result for a file from a cached one, whose conditions are those of today.
    fn restore(
        &self,
        candidate: Candidate,
        answer: ProbeResult,
        conditions: Arc<str>,
    ) -> InspectedFile {
        let to_cache = (answer.clone(), Arc::clone(&conditions));
        let inspected = match answer.refusal.clone() {
            Some(ProbeRefusal::NotATool(reason)) => {
                InspectedFile::passed_over_file(candidate, PassOverKind::NotATool, reason)
            }
            Some(ProbeRefusal::Fault(fault)) => self.faulty_file(candidate, answer.help, fault),
            // The machine may have been the cause: a server repeats the probe after a while.
            Some(ProbeRefusal::TimeOut(fault, time_outs)) => InspectedFile {
                is_transient: time_outs < MAX_TIME_OUTS,
                time_outs,
                ..self.faulty_file(candidate, answer.help, fault)
            },
            Some(ProbeRefusal::Text) => {
                let start_command =
                    StartCommand::of_program(&candidate.file, answer.shebang.as_deref());
                self.file_from_probe(candidate, answer, conditions, start_command)
            }
            None => {
                let start_command = self
                    .start_command(&candidate, answer.shebang.as_deref())
                    .and_then(|start_command| {
                        self.recheck_start(start_command, &candidate, &answer)
                    });
                match start_command {
                    Ok(start_command) => {
                        return self.file_from_probe(candidate, answer, conditions, start_command);
                    }
                    Err(missing) => {
                        return self.faulty_file(candidate, HelpText::default(), missing);
                    }
                }
            }
        };
        InspectedFile {
            answer: Some(to_cache),
            ..inspected
        }
    }

    /// Examines an executable file that describes nothing.
    fn inspect_undescribed(
        &self,
        candidate: Candidate,
        reading: Reading,
        was_tool: bool,
    ) -> Inspection {
        let concerns_operator = reading.mentions_mcpd || candidate.is_named || was_tool;
        let is_run = reading.is_program
            || self
                .interpreters
                .has_interpreter(&extension(&candidate.file));
        // A script that mentions mcpd gets the precise fault from the attempt to start it.
        if is_run || concerns_operator {
            return self.plan_probe(candidate, reading.shebang, concerns_operator);
        }
        let reason = "cannot be started: not a program, and without a `#!` line or an extension with an interpreter";
        Inspection::Done(InspectedFile::passed_over_file(
            candidate,
            PassOverKind::NotAScript,
            reason,
        ))
    }

    /// Returns the scripts that a text describes.
    fn build_scripts(
        &self,
        candidate: Candidate,
        mut description: Description,
        shebang: Option<&str>,
    ) -> InspectedFile {
        let mut scripts = Vec::with_capacity(description.tools.len());
        for tool in std::mem::take(&mut description.tools) {
            let DescribedTool {
                path,
                mut parsed,
                body,
                ..
            } = tool;
            let extension = match &body {
                Body::Code { extension, .. } => Some(Cow::Borrowed(extension.as_str())),
                Body::None => None,
                _ if self.is_program(&candidate, shebang.is_some()) => None,
                _ => Some(extension(&candidate.file)),
            };
            if let Some(check) = extension.and_then(|name| self.interpreters.check_for(&name)) {
                let mut faults = program_check::faults(&candidate, &description, &body, check);
                faults.retain(|fault| !program_check::is_reported(fault, &parsed, &description));
                if faults.iter().any(|fault| fault.severity == Severity::Error) {
                    parsed.spec = None;
                }
                parsed.diagnostics.extend(faults);
            }
            let path = path.and_then(|path| path.parse().ok());
            let path = path.unwrap_or_else(|| candidate.path.clone());
            let start_command = match body {
                Body::Code {
                    extension,
                    variants,
                    ..
                } => self.start_command_of_part(&path, &extension, variants),
                // It is not served.
                Body::None => Ok(StartCommand::of_program(Path::new(""), None)),
                _ if description.dialect == Dialect::ScriptKit
                    && !self.is_program(&candidate, shebang.is_some()) =>
                {
                    self.start_command_for_script_kit(&candidate)
                }
                // argc reads it as Bash does, regardless of its extension.
                _ if description.dialect == Dialect::Argc && shebang.is_none() => self
                    .interpreter("bash")
                    .map(|bash| StartCommand::by(bash, &candidate.file)),
                _ => self
                    .start_command(&candidate, shebang)
                    .and_then(|start_command| self.check_start(start_command, &candidate, &path)),
            };
            let said = ScriptDescription {
                dialect: Some(description.dialect),
                described_in: description.file.clone(),
                help: HelpText {
                    source: description.text.clone(),
                    ..HelpText::default()
                },
                parsed,
            };
            scripts.push(self.script(&candidate, path, said, start_command));
        }
        InspectedFile::new(candidate, scripts)
    }

    fn plan_probe(
        &self,
        candidate: Candidate,
        shebang: Option<String>,
        concerns_operator: bool,
    ) -> Inspection {
        let start_command = self.start_command(&candidate, shebang.as_deref());
        let start_command = match start_command {
            // Its first line can be wrong even where its interpreter must not run.
            Ok(start_command) if self.is_static && concerns_operator => {
                let path = candidate.path.clone();
                self.check_start(start_command, &candidate, &path)
            }
            start_command => start_command,
        };
        match start_command {
            Ok(_) if self.is_static => {
                let reason = "only running it with `--help` would show what it is";
                Inspection::Done(InspectedFile::passed_over_file(
                    candidate,
                    PassOverKind::NotProbed,
                    reason,
                ))
            }
            Ok(start_command) => Inspection::NeedsProbe(NeedsProbe {
                candidate,
                shebang,
                start_command,
                concerns_operator,
            }),
            Err(missing) if concerns_operator => {
                Inspection::Done(self.faulty_file(candidate, HelpText::default(), missing))
            }
            Err(missing) => Inspection::Done(InspectedFile::passed_over_file(
                candidate,
                PassOverKind::NotAScript,
                missing.message,
            )),
        }
    }

    fn file_from_probe(
        &self,
        candidate: Candidate,
        answer: ProbeResult,
        conditions: Arc<str>,
        start_command: StartCommand,
    ) -> InspectedFile {
        let said = ScriptDescription {
            dialect: None,
            described_in: candidate.file.clone(),
            help: answer.help.clone(),
            parsed: parse(answer.help.output()),
        };
        let script = self.script(&candidate, candidate.path.clone(), said, Ok(start_command));
        // An unusable schema is detected again when the output is parsed again.
        InspectedFile {
            answer: Some((answer, conditions)),
            ..InspectedFile::new(candidate, vec![script])
        }
    }

    /// Returns a faulty script without a description.
    fn faulty_file(
        &self,
        candidate: Candidate,
        help: HelpText,
        fault: Diagnostic,
    ) -> InspectedFile {
        let sidecar = candidate.sidecar.as_ref();
        let said = ScriptDescription {
            dialect: None,
            described_in: sidecar
                .map_or(&candidate.file, |sidecar| &sidecar.file)
                .clone(),
            help,
            parsed: Parsed::default(),
        };
        let script = self.script(&candidate, candidate.path.clone(), said, Err(fault));
        InspectedFile::new(candidate, vec![script])
    }

    fn script(
        &self,
        candidate: &Candidate,
        path: ScriptPath,
        said: ScriptDescription,
        start_command: Result<StartCommand, Diagnostic>,
    ) -> Arc<ScannedScript> {
        let script = ScannedScript::new(candidate, path, said, start_command, &self.policy);
        Arc::new(script)
    }
}

/// Returns why a file that is not executable and describes nothing is passed over.
fn unmarked_reason(file: &Path) -> (PassOverKind, &'static str) {
    if is_kit_script(file) {
        let reason = "not executable, and without a schema";
        (PassOverKind::Schemaless, reason)
    } else {
        let reason = "not executable, and without a description";
        (PassOverKind::Unmarked, reason)
    }
}
