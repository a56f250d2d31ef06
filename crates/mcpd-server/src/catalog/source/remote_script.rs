//! Script that another server has announced, made from what it said of itself there.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use mcpd_scriptspec::{Dialect, HelpOutput, Parsed, ScriptPath, Severity, parse};

use crate::policy::Policy;
use crate::remote::{Announcement, Place};
use crate::script::schema::{Schemas, Unusable};
use crate::script::{Elsewhere, ForCallers, Launch, Script, required_capabilities};

/// Makes the script.
///
/// # Errors
///
/// The reason why it cannot be served, as a fragment.
pub(super) fn make(
    policy: &Policy,
    source: &Arc<str>,
    path: ScriptPath,
    announced: &Announcement,
    place: Arc<dyn Place>,
) -> Result<Script, String> {
    let parsed = read(&path, announced)?;
    let mut faults = parsed.diagnostics.iter();
    let fault = faults.find(|fault| fault.severity == Severity::Error);
    let Some(spec) = parsed.spec else {
        let fault = fault.map(|fault| fault.message.to_string());
        return Err(fault.unwrap_or_else(|| "it has no description".to_owned()));
    };
    let schemas = Schemas::of(&spec)
        .map_err(|Unusable { field, reason }| format!("its `{field}`: {reason}"))?;
    // Paths in its wishes are those of the other machine, which holds it to them.
    let effective = policy.effective_policy(&path, Path::new("/"), Some(&spec));
    Ok(Script {
        path,
        file: PathBuf::new(),
        directory: PathBuf::new(),
        schemas: Arc::new(schemas),
        policy: Arc::new(effective.for_elsewhere()),
        required: required_capabilities(&spec.requires),
        spec: Arc::new(spec),
        launch: Launch::There(Arc::new(Elsewhere {
            place,
            digest: Arc::clone(&announced.digest),
            source: Arc::clone(source),
            queue: Arc::default(),
        })),
        version_check: OnceLock::new(),
        for_callers: ForCallers::default(),
        is_in_client_directory: false,
    })
}

/// Reads the description as a scan of the file would.
fn read(path: &ScriptPath, announced: &Announcement) -> Result<Parsed, String> {
    let description = &announced.description;
    let Some((dialect, file)) = &description.file else {
        return Ok(parse(HelpOutput {
            stdout: &description.stdout,
            stderr: &description.stderr,
        }));
    };
    let dialect = Dialect::named(dialect)
        .ok_or_else(|| format!("its description is in the dialect `{dialect}`, which this version of mcpd does not know"))?;
    let tools = dialect.read(file, &description.source);
    let count = tools.len();
    let mut tools = tools.into_iter();
    let described = tools.find(|tool| match &tool.path {
        Some(own) => own == path.as_str(),
        None => count == 1,
    });
    described
        .map(|tool| tool.parsed)
        .ok_or_else(|| format!("`{file}` does not describe it"))
}
