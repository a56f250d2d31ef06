//! Examination of a single file: its own description or the result of a probe, and the way in
//! which the described scripts are started.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::panic;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpd_exec::Executor;
use mcpd_scriptspec::{
    Body, DescribedTool, Diagnostic, Dialect, Parsed, ScriptPath, Severity, parse,
};

use super::conditions::Conditions;
use super::files::{Because, PassedOver};
use super::kit::is_kit_script;
use super::program;
use super::quiet::Unrest;
use super::reading::{self, Description, Reading, Unreadable};
use super::script::Said;
use super::{HelpText, ScannedScript};
use crate::catalog::memory::Recalled;
use crate::catalog::walk::Candidate;
use crate::interpreter::Interpreters;
use crate::launch::{Excerpts, Launch};
use crate::policy::{Policy, Root};
use crate::run::Gaps;

mod probing;
mod starting;

use starting::extension;

/// Maximum number of probes in a row that exceed the time limit: the machine may have just
/// started.
const PATIENCE: u8 = 3;

/// Dependencies for the examination of files.
#[derive(Debug)]
pub(super) struct Examiner {
    executor: Executor,
    policy: Policy,
    interpreters: Interpreters,
    excerpts: Arc<Excerpts>,
    /// First lines whose interpreters exist.
    sound: Mutex<BTreeSet<String>>,
    gaps: Arc<Gaps>,
    conditions: Conditions,
    /// Tells whether nothing may be run.
    is_static: bool,
}

/// Result for one file.
#[derive(Debug)]
pub(crate) struct Looked {
    pub(crate) candidate: Candidate,
    /// Scripts in the file; empty if it has nothing to do with mcpd.
    pub(crate) scripts: Vec<Arc<ScannedScript>>,
    /// Reason for which it is passed over, if that is no fault.
    pub(crate) passed_over: Option<PassedOver>,
    /// Result to cache, and the conditions beside the file under which it is valid.
    #[cfg_attr(
        not(feature = "database"),
        expect(dead_code, reason = "only a database is asked for it")
    )]
    pub(crate) answer: Option<(Answer, Arc<str>)>,
    /// Tells whether a probe failed for a reason that may be unrelated to the file: it is
    /// repeated.
    pub(crate) is_passing: bool,
    /// Number of probes in a row that exceeded the time limit.
    pub(super) time_outs: u8,
}

/// Result of a probe, with the properties of the file that it depends on.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// Output of the probe; empty for a refusal without one.
    pub(crate) help: HelpText,
    /// First line of the file if it names an interpreter; empty if the file is unreadable.
    pub(crate) shebang: Option<String>,
    pub(crate) refusal: Option<Refusal>,
}

/// Result of a probe that describes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A file that is no tool, with the reason.
    NoTool(String),
    /// A tool whose probe failed.
    Fault(Diagnostic),
    /// A tool whose probe exceeded the time limit, and how many times in a row.
    TimeOut(Diagnostic, u8),
    /// A tool whose output is faulty.
    Text,
}

/// Result of an examination without running the file.
pub(super) enum Sight {
    /// Everything is known.
    Clear(Looked),
    /// It needs a probe.
    Unasked(Unasked),
}

/// Script that needs a probe.
pub(super) struct Unasked {
    candidate: Candidate,
    shebang: Option<String>,
    launch: Launch,
    /// Tells whether its faults concern the operator: it mentions mcpd, was named explicitly, or
    /// was a tool.
    pub(super) is_ours: bool,
}

impl Unasked {
    pub(super) fn candidate(&self) -> &Candidate {
        &self.candidate
    }
}

impl Examiner {
    pub(super) fn new(executor: Executor, policy: Policy, interpreters: Interpreters) -> Self {
        Self {
            executor,
            policy,
            interpreters,
            excerpts: Arc::default(),
            sound: Mutex::default(),
            gaps: Arc::default(),
            conditions: Conditions::default(),
            is_static: false,
        }
    }

    /// Returns an examiner with another policy and other interpreters, which shares the files it
    /// has written.
    pub(super) fn configured(&self, policy: Policy, interpreters: Interpreters) -> Self {
        Self {
            executor: self.executor.clone(),
            policy,
            interpreters: interpreters.with_versions_of(&self.interpreters),
            excerpts: Arc::clone(&self.excerpts),
            sound: Mutex::default(),
            gaps: Arc::clone(&self.gaps),
            conditions: Conditions::default(),
            is_static: self.is_static,
        }
    }

    /// Returns an examiner that keeps the versions of interpreters in a database.
    #[cfg(feature = "database")]
    pub(super) fn keep_versions_in(&self, database: crate::Database) -> Self {
        let mut examiner = self.configured(self.policy.clone(), self.interpreters.clone());
        examiner.interpreters = examiner.interpreters.keep_versions_in(database);
        examiner
    }

    /// Returns an examiner that runs nothing.
    pub(super) fn static_only(&self) -> Self {
        Self {
            is_static: true,
            ..self.configured(self.policy.clone(), self.interpreters.clone())
        }
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
    pub(super) fn see(
        &self,
        candidate: Candidate,
        recalled: Recalled,
        quiet_time: Duration,
    ) -> Result<Sight, Box<Candidate>> {
        if let Some((answer, conditions)) = recalled.answer
            && *conditions == *self.conditions(&candidate, answer.shebang.as_deref())
        {
            return Ok(Sight::Clear(self.recall(candidate, answer)));
        }
        // A scan that runs nothing cannot run a half-written file.
        if !self.is_static && Unrest::of(&candidate, quiet_time).is_some() {
            return Err(Box::new(candidate));
        }
        Ok(self.read(candidate, recalled.was_ours))
    }

    /// Examines a file that is still being written, without waiting any longer.
    pub(super) fn see_unquiet(
        &self,
        candidate: Candidate,
        was_ours: bool,
        unrest: Unrest,
    ) -> Looked {
        let looked = match self.read(candidate, was_ours) {
            Sight::Clear(looked) => looked,
            Sight::Unasked(script) if script.is_ours => {
                let fault = Diagnostic::help_not_started(unrest.reason());
                self.faulty(script.candidate, HelpText::default(), fault)
            }
            Sight::Unasked(script) => {
                Looked::passed(script.candidate, Because::Unfinished, unrest.reason())
            }
        };
        Looked {
            is_passing: true,
            ..looked
        }
    }

    /// Examines the contents of a file.
    fn read(&self, candidate: Candidate, was_ours: bool) -> Sight {
        // A panic of the parser on one file must not affect the others.
        let reading = panic::catch_unwind(|| reading::read(&candidate));
        let fault = match reading {
            Ok(Ok(Reading {
                shebang,
                description: Some(description),
                ..
            })) => return Sight::Clear(self.described(candidate, description, shebang.is_some())),
            Ok(Ok(_)) if !candidate.is_executable => {
                let (because, reason) = unmarked(&candidate.file);
                return Sight::Clear(Looked::passed(candidate, because, reason));
            }
            Ok(Ok(reading)) => return self.undescribed(candidate, reading, was_ours),
            // Permission to execute a file does not imply permission to read it.
            Ok(Err(Unreadable::Io(_)))
                if candidate.is_executable && candidate.sidecar.is_none() =>
            {
                let is_ours = candidate.is_named || was_ours;
                return self.unasked(candidate, Some(String::new()), is_ours);
            }
            Ok(Err(Unreadable::Io(error))) => {
                Diagnostic::help_not_started(&format!("it can't be read: {error}"))
            }
            Ok(Err(Unreadable::TooLarge)) => Diagnostic::file_too_large(reading::MAX_SIZE),
            Err(_) => Diagnostic::help_not_started("reading it failed"),
        };
        Sight::Clear(self.faulty(candidate, HelpText::default(), fault))
    }

    /// Returns the conditions beside its file on which a result for a script depends.
    fn conditions(&self, candidate: &Candidate, shebang: Option<&str>) -> Arc<str> {
        self.conditions.of(candidate, shebang, &self.policy)
    }

    /// Rebuilds the result for a file from a cached one.
    fn recall(&self, candidate: Candidate, answer: Answer) -> Looked {
        let conditions = self.conditions(&candidate, answer.shebang.as_deref());
        let remembered = Some((answer.clone(), conditions));
        let looked = match answer.refusal.clone() {
            Some(Refusal::NoTool(reason)) => Looked::passed(candidate, Because::NoTool, reason),
            Some(Refusal::Fault(fault)) => self.faulty(candidate, answer.help, fault),
            // The machine may have been the cause: a server repeats the probe after a while.
            Some(Refusal::TimeOut(fault, time_outs)) => Looked {
                is_passing: time_outs < PATIENCE,
                time_outs,
                ..self.faulty(candidate, answer.help, fault)
            },
            Some(Refusal::Text) => {
                let launch = Launch::of_program(&candidate.file);
                self.answer(candidate, answer, launch)
            }
            None => {
                let launch = self
                    .launch(&candidate, answer.shebang.is_some())
                    .and_then(|launch| self.looked_at_again(launch, &candidate, &answer));
                match launch {
                    Ok(launch) => return self.answer(candidate, answer, launch),
                    Err(missing) => return self.faulty(candidate, HelpText::default(), missing),
                }
            }
        };
        Looked {
            answer: remembered,
            ..looked
        }
    }

    /// Examines an executable file that describes nothing.
    fn undescribed(&self, candidate: Candidate, reading: Reading, was_ours: bool) -> Sight {
        let is_ours = reading.speaks_of_mcpd || candidate.is_named || was_ours;
        let is_run = reading.is_program || self.interpreters.know(&extension(&candidate.file));
        // A script that mentions mcpd gets the precise fault from the attempt to start it.
        if is_run || is_ours {
            return self.unasked(candidate, reading.shebang, is_ours);
        }
        let reason = "it can't be started: it is no program, and has neither a first line `#!` nor an extension with an \
                      interpreter";
        Sight::Clear(Looked::passed(candidate, Because::NoScript, reason))
    }

    /// Returns the scripts that a text describes.
    fn described(
        &self,
        candidate: Candidate,
        mut description: Description,
        has_shebang: bool,
    ) -> Looked {
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
                _ if self.is_program(&candidate, has_shebang) => None,
                _ => Some(extension(&candidate.file)),
            };
            if let Some(check) = extension.and_then(|name| self.interpreters.checked_by(&name)) {
                let mut faults = program::faults(&candidate, &description, &body, check);
                faults.retain(|fault| !program::is_known(fault, &parsed, &description));
                if faults.iter().any(|fault| fault.severity == Severity::Error) {
                    parsed.spec = None;
                }
                parsed.diagnostics.extend(faults);
            }
            let path = path.and_then(|path| path.parse().ok());
            let path = path.unwrap_or_else(|| candidate.path.clone());
            let launch = match body {
                Body::Code {
                    extension,
                    variants,
                    ..
                } => self.launch_of_part(&path, &extension, variants),
                // It is not served.
                Body::None => Ok(Launch::of_program(Path::new(""))),
                _ if description.dialect == Dialect::ScriptKit
                    && !self.is_program(&candidate, has_shebang) =>
                {
                    self.launch_for_script_kit(&candidate)
                }
                // argc reads it as Bash does, regardless of its extension.
                _ if description.dialect == Dialect::Argc && !has_shebang => self
                    .interpreter("bash")
                    .map(|bash| Launch::by(bash, &candidate.file)),
                _ => self
                    .launch(&candidate, has_shebang)
                    .and_then(|launch| self.looked_at(launch, &candidate, &path)),
            };
            let said = Said {
                dialect: Some(description.dialect),
                described_in: description.file.clone(),
                help: HelpText {
                    source: description.text.clone(),
                    ..HelpText::default()
                },
                parsed,
            };
            scripts.push(self.script(&candidate, path, said, launch));
        }
        Looked::new(candidate, scripts)
    }

    fn unasked(&self, candidate: Candidate, shebang: Option<String>, is_ours: bool) -> Sight {
        let launch = self.launch(&candidate, shebang.is_some());
        let launch = match launch {
            // Its first line can be wrong even where its interpreter must not run.
            Ok(launch) if self.is_static && is_ours => {
                let path = candidate.path.clone();
                self.looked_at(launch, &candidate, &path)
            }
            launch => launch,
        };
        match launch {
            Ok(_) if self.is_static => {
                let reason = "only asking it with `--help` can tell what it is";
                Sight::Clear(Looked::passed(candidate, Because::Unasked, reason))
            }
            Ok(launch) => Sight::Unasked(Unasked {
                candidate,
                shebang,
                launch,
                is_ours,
            }),
            Err(missing) if is_ours => {
                Sight::Clear(self.faulty(candidate, HelpText::default(), missing))
            }
            Err(missing) => Sight::Clear(Looked::passed(
                candidate,
                Because::NoScript,
                missing.message,
            )),
        }
    }

    fn answer(&self, candidate: Candidate, answer: Answer, launch: Launch) -> Looked {
        let said = Said {
            dialect: None,
            described_in: candidate.file.clone(),
            help: answer.help.clone(),
            parsed: parse(answer.help.output()),
        };
        let conditions = self.conditions(&candidate, answer.shebang.as_deref());
        let script = self.script(&candidate, candidate.path.clone(), said, Ok(launch));
        // An unusable schema is detected again when the output is parsed again.
        Looked {
            answer: Some((answer, conditions)),
            ..Looked::new(candidate, vec![script])
        }
    }

    /// Returns a faulty script without a description.
    fn faulty(&self, candidate: Candidate, help: HelpText, fault: Diagnostic) -> Looked {
        let sidecar = candidate.sidecar.as_ref();
        let said = Said {
            dialect: None,
            described_in: sidecar
                .map_or(&candidate.file, |sidecar| &sidecar.file)
                .clone(),
            help,
            parsed: Parsed::default(),
        };
        let script = self.script(&candidate, candidate.path.clone(), said, Err(fault));
        Looked::new(candidate, vec![script])
    }

    fn script(
        &self,
        candidate: &Candidate,
        path: ScriptPath,
        said: Said,
        launch: Result<Launch, Diagnostic>,
    ) -> Arc<ScannedScript> {
        let script = ScannedScript::new(candidate, path, said, launch, &self.policy);
        Arc::new(script)
    }
}

/// Returns why a file that is not executable and describes nothing is passed over.
fn unmarked(file: &Path) -> (Because, &'static str) {
    if is_kit_script(file) {
        let reason = "it is not executable, and has no schema that says what it takes";
        (Because::Schemaless, reason)
    } else {
        let reason = "it is not executable, and describes no tool";
        (Because::Unmarked, reason)
    }
}

impl Looked {
    /// Returns its refusal, if its result is one.
    #[cfg(feature = "database")]
    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        let (answer, _) = self.answer.as_ref()?;
        answer.refusal.as_ref()
    }

    /// Returns whether it is a tool, or a faulty one.
    pub(super) fn is_ours(&self) -> bool {
        !self.scripts.is_empty()
    }

    /// Returns a copy that stands in for `candidate` until that can be examined.
    pub(super) fn kept_for(&self, candidate: Candidate) -> Self {
        Self {
            is_passing: true,
            ..Self::new(candidate, self.scripts.clone())
        }
    }

    fn new(candidate: Candidate, scripts: Vec<Arc<ScannedScript>>) -> Self {
        Self {
            candidate,
            scripts,
            passed_over: None,
            answer: None,
            is_passing: false,
            time_outs: 0,
        }
    }

    fn passed(candidate: Candidate, because: Because, reason: impl Into<String>) -> Self {
        let passed = PassedOver::new(candidate.file.clone(), because, reason);
        Self {
            passed_over: Some(passed),
            ..Self::new(candidate, Vec::new())
        }
    }
}
