//! `mcpd bundle`: a directory of scripts as a file that clients install, tried before it is
//! written.

use std::fs;
use std::mem;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use mcpd_bundle::{Archive, digest, registry_entry};
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
    let refusal = format!("write `{}`", target.display());
    if !args.yes && !output::confirm("Make the bundle? [y/N] ", &refusal, "make it")? {
        return Ok(ExitCode::Failure);
    }
    let directory = target.parent().filter(|path| !path.as_os_str().is_empty());
    let packed = NamedTempFile::new_in(directory.unwrap_or(Path::new(".")));
    let packed = packed.context(refusal.clone())?;
    let archive = mem::take(&mut content.archive);
    match write(archive, packed.reopen()?).await? {
        Some(archive) => content.archive = archive,
        None => return Ok(ExitCode::Interrupted),
    }
    let Some(calls) = trial::run(packed.path(), &content, Plan::of(&catalog)).await? else {
        return Ok(ExitCode::Interrupted);
    };
    let digest = digest(packed.path())?;
    persist(packed, &target, args.force).context(refusal)?;
    if let (Some(path), Some(entry)) = (&args.server_json, server_json(&args, &content, &digest)?) {
        let text = format!("{entry:#}\n");
        fs::write(path, text).with_context(|| format!("write `{}`", path.display()))?;
    }
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

/// Writes the archive on a thread of its own; `None` if the user interrupts it.
async fn write(archive: Archive, to: fs::File) -> anyhow::Result<Option<Archive>> {
    let mut termination = Termination::listen_at_terminal().context("listen for signals")?;
    let written = spawn_blocking(move || archive.write(to).map(|()| archive));
    tokio::select! {
        written = written => Ok(Some(written??)),
        () = termination.wait() => Ok(None),
    }
}

/// Puts the finished file in its place, readable as other new files are.
fn persist(packed: NamedTempFile, target: &Path, replaces: bool) -> anyhow::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(packed.path(), fs::Permissions::from_mode(0o644))?;
    }
    match replaces {
        true => packed.persist(target)?,
        false => packed.persist_noclobber(target)?,
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
