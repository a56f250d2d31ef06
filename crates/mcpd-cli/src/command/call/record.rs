//! Recording of a call as a test case beside its script.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use mcpd_check::render::{base_directory, display_path};
use mcpd_clients::file::{self, Backup, Change};
use mcpd_protocol::method::CallToolResult;
use mcpd_server::{Catalog, Tool};
use mcpd_testcase::{Recording, SUFFIX};
use serde_json::value::RawValue;

use crate::output;

/// Appends the call to the cases of its script, and says where.
pub(super) fn record(
    name: &str,
    tool: &Tool,
    catalog: &Catalog,
    arguments: &RawValue,
    result: &CallToolResult,
) -> anyhow::Result<()> {
    let Some(script) = tool.file() else {
        bail!("record the call: `{}` is no script", tool.path());
    };
    let arguments = serde_json::from_str(arguments.get()).context("record the arguments")?;
    let mut recording = Recording::new(arguments, result);
    if !name.is_empty() {
        recording = recording.name(name);
    }
    let mut tools = catalog.scan().scripts.iter();
    if tools.any(|other| other.file == script && other.path != *tool.path()) {
        recording = recording.tool(tool.path().as_str());
    }
    if let Some(spec) = tool.spec() {
        recording = recording.without_secrets_of(spec);
    }
    if let Some(ending) = recording.hindrance() {
        bail!("record the call: {ending}, which no case can expect");
    }
    let path = beside(script);
    append(&path, recording).context("record the call")?;
    let shown = display_path(&path, &base_directory());
    output::note(&format!("recorded in {shown}\n"));
    Ok(())
}

fn beside(script: &Path) -> PathBuf {
    let mut path = script.as_os_str().to_owned();
    path.push(SUFFIX);
    path.into()
}

/// Appends the case to the file, whole or not at all.
fn append(path: &Path, recording: Recording) -> anyhow::Result<()> {
    let before = file::read(path)?;
    let text = before.as_deref().unwrap_or_default();
    let after = mcpd_testcase::append(path, text, recording)?;
    Change::new(path, before.as_deref(), Some(&after))
        .set_private(false)
        .set_backup(Backup::Skip)
        .apply()?;
    Ok(())
}
