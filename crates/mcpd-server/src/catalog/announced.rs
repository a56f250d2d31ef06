//! Announcements of the scripts of a catalog to other servers, which call them: what each said of
//! itself, and the digest of the version that said it. Made only for a server that is asked.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use tokio::sync::Mutex;

use super::Catalog;
use super::pins::digests::FileDigests;
use super::pins::slashed;
use super::scan::ScannedScript;
use super::served::CatalogEntry;
use crate::remote::{Announcement, Description, Role};
use crate::script::Script;
use crate::script::fingerprint::Fingerprint;
use crate::script::version_check::VersionCheck;

/// Maker of announcements, which keeps those of the last catalog.
#[derive(Debug, Default)]
pub(crate) struct Announcer {
    digests: Arc<FileDigests>,
    last: ArcSwapOption<AnnouncedScripts>,
    /// Held while they are made.
    making: Mutex<()>,
}

/// Scripts of one catalog that are announced.
#[derive(Debug)]
pub(crate) struct AnnouncedScripts {
    catalog: Arc<Catalog>,
    pub(crate) announcements: Arc<[Announcement]>,
    scripts: BTreeMap<String, AnnouncedScript>,
}

/// Script that is announced.
#[derive(Debug, Clone)]
pub(crate) struct AnnouncedScript {
    pub(crate) script: Arc<Script>,
    pub(crate) digest: Arc<str>,
    pub(crate) version: Arc<dyn VersionCheck>,
}

/// Announced version of a script, compared with its files before each run.
#[derive(Debug)]
struct Version {
    digests: Arc<FileDigests>,
    digest: Arc<str>,
    files: Vec<PathBuf>,
    /// Check against the approved version, where only that is served.
    version_check: Option<Arc<dyn VersionCheck>>,
}

impl VersionCheck for Version {
    fn changes(&self) -> Vec<String> {
        let mut changes = match &self.version_check {
            Some(check) => check.changes(),
            None => Vec::new(),
        };
        match digest(&self.digests, &self.files) {
            Ok(now) if *now == *self.digest => {}
            _ => changes.push("content".to_owned()),
        }
        changes
    }
}

impl Announcer {
    /// Returns the announced scripts of `catalog`.
    pub(crate) async fn scripts(&self, catalog: Arc<Catalog>) -> Arc<AnnouncedScripts> {
        let is_of_catalog = |made: &Arc<AnnouncedScripts>| Arc::ptr_eq(&made.catalog, &catalog);
        if let Some(made) = self.last.load_full().filter(is_of_catalog) {
            return made;
        }
        let _making = self.making.lock().await;
        if let Some(made) = self.last.load_full().filter(is_of_catalog) {
            return made;
        }
        let digests = Arc::clone(&self.digests);
        let make = move || Arc::new(AnnouncedScripts::of(catalog, &digests));
        let made = match tokio::task::spawn_blocking(make).await {
            Ok(made) => made,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        };
        self.last.store(Some(Arc::clone(&made)));
        made
    }
}

impl AnnouncedScripts {
    /// Announces the scripts that the catalog serves under their paths. Blocks.
    fn of(catalog: Arc<Catalog>, digests: &Arc<FileDigests>) -> Self {
        let mut scripts = BTreeMap::new();
        let mut announcements = Vec::new();
        // A faulty script keeps its path, as in the catalog.
        let mut claimed = BTreeSet::new();
        for scanned in &catalog.scan().scripts {
            if !claimed.insert(&scanned.path) {
                continue;
            }
            if let Some((announcement, script)) = announce(&catalog, scanned, digests) {
                scripts.insert(announcement.path.clone(), script);
                announcements.push(announcement);
            }
        }
        Self {
            catalog,
            announcements: announcements.into(),
            scripts,
        }
    }

    /// Returns the script at `path`.
    pub(crate) fn script(&self, path: &str) -> Option<&AnnouncedScript> {
        self.scripts.get(path)
    }
}

/// Announces a script; `None` if it is not served, or its files have changed since it was scanned.
fn announce(
    catalog: &Catalog,
    scanned: &ScannedScript,
    digests: &Arc<FileDigests>,
) -> Option<(Announcement, AnnouncedScript)> {
    let served = scanned.served.as_ref()?;
    let path = scanned.path.as_str();
    // A tool of the program may have the same path.
    if catalog
        .tool(path)
        .is_some_and(|tool| tool.script().is_none())
    {
        return None;
    }
    let files = scanned.version.0.iter();
    let files: Vec<_> = files.map(|(file, _)| file.clone()).collect();
    let digest: Arc<str> = digest(digests, &files).ok()?.into();
    if !scanned.version.0.iter().all(is_current) {
        return None;
    }
    let script = &served.script;
    let role = match &served.entry {
        CatalogEntry::Tool(_) => Role::Tool,
        CatalogEntry::Prompt(_) => Role::Prompt,
        CatalogEntry::Resource(_) => Role::Resource,
        CatalogEntry::Template(_) => Role::Template,
    };
    let announcement = Announcement::new(
        path.to_owned(),
        Arc::clone(&digest),
        role,
        script.policy.sandbox().level,
        script.traits(),
        describe(scanned),
    );
    let version = Version {
        digests: Arc::clone(digests),
        digest: Arc::clone(&digest),
        files,
        version_check: script.version_check.get().cloned(),
    };
    let script = AnnouncedScript {
        script: Arc::clone(script),
        digest,
        version: Arc::new(version),
    };
    Some((announcement, script))
}

/// Returns the digest of a version. Blocks.
fn digest(digests: &FileDigests, files: &[PathBuf]) -> io::Result<String> {
    let digest = digests.digest_together(files.iter().map(PathBuf::as_path))?;
    Ok(format!("sha256:{digest}"))
}

fn is_current((file, scanned): &(PathBuf, Fingerprint)) -> bool {
    let metadata = file.metadata();
    metadata.is_ok_and(|metadata| Fingerprint::of(&metadata) == *scanned)
}

/// Returns what a script said of itself.
fn describe(scanned: &ScannedScript) -> Description {
    let help = &scanned.help;
    let Some(dialect) = scanned.dialect else {
        return Description::of_help(help.stdout.clone(), help.stderr.clone());
    };
    let file = scanned.described_in.strip_prefix(&scanned.root);
    let file = slashed(file.unwrap_or(&scanned.described_in));
    Description::of_file(dialect.to_string(), file, help.source.clone())
}
