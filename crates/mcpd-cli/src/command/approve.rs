//! `mcpd approve`: what differs from the lock file of tools, shown before it is approved.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use mcpd_check::approval::{Versions, entry_text, file_text};
use mcpd_check::terminal;
use mcpd_config::options::Locking;
use mcpd_config::{ApprovedCopies, File, Review};
use mcpd_service::signals::Termination;

use crate::args::{Approve, Confinement};
use crate::exit_code::ExitCode;
use crate::output;

/// Shows what differs, and approves it.
pub(crate) async fn run(args: Approve, file: &File) -> anyhow::Result<ExitCode> {
    let roots = &args.roots.root_directories;
    if roots.is_empty() {
        let directory = args.tools.iter().find(|name| Path::new(name).is_dir());
        let directory = directory.map_or("DIR", String::as_str);
        let example = output::shell_command(["mcpd", "approve", "--root-directory", directory]);
        bail!(
            "approve tools: their directory is unknown; use `{example}`, or name it in `roots` of mcpd.toml"
        );
    }
    let review = review(file, &args.locking, roots, &args.except, &args.confinement);
    let Some(mut review) = review.await? else {
        return Ok(ExitCode::Interrupted);
    };
    review.select(&args.tools)?;
    note_faulty(&review);
    show(&review, args.json)?;
    if review.is_empty() {
        return Ok(ExitCode::Success);
    }
    if args.check {
        return Ok(ExitCode::Failure);
    }
    let question = "Approve it, so that it is served and run? [y/N] ";
    if !args.yes && !output::confirm(question, "approve the changes", "approve them")? {
        return Ok(ExitCode::Failure);
    }
    let lock = review.approve_all()?;
    output::note(&format!(
        "approved in `{}`; a running server uses it after a reload (SIGHUP)\n",
        lock.path().display()
    ));
    Ok(ExitCode::Success)
}

/// Compares with the lock file; none if the user interrupts it.
pub(super) async fn review(
    file: &File,
    locking: &Locking,
    roots: &[PathBuf],
    except: &[String],
    confinement: &Confinement,
) -> anyhow::Result<Option<Review>> {
    for root in roots {
        let named = || format!("read `{}`", root.display());
        root.canonicalize().with_context(named)?;
    }
    let mut termination = Termination::listen_at_terminal().context("listen for signals")?;
    tokio::select! {
        review = mcpd_config::review(file, locking, roots, except, confinement) => review.map(Some),
        () = termination.wait() => Ok(None),
    }
}

/// Names the scripts that can't be approved.
pub(super) fn note_faulty(review: &Review) {
    for path in &review.faulty {
        output::note(&terminal::revealed(&format!(
            "`{path}` is faulty, so it is not approved; `mcpd check` has the reason\n"
        )));
    }
}

fn show(review: &Review, is_json: bool) -> anyhow::Result<()> {
    if is_json {
        return output::write_json(&review.to_json());
    }
    if review.is_empty() {
        return output::write_text("nothing differs from what is approved\n");
    }
    let copies = ApprovedCopies::open().ok();
    let versions = |root: &str, path: &str, before: Option<&String>| -> Versions {
        let copy = copies.as_ref().and_then(|copies| copies.text(before?));
        [copy, text(&review.roots.directory(root).join(path))]
    };
    let entries = review.entries.iter().map(|change| {
        let before = change.before.as_ref().and_then(|entry| entry.file.as_ref());
        let script = change.entry().and_then(|entry| entry.file.as_ref());
        let root = change.entry().map_or("", |entry| &entry.root);
        let path = script.map_or("", |file| &file.path);
        entry_text(
            change,
            &versions(root, path, before.map(|file| &file.sha256)),
        )
    });
    let files = review.files.iter().map(|change| {
        let [before, after] = change;
        let file = after.as_ref().or(before.as_ref());
        let (root, path) = file.map_or(("", ""), |file| (&file.root, &file.path));
        let before = before.as_ref().map(|file| &file.content);
        file_text(change, &versions(root, path, before))
    });
    let shown: Vec<_> = entries.chain(files).collect();
    output::write_text(&terminal::revealed(&shown.join("\n")))
}

/// Content of a file, if it is a text.
fn text(file: &Path) -> Option<String> {
    fs::read_to_string(file)
        .ok()
        .filter(|text| !text.contains('\0'))
}
