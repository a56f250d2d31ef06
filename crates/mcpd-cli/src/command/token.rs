//! `mcpd token`: tokens of clients over HTTP.

use std::path::{self, Path, PathBuf};

use anyhow::{Context as _, bail};
use mcpd_clients::file::{self, Backup, Change};
use mcpd_config::token::{self, TokenTable};
use mcpd_config::{AGENT, File, directories};
use mcpd_server::transport::http::Token;
use serde_json::json;

use crate::args::{NewToken, TokenAction, TokenCommand};
use crate::exit_code::ExitCode;
use crate::output;

/// Configuration file that is written if there is none.
const FILE: &str = "mcpd.toml";

/// Creates, lists, replaces or revokes a token.
pub(crate) fn run(args: &TokenCommand, configuration: &File) -> anyhow::Result<ExitCode> {
    match &args.action {
        TokenAction::Rotate { token_file, .. } => {
            rotate(&agent_token(token_file.as_deref())?)?;
        }
        TokenAction::New(new) => create(new, configuration)?,
        TokenAction::List {
            json, token_file, ..
        } => list(configuration, token_file.as_deref(), *json)?,
        TokenAction::Revoke { name, .. } => revoke(name, configuration)?,
    }
    Ok(ExitCode::Success)
}

fn rotate(file: &Path) -> anyhow::Result<()> {
    token::replace(file)?;
    let file = path::absolute(file).context("find the token file")?;
    output::note(&format!(
        "New token written to {}. A server that uses this file accepts it within two seconds and no longer accepts the old one.\n",
        file.display()
    ));
    Ok(())
}

fn create(new: &NewToken, configuration: &File) -> anyhow::Result<()> {
    let name = &new.name;
    if let Some(what) = mcpd_config::name_fault(name) {
        bail!("name a client `{}`: {what}", name.escape_debug());
    }
    let secret = token::random()?;
    let mut table = TokenTable::new(name, Token::hash(&secret));
    table.tools.clone_from(&new.tools);
    table.profile.clone_from(&new.profile);
    let note = "The token is on standard output and will not be shown again.";
    if new.write {
        let path = configuration.path().unwrap_or(Path::new(FILE));
        let what = || format!("add the client to `{}`", path.display());
        edit(path, |text| table.add_to(text)).with_context(what)?;
        let file = path.display();
        output::note(&format!(
            "{note} Its table is in {file}; a running server needs SIGHUP.\n"
        ));
    } else {
        let table = table.text();
        output::note(&format!("{note} Add this to mcpd.toml:\n\n{table}"));
    }
    output::write(format!("{secret}\n").as_bytes())
}

/// Returns the file of the token that mcpd makes.
fn agent_token(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    match named {
        Some(file) => Ok(path::absolute(file)?),
        None => directories::token(),
    }
}

/// Lists the clients with tokens: the one that mcpd makes one for, if the configuration accepts
/// that, and those of the tables, whose tokens themselves are stored nowhere.
fn list(configuration: &File, token_file: Option<&Path>, as_json: bool) -> anyhow::Result<()> {
    let tables = configuration.token_tables();
    let accepts_agent = configuration.accepts_agent_token();
    let agent = accepts_agent.then(|| agent_token(token_file)).transpose()?;
    if as_json {
        let agent = agent.iter().map(
            |file| json!({"name": AGENT, "token_file": file, "exists": file.exists(), "tools": []}),
        );
        let tables = tables.iter().map(|table| {
            json!({"name": table.name, "sha256": table.sha256, "tools": table.tools, "profile": table.profile})
        });
        let list: Vec<_> = agent.chain(tables).collect();
        return output::write(format!("{:#}\n", json!(list)).as_bytes());
    }
    let mut text = String::new();
    match &agent {
        Some(file) => {
            let shown = file.display().to_string();
            let state = if file.exists() { "" } else { ", not made yet" };
            let file = shown.escape_debug();
            text += &format!("{AGENT}  all tools (the token that mcpd makes, in {file}{state})\n");
        }
        None => output::note(
            "There is no token for `agent`: the configuration has `agent_token = false`.\n",
        ),
    }
    for table in &tables {
        let name = table.name.escape_debug();
        let tools = match table.tools.as_slice() {
            [] => "all tools".to_owned(),
            tools => tools.join(", ").escape_debug().to_string(),
        };
        let profile = table.profile.as_ref();
        let profile = profile.map(|profile| format!(", profile {}", profile.escape_debug()));
        text += &format!("{name}  {tools}{}\n", profile.unwrap_or_default());
    }
    if tables.is_empty() {
        output::note("No client has a token of its own; `mcpd token new NAME --write` adds one.\n");
    }
    output::write(text.as_bytes())
}

fn revoke(name: &str, configuration: &File) -> anyhow::Result<()> {
    let Some(path) = configuration.path() else {
        bail!("revoke a token: there is no configuration file; name one with `--config FILE`");
    };
    let what = || format!("revoke a token in `{}`", path.display());
    edit(path, |text| TokenTable::remove_from(text, name)).with_context(what)?;
    output::note(&format!(
        "`{}` is removed from {}; a running server accepts its token until it gets SIGHUP.\n",
        name.escape_debug(),
        path.display()
    ));
    Ok(())
}

/// Edits the text of a file, which is replaced whole or not at all.
fn edit(path: &Path, edited: impl Fn(&str) -> anyhow::Result<String>) -> anyhow::Result<()> {
    let before = file::read(path)?;
    let after = edited(before.as_deref().unwrap_or_default())?;
    Change::new(path, before.as_deref(), Some(&after))
        .set_private(false)
        .set_backup(Backup::Skip)
        .apply()?;
    Ok(())
}
