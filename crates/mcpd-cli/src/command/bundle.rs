//! `mcpd bundle`: a directory of scripts as a file that clients install, tried before it is
//! written.

use std::fs;
use std::mem;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use mcpd_author::package::{self, BundleOptions, Content, Staged, Trial};
use mcpd_bundle::digest;
use mcpd_check::remarks::check_command;
use mcpd_check::{Finding, render, shortfall};
use mcpd_config::File;
use mcpd_scriptspec::Severity;
use mcpd_server::Catalog;
use mcpd_service::signals::Termination;
use serde_json::Value;
use tokio::task::spawn_blocking;

use super::check;
use crate::args::{Bundle, Confinement};
use crate::exit_code::ExitCode;
use crate::output;

/// Makes the bundle, tries it, and only then puts it in its place.
pub(crate) async fn run(args: Bundle, file: &File) -> anyhow::Result<ExitCode> {
    let roots = package::roots(&args.directories)?;
    let usual = |interpreters| interpreters;
    let confinement = Confinement::default();
    let examined = check::examine(&roots, &confinement, file, false, usual).await?;
    let Some(catalog) = examined else {
        return Ok(ExitCode::Interrupted);
    };
    refuse_faults(&catalog, &roots)?;
    let mut content = package::gather(&options(&args), file, &catalog, &roots).await?;
    let target = target(&args, &content)?;
    // Faults of the flags are found before the work is done.
    server_json(&args, &content, "")?;
    output::note_foreign(&content.describe());
    if !args.yes {
        let attempt = format!("write `{}`", target.display());
        let ask = move || output::confirm("Make the bundle? [y/N] ", &attempt, "make it");
        match interruptible(ask).await? {
            Some(true) => {}
            Some(false) => return Ok(ExitCode::Failure),
            None => return Ok(ExitCode::Interrupted),
        }
    }
    let packed = Staged::beside(&target)?;
    let entry = args
        .server_json
        .as_deref()
        .map(Staged::beside)
        .transpose()?;
    let archive = mem::take(&mut content.archive);
    let to = packed.open()?;
    match interruptible(move || Ok(archive.write(to).map(|()| archive)?)).await? {
        Some(archive) => content.archive = archive,
        None => return Ok(ExitCode::Interrupted),
    }
    let mut termination = Termination::listen_at_terminal().context("listen for signals")?;
    let trial = Trial::new(&content, &catalog, &output::note);
    let Some(calls) = trial.run(packed.path(), termination.wait()).await? else {
        return Ok(ExitCode::Interrupted);
    };
    let digest = digest(packed.path())?;
    if let Some(entry) = entry {
        let text = server_json(&args, &content, &digest)?.unwrap_or_default();
        fs::write(entry.path(), format!("{text:#}\n"))?;
        entry.persist(true)?;
    }
    packed.persist(args.force)?;
    match args.json {
        true => output::write_json(&content.report_json(&target, &digest, calls)?)?,
        false => output::write_text(&content.report(&target, &digest, calls)?)?,
    }
    Ok(ExitCode::Success)
}

fn options(args: &Bundle) -> BundleOptions {
    let mut options = BundleOptions::default();
    options.name.clone_from(&args.name);
    options.version.clone_from(&args.version);
    options.title.clone_from(&args.title);
    options.description.clone_from(&args.description);
    options.author.clone_from(&args.author);
    options.icon.clone_from(&args.icon);
    options.include.clone_from(&args.include);
    options.pass_env.clone_from(&args.pass_env);
    options.programs.clone_from(&args.program);
    options
}

/// Fails if something should be served and can't be.
fn refuse_faults(catalog: &Catalog, roots: &[PathBuf]) -> anyhow::Result<()> {
    let check = check_command(roots, None);
    if let Some(shortfall) = shortfall(catalog) {
        let mut findings = Finding::all(catalog);
        findings.retain(|finding| finding.severity == Severity::Error);
        output::note_foreign(&render::short(&findings));
        bail!("pack the scripts: {shortfall}; `{check}` shows the reasons");
    }
    let is_empty = catalog.tools().is_empty()
        && catalog.prompts().is_empty()
        && catalog.resources().is_empty()
        && catalog.templates().is_empty();
    if is_empty {
        bail!("pack the scripts: nothing there is served; `{check}` shows the reasons");
    }
    Ok(())
}

/// File of the bundle.
fn target(args: &Bundle, content: &Content) -> anyhow::Result<PathBuf> {
    let manifest = &content.manifest;
    let named = args.output.clone();
    let usual = || PathBuf::from(format!("{}-{}.mcpb", manifest.name, manifest.version));
    let target = named.unwrap_or_else(usual);
    match target.symlink_metadata().is_ok() && !args.force {
        true => bail!(
            "write `{}`: it exists; add `--force` to replace it",
            target.display()
        ),
        false => Ok(target),
    }
}

/// Does what takes long, or waits for an answer, on a thread of its own; `None` if the user
/// interrupts it.
async fn interruptible<T: Send + 'static>(
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<Option<T>> {
    let mut termination = Termination::listen_at_terminal().context("listen for signals")?;
    tokio::select! {
        done = spawn_blocking(work) => done?.map(Some),
        () = termination.wait() => Ok(None),
    }
}

fn server_json(args: &Bundle, content: &Content, digest: &str) -> anyhow::Result<Option<Value>> {
    let (Some(name), Some(url)) = (&args.registry_name, &args.url) else {
        return Ok(None);
    };
    content.registry_entry(name, url, digest).map(Some)
}
