//! One file at a time: what it says of itself, or answers when it is asked, and how what it describes is started.

use std::path::Path;
use std::sync::Arc;

use mcpd_exec::Executor;
use mcpd_scriptspec::{Body, Described, Diagnostic, HelpOutput, Parsed, ScriptPath, parse};

use super::probe;
use super::reading::{self, Description, Reading, Unreadable};
use super::script::Said;
use super::{HelpText, ScannedScript};
use crate::catalog::walk::Candidate;
use crate::interpreter::{Interpreters, MissingInterpreter};
use crate::launch::{Excerpts, Launch};
use crate::policy::Policy;

/// Knows all it takes to look at a file.
#[derive(Debug)]
pub(super) struct Examiner {
    executor: Executor,
    policy: Policy,
    interpreters: Interpreters,
    excerpts: Arc<Excerpts>,
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
    /// It could not be asked for a reason that has nothing to do with it: it is asked again.
    pub(crate) is_passing: bool,
}

/// What a script answered, with what else has to be known of its file.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) help: HelpText,
    pub(crate) has_shebang: bool,
}

impl Examiner {
    pub(super) fn new(executor: Executor, policy: Policy, interpreters: Interpreters) -> Self {
        Self {
            executor,
            policy,
            interpreters,
            excerpts: Arc::default(),
        }
    }

    pub(super) fn configure(&mut self, policy: Policy, interpreters: Interpreters) {
        self.policy = policy;
        self.interpreters = interpreters;
    }

    /// Reads a file, and asks it if that says nothing.
    pub(super) async fn examine(&self, candidate: Candidate) -> Looked {
        let reading = candidate.clone();
        let reading = tokio::task::spawn_blocking(move || reading::read(&reading));
        let fault = match reading.await {
            Ok(Ok(Reading {
                has_shebang,
                description: Some(description),
            })) => return self.described(candidate, description, has_shebang).await,
            Ok(Ok(_)) if !candidate.is_executable => return Looked::new(candidate, Vec::new()),
            Ok(Ok(Reading { has_shebang, .. })) => return self.ask(candidate, has_shebang).await,
            // Who may execute a file need not be allowed to read it.
            Ok(Err(Unreadable::Io(_)))
                if candidate.is_executable && candidate.sidecar.is_none() =>
            {
                return self.ask(candidate, true).await;
            }
            Ok(Err(Unreadable::Io(error))) => {
                Diagnostic::help_not_started(&format!("it can't be read: {error}"))
            }
            Ok(Err(Unreadable::TooLarge)) => Diagnostic::file_too_large(reading::MAX_SIZE),
            Err(error) => Diagnostic::help_not_started(&error.to_string()),
        };
        self.faulty(candidate, HelpText::default(), fault)
    }

    /// The scripts that a text describes.
    async fn described(
        &self,
        candidate: Candidate,
        description: Description,
        has_shebang: bool,
    ) -> Looked {
        let mut scripts = Vec::with_capacity(description.tools.len());
        for tool in description.tools {
            let Described {
                path, parsed, body, ..
            } = tool;
            let path = path.and_then(|path| path.parse().ok());
            let path = path.unwrap_or_else(|| candidate.path.clone());
            let launch = match body {
                Body::Code {
                    extension, text, ..
                } => self.launch_of_part(&path, extension, text).await,
                _ => self.launch(&candidate, has_shebang).await,
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

    /// Asks a script what it says of itself.
    async fn ask(&self, candidate: Candidate, has_shebang: bool) -> Looked {
        let launch = match self.launch(&candidate, has_shebang).await {
            Ok(launch) => launch,
            Err(missing) => return self.faulty(candidate, HelpText::default(), missing),
        };
        let terms = self
            .policy
            .terms(&candidate.path, candidate.directory(), None);
        match probe::probe(&self.executor, &candidate, &launch, &terms).await {
            Ok(help) => self.answer(candidate, Answer { help, has_shebang }, launch),
            Err(fault) => {
                let diagnostic = fault.diagnostic();
                let is_passing = fault.is_passing();
                Looked {
                    is_passing,
                    ..self.faulty(candidate, fault.help(), diagnostic)
                }
            }
        }
    }

    /// The script that has given this answer before.
    pub(super) async fn answered(&self, candidate: Candidate, answer: Answer) -> Looked {
        match self.launch(&candidate, answer.has_shebang).await {
            Ok(launch) => self.answer(candidate, answer, launch),
            Err(missing) => self.faulty(candidate, HelpText::default(), missing),
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

    /// How a file is started: as what it is, or by the interpreter for its extension.
    async fn launch(&self, candidate: &Candidate, has_shebang: bool) -> Result<Launch, Diagnostic> {
        let extension = candidate.file.extension().unwrap_or_default();
        let extension = extension.to_string_lossy();
        if candidate.is_executable && (has_shebang || !self.interpreters.know(&extension)) {
            return Ok(Launch::of_program(&candidate.file));
        }
        let found = self.interpreters.find(&extension, &self.executor).await;
        found
            .map(|interpreter| Launch::by(interpreter, &candidate.file))
            .map_err(missing)
    }

    /// How a part of a file is started, which is to have a file of its own.
    async fn launch_of_part(
        &self,
        path: &ScriptPath,
        extension: String,
        text: String,
    ) -> Result<Launch, Diagnostic> {
        let interpreter = self
            .interpreters
            .find(&extension, &self.executor)
            .await
            .map_err(missing)?;
        let terms = self.policy.terms(path, Path::new(""), None);
        let run_as = terms.sandbox().run_as;
        let excerpts = Arc::clone(&self.excerpts);
        let write = move || excerpts.write(&extension, &text, run_as);
        let written = tokio::task::spawn_blocking(write).await;
        let file = written
            .map_err(std::io::Error::other)
            .flatten()
            .map_err(|error| Diagnostic::help_not_started(&format!("write its file: {error}")))?;
        let excerpts = Arc::clone(&self.excerpts);
        Ok(Launch::of_excerpt(interpreter, &file, excerpts))
    }
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
        }
    }
}
