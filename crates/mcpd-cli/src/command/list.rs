//! `mcpd list`: tools, prompts or resources, one a line.

use mcpd_check::describe::ListedEntry;
use mcpd_check::remarks::{check_command, describe_faults};
use mcpd_check::terminal;
use mcpd_config::File;
use mcpd_exec::Limits;
use mcpd_server::Catalog;
use mcpd_upstream::Upstream;

use super::{target, with_server};
use crate::args::List;
use crate::exit_code::ExitCode;
use crate::output;

mod cost;
mod files;

/// Lists the catalog, and reports whether parts of it are missing.
pub(crate) async fn run(args: List, file: &File) -> anyhow::Result<ExitCode> {
    if let Some(source) = remote_source(&args)? {
        return with_server(target::server(source), async |server| {
            list(&args, &server.catalog())
        })
        .await;
    }
    let limits = Limits::default();
    let mut server = mcpd_config::server_for_query(
        file,
        args.roots.all(),
        &args.enabling,
        &args.scanning,
        &args.confinement,
        limits,
    )
    .await?;
    if args.all {
        server = server.thorough();
    }
    let selected = mcpd_config::selected(file, &args.selecting)?;
    with_server(server, async |server| {
        let catalog = server.catalog();
        if args.all {
            return files::list(&catalog, args.json);
        }
        list(&args, &server.catalog_for(&selected))?;
        let check = check_command(args.roots.all(), file.path_to_show());
        if let Some(remark) = describe_faults(&catalog, "the catalog is incomplete", &check) {
            output::note(&format!("{remark}\n"));
        }
        for held_back in catalog.scan().held_back() {
            let (kind, path) = (held_back.kind.word(), &held_back.path);
            output::note(&terminal::revealed(&format!(
                "{kind} `{path}` is held back: {held_back}; see `mcpd approve`\n"
            )));
        }
        for fault in mcpd_config::unmatched_patterns(file, &args.selecting, &catalog)? {
            output::note(&format!("{fault}\n"));
        }
        Ok(ExitCode::Success)
    })
    .await
}

/// The remote server that the one place names.
fn remote_source(args: &List) -> anyhow::Result<Option<Upstream>> {
    let mut places = args.roots.all();
    match (places.next(), places.next()) {
        (Some(place), None) => target::remote_source(place, &args.remote, &args.command),
        _ => Ok(None),
    }
}

/// Lists the requested entries, or says why there are none.
fn list(args: &List, catalog: &Catalog) -> anyhow::Result<ExitCode> {
    if args.cost {
        return cost::list(catalog, args.json);
    }
    let listed = match (args.prompts, args.resources) {
        (true, _) => ListedEntry::prompts(catalog),
        (_, true) => ListedEntry::resources(catalog),
        _ => ListedEntry::tools(catalog),
    };
    if args.json {
        output::write_json(&listed)?;
    } else {
        let rows: Vec<_> = listed.iter().map(ListedEntry::row).collect();
        let rows = rows.iter().map(|(name, summary)| (&**name, *summary));
        output::write_table(rows)?;
    }
    match (args.prompts, args.resources) {
        (true, _) if listed.is_empty() => output::note("no prompts found\n"),
        (_, true) if listed.is_empty() => output::note("no resources found\n"),
        (false, false) => note_others(catalog),
        _ => {}
    }
    Ok(ExitCode::Success)
}

/// Mentions entries besides the tools and their state.
fn note_others(catalog: &Catalog) {
    let resources = catalog.resources().iter();
    let resources = resources.filter(|one| catalog.tool(one.path().as_str()).is_none());
    let resources = resources.count() + catalog.templates().len();
    let kinds = [
        ("--prompts", catalog.prompts().len()),
        ("--resources", resources),
    ];
    let kinds = kinds.iter().filter(|(_, number)| *number > 0);
    let others: Vec<_> = kinds
        .map(|(flag, number)| format!("`{flag}` lists {number}"))
        .collect();
    if !others.is_empty() {
        output::note(&format!("also served: {}\n", others.join(", ")));
    }
}
