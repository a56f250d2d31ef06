//! `mcpd read`: the contents of one resource, as every client gets them.

use anyhow::Context as _;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use mcpd_config::File;
use mcpd_protocol::content::{ResourceBody, ResourceContents};
use mcpd_protocol::method::{
    LoggingLevel, ReadResourceRequest, ReadResourceRequestParams, ReadResourceResult,
};
use mcpd_scriptspec::suggest;
use mcpd_server::{Catalog, Principal, Server};

use super::call::{log_level, relay};
use super::{server_of, with_server};
use crate::args::{Enabling, Logging, Read};
use crate::exit_code::ExitCode;
use crate::{client, output};

/// Reads the resource and prints its contents.
pub(crate) async fn run(args: Read, logging: &Logging, file: &File) -> anyhow::Result<ExitCode> {
    let level = log_level(logging);
    let limits = mcpd_config::limits(&args.limits);
    let server = server_of(
        &args.place,
        &args.command,
        &Enabling::default(),
        limits,
        file,
    )
    .await?;
    with_server(server, async |server| {
        let (catalog, uri) = (server.catalog(), &args.uri);
        if catalog.resource(uri).is_none() && catalog.template_of(uri).is_none() {
            let wanted = uri.escape_debug();
            let hint = hint(&catalog, uri);
            output::error(&format!("there is no resource `{wanted}`{hint}"));
            return Ok(ExitCode::Tool);
        }
        match read(server, uri.clone(), level).await? {
            Ok(result) if args.json => output::write_json(&result)?,
            Ok(result) => result
                .contents
                .iter()
                .try_for_each(|contents| print(contents, args.raw))?,
            Err(error) => {
                output::error(&error);
                return Ok(ExitCode::Tool);
            }
        }
        Ok(ExitCode::Success)
    })
    .await
}

/// Suggests a resource: the one of this path, or the one with the most similar URI.
fn hint(catalog: &Catalog, wanted: &str) -> String {
    let resources = catalog.resources().iter();
    let resources = resources.map(|one| (one.path().as_str(), &*one.definition().uri));
    let templates = catalog.templates().iter();
    let templates = templates.map(|one| (one.path().as_str(), &*one.definition().uri_template));
    let all = resources.chain(templates);
    let of_path = all.clone().find(|(path, _)| *path == wanted);
    let meant = of_path.map(|(_, uri)| uri);
    match meant.or_else(|| suggest(wanted, all.map(|(_, uri)| uri))) {
        Some(uri) => format!("; did you mean `{uri}`?"),
        None => "; `mcpd list --resources` shows all resources".to_owned(),
    }
}

/// Reads a resource, or reports why it can't be read.
pub(super) async fn read(
    server: &Server,
    uri: String,
    level: LoggingLevel,
) -> anyhow::Result<Result<ReadResourceResult, String>> {
    let mut params = ReadResourceRequestParams::new(uri);
    params.meta = Some(client::envelope(level));
    let request = client::request::<ReadResourceRequest, ReadResourceResult>;
    let read = request(server, Principal::local(), &params, relay).await?;
    Ok(read.map_err(|error| client::error_text(error).into_owned()))
}

pub(super) fn print(contents: &ResourceContents, is_raw: bool) -> anyhow::Result<()> {
    match &contents.body {
        ResourceBody::Text(text) => output::write_foreign(text, is_raw),
        ResourceBody::Blob(blob) => {
            let bytes = BASE64_STANDARD.decode(blob);
            output::write_foreign_bytes(&bytes.context("decode the contents")?, is_raw)
        }
    }
}
