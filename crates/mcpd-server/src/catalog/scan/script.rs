//! One script as a scan finds it: described, or faulty, or both.

use std::path::PathBuf;
use std::sync::Arc;

use mcpd_scriptspec::{Diagnostic, Dialect, Parsed, ScriptPath, ScriptSpec};

use super::HelpText;
use crate::catalog::walk::Candidate;
use crate::launch::Launch;
use crate::policy::{Policy, Terms};
use crate::schema::{Schemas, Unusable};

/// One script as it was found: described, or faulty, or both.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ScannedScript {
    /// Its path relative to its root, which is its name.
    pub path: ScriptPath,
    /// The file that runs, or that what runs is a part of.
    pub file: PathBuf,
    /// The file that describes it: its sidecar, or itself.
    pub described_in: PathBuf,
    /// The root it was found under.
    pub root: PathBuf,
    /// The dialect it is described in, unless it was asked with `--help`.
    pub dialect: Option<Dialect>,
    /// What it said, parsed; absent if a fault keeps it from being served.
    pub spec: Option<Arc<ScriptSpec>>,
    /// What is wrong or doubtful.
    pub diagnostics: Vec<Diagnostic>,
    /// The text the diagnostics point into.
    pub help: HelpText,
    /// Its schemas, compiled.
    pub(crate) schemas: Arc<Schemas>,
    /// What it may do.
    pub(crate) terms: Arc<Terms>,
    /// How it is started; absent if nothing can run it.
    pub(crate) launch: Option<Launch>,
}

/// What a script is made of, before anything is made of it.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) dialect: Option<Dialect>,
    pub(super) described_in: PathBuf,
    pub(super) help: HelpText,
    pub(super) parsed: Parsed,
}

impl ScannedScript {
    /// The script at `path`, started by `launch`.
    pub(super) fn new(
        candidate: &Candidate,
        path: ScriptPath,
        said: Said,
        launch: Result<Launch, Diagnostic>,
        policy: &Policy,
    ) -> Self {
        let Parsed {
            mut spec,
            mut diagnostics,
            ..
        } = said.parsed;
        let launch = launch
            .inspect_err(|missing| {
                spec = None;
                diagnostics.push(missing.clone());
            })
            .ok();
        let schemas = spec
            .as_ref()
            .map(Schemas::of)
            .unwrap_or(Ok(Schemas::default()));
        let schemas = schemas.unwrap_or_else(|Unusable { field, reason }| {
            spec = None;
            let fault = Diagnostic::invalid_schema(&said.help.stdout, field, &reason);
            diagnostics.push(fault);
            Schemas::default()
        });
        let terms = policy.terms(&path, candidate.directory(), spec.as_ref());
        Self {
            path,
            file: candidate.file.clone(),
            described_in: said.described_in,
            root: candidate.root.clone(),
            dialect: said.dialect,
            spec: spec.map(Arc::new),
            diagnostics,
            help: said.help,
            schemas: Arc::new(schemas),
            terms: Arc::new(terms),
            launch,
        }
    }
}
