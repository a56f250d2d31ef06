//! One file at a time: what it says of itself, or answers when it is asked, and how what it describes is started.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use mcpd_exec::{Executor, StartError};
use mcpd_scriptspec::{
    Body, Described, Diagnostic, Dialect, Parsed, ScriptPath, Severity, Variant, parse,
};
use tokio::runtime::Handle;

use super::conditions::Conditions;
use super::files::{Because, PassedOver};
use super::kit::is_kit_script;
use super::reading::{self, Description, Reading, Unreadable};
use super::script::Said;
use super::{HelpText, ScannedScript};
use super::{probe, program};
use crate::catalog::memory::Recalled;
use crate::catalog::walk::Candidate;
use crate::interpreter::{Interpreter, Interpreters, MissingInterpreter};
use crate::launch::{Excerpts, FileVariant, Launch};
use crate::policy::{Policy, Root};
use crate::run::Gaps;
use crate::sync::lock;

/// How often a script is asked that takes too long to answer: it may be the machine, which has just been started.
const PATIENCE: u8 = 3;

/// Knows all it takes to look at a file.
#[derive(Debug)]
pub(super) struct Examiner {
    executor: Executor,
    policy: Policy,
    interpreters: Interpreters,
    excerpts: Arc<Excerpts>,
    /// First lines whose interpreters are there.
    sound: Mutex<BTreeSet<String>>,
    gaps: Arc<Gaps>,
    conditions: Conditions,
    /// Tells whether nothing may be run.
    is_static: bool,
}

/// A file that has been looked at.
#[derive(Debug)]
pub(crate) struct Looked {
    pub(crate) candidate: Candidate,
    /// What it is, or has in it; nothing if it has nothing to do with mcpd.
    pub(crate) scripts: Vec<Arc<ScannedScript>>,
    /// Why nothing is made of it, if that is no fault.
    pub(crate) passed_over: Option<PassedOver>,
    /// Knowledge worth remembering, and the conditions beside the file under which it holds.
    #[cfg_attr(
        not(feature = "database"),
        expect(dead_code, reason = "only a database is asked for it")
    )]
    pub(crate) answer: Option<(Answer, Arc<str>)>,
    /// It could not be asked for a reason that may have nothing to do with it: it is asked again.
    pub(crate) is_passing: bool,
    /// How often in a row it took too long to answer.
    pub(super) time_outs: u8,
}

/// What a script answered, with what else has to be known of its file.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// Nothing if the answer is a refusal that needs none.
    pub(crate) help: HelpText,
    /// The first line of the file if it names an interpreter; empty if it can't be read.
    pub(crate) shebang: Option<String>,
    pub(crate) refusal: Option<Refusal>,
}

/// An answer that describes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Of what is no tool, for this reason.
    NoTool(String),
    /// Of a tool that could not be asked for this reason.
    Fault(Diagnostic),
    /// Of a tool that took too long so many times.
    TimeOut(Diagnostic, u8),
    /// Of a tool: what is wrong is in the text.
    Text,
}

/// What is to be seen of a file without running it.
pub(super) enum Sight {
    /// All there is.
    Clear(Looked),
    /// Only asking it can tell.
    Unasked(Unasked),
}

/// A script that is to be asked.
pub(super) struct Unasked {
    candidate: Candidate,
    shebang: Option<String>,
    launch: Launch,
    /// Tells whether a fault of it is the operator's concern: it speaks of mcpd, was named by them, or was a tool.
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

    /// The same for scripts that are asked and run otherwise.
    pub(super) fn configured(&self, policy: Policy, interpreters: Interpreters) -> Self {
        Self {
            executor: self.executor.clone(),
            policy,
            interpreters,
            excerpts: Arc::clone(&self.excerpts),
            sound: Mutex::default(),
            gaps: Arc::clone(&self.gaps),
            conditions: Conditions::default(),
            is_static: self.is_static,
        }
    }

    /// Returns one that runs nothing.
    pub(super) fn static_only(&self) -> Self {
        Self {
            is_static: true,
            ..self.configured(self.policy.clone(), self.interpreters.clone())
        }
    }

    /// Returns what the operator says of the root at `path`.
    pub(super) fn rule(&self, path: &Path) -> Option<&Root> {
        self.policy.root_of(path)
    }

    /// Sees what can be seen without running anything: what the script has answered before, or what its file says.
    /// Blocks, and must be called on a tokio runtime.
    pub(super) fn see(&self, candidate: Candidate, recalled: Recalled) -> Sight {
        if let Some((answer, conditions)) = recalled.answer
            && *conditions == *self.conditions(&candidate, answer.shebang.as_deref())
        {
            return Sight::Clear(self.recall(candidate, answer));
        }
        // What one file does to its reader must not concern the others.
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
            Ok(Ok(reading)) => return self.undescribed(candidate, reading, recalled.was_ours),
            // Who may execute a file need not be allowed to read it.
            Ok(Err(Unreadable::Io(_)))
                if candidate.is_executable && candidate.sidecar.is_none() =>
            {
                let is_ours = candidate.is_named || recalled.was_ours;
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

    /// Returns what beside its file an answer of a script depends on.
    fn conditions(&self, candidate: &Candidate, shebang: Option<&str>) -> Arc<str> {
        self.conditions.of(candidate, shebang, &self.policy)
    }

    /// Makes of an answer of an earlier start what was made of it then.
    fn recall(&self, candidate: Candidate, answer: Answer) -> Looked {
        let conditions = self.conditions(&candidate, answer.shebang.as_deref());
        let remembered = Some((answer.clone(), conditions));
        let looked = match answer.refusal.clone() {
            Some(Refusal::NoTool(reason)) => Looked::passed(candidate, Because::NoTool, reason),
            Some(Refusal::Fault(fault)) => self.faulty(candidate, answer.help, fault),
            // It may have been the machine: a server asks it again by and by.
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

    /// Examines a file that may be executed and describes nothing.
    fn undescribed(&self, candidate: Candidate, reading: Reading, was_ours: bool) -> Sight {
        let is_ours = reading.speaks_of_mcpd || candidate.is_named || was_ours;
        let is_run = reading.is_program || self.interpreters.know(&extension(&candidate.file));
        // A script that speaks of mcpd hears what it lacks from the attempt to start it.
        if is_run || is_ours {
            return self.unasked(candidate, reading.shebang, is_ours);
        }
        let reason = "it can't be started: it is no program, and has neither a first line `#!` nor an extension with an \
                      interpreter";
        Sight::Clear(Looked::passed(candidate, Because::NoScript, reason))
    }

    /// The scripts that a text describes.
    fn described(
        &self,
        candidate: Candidate,
        mut description: Description,
        has_shebang: bool,
    ) -> Looked {
        let mut scripts = Vec::with_capacity(description.tools.len());
        for tool in std::mem::take(&mut description.tools) {
            let Described {
                path,
                mut parsed,
                body,
                ..
            } = tool;
            let extension = match &body {
                Body::Code { extension, .. } => Some(Cow::Borrowed(extension.as_str())),
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
                _ if description.dialect == Dialect::ScriptKit
                    && !self.is_program(&candidate, has_shebang) =>
                {
                    self.launch_for_script_kit(&candidate)
                }
                // argc reads it as Bash does, whatever its name ends in.
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
            // Its first line can be wrong, no matter which interpreter is to run it.
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

    /// Asks a script what it says of itself, which has taken too long for that so many times.
    pub(super) async fn ask(&self, script: Unasked, time_outs: u8) -> Looked {
        let candidate = script.candidate.clone();
        // What one script does to its reader must not concern the others.
        let asked = AssertUnwindSafe(self.heard(script, time_outs)).catch_unwind();
        asked.await.unwrap_or_else(|_| {
            let fault = Diagnostic::help_not_started("reading what it says failed");
            self.faulty(candidate, HelpText::default(), fault)
        })
    }

    async fn heard(&self, script: Unasked, time_outs: u8) -> Looked {
        let Unasked {
            candidate,
            shebang,
            launch,
            is_ours,
        } = script;
        let terms = (self.policy).probe_terms(&candidate.path, candidate.directory(), None);
        let probed = probe::probe(&self.executor, &candidate, &launch, &terms).await;
        self.gaps.report_probe(&probed.missing);
        let path = candidate.path.clone();
        let remedy = probed.remedy.map(|key| probe::help_with(key, &path));
        let fault = match probed.answer {
            Ok(help) => return self.answered(candidate, help, shebang, launch, is_ours, remedy),
            Err(fault) => fault,
        };
        let mut diagnostic = fault.diagnostic();
        let (is_passing, is_time_out) = (fault.is_passing(), fault.is_time_out());
        let help = fault.help();
        if !is_ours && !is_passing && !resembles_answer(&help) {
            let reason = no_tool(&diagnostic.message, remedy.as_deref());
            return self.refused(candidate, shebang, reason);
        }
        diagnostic.help = remedy.or(diagnostic.help);
        let time_outs = if is_time_out { time_outs + 1 } else { 0 };
        let refusal = match is_time_out {
            true => Refusal::TimeOut(diagnostic.clone(), time_outs),
            false => Refusal::Fault(diagnostic.clone()),
        };
        let conditions = self.conditions(&candidate, shebang.as_deref());
        let answer = Answer {
            help: HelpText::default(),
            shebang,
            refusal: Some(refusal),
        };
        Looked {
            answer: (!is_passing).then_some((answer, conditions)),
            is_passing: is_passing || (1..PATIENCE).contains(&time_outs),
            time_outs,
            ..self.faulty(candidate, help, diagnostic)
        }
    }

    /// Examines the answer of a script that has ended `--help` well.
    fn answered(
        &self,
        candidate: Candidate,
        help: HelpText,
        shebang: Option<String>,
        launch: Launch,
        is_ours: bool,
        remedy: Option<String>,
    ) -> Looked {
        let parsed = parse(help.output());
        if parsed.spec.is_none() && !is_ours && !resembles_answer(&help) {
            let reason = no_tool("its `--help` describes no tool", remedy.as_deref());
            return self.refused(candidate, shebang, reason);
        }
        let answer = Answer {
            help,
            shebang,
            refusal: parsed.spec.is_none().then_some(Refusal::Text),
        };
        let mut looked = self.answer(candidate, answer, launch);
        if let (Some(remedy), [script]) = (remedy, &mut looked.scripts[..])
            && script.spec.is_none()
            && let Some(fault) = Arc::make_mut(script).diagnostics.first_mut()
        {
            fault.help = Some(remedy);
        }
        looked
    }

    /// Passes over a file whose answer describes no tool.
    fn refused(&self, candidate: Candidate, shebang: Option<String>, reason: String) -> Looked {
        let conditions = self.conditions(&candidate, shebang.as_deref());
        let answer = Answer {
            help: HelpText::default(),
            shebang,
            refusal: Some(Refusal::NoTool(reason.clone())),
        };
        Looked {
            answer: Some((answer, conditions)),
            ..Looked::passed(candidate, Because::NoTool, reason)
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
        // A schema that is no good is found when what was said is read again.
        Looked {
            answer: Some((answer, conditions)),
            ..Looked::new(candidate, vec![script])
        }
    }

    /// A script of which nothing else is known.
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

    /// What nobody asks for its help is looked at instead, or its first call would be the first to find out that it
    /// can't be started.
    fn looked_at(
        &self,
        launch: Launch,
        candidate: &Candidate,
        path: &ScriptPath,
    ) -> Result<Launch, Diagnostic> {
        let terms = self.policy.terms(path, candidate.directory(), None);
        let command = launch.command().current_dir(&candidate.root);
        match self.executor.look(&terms.apply(command)) {
            Ok(()) => Ok(launch),
            Err(error) if self.is_static && !is_of_file(&error) => Ok(launch),
            Err(error) => Err(probe::not_started(&error)),
        }
    }

    /// The same of what was asked at an earlier start: its interpreter may have gone since. One look for each first line is
    /// enough.
    fn looked_at_again(
        &self,
        launch: Launch,
        candidate: &Candidate,
        answer: &Answer,
    ) -> Result<Launch, Diagnostic> {
        let Some(line) = &answer.shebang else {
            return Ok(launch);
        };
        if lock(&self.sound).contains(line) {
            return Ok(launch);
        }
        let launch = self.looked_at(launch, candidate, &candidate.path)?;
        lock(&self.sound).insert(line.clone());
        Ok(launch)
    }

    /// How a file is started: as what it is, or by the interpreter for its extension.
    fn launch(&self, candidate: &Candidate, has_shebang: bool) -> Result<Launch, Diagnostic> {
        if self.is_program(candidate, has_shebang) {
            return Ok(Launch::of_program(&candidate.file));
        }
        self.launch_by(
            &extension(&candidate.file),
            &candidate.file,
            |interpreter| Launch::by(interpreter, &candidate.file),
        )
    }

    /// The same for a script of Script Kit, which needs an interpreter.
    fn launch_for_script_kit(&self, candidate: &Candidate) -> Result<Launch, Diagnostic> {
        self.launch_by(
            &extension(&candidate.file),
            &candidate.file,
            |interpreter| Launch::by(&interpreter.for_script_kit(), &candidate.file),
        )
    }

    /// Whether a file is started as what it is.
    fn is_program(&self, candidate: &Candidate, has_shebang: bool) -> bool {
        let is_known = || self.interpreters.know(&extension(&candidate.file));
        candidate.is_executable && (has_shebang || !is_known())
    }

    /// How a part of a file is started, which is to have a file of its own.
    fn launch_of_part(
        &self,
        path: &ScriptPath,
        extension: &str,
        variants: Vec<Variant>,
    ) -> Result<Launch, Diagnostic> {
        if self.is_static && self.interpreters.know(extension) {
            return Ok(Launch::of_program(Path::new("")));
        }
        let interpreter = self.interpreter(extension)?;
        let run_as = self
            .policy
            .terms(path, Path::new(""), None)
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
            Diagnostic::help_not_started(&format!("failed to write its file: {error}"))
        })?;
        let excerpts = Arc::clone(&self.excerpts);
        Ok(Launch::of_excerpts(interpreter, written, excerpts))
    }

    /// Has the interpreter for an extension run `file`. Where nothing is run none need be installed, and asking for its
    /// version would be running it.
    fn launch_by(
        &self,
        extension: &str,
        file: &Path,
        launch: impl FnOnce(&Interpreter) -> Launch,
    ) -> Result<Launch, Diagnostic> {
        if self.is_static && self.interpreters.know(extension) {
            return Ok(Launch::of_program(file));
        }
        self.interpreter(extension).map(launch)
    }

    /// The program for the files of an extension, which is looked for once.
    fn interpreter(&self, extension: &str) -> Result<&Interpreter, Diagnostic> {
        let found = self.interpreters.find(extension, &self.executor);
        Handle::current().block_on(found).map_err(missing)
    }
}

/// Returns whether what keeps a script from being started is in its file, and not a matter of the machine.
fn is_of_file(error: &StartError) -> bool {
    matches!(
        error,
        StartError::ByteOrderMark { .. }
            | StartError::NoInterpreter { .. }
            | StartError::BadInterpreter { crlf: true, .. }
    )
}

/// Returns why nothing is made of a file that may not be executed and describes nothing.
fn unmarked(file: &Path) -> (Because, &'static str) {
    if is_kit_script(file) {
        let reason = "it is not executable, and has no schema that says what it takes";
        (Because::Schemaless, reason)
    } else {
        let reason = "it is not executable, and describes no tool";
        (Because::Unmarked, reason)
    }
}

/// Why a file is no tool, with what may help if it is meant to be one.
fn no_tool(what: &str, remedy: Option<&str>) -> String {
    let remedy = remedy
        .map(|remedy| format!("; {remedy}"))
        .unwrap_or_default();
    format!("it is no tool of mcpd's: {what}, and nothing in it speaks of mcpd{remedy}")
}

/// Returns whether what a script printed was meant to be a description, however little came of it.
fn resembles_answer(help: &HelpText) -> bool {
    const FIELDS: [&str; 6] = [
        "description",
        "value_type",
        "title",
        "kind",
        "required",
        "usage",
    ];
    [&help.stdout, &help.stderr].into_iter().any(|text| {
        let text = String::from_utf8_lossy(text);
        let text = text.trim_start_matches('\u{feff}').trim_start();
        text.starts_with('{') && FIELDS.iter().any(|field| text.contains(field))
    })
}

fn extension(file: &Path) -> Cow<'_, str> {
    file.extension().unwrap_or_default().to_string_lossy()
}

fn missing(interpreter: MissingInterpreter) -> Diagnostic {
    Diagnostic::missing_interpreter(&interpreter.to_string(), &interpreter.help())
}

impl Looked {
    /// Returns its answer if that describes nothing.
    #[cfg(feature = "database")]
    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        let (answer, _) = self.answer.as_ref()?;
        answer.refusal.as_ref()
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
