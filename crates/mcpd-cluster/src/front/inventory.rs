//! Catalogues that a front knows, by their digests: many workers have the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::catalogue::{Catalogue, Script};
use crate::delivery::Catalogues;
use crate::presence::{Moment, Presence};
use crate::selection::Selection;
use crate::wire::Here;

/// Silence after which a worker does not count as having its scripts.
const MAX_SILENCE: Duration = Duration::from_secs(5);
/// Pause before a catalogue that could not be fetched is asked for again.
const RETRY: Duration = Duration::from_secs(1);

/// Catalogues, and those on their way.
#[derive(Debug, Default)]
pub(super) struct Inventory {
    catalogues: BTreeMap<String, Arc<Catalogue>>,
    fetching: BTreeSet<String>,
    failed: BTreeMap<String, Moment>,
    selection: Selection,
}

impl Catalogues for Inventory {
    fn has(&self, here: &Here, path: &str, digest: &str) -> bool {
        let catalogue = self.catalogues.get(&here.catalog);
        let script = catalogue.and_then(|catalogue| catalogue.scripts.get(path));
        script.is_some_and(|script| *script.version == *digest)
    }

    fn has_any(&self, here: &Here, path: &str) -> bool {
        let catalogue = self.catalogues.get(&here.catalog);
        catalogue.is_some_and(|catalogue| catalogue.scripts.contains_key(path))
    }
}

impl Inventory {
    /// Returns workers whose catalogues have to be fetched, each digest once, and marks them.
    pub(super) fn begin_fetches(
        &mut self,
        now: Moment,
        presence: &Presence,
    ) -> Vec<(String, String)> {
        let mut wanted = Vec::new();
        for (here, silence) in presence.workers(now) {
            let digest = &here.catalog;
            let has_failed = self.failed.get(digest);
            let is_early = has_failed.is_some_and(|at| now.saturating_sub(*at) < RETRY);
            let is_known = self.catalogues.contains_key(digest) || digest.is_empty();
            if silence < MAX_SILENCE
                && !is_known
                && !is_early
                && self.fetching.insert(digest.clone())
            {
                wanted.push((here.node.clone(), digest.clone()));
            }
        }
        wanted
    }

    /// Takes a catalogue that was fetched, or the failure.
    pub(super) fn add(&mut self, now: Moment, digest: &str, fetched: Option<Catalogue>) {
        self.fetching.remove(digest);
        match fetched {
            Some(catalogue) => {
                self.failed.remove(digest);
                self.catalogues
                    .insert(digest.to_owned(), Arc::new(catalogue));
            }
            None => {
                self.failed.insert(digest.to_owned(), now);
            }
        }
    }

    /// Selects what is served. Returns whether that has changed. A front that is away goes by what
    /// it knew before.
    pub(super) fn select(&mut self, now: Moment, presence: &Presence) -> bool {
        if presence.echo.trusted_from(now).is_none() && !self.catalogues.is_empty() {
            let known = self.selection.served().next().is_some();
            if known {
                return false;
            }
        }
        let workers: Vec<_> = presence.workers(now).collect();
        let digests: BTreeSet<_> = workers.iter().map(|(here, _)| &here.catalog).collect();
        self.catalogues.retain(|digest, _| digests.contains(digest));
        self.failed.retain(|digest, _| digests.contains(digest));
        let there = workers
            .iter()
            .filter(|(here, silence)| *silence < MAX_SILENCE && !here.draining);
        let catalogues = &self.catalogues;
        let scripts = there
            .filter_map(|(here, _)| catalogues.get(&here.catalog))
            .flat_map(|catalogue| &catalogue.scripts)
            .map(|(path, script)| (&**path, &script.version));
        self.selection.update(now, scripts)
    }

    /// Returns the served scripts.
    pub(super) fn served(&self) -> Vec<Script> {
        let find = |path: &str, version: &Arc<str>| {
            let scripts = self
                .catalogues
                .values()
                .filter_map(|one| one.scripts.get(path));
            scripts
                .into_iter()
                .find(|script| script.version == *version)
                .cloned()
        };
        let served = self.selection.served();
        served
            .filter_map(|(path, version)| find(path, version))
            .collect()
    }
}
