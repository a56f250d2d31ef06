//! Scan result of one script.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use mcpd_scriptspec::{Diagnostic, Dialect, Parsed, ScriptPath, ScriptSpec, Severity};

use super::HelpText;
use crate::catalog::pins::HeldBack;
use crate::catalog::served::ServedScript;
use crate::catalog::tool::listed::of_default;
use crate::catalog::walk::Candidate;
use crate::policy::Policy;
use crate::script::fingerprint::Fingerprint;
use crate::script::schema::formats::remove_forbidden_defaults;
use crate::script::schema::{Schemas, Unusable};
use crate::script::start_command::StartCommand;
use crate::script::{ForCallers, Launch, Script, required_capabilities};

/// Script as it was found: described, or faulty, or both.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ScannedScript {
    /// Path relative to its root, which is its name.
    pub path: ScriptPath,
    /// File that runs, or that contains the part that runs.
    pub file: PathBuf,
    /// File that describes it: its sidecar, or itself.
    pub described_in: PathBuf,
    /// Root under which it was found.
    pub root: PathBuf,
    /// Dialect of its description, unless it was probed with `--help`.
    pub dialect: Option<Dialect>,
    /// Parsed description; absent if it is not served.
    pub spec: Option<Arc<ScriptSpec>>,
    /// Errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// Text to which the diagnostics point.
    pub help: HelpText,
    /// Reason for which it is held back, if only approved scripts are served.
    pub held_back: Option<HeldBack>,
    /// Files of this version, as they were when it was scanned.
    pub(crate) version: ScannedVersion,
    /// Catalog entry; absent if a fault prevents it.
    pub(crate) served: Option<ServedScript>,
}

/// Files that a script consists of: its own, and the sidecar that describes it.
#[derive(Debug, Clone)]
pub(crate) struct ScannedVersion(pub(crate) Vec<(PathBuf, Fingerprint)>);

impl ScannedVersion {
    fn of(candidate: &Candidate) -> Self {
        let sidecar = candidate.sidecar.as_ref();
        let sidecar = sidecar.map(|sidecar| (sidecar.file.clone(), sidecar.fingerprint));
        let file = (candidate.file.clone(), candidate.fingerprint);
        Self([file].into_iter().chain(sidecar).collect())
    }
}

/// Description of a script before it is validated.
#[derive(Debug)]
pub(super) struct ScriptDescription {
    pub(super) dialect: Option<Dialect>,
    pub(super) described_in: PathBuf,
    pub(super) help: HelpText,
    pub(super) parsed: Parsed,
}

impl ScannedScript {
    /// Builds the result for the script at `path`, started by `start_command`.
    pub(super) fn new(
        candidate: &Candidate,
        path: ScriptPath,
        said: ScriptDescription,
        start_command: Result<StartCommand, Diagnostic>,
        policy: &Policy,
    ) -> Self {
        let mut parsed = said.parsed;
        let start_command = start_command.map_err(|missing| parsed.diagnostics.push(missing));
        let schemas = parsed.spec.as_ref().map(Schemas::of).transpose();
        let schemas = schemas.map_err(|Unusable { field, reason }| {
            let fault = parsed.invalid_schema(field, &reason);
            parsed.diagnostics.push(fault);
        });
        if let Some(spec) = &parsed.spec
            && !spec.has_portable_schema()
        {
            let forbidden = remove_forbidden_defaults(&mut spec.input_schema()).into_iter();
            let forbidden = forbidden.map(|place| of_default(&place));
            let faults = forbidden.map(Diagnostic::forbidden_default);
            parsed.diagnostics.extend(faults);
        }
        let Parsed {
            spec, diagnostics, ..
        } = parsed;
        let spec = spec.map(Arc::new);
        let served = match (&spec, start_command, schemas) {
            (Some(spec), Ok(start_command), Ok(Some(schemas))) => Some(ServedScript::new(Script {
                path: path.clone(),
                file: candidate.file.clone(),
                directory: candidate.root.clone(),
                schemas: Arc::new(schemas),
                policy: Arc::new(policy.effective_policy(&path, candidate.directory(), Some(spec))),
                required: required_capabilities(&spec.requires),
                spec: Arc::clone(spec),
                launch: Launch::Here(start_command),
                for_callers: ForCallers::default(),
                is_in_client_directory: false,
                version_check: OnceLock::new(),
            })),
            _ => None,
        };
        Self {
            path,
            file: candidate.file.clone(),
            described_in: said.described_in,
            root: candidate.root.clone(),
            dialect: said.dialect,
            spec: spec.filter(|_| served.is_some()),
            diagnostics,
            help: said.help,
            held_back: None,
            version: ScannedVersion::of(candidate),
            served,
        }
    }

    /// Returns the result for a script that must not be served, for this reason.
    pub(in crate::catalog) fn held_back(&self, reason: HeldBack) -> Self {
        Self {
            spec: None,
            served: None,
            held_back: Some(reason),
            ..self.clone()
        }
    }
}

impl ScannedScript {
    /// Returns whether a fault prevents it from being served. A file that is merely passed over
    /// has none.
    #[must_use]
    pub fn is_faulty(&self) -> bool {
        let mut faults = self.diagnostics.iter();
        self.spec.is_none() && faults.any(|fault| fault.severity == Severity::Error)
    }
}

impl fmt::Display for ScannedScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ({})", self.path, self.file.display())
    }
}
