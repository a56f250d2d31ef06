//! One file at a time: what it says of itself, or answers when it is asked, and how what it describes is started.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use mcpd_exec::Executor;
use mcpd_scriptspec::{
    Body, Described, Diagnostic, Dialect, HelpOutput, Parsed, ScriptPath, Severity, parse,
};
use tokio::runtime::Handle;

use super::reading::{self, Description, Reading, Unreadable};
use super::script::Said;
use super::{HelpText, ScannedScript};
use super::{probe, program};
use crate::catalog::walk::Candidate;
use crate::interpreter::{Interpreter, Interpreters, MissingInterpreter};
use crate::launch::{Excerpts, Launch};
use crate::policy::Policy;
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
}

/// A file that has been looked at.
#[derive(Debug)]
pub(crate) struct Looked {
    pub(crate) candidate: Candidate,
    /// What it is, or has in it; nothing if it has nothing to do with mcpd.
    pub(crate) scripts: Vec<Arc<ScannedScript>>,
    /// What is worth remembering.
    #[cfg_attr(
        not(feature = "database"),
        expect(dead_code, reason = "only a database is asked for it")
    )]
    pub(crate) answer: Option<Answer>,
    /// It could not be asked for a reason that may have nothing to do with it: it is asked again.
    pub(crate) is_passing: bool,
    /// How often in a row it took too long to answer.
    pub(super) time_outs: u8,
}

/// What a script answered, with what else has to be known of its file.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) help: HelpText,
    /// The first line of the file if it names an interpreter; empty if it can't be read.
    pub(crate) shebang: Option<String>,
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
        }
    }

    /// Sees what can be seen without running anything: what the script has answered before, or what its file says.
    /// Blocks, and must be called on a tokio runtime.
    pub(super) fn see(&self, candidate: Candidate, answer: Option<Answer>) -> Sight {
        if let Some(answer) = answer {
            let launch = self
                .launch(&candidate, answer.shebang.is_some())
                .and_then(|launch| self.looked_at_again(launch, &candidate, &answer));
            return Sight::Clear(match launch {
                Ok(launch) => self.answer(candidate, answer, launch),
                Err(missing) => self.faulty(candidate, HelpText::default(), missing),
            });
        }
        // What one file does to its reader must not concern the others.
        let reading = panic::catch_unwind(|| reading::read(&candidate));
        let fault = match reading {
            Ok(Ok(Reading {
                shebang,
                description: Some(description),
            })) => return Sight::Clear(self.described(candidate, description, shebang.is_some())),
            Ok(Ok(_)) if !candidate.is_executable => {
                return Sight::Clear(Looked::new(candidate, Vec::new()));
            }
            Ok(Ok(Reading { shebang, .. })) => return self.unasked(candidate, shebang),
            // Who may execute a file need not be allowed to read it.
            Ok(Err(Unreadable::Io(_)))
                if candidate.is_executable && candidate.sidecar.is_none() =>
            {
                return self.unasked(candidate, Some(String::new()));
            }
            Ok(Err(Unreadable::Io(error))) => {
                Diagnostic::help_not_started(&format!("it can't be read: {error}"))
            }
            Ok(Err(Unreadable::TooLarge)) => Diagnostic::file_too_large(reading::MAX_SIZE),
            Err(_) => Diagnostic::help_not_started("reading it failed"),
        };
        Sight::Clear(self.faulty(candidate, HelpText::default(), fault))
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
                    extension, text, ..
                } => self.launch_of_part(&path, &extension, &text),
                _ if description.dialect == Dialect::ScriptKit
                    && !self.is_program(&candidate, has_shebang) =>
                {
                    self.launch_for_script_kit(&candidate)
                }
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

    fn unasked(&self, candidate: Candidate, shebang: Option<String>) -> Sight {
        match self.launch(&candidate, shebang.is_some()) {
            Ok(launch) => Sight::Unasked(Unasked {
                candidate,
                shebang,
                launch,
            }),
            Err(missing) => Sight::Clear(self.faulty(candidate, HelpText::default(), missing)),
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
        } = script;
        let terms = self
            .policy
            .terms(&candidate.path, candidate.directory(), None);
        match probe::probe(&self.executor, &candidate, &launch, &terms).await {
            Ok(help) => self.answer(candidate, Answer { help, shebang }, launch),
            Err(fault) => {
                let diagnostic = fault.diagnostic();
                let time_outs = if fault.is_time_out() {
                    time_outs + 1
                } else {
                    0
                };
                Looked {
                    is_passing: fault.is_passing() || (1..PATIENCE).contains(&time_outs),
                    time_outs,
                    ..self.faulty(candidate, fault.help(), diagnostic)
                }
            }
        }
    }

    fn answer(&self, candidate: Candidate, answer: Answer, launch: Launch) -> Looked {
        let help = &answer.help;
        let parsed = parse(HelpOutput {
            stdout: &help.stdout,
            stderr: &help.stderr,
        });
        let said = Said {
            dialect: None,
            described_in: candidate.file.clone(),
            help: help.clone(),
            parsed,
        };
        let script = self.script(&candidate, candidate.path.clone(), said, Ok(launch));
        // An answer that is no good may be better next time, though the file is the same.
        let answer = script.spec.is_some().then_some(answer);
        Looked {
            answer,
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
        let interpreter = self.interpreter(&extension(&candidate.file))?;
        Ok(Launch::by(interpreter, &candidate.file))
    }

    /// The same for a script of Script Kit, which needs an interpreter.
    fn launch_for_script_kit(&self, candidate: &Candidate) -> Result<Launch, Diagnostic> {
        let interpreter = self.interpreter(&extension(&candidate.file))?;
        Ok(Launch::by(&interpreter.for_script_kit(), &candidate.file))
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
        text: &str,
    ) -> Result<Launch, Diagnostic> {
        let interpreter = self.interpreter(extension)?;
        let terms = self.policy.terms(path, Path::new(""), None);
        let written = self
            .excerpts
            .write(extension, text, terms.sandbox().run_as)
            .map_err(|error| {
                Diagnostic::help_not_started(&format!("failed to write its file: {error}"))
            })?;
        Ok(Launch::of_excerpt(
            interpreter,
            &written,
            Arc::clone(&self.excerpts),
        ))
    }

    /// The program for the files of an extension, which is looked for once.
    fn interpreter(&self, extension: &str) -> Result<&Interpreter, Diagnostic> {
        let found = self.interpreters.find(extension, &self.executor);
        Handle::current().block_on(found).map_err(missing)
    }
}

fn extension(file: &Path) -> Cow<'_, str> {
    file.extension().unwrap_or_default().to_string_lossy()
}

fn missing(interpreter: MissingInterpreter) -> Diagnostic {
    Diagnostic::missing_interpreter(&interpreter.to_string(), &interpreter.help())
}

impl Looked {
    fn new(candidate: Candidate, scripts: Vec<Arc<ScannedScript>>) -> Self {
        Self {
            candidate,
            scripts,
            answer: None,
            is_passing: false,
            time_outs: 0,
        }
    }
}
