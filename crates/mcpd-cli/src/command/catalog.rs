//! `mcpd catalog`: the cache of script descriptions that persists between starts.

use anyhow::{Context as _, bail};
use mcpd_check::terminal;
use mcpd_config::directories;
use mcpd_server::Database;
use mcpd_server::database::Definition;
use serde_json::Value;

use crate::args::{Catalog, CatalogAction};
use crate::exit_code::ExitCode;
use crate::output;

/// Shows or removes cached definitions. Reads no script.
pub(crate) fn run(args: &Catalog) -> anyhow::Result<ExitCode> {
    let file = directories::database().context("find the database")?;
    let database = Database::new(&file);
    let named = || format!("use the database `{}`", file.display());
    match &args.action {
        CatalogAction::List { json } => {
            let definitions = database.definitions(None).with_context(named)?;
            if *json {
                output::write_json(&definitions)?;
            } else {
                output::write(table(&definitions).as_bytes())?;
            }
        }
        CatalogAction::Show { name, json } => {
            let definitions = database.definitions(Some(name)).with_context(named)?;
            if definitions.is_empty() {
                return Ok(unknown(name));
            }
            if *json {
                output::write_json(&definitions)?;
            } else {
                definitions.iter().try_for_each(show)?;
            }
        }
        CatalogAction::Forget { name, all } => {
            let name = match (name, all) {
                (Some(name), _) => Some(name.as_str()),
                (None, true) => None,
                (None, false) => {
                    bail!("forget definitions: expected the name of a tool, or `--all`")
                }
            };
            let count = database.forget(name).with_context(named)?;
            if let (Some(name), 0) = (name, count) {
                return Ok(unknown(name));
            }
            let plural = if count == 1 { "" } else { "s" };
            output::note(&format!("removed {count} definition{plural}\n"));
        }
    }
    Ok(ExitCode::Success)
}

fn unknown(name: &str) -> ExitCode {
    let name = name.escape_debug();
    output::error(&format!("the cache has no definition of `{name}`"));
    ExitCode::Tool
}

/// One line per definition: its name and its origin.
fn table(definitions: &[Definition]) -> String {
    let origins: Vec<_> = definitions.iter().map(origin).collect();
    let rows = definitions.iter().zip(&origins);
    let rows = rows.map(|(definition, origin)| (definition.name.as_str(), origin.as_str()));
    terminal::table(rows, output::columns())
}

fn origin(definition: &Definition) -> String {
    let dialect = definition.dialect.as_deref().unwrap_or("--help");
    format!("{dialect}, in {}", definition.namespace)
}

fn show(definition: &Definition) -> anyhow::Result<()> {
    let origin = origin(definition);
    output::write(format!("{}: {origin}\n", definition.name).as_bytes())?;
    let metadata: Value = serde_json::from_str(definition.metadata.get())?;
    output::write_json(&metadata)
}
