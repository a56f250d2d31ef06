//! `mcpd token`: tokens of clients over HTTP.

use std::path::{self, Path};

use anyhow::{Context as _, bail};
use mcpd_clients::file::{self, Backup, Change};
use mcpd_config::File;
use mcpd_config::token::{self, TokenList, TokenTable, agent_token};
use mcpd_server::transport::http::Token;

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

/// Lists the clients with tokens.
fn list(configuration: &File, token_file: Option<&Path>, as_json: bool) -> anyhow::Result<()> {
    let list = TokenList::new(configuration, token_file)?;
    if as_json {
        return output::write_json(&list.to_json());
    }
    if list.agent.is_none() {
        output::note(
            "There is no token for `agent`: the configuration has `agent_token = false`.\n",
        );
    }
    if list.tables.is_empty() {
        output::note("No client has a token of its own; `mcpd token new NAME --write` adds one.\n");
    }
    output::write(list.to_string().as_bytes())
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
