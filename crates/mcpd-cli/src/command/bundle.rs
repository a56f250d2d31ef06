//! `mcpd bundle`: a directory of scripts as a file that clients install, tried before it is
//! written.

use std::fs;
use std::mem;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use mcpd_bundle::{digest, registry_entry};
use mcpd_check::{Finding, render, shortfall};
use mcpd_config::File;
use mcpd_scriptspec::Severity;
use mcpd_server::Catalog;
use mcpd_service::signals::Termination;
use mcpd_testcase::Plan;
use serde_json::Value;
use tempfile::NamedTempFile;
use tokio::task::spawn_blocking;

use self::content::Content;
use super::{check, check_command};
use crate::args::{Bundle, Confinement};
use crate::exit_code::ExitCode;
use crate::output;

mod content;
mod report;
mod trial;

/// Makes the bundle, tries it, and only then puts it in its place.
pub(crate) async fn run(args: Bundle, file: &File) -> anyhow::Result<ExitCode> {
    let roots = roots(&args)?;
    let usual = |interpreters| interpreters;
    let confinement = Confinement::default();
    let examined = check::examine(&roots, &confinement, file, false, usual).await?;
    let Some(catalog) = examined else {
        return Ok(ExitCode::Interrupted);
    };
    refuse_faults(&catalog, &roots)?;
    let mut content = content::gather(&args, file, &catalog, &roots).await?;
    let target = target(&args, &content)?;
    // Faults of the flags are found before the work is done.
    server_json(&args, &content, "")?;
    output::note_foreign(&report::describe(&content));
    if !args.yes {
        let attempt = format!("write `{}`", target.display());
        let ask = move || output::confirm("Make the bundle? [y/N] ", &attempt, "make it");
        match interruptible(ask).await? {
            Some(true) => {}
            Some(false) => return Ok(ExitCode::Failure),
            None => return Ok(ExitCode::Interrupted),
        }
    }
    let packed = new_beside(&target)?;
    let entry = args.server_json.as_deref().map(new_beside).transpose()?;
    let archive = mem::take(&mut content.archive);
    let to = packed.reopen()?;
    match interruptible(move || Ok(archive.write(to).map(|()| archive)?)).await? {
        Some(archive) => content.archive = archive,
        None => return Ok(ExitCode::Interrupted),
    }
    let Some(calls) = trial::run(packed.path(), &content, Plan::of(&catalog)).await? else {
        return Ok(ExitCode::Interrupted);
    };
    let digest = digest(packed.path())?;
    if let (Some(entry), Some(path)) = (entry, &args.server_json) {
        let text = server_json(&args, &content, &digest)?.unwrap_or_default();
        fs::write(entry.path(), format!("{text:#}\n"))?;
        persist(entry, path, true)?;
    }
    persist(packed, &target, args.force)?;
    match args.json {
        true => output::write_json(&report::json(&content, &target, &digest, calls)?)?,
        false => output::write_text(&report::text(&content, &target, &digest, calls)?)?,
    }
    Ok(ExitCode::Success)
}

/// Directories, each once.
fn roots(args: &Bundle) -> anyhow::Result<Vec<PathBuf>> {
    let mut roots = Vec::new();
    for directory in &args.directories {
        let named = || format!("pack `{}`", directory.display());
        let root = directory.canonicalize().with_context(named)?;
        if !root.is_dir() {
            bail!("{}: it is no directory", named());
        }
        if !roots.contains(&root) {
            roots.push(root);
        }
    }
    Ok(roots)
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

/// New file that is to take the place of `target`, and is gone if it never does.
fn new_beside(target: &Path) -> anyhow::Result<NamedTempFile> {
    let directory = target.parent().filter(|path| !path.as_os_str().is_empty());
    let new = NamedTempFile::new_in(directory.unwrap_or(Path::new(".")));
    new.with_context(|| format!("write `{}`", target.display()))
}

/// Puts a finished file in its place, readable as other new files are.
fn persist(new: NamedTempFile, target: &Path, replaces: bool) -> anyhow::Result<()> {
    let failed = || format!("write `{}`", target.display());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(new.path(), fs::Permissions::from_mode(0o644)).with_context(failed)?;
    }
    match replaces {
        true => new.persist(target).with_context(failed)?,
        false => new.persist_noclobber(target).with_context(failed)?,
    };
    Ok(())
}

fn server_json(args: &Bundle, content: &Content, digest: &str) -> anyhow::Result<Option<Value>> {
    let (Some(name), Some(url)) = (&args.registry_name, &args.url) else {
        return Ok(None);
    };
    let Content {
        manifest, settings, ..
    } = content;
    Ok(Some(registry_entry(manifest, settings, name, url, digest)?))
}
