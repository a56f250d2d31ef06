//! `mcpd prompt`: the messages of a prompt, as every client gets them.

use std::collections::BTreeMap;

use anyhow::bail;
use mcpd_check::remarks::nearest_path;
use mcpd_config::File;
use mcpd_protocol::content::Role;
use mcpd_protocol::method::{
    GetPromptRequest, GetPromptRequestParams, GetPromptResult, PromptMessage,
};
use mcpd_server::{Catalog, Principal};

use super::call::{log_level, print_block, relay};
use super::{server_of, with_server};
use crate::args::{Enabling, Logging, Prompt};
use crate::exit_code::ExitCode;
use crate::{client, output};

/// Gets the prompt and prints its messages.
pub(crate) async fn run(args: Prompt, logging: &Logging, file: &File) -> anyhow::Result<ExitCode> {
    let mut params = GetPromptRequestParams::new(&args.prompt);
    params.arguments = Some(parse_arguments(&args.arguments)?.into_iter().collect());
    params.meta = Some(client::envelope(log_level(logging)));
    let limits = mcpd_config::limits(&args.limits);
    let server = server_of(
        &args.place,
        &args.command,
        &Enabling::default(),
        limits,
        file,
    )
    .await?;
    with_server(server.only(&args.prompt), async |server| {
        let catalog = server.catalog();
        if catalog.prompt(&args.prompt).is_none() {
            let name = args.prompt.escape_debug();
            output::error(&format!(
                "there is no prompt `{name}`{}",
                hint(&catalog, &args.prompt)
            ));
            return Ok(ExitCode::Tool);
        }
        let request = client::request::<GetPromptRequest, GetPromptResult>;
        match request(server, Principal::local(), &params, relay).await? {
            Ok(result) if args.json => output::write_json(&result)?,
            Ok(result) => result
                .messages
                .iter()
                .try_for_each(|message| print(message, args.raw))?,
            Err(error) => {
                output::error(&client::error_text(error));
                return Ok(ExitCode::Tool);
            }
        }
        Ok(ExitCode::Success)
    })
    .await
}

/// Arguments by name.
fn parse_arguments(words: &[String]) -> anyhow::Result<BTreeMap<String, String>> {
    let mut arguments = BTreeMap::new();
    for word in words {
        let (name, text) = parse_pair(word)?;
        if arguments.insert(name.to_owned(), text.to_owned()).is_some() {
            bail!("read the arguments: `{name}` is given twice");
        }
    }
    Ok(arguments)
}

/// Parses an argument `name=text`.
fn parse_pair(argument: &str) -> anyhow::Result<(&str, &str)> {
    match argument.split_once('=') {
        None => bail!("read the argument `{argument}`: expected NAME=TEXT"),
        Some((name, _)) if name.ends_with(':') => {
            bail!("read the argument `{argument}`: prompts accept only NAME=TEXT")
        }
        Some(pair) => Ok(pair),
    }
}

/// Suggests what to use instead.
fn hint(catalog: &Catalog, name: &str) -> String {
    if catalog.tool(name).is_some() {
        return ": it is a tool; call it with `mcpd call`".to_owned();
    }
    let paths = catalog
        .prompts()
        .iter()
        .map(|prompt| prompt.path().as_str());
    match nearest_path(name, paths) {
        Some(path) => format!("; did you mean `{path}`?"),
        None => "; `mcpd list --prompts` shows all prompts".to_owned(),
    }
}

/// Prints the role and the content of a message.
fn print(message: &PromptMessage, is_raw: bool) -> anyhow::Result<()> {
    output::write_text(match message.role {
        Role::User => "user:",
        Role::Assistant => "assistant:",
    })?;
    print_block(&message.content, is_raw)
}
