//! `mcpd read`: the contents of one resource, as every client gets them.

use anyhow::Context as _;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use mcpd_protocol::{
    LoggingLevel, ReadResourceRequest, ReadResourceRequestParams, ReadResourceResult, ResourceBody,
    ResourceContents,
};
use mcpd_server::{Principal, Server};

use super::call::{log_level, relay};
use super::{server_of, with_server};
use crate::args::{Enabling, Logging, Read};
use crate::config::File;
use crate::exit_code::ExitCode;
use crate::{client, config, output};

/// Reads the resource and prints what is in it.
pub(crate) async fn run(args: Read, logging: &Logging, file: &File) -> anyhow::Result<ExitCode> {
    let level = log_level(logging);
    let limits = config::limits(&args.limits);
    let server = server_of(&args.place, &Enabling::default(), limits, file).await?;
    with_server(server, async |server| {
        let catalog = server.catalog();
        let is_there = catalog.resource(&args.uri).is_some();
        match read(server, args.uri.clone(), level, args.json).await? {
            Ok(()) => return Ok(ExitCode::Success),
            Err(error) if is_there || catalog.template_of(&args.uri).is_some() => {
                output::error(&error);
            }
            Err(error) => output::error(&format!(
                "{error}; `mcpd list --resources` shows those there are"
            )),
        }
        Ok(ExitCode::Tool)
    })
    .await
}

/// Reads a resource and prints what is in it, or says why there is nothing to print.
pub(super) async fn read(
    server: &Server,
    uri: String,
    level: LoggingLevel,
    is_json: bool,
) -> anyhow::Result<Result<(), String>> {
    let mut params = ReadResourceRequestParams::new(uri);
    params.meta = Some(client::envelope(level));
    let request = client::request::<ReadResourceRequest, ReadResourceResult>;
    match request(server, Principal::local(), &params, relay).await? {
        Ok(result) if is_json => result.contents.iter().try_for_each(output::write_json)?,
        Ok(result) => result.contents.iter().try_for_each(print)?,
        Err(error) => return Ok(Err(client::words(error).into_owned())),
    }
    Ok(Ok(()))
}

fn print(contents: &ResourceContents) -> anyhow::Result<()> {
    match &contents.body {
        ResourceBody::Text(text) => output::write_text(text),
        ResourceBody::Blob(blob) => {
            let bytes = BASE64_STANDARD.decode(blob);
            output::write(&bytes.context("decode the contents")?)
        }
    }
}
