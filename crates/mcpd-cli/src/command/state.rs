//! `mcpd state`: the state of a stateful tool, read as the resource that it is.

use mcpd_exec::Limits;
use mcpd_protocol::{
    LoggingLevel, ReadResourceRequest, ReadResourceRequestParams, ResourceBody, ResourceContents,
};
use mcpd_server::Principal;

use super::{find_tool, with_server};
use crate::args::{Enabling, State};
use crate::config::File;
use crate::exit_code::ExitCode;
use crate::{client, config, output};

/// Reads the state and prints it.
pub(crate) async fn run(args: State, file: &File) -> anyhow::Result<ExitCode> {
    let tool = &args.tool;
    let limits = Limits::default();
    with_server(
        config::asked(
            file,
            [&tool.directory],
            &Enabling::default(),
            &tool.scanning,
            &tool.confinement,
            limits,
        )
        .await?
        .only(&tool.tool),
        async |server| {
            let Some(tool) = find_tool(&server.catalog(), &args.tool) else {
                return Ok(ExitCode::Tool);
            };
            if !tool.spec().is_some_and(|spec| spec.state) {
                output::error(&format!(
                    "`{}` has no state: its metadata lacks `\"state\": true`",
                    tool.path()
                ));
                return Ok(ExitCode::Tool);
            }
            let mut params = ReadResourceRequestParams::new(tool.path().state_uri());
            params.meta = Some(client::envelope(LoggingLevel::Error));
            let principal = Principal::local();
            let request = client::request::<ReadResourceRequest, _>;
            match request(server, principal, &params, |_| {}).await? {
                Ok(result) => result
                    .contents
                    .iter()
                    .try_for_each(|contents| print(contents, args.json))?,
                Err(error) => {
                    output::error(&client::words(error));
                    return Ok(ExitCode::Tool);
                }
            }
            Ok(ExitCode::Success)
        },
    )
    .await
}

fn print(contents: &ResourceContents, json: bool) -> anyhow::Result<()> {
    match &contents.body {
        ResourceBody::Text(text) if !json => output::write_text(text),
        _ => output::write_json(contents),
    }
}
