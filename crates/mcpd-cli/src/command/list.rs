//! `mcpd list`: the tools, one a line.

use mcpd_protocol::Tool;

use super::with_server;
use crate::args::List;
use crate::exit_code::ExitCode;
use crate::{config, output};

/// Lists what is served, and says if that is not all.
pub(crate) async fn run(args: List) -> anyhow::Result<ExitCode> {
    with_server(
        config::asked(args.roots.all(), &args.scanning),
        async |server| {
            let catalog = server.catalog();
            let tools: Vec<&Tool> = catalog
                .tools()
                .iter()
                .map(|tool| tool.definition())
                .collect();
            if args.json {
                output::write_json(&tools)?;
            } else {
                let rows = tools.iter().map(|tool| (&*tool.name, summary(tool)));
                output::write(output::table(rows, output::columns()).as_bytes())?;
            }
            match catalog.scan().faulty().count() {
                0 => {}
                1 => output::note("1 script is faulty and not listed; `mcpd check` says why\n"),
                faulty => output::note(&format!(
                    "{faulty} scripts are faulty and not listed; `mcpd check` says why\n"
                )),
            }
            Ok(ExitCode::Success)
        },
    )
    .await
}

/// The first line of the description, or else the title.
fn summary(tool: &Tool) -> &str {
    let description = tool
        .description
        .as_deref()
        .and_then(|text| text.lines().next());
    description.or(tool.title.as_deref()).unwrap_or_default()
}
