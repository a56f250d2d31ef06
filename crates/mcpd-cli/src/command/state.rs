//! `mcpd state`: the state of a stateful tool, read as a resource.

use mcpd_config::File;
use mcpd_exec::Limits;
use mcpd_protocol::method::LoggingLevel;

use super::read::{print, read};
use super::{find_tool, server_of, with_server};
use crate::args::{Enabling, State};
use crate::exit_code::ExitCode;
use crate::output;

/// Reads the state and prints it.
pub(crate) async fn run(args: State, file: &File) -> anyhow::Result<ExitCode> {
    let tool = &args.tool;
    let (enabling, limits) = (Enabling::default(), Limits::default());
    let server = server_of(&tool.place, &args.command, &enabling, limits, file).await?;
    with_server(server.only(&tool.tool), async |server| {
        let Some(tool) = find_tool(&server.catalog(), &args.tool) else {
            return Ok(ExitCode::Tool);
        };
        if !tool.spec().is_some_and(|spec| spec.state) {
            let path = tool.path();
            output::error(&match tool.spec() {
                Some(_) => format!("`{path}` has no state; its metadata lacks `\"state\": true`"),
                None => format!(
                    "`{path}` is no script: a remote server has states as resources, which `mcpd list --resources` lists and `mcpd read` reads"
                ),
            });
            return Ok(ExitCode::Tool);
        }
        let uri = tool.path().state_uri();
        match read(server, uri, LoggingLevel::Error).await? {
            Ok(state) if args.json => state.contents.iter().try_for_each(output::write_json)?,
            Ok(state) => state
                .contents
                .iter()
                .try_for_each(|contents| print(contents, false))?,
            Err(error) => {
                output::error(&error);
                return Ok(ExitCode::Tool);
            }
        }
        Ok(ExitCode::Success)
    })
    .await
}
