//! What scripts said of themselves at an earlier start, so that a warm one asks none. Lost, it is made again:
//! nothing about it is an error to anybody but the log.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use mcpd_scriptspec::ScriptPath;
use sha2::{Digest as _, Sha256};

use super::fingerprint::Stamp;
use super::scan::{Answer, Looked, ScannedScript};
use super::walk::Candidate;
use crate::database::{Change, Compiled, Database, DatabaseError, Definition, Remembered};
use crate::id;
use crate::tool::raw;

/// What the database knows of the scripts of some roots.
#[derive(Debug)]
pub(super) struct Memory {
    database: Database,
    roots: Vec<PathBuf>,
    /// By the names of the scripts, one for each root; nothing before it is needed.
    known: Vec<BTreeMap<String, Remembered>>,
}

impl Memory {
    pub(super) fn new(database: Database, roots: Vec<PathBuf>) -> Self {
        Self {
            database,
            roots,
            known: Vec::new(),
        }
    }

    /// Reads everything, unless that has been done. Blocks.
    pub(super) fn recall(&mut self) {
        if self.known.is_empty() {
            let roots = self.roots.iter();
            let recalled: Result<_, _> = roots
                .map(|root| self.database.remembered(&root.to_string_lossy()))
                .collect();
            self.known = recalled.unwrap_or_else(|error| {
                self.warn(&error);
                self.roots.iter().map(|_| BTreeMap::new()).collect()
            });
        }
    }

    /// What a script answered, if it is still the same file.
    pub(super) fn answer(&self, root: usize, candidate: &Candidate) -> Option<Answer> {
        let remembered = self.known.get(root)?.get(candidate.path.as_str())?;
        let answer = remembered.answer.as_ref()?;
        let is_same = candidate.stamp().is(&remembered.fingerprint);
        is_same.then(|| answer.clone())
    }

    /// Remembers what was found under each root, and nothing else. Blocks.
    pub(super) fn remember(&mut self, found: &[BTreeMap<ScriptPath, Arc<Looked>>]) {
        let roots = found.iter().enumerate();
        let changes: Vec<_> = roots
            .map(|(root, files)| self.change(root, files))
            .collect();
        if changes.iter().all(Change::is_none) {
            return;
        }
        // At once, as each time another process may have to be waited for.
        if let Err(error) = self.database.remember(&changes) {
            return self.warn(&error);
        }
        for (known, change) in self.known.iter_mut().zip(changes) {
            known.retain(|name, _| !change.gone.contains(name));
            let new = change.new.into_iter();
            known.extend(new.map(|new| (new.definition.name, new.remembered)));
        }
    }

    /// What was found under a root that is another than what is known.
    fn change(&self, root: usize, files: &BTreeMap<ScriptPath, Arc<Looked>>) -> Change {
        let mut found = BTreeMap::new();
        for looked in files.values() {
            for script in looked.scripts.iter().filter(|script| script.spec.is_some()) {
                let name = script.path.as_str();
                found.entry(name).or_insert((looked, script));
            }
        }
        let namespace = self.roots[root].to_string_lossy().into_owned();
        let known = &self.known[root];
        let gone = known
            .keys()
            .filter(|name| !found.contains_key(name.as_str()));
        let gone = gone.cloned().collect();
        let mut new = Vec::new();
        for (name, (looked, script)) in found {
            let stamp = looked.candidate.stamp();
            let known = known.get(name);
            if !known.is_some_and(|known| stamp.is(&known.fingerprint)) {
                new.push(compile(&namespace, &stamp, looked, script));
            }
        }
        Change {
            namespace,
            new,
            gone,
        }
    }

    fn warn(&self, error: &DatabaseError) {
        let file = self.database.file().display();
        tracing::warn!(%error, %file, "failed to use the database: every start asks all scripts");
    }
}

fn compile(namespace: &str, stamp: &Stamp, looked: &Looked, script: &ScannedScript) -> Compiled {
    let mut hash = Sha256::new();
    for text in [
        &script.help.source,
        &script.help.stdout,
        &script.help.stderr,
    ] {
        hash.update(text);
    }
    let hash = hash.finalize();
    let spec = script.spec.as_deref();
    let metadata = spec.map(|spec| spec.definition(script.path.as_str()));
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Compiled {
        definition: Definition {
            namespace: namespace.to_owned(),
            name: script.path.as_str().to_owned(),
            dialect: script.dialect.map(|dialect| dialect.to_string()),
            content_hash: id::hex(&hash),
            compiled_at: i64::try_from(now.as_secs()).unwrap_or(i64::MAX),
            metadata: raw(&metadata.unwrap_or_default()),
        },
        remembered: Remembered {
            fingerprint: stamp.to_string(),
            answer: looked.answer.clone(),
        },
    }
}
