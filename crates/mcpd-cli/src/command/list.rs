//! `mcpd list`: the tools, one a line.

use mcpd_exec::Limits;
use mcpd_protocol::Tool;

use super::{check_command, with_server};
use crate::args::List;
use crate::config::File;
use crate::exit_code::ExitCode;
use crate::{config, output, render};

/// Lists what is served, and says if that is not all.
pub(crate) async fn run(args: List, file: &File) -> anyhow::Result<ExitCode> {
    let limits = Limits::default();
    with_server(
        config::asked(
            file,
            args.roots.all(),
            &args.enabling,
            &args.scanning,
            &args.confinement,
            limits,
        )
        .await?,
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
            if let Some(shortfall) = render::shortfall(&catalog) {
                output::note(&format!(
                    "not all is as it should be: {shortfall}; `{}` says why\n",
                    check_command(args.roots.all(), file.to_be_named())
                ));
            } else if tools.is_empty() && catalog.scan().scripts.is_empty() {
                output::note(&format!(
                    "there are no tools: {}\n",
                    render::WHAT_A_SCRIPT_IS
                ));
            }
            for fault in config::unmatched(file, &catalog)? {
                output::note(&format!("{fault}\n"));
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
