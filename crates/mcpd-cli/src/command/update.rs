//! `mcpd update`: what changed in the sources of the configuration, shown before it is taken.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use mcpd_check::EntryChange;
use mcpd_check::terminal;
use mcpd_config::options::Confinement;
use mcpd_config::{File, RootSource};
use mcpd_exec::Executor;
use mcpd_server::Catalog;
use mcpd_server::catalog::scan::{PassOverKind, Scan};
use mcpd_sources::{Fetched, FileChange, Lock, Pin, Store};
use serde::Serialize;

use super::check::examine;
use crate::args::Update;
use crate::exit_code::ExitCode;
use crate::output;

/// Digits of a commit that are shown.
const SHORT: usize = 12;

const QUESTION: &str = "Take it, so that it is served and run? [y/N] ";

/// A source whose content is not what is locked.
#[derive(Serialize)]
struct Change {
    source: String,
    /// Commit that is locked, and the one of the revision now.
    commits: [Option<String>; 2],
    /// Digests of the directory, likewise.
    trees: [Option<String>; 2],
    entries: Vec<EntryChange>,
    /// Scripts that only their `--help` describes, which was not run.
    unread: Vec<String>,
    files: Vec<FileChange>,
    #[serde(skip)]
    fetched: Fetched,
    #[serde(skip)]
    root: RootSource,
}

/// Fetches the sources, shows what changed, and takes it.
pub(crate) async fn run(args: &Update, file: &File) -> anyhow::Result<ExitCode> {
    let all = file.sources()?;
    let wanted = |root: &&RootSource| {
        let is_part = |text: &String| root.address.contains(text.as_str());
        args.sources.is_empty() || args.sources.iter().any(is_part)
    };
    let wanted: Vec<_> = all.iter().filter(wanted).collect();
    if wanted.is_empty() {
        bail!(
            "update sources: `roots` of mcpd.toml has no address of a source{}",
            match args.sources[..] {
                [] => "",
                _ => " like that",
            }
        );
    }
    let mut lock = file.lock()?;
    let is_stale = lock.retain(|source| all.iter().any(|root| root.source == *source));
    let store = mcpd_config::store()?;
    let executor = mcpd_config::executor(None, None)?;
    let (mut changes, mut code) = (Vec::new(), ExitCode::Success);
    for root in wanted {
        match change(root, &lock, &store, &executor, file).await {
            Ok(change) => changes.extend(change),
            Err(error) => {
                let kept = match lock.get(&root.source) {
                    Some(_) => "; what was reviewed is still served",
                    None => "",
                };
                let error = terminal::revealed(&format!("{error:#}"));
                output::error(&format!(
                    "failed to fetch `{}`: {error}{kept}",
                    root.address
                ));
                code = ExitCode::Failure;
            }
        }
    }
    show(&changes, args)?;
    if args.check {
        return Ok(match changes.is_empty() && !is_stale {
            true => code,
            false => ExitCode::Failure,
        });
    }
    if changes.is_empty() && !is_stale {
        return Ok(code);
    }
    if !changes.is_empty()
        && !args.yes
        && !output::confirm(QUESTION, "take the changes", "take them")?
    {
        return Ok(ExitCode::Failure);
    }
    take(changes, lock, &store, file).await?;
    Ok(code)
}

/// Fetches a source; none if it is as it is locked.
async fn change(
    root: &RootSource,
    lock: &Lock,
    store: &Store,
    executor: &Executor,
    file: &File,
) -> anyhow::Result<Option<Change>> {
    let fetched = root.source.fetch(executor, None, store.directory()).await?;
    let pin = lock.get(&root.source);
    if pin.is_some_and(|pin| pin.tree == fetched.pin().tree) {
        return Ok(None);
    }
    let before = match pin {
        Some(pin) => reviewed(root, pin, store, executor).await,
        None => None,
    };
    let before = before.as_deref();
    let after = catalog(fetched.root(), file).await?;
    let entries = match before {
        Some(before) => EntryChange::between(&catalog(before, file).await?, &after),
        None => EntryChange::between(&Catalog::from(Scan::default()), &after),
    };
    let passed_over = after.scan().passed_over.iter();
    let unread = passed_over.filter(|passed| passed.kind == PassOverKind::NotProbed);
    let name = |path: &Path| path.strip_prefix(fetched.root()).unwrap_or(path).to_owned();
    let unread = unread.map(|passed| name(&passed.file).to_string_lossy().into_owned());
    let commit = |pin: &Pin| pin.commit.clone();
    Ok(Some(Change {
        source: root.address.clone(),
        commits: [pin.and_then(commit), commit(fetched.pin())],
        trees: [
            pin.map(|pin| pin.tree.to_string()),
            Some(fetched.pin().tree.to_string()),
        ],
        entries,
        unread: unread.collect(),
        files: FileChange::between(before, fetched.root())?,
        fetched,
        root: root.clone(),
    }))
}

/// The content that is locked, fetched again if the store does not have it; none if it is gone.
async fn reviewed(
    root: &RootSource,
    pin: &Pin,
    store: &Store,
    executor: &Executor,
) -> Option<PathBuf> {
    if let Ok(Some(place)) = store.find(pin.tree).await {
        return Some(place);
    }
    let fetched = root
        .source
        .fetch(executor, Some(pin), store.directory())
        .await;
    match fetched {
        Ok(fetched) => store.keep(fetched).await.ok(),
        Err(_) => {
            output::note(&format!(
                "{}: what was reviewed is not on this machine any more, so all of it is shown\n",
                root.address
            ));
            None
        }
    }
}

/// Descriptions in a directory that need no run of a script.
async fn catalog(directory: &Path, file: &File) -> anyhow::Result<Catalog> {
    let paths = [directory.to_owned()];
    let confinement = Confinement::default();
    let catalog = examine(&paths, &confinement, file, true, |interpreters| {
        interpreters
    })
    .await?;
    catalog.context("read the descriptions: interrupted")
}

fn show(changes: &[Change], args: &Update) -> anyhow::Result<()> {
    if args.json {
        return output::write_json(&changes);
    }
    if changes.is_empty() {
        return output::write_text("nothing to take\n");
    }
    let text: String = changes.iter().map(text).collect();
    output::write_text(&terminal::revealed(&text))
}

fn text(change: &Change) -> String {
    let [before, after] = &change.commits;
    let short = |commit: &Option<String>| match commit {
        Some(commit) => commit.chars().take(SHORT).collect(),
        None => "nothing".to_owned(),
    };
    let mut text = format!("{}\n", change.source);
    if after.is_some() {
        text += &format!("commit {} → {}\n", short(before), short(after));
    }
    for entry in &change.entries {
        text += &entry.to_string();
    }
    for script in &change.unread {
        text += &format!("? {script}: only its `--help` describes it, which was not run\n");
    }
    for file in &change.files {
        text += &format!("\n{file}");
    }
    text + "\n"
}

/// Keeps the contents, and then writes the lock file, which alone decides what is served.
async fn take(
    changes: Vec<Change>,
    mut lock: Lock,
    store: &Store,
    file: &File,
) -> anyhow::Result<()> {
    let mut taken = Vec::new();
    for Change { fetched, root, .. } in changes {
        let pin = fetched.pin().clone();
        store.keep(fetched).await?;
        lock.insert(root.source, pin)?;
        taken.push(root.address);
    }
    file.write_lock(&lock)?;
    for address in taken {
        output::write_text(&format!("taken: {address}\n"))?;
    }
    output::note("a running server serves it after a restart\n");
    Ok(())
}
