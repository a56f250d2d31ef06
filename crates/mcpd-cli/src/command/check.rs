//! `mcpd check`: every fault in script descriptions and sources, for authors and for CI.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use mcpd_check::clients::{Forwarded, PROFILES, Profile, describe_tool_limits, forward};
use mcpd_check::ignore::IgnoreComments;
use mcpd_check::remarks::check_command;
use mcpd_check::rules;
use mcpd_check::{EXECUTABLE_HINT, Finding, Selection, render, shortfall};
use mcpd_config::File;
use mcpd_config::examination::{self, Examination};
use mcpd_scriptspec::Severity;
use mcpd_server::catalog::FileChanges;
use mcpd_server::catalog::pins::Locked;
use mcpd_server::catalog::scan::PassOverKind;
use mcpd_server::{Catalog, Interpreters};
use mcpd_service::signals::Termination;

use super::with_server;
use crate::args::{Check, CheckFormat, Client, Confinement, ToolNames};
use crate::exit_code::ExitCode;
use crate::output;

/// Columns of a terminal whose width is unknown.
const DEFAULT_COLUMNS: usize = 100;

mod fixing;

/// Maximum number of checks that each follow fixes.
const MAX_FIX_ROUNDS: usize = 10;

/// Probes every script and reports faults or the view of clients; or
/// explains rules, without a probe.
pub(crate) async fn run(args: Check, file: &File) -> anyhow::Result<ExitCode> {
    if let Some(code) = &args.explain {
        explain(code)?;
        return Ok(ExitCode::Success);
    }
    if args.client.is_some() && !matches!(args.format, CheckFormat::Human | CheckFormat::Json) {
        bail!(
            "show the tools as clients see them: `--as` supports only the formats human and json"
        );
    }
    let selection = Selection::new(&args.select, &args.ignore).context("select the rules")?;
    if args.watch {
        return watch(&args, &selection, file).await;
    }
    check(&args, &selection, file).await
}

/// Checks once, and again after each fix.
async fn check(args: &Check, selection: &Selection, file: &File) -> anyhow::Result<ExitCode> {
    let usual = |interpreters| interpreters;
    let (confinement, is_static) = (&args.confinement, args.is_static);
    let mut fixed = 0;
    // A fix may bring to light the next fault, such as that of a script that becomes executable.
    for _ in 0..MAX_FIX_ROUNDS {
        let locked = mcpd_config::locked(file, &args.locking, &args.paths)?;
        let examined =
            examine_locked(&args.paths, confinement, file, is_static, usual, locked).await?;
        let Some(catalog) = examined else {
            return Ok(ExitCode::Interrupted);
        };
        if args.diff {
            return fixing::show(&catalog, args, selection);
        }
        let fixes = if args.fix {
            fixing::fix(&catalog, args, selection)?
        } else {
            0
        };
        fixed += fixes;
        if fixes > 0 {
            continue;
        }
        if fixed > 0 {
            output::note(&format!(
                "fixed {fixed} fault{}\n",
                if fixed == 1 { "" } else { "s" }
            ));
        }
        return judge_all(catalog, args, selection, file).await;
    }
    bail!("fix the faults: {fixed} fixes, and there are always more; please report this")
}

/// Judges a catalog, with the entries of its sources unless nothing may run.
async fn judge_all(
    catalog: Catalog,
    args: &Check,
    selection: &Selection,
    file: &File,
) -> anyhow::Result<ExitCode> {
    if args.is_static {
        return judge(&catalog, args, selection, file);
    }
    let Some(sources) = mcpd_config::server_for_sources(&args.confinement, file).await? else {
        return judge(&catalog, args, selection, file);
    };
    with_server(sources, async |server| {
        let offers = server.catalog().offers().to_vec();
        let locked = mcpd_config::locked(file, &args.locking, &args.paths)?;
        let offers = match locked {
            Some(locked) => locked.approved_offers(&offers),
            None => offers,
        };
        judge(&catalog.with_offers(offers), args, selection, file)
    })
    .await
}

/// Checks now and after each change, until the user ends it.
async fn watch(args: &Check, selection: &Selection, file: &File) -> anyhow::Result<ExitCode> {
    let mut termination = Termination::listen_at_terminal().context("listen for signals")?;
    let absolute = args
        .paths
        .iter()
        .map(|path| examination::canonical(path).unwrap_or(path.clone()));
    let mut changes = FileChanges::start(absolute.collect()).await;
    loop {
        output::clear_screen()?;
        match check(args, selection, file).await {
            Ok(ExitCode::Interrupted) => return Ok(ExitCode::Interrupted),
            Ok(_) => {}
            Err(error) => output::error(&format!("failed to {error:#}")),
        }
        output::note("waiting for changes; press Ctrl-C to end\n");
        tokio::select! {
            () = changes.wait() => {}
            () = termination.wait() => return Ok(ExitCode::Success),
        }
    }
}

/// Prints the requested report, and returns whether the scripts pass.
fn judge(
    catalog: &Catalog,
    args: &Check,
    selection: &Selection,
    file: &File,
) -> anyhow::Result<ExitCode> {
    let worst = match args.client {
        Some(client) => show_forwarded(client, catalog, args, file)?,
        None => show_findings(catalog, args, selection)?,
    };
    // Tools of one directory may still be served together with others.
    if let Some(limits) = describe_tool_limits(catalog.tools().len())
        && !file.has_search()
    {
        output::note(&format!("warning: {limits}\n"));
    }
    let tolerated = if args.deny.is_some() {
        Severity::Info
    } else {
        Severity::Warning
    };
    Ok(if worst.is_some_and(|worst| worst > tolerated) {
        ExitCode::Failure
    } else {
        ExitCode::Success
    })
}

/// Scans directories and files afresh, with the configured interpreters as changed by `adapt`;
/// none if the user interrupts it. A static check runs nothing.
pub(super) async fn examine(
    paths: &[PathBuf],
    confinement: &Confinement,
    file: &File,
    is_static: bool,
    adapt: fn(Interpreters) -> Interpreters,
) -> anyhow::Result<Option<Catalog>> {
    examine_locked(paths, confinement, file, is_static, adapt, None).await
}

/// Scans likewise, and holds back what is not approved.
async fn examine_locked(
    paths: &[PathBuf],
    confinement: &Confinement,
    file: &File,
    is_static: bool,
    adapt: fn(Interpreters) -> Interpreters,
    locked: Option<Locked>,
) -> anyhow::Result<Option<Catalog>> {
    let examination = Examination::prepare(paths, confinement, file, is_static, adapt).await?;
    let examination = match locked {
        Some(locked) => examination.locked(locked),
        None => examination,
    };
    let mut termination = Termination::listen_at_terminal().context("listen for signals")?;
    Ok(tokio::select! {
        catalog = examination.run() => Some(catalog),
        () = termination.wait() => None,
    })
}

/// Prints the faults, and returns the worst severity.
fn show_findings(
    catalog: &Catalog,
    args: &Check,
    selection: &Selection,
) -> anyhow::Result<Option<Severity>> {
    let comments = IgnoreComments::read(catalog);
    let findings = select(catalog, &comments, args, selection);
    match args.format {
        CheckFormat::Human => output::write_styled(&human(&findings, catalog))?,
        CheckFormat::Short => output::write(render::short(&findings).as_bytes())?,
        CheckFormat::Json => output::write_json(&findings)?,
        CheckFormat::Sarif => output::write_json(&render::sarif(&findings))?,
        CheckFormat::Github => output::write(render::github(&findings).as_bytes())?,
    }
    let fixable = findings
        .iter()
        .filter(|finding| finding.fix.is_some())
        .count();
    if fixable > 0 && !args.fix && args.format == CheckFormat::Human {
        output::note(&format!("{fixable} of them can be fixed with `--fix`\n"));
    }
    let passed = &catalog.scan().passed_over;
    let unasked = passed
        .iter()
        .filter(|file| file.kind == PassOverKind::NotProbed)
        .count();
    if unasked > 0 {
        let (files, are) = if unasked == 1 {
            ("file", "is")
        } else {
            ("files", "are")
        };
        output::note(&format!(
            "{unasked} {files} {are} not checked, because only `--help` shows what they are; run without `--static` to check them\n"
        ));
    } else if findings.is_empty() && catalog.scan().scripts.is_empty() {
        let what = EXECUTABLE_HINT;
        output::note(&format!("no scripts found: {what}\n"));
    }
    Ok(findings.iter().map(|finding| finding.severity).max())
}

/// Returns the faults that neither comments nor the selection of rules leave out.
fn select<'a>(
    catalog: &'a Catalog,
    comments: &'a IgnoreComments,
    args: &Check,
    selection: &Selection,
) -> Vec<Finding<'a>> {
    // Without running anything, faults to ignore may not have shown.
    let mut findings = comments.apply(Finding::all(catalog), !args.is_static);
    findings.retain(|finding| selection.includes(finding.code));
    findings
}

/// Renders findings for the terminal.
pub(super) fn human(findings: &[Finding<'_>], catalog: &Catalog) -> String {
    let columns = output::columns().unwrap_or(DEFAULT_COLUMNS);
    render::human(findings, catalog.scan().scripts.len(), columns)
}

/// Prints the clients' views of the tools, and returns the worst severity.
fn show_forwarded(
    client: Client,
    catalog: &Catalog,
    args: &Check,
    file: &File,
) -> anyhow::Result<Option<Severity>> {
    let is_meant = |profile: &&Profile| client.key().is_none_or(|key| key == profile.key);
    let forwarded: Vec<_> = PROFILES
        .iter()
        .filter(is_meant)
        .map(|profile| {
            forward(
                profile,
                catalog,
                args.tool_names.unwrap_or(ToolNames::Portable).into(),
            )
        })
        .collect();
    if args.format == CheckFormat::Json {
        output::write_json(&forwarded)?;
    } else {
        output::write(render::forwarded(&forwarded).as_bytes())?;
    }
    if let Some(shortfall) = shortfall(catalog) {
        output::note(&format!(
            "the catalog is incomplete: {shortfall}; run `{}` for details\n",
            check_command(&args.paths, file.path_to_show())
        ));
    }
    let remarks = forwarded.iter().flat_map(Forwarded::all_remarks);
    Ok(remarks.map(|remark| remark.effect.severity()).max())
}

/// Prints one rule, or a line for each of all rules.
fn explain(code: &str) -> anyhow::Result<()> {
    if code != "all" {
        return output::write(
            rules::find(code)
                .context("explain a rule")?
                .text()
                .as_bytes(),
        );
    }
    let rules: Vec<_> = rules::all()
        .map(|rule| (rule.code, format!("{}: {}", rule.severity, rule.why)))
        .collect();
    let rows = rules.iter().map(|(code, what)| (*code, what.as_str()));
    output::write_table(rows)
}
