//! Observation of entries as they are now, in the form in which the lock file notes them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::companions::Companions;
use super::digests::FileDigests;
use super::{PinKind, PinnedEntry, PinnedFile, PinnedScript, Pins, Roots, Unlocked, slashed};
use crate::catalog::file::StaticFile;
use crate::catalog::scan::{INSTRUCTIONS, InspectedFile, ScannedScript};
use crate::catalog::served::{CatalogEntry, ServedScript};
use crate::catalog::source::Offer;
use crate::catalog::walk::{self, Candidate};
use crate::script::start_command::StartCommand;

/// Observer of the entries of one scan.
#[derive(Debug)]
pub(crate) struct Observer {
    roots: Roots,
    digests: Arc<FileDigests>,
}

/// How the interpreter of a script is found.
#[derive(Debug, Clone)]
pub(super) struct InterpreterSearch {
    pub(super) start_command: StartCommand,
    /// Value of `PATH` in the run.
    pub(super) path: Option<String>,
    pub(super) directory: PathBuf,
}

impl InterpreterSearch {
    /// Returns the search for a script that is served.
    pub(super) fn of(served: &ServedScript) -> Self {
        let script = &served.script;
        Self {
            start_command: script
                .start_command()
                .expect("a script of a scan runs here")
                .clone(),
            path: script.policy.variable("PATH"),
            directory: script.directory.clone(),
        }
    }

    fn run(&self) -> Option<String> {
        let found = self
            .start_command
            .interpreter(self.path.as_deref(), &self.directory);
        found.map(|program| slashed(&program))
    }
}

impl Observer {
    pub(crate) fn new(roots: Roots) -> Self {
        Self {
            roots,
            digests: Arc::default(),
        }
    }

    /// Returns everything that can be approved, with the patterns `unlocked` left out. Blocks.
    pub(crate) fn observe(
        &self,
        inspected: &[(PathBuf, Arc<InspectedFile>)],
        files: &[Arc<StaticFile>],
        instructions: &[(PathBuf, String)],
        unlocked: Vec<String>,
    ) -> Pins {
        let mut pins = Pins::default();
        let mut script_files: BTreeMap<&Path, BTreeSet<PathBuf>> = BTreeMap::new();
        let is_approvable = |root: &Path| !self.roots.is_reviewed(root);
        for (root, inspected) in inspected.iter().filter(|(root, _)| is_approvable(root)) {
            let ours = script_files.entry(root).or_default();
            ours.extend(files_of(inspected));
            for script in &inspected.scripts {
                pins.entries
                    .extend(self.script(&inspected.candidate, script));
            }
        }
        for file in files.iter().filter(|file| is_approvable(file.root())) {
            pins.entries.extend(self.static_file(file));
            script_files.entry(file.root()).or_default();
        }
        for (root, text) in instructions.iter().filter(|(root, _)| is_approvable(root)) {
            pins.entries
                .push(instructions_entry(self.roots.label(root), text));
            script_files.entry(root).or_default();
        }
        for (root, scripts) in script_files {
            let companions = Companions::new(root, &unlocked, Arc::clone(&self.digests));
            companions.set_scripts(scripts);
            let label = self.roots.label(root);
            let files = companions.contents().into_iter();
            pins.files.extend(files.map(|(path, content)| PinnedFile {
                root: label.clone(),
                path,
                content,
            }));
        }
        pins.unlocked = Unlocked { files: unlocked };
        pins.sort();
        pins
    }

    /// Returns the entry of a script; none if it is not served, or its file is unreadable.
    fn script(&self, candidate: &Candidate, script: &ScannedScript) -> Option<PinnedEntry> {
        let served = script.served.as_ref()?;
        let search = InterpreterSearch::of(served);
        let mut entry = script_entry(self.roots.label(&script.root), served);
        entry.file = Some(script_file(candidate, &search, &self.digests).ok()?);
        Some(entry)
    }

    fn static_file(&self, file: &StaticFile) -> Option<PinnedEntry> {
        let label = self.roots.label(file.root());
        Some(static_entry(
            label,
            file,
            &self.digests.digest(file.file()).ok()?,
        ))
    }
}

/// Returns the files of a script, of which companions are others.
pub(super) fn files_of(inspected: &InspectedFile) -> impl Iterator<Item = PathBuf> {
    let candidate = &inspected.candidate;
    let sidecar = candidate.sidecar.as_ref();
    let sidecar = sidecar.map(|sidecar| sidecar.file.clone());
    let file = (!inspected.scripts.is_empty()).then(|| candidate.file.clone());
    file.into_iter().chain(sidecar)
}

/// Returns the entry of a script without its file.
pub(super) fn script_entry(root: String, served: &ServedScript) -> PinnedEntry {
    let path = served.script.path.as_str();
    let (kind, definition) = match &served.entry {
        CatalogEntry::Tool(tool) => (PinKind::Tool, members(path, tool.definition())),
        CatalogEntry::Prompt(prompt) => (PinKind::Prompt, members(path, prompt.definition())),
        CatalogEntry::Resource(one) => (PinKind::Resource, members(path, one.definition())),
        CatalogEntry::Template(one) => (PinKind::Template, members(path, one.definition())),
    };
    PinnedEntry {
        root,
        path: path.to_owned(),
        kind,
        file: None,
        definition,
    }
}

pub(super) fn static_entry(root: String, file: &StaticFile, digest: &str) -> PinnedEntry {
    PinnedEntry {
        root,
        path: file.path().to_string(),
        kind: PinKind::Resource,
        file: None,
        definition: BTreeMap::from([("content".to_owned(), digest.to_owned())]),
    }
}

pub(super) fn instructions_entry(root: String, text: &str) -> PinnedEntry {
    PinnedEntry {
        root,
        path: INSTRUCTIONS.to_owned(),
        kind: PinKind::Instructions,
        file: None,
        definition: BTreeMap::from([("text".to_owned(), text.to_owned())]),
    }
}

/// Returns the entries of a source.
pub(super) fn offer_entries(offer: &Offer) -> Vec<PinnedEntry> {
    let tools = offer.tools().iter();
    let tools = tools.map(|one| {
        let path = one.path().as_str();
        (PinKind::Tool, path, members(path, one.definition()))
    });
    let prompts = offer.prompts().iter();
    let prompts = prompts.map(|one| {
        let path = one.path().as_str();
        (PinKind::Prompt, path, members(path, one.definition()))
    });
    let resources = offer.resources().iter();
    let resources = resources.map(|one| {
        let uri = one.definition().uri.as_str();
        (PinKind::Resource, uri, members(uri, one.definition()))
    });
    let templates = offer.templates().iter();
    let templates = templates.map(|one| {
        let uri = one.uri().as_str();
        (PinKind::Template, uri, members(uri, one.definition()))
    });
    let entries = tools.chain(prompts).chain(resources).chain(templates);
    let entries = entries.map(|(kind, path, definition)| PinnedEntry {
        root: offer.source().to_owned(),
        path: path.to_owned(),
        kind,
        file: None,
        definition,
    });
    entries.collect()
}

/// Returns the members of a definition, texts as they are, without those that follow from `path`.
fn members(path: &str, definition: &impl Serialize) -> BTreeMap<String, String> {
    let Ok(Value::Object(mut members)) = serde_json::to_value(definition) else {
        return BTreeMap::new();
    };
    members.retain(|name, value| match (name.as_str(), value) {
        ("name", value) => *value != path,
        ("_meta", Value::Object(meta)) => {
            meta.retain(|name, _| !name.starts_with("mcpd/"));
            !meta.is_empty()
        }
        _ => true,
    });
    let members = members.into_iter().map(|(name, value)| match value {
        Value::String(text) => (name, text),
        value => (name, value.to_string()),
    });
    members.collect()
}

/// Returns the file of a script as it is now. Blocks.
///
/// # Errors
///
/// Fails if it is unreadable, or being written.
pub(super) fn script_file(
    candidate: &Candidate,
    interpreter: &InterpreterSearch,
    digests: &FileDigests,
) -> io::Result<PinnedScript> {
    let (file, root) = (&candidate.file, &candidate.root);
    let sidecar = candidate.sidecar.as_ref();
    let sidecar = sidecar.map(|sidecar| digests.digest(&sidecar.file));
    let target = file.canonicalize()?;
    let below = |path: &Path| slashed(path.strip_prefix(root).unwrap_or(path));
    Ok(PinnedScript {
        path: below(file),
        sha256: digests.digest(file)?.to_string(),
        mode: mode(file, &file.metadata()?),
        interpreter: interpreter.run(),
        target: (target != *file).then(|| below(&target)),
        sidecar: sidecar.transpose()?.map(|digest| digest.to_string()),
    })
}

/// Returns the permissions that count.
fn mode(file: &Path, metadata: &Metadata) -> String {
    let mode = match walk::is_executable(file, metadata) {
        true => 0o755,
        false => 0o644,
    };
    #[cfg(unix)]
    let mode = mode | std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o6002;
    format!("{mode:o}")
}
