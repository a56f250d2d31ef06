//! Cache of probe results from earlier starts, so that a warm start probes no script. A lost
//! cache is rebuilt; its errors are only logged.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use mcpd_scriptspec::ScriptPath;
use sha2::{Digest as _, Sha256};

use super::scan::{InspectedFile, ScannedScript};
use super::walk::Candidate;
use crate::database::rows::{ProbeRefusal, ProbeResult};
use crate::database::{
    CacheChange, CacheEntry, CompiledDefinition, Database, DatabaseError, Definition, StoredRefusal,
};
use crate::message::raw::raw;
use crate::support::random_id;

/// Contents of the database for the scripts of some roots.
#[derive(Debug)]
pub(super) struct ProbeCache {
    database: Database,
    roots: Vec<PathBuf>,
    /// By the names of the scripts, one map per root; empty until `load`.
    known: Vec<BTreeMap<String, CacheEntry>>,
}

/// Knowledge of a file from an earlier start.
#[derive(Debug, Default)]
pub(super) struct CachedResult {
    /// Probe result of the file if it is unchanged, and the conditions under which it was
    /// obtained.
    pub(super) answer: Option<(ProbeResult, Arc<str>)>,
    /// Tells whether the file, or its predecessor, was a tool or a faulty one.
    pub(super) was_tool: bool,
}

impl ProbeCache {
    pub(super) fn new(database: Database, roots: Vec<PathBuf>) -> Self {
        Self {
            database,
            roots,
            known: Vec::new(),
        }
    }

    /// Reads the whole cache, unless that has been done. Blocks.
    pub(super) fn load(&mut self) {
        if self.known.is_empty() {
            let roots = self.roots.iter();
            let entries: Result<_, _> = roots
                .map(|root| self.database.cache_entries(&root.to_string_lossy()))
                .collect();
            self.known = entries.unwrap_or_else(|error| {
                self.log_failure(&error);
                self.roots.iter().map(|_| BTreeMap::new()).collect()
            });
        }
    }

    /// Returns the cached knowledge of a file.
    pub(super) fn get(&self, root: usize, candidate: &Candidate) -> CachedResult {
        let known = self.known.get(root);
        let Some(known) = known.and_then(|known| known.get(candidate.path.as_str())) else {
            return CachedResult::default();
        };
        let is_same = candidate.stamp().matches_text(&known.fingerprint);
        let answer = known.answer.as_ref().filter(|_| is_same);
        let refusal = known
            .answer
            .as_ref()
            .and_then(|answer| answer.refusal.as_ref());
        CachedResult {
            answer: answer.map(|answer| (answer.clone(), Arc::clone(&known.conditions))),
            was_tool: !matches!(refusal, Some(ProbeRefusal::NotATool(_))),
        }
    }

    /// Saves the current findings under each root, and deletes the rest. Blocks.
    pub(super) fn save(&mut self, found: &[BTreeMap<ScriptPath, Arc<InspectedFile>>]) {
        let roots = found.iter().enumerate();
        let changes: Vec<_> = roots
            .map(|(root, files)| self.changes_under(root, files))
            .collect();
        if changes.iter().all(CacheChange::is_empty) {
            return;
        }
        // One transaction, as each may have to wait for another process.
        if let Err(error) = self.database.update_cache(&changes) {
            return self.log_failure(&error);
        }
        for (known, change) in self.known.iter_mut().zip(changes) {
            known.retain(|name, _| !change.gone.contains(name));
            let new = change.new.into_iter();
            known.extend(new.map(|new| (new.definition.name, new.entry)));
            let refused = change.refused.into_iter();
            known.extend(refused.map(|refused| (refused.name, refused.entry)));
        }
    }

    /// Returns the difference between the findings under a root and the cache.
    fn changes_under(
        &self,
        root: usize,
        files: &BTreeMap<ScriptPath, Arc<InspectedFile>>,
    ) -> CacheChange {
        let mut found = BTreeMap::new();
        let mut refused = BTreeMap::new();
        for inspected in files.values() {
            for script in inspected
                .scripts
                .iter()
                .filter(|script| script.spec.is_some())
            {
                let name = script.path.as_str();
                found.entry(name).or_insert((inspected, script));
            }
            if inspected.refusal().is_some() {
                refused.insert(inspected.candidate.path.as_str(), inspected);
            }
        }
        let namespace = self.roots[root].to_string_lossy().into_owned();
        let known = &self.known[root];
        let gone = known
            .keys()
            .map(String::as_str)
            .filter(|name| !found.contains_key(name) && !refused.contains_key(name));
        let gone = gone.map(str::to_owned).collect();
        let is_known = |name: &str, inspected: &InspectedFile| {
            let known = known.get(name);
            known.is_some_and(|known| is_stored(known, inspected))
        };
        let found = found.into_iter();
        let new = found.filter(|(name, (inspected, _))| !is_known(name, inspected));
        let new = new.map(|(_, (inspected, script))| compile(&namespace, inspected, script));
        let new = new.collect();
        let refused = refused.into_iter();
        let refused = refused.filter(|(name, inspected)| !is_known(name, inspected));
        let refused = refused.map(|(name, inspected)| StoredRefusal {
            name: name.to_owned(),
            entry: new_entry(inspected),
        });
        CacheChange {
            new,
            refused: refused.collect(),
            gone,
            namespace,
        }
    }

    fn log_failure(&self, error: &DatabaseError) {
        let file = self.database.file().display();
        tracing::warn!(%error, %file, "failed to use the database; every start runs all scripts with `--help`");
    }
}

/// Returns whether a finding adds nothing to what is known. The number of timeouts counts.
fn is_stored(known: &CacheEntry, inspected: &InspectedFile) -> bool {
    let (refusal, conditions) = match &inspected.answer {
        Some((answer, conditions)) => (Some(&answer.refusal), &**conditions),
        None => (None, ""),
    };
    let known_refusal = known.answer.as_ref().map(|answer| &answer.refusal);
    known_refusal == refusal
        && *known.conditions == *conditions
        && inspected.candidate.stamp().matches_text(&known.fingerprint)
}

/// Returns the knowledge of a file to save for the next start.
fn new_entry(inspected: &InspectedFile) -> CacheEntry {
    let (answer, conditions) = match &inspected.answer {
        Some((answer, conditions)) => (Some(answer.clone()), Arc::clone(conditions)),
        None => (None, Arc::default()),
    };
    CacheEntry {
        fingerprint: inspected.candidate.stamp().to_string(),
        conditions,
        answer,
    }
}

fn compile(
    namespace: &str,
    inspected: &InspectedFile,
    script: &ScannedScript,
) -> CompiledDefinition {
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
    CompiledDefinition {
        definition: Definition {
            namespace: namespace.to_owned(),
            name: script.path.as_str().to_owned(),
            dialect: script.dialect.map(|dialect| dialect.to_string()),
            content_hash: random_id::hex(&hash),
            compiled_at: i64::try_from(now.as_secs()).unwrap_or(i64::MAX),
            metadata: raw(&metadata.unwrap_or_default()),
        },
        entry: new_entry(inspected),
    }
}
