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
pub(crate) struct Inventory {
    catalogues: BTreeMap<String, Arc<Catalogue>>,
    fetching: BTreeSet<String>,
    failed: BTreeMap<String, Failure>,
    selection: Selection,
}

/// Failure to fetch a catalogue.
#[derive(Debug, Clone, Copy)]
struct Failure {
    at: Moment,
    count: usize,
}

/// Number of workers that have a catalogue.
#[derive(Debug, Clone, Copy, Default)]
struct Holders {
    /// Those that talk.
    there: usize,
    /// Those of them that take runs.
    serving: usize,
}

/// Counts the workers of each catalogue.
fn count_holders(now: Moment, presence: &Presence) -> BTreeMap<&str, Holders> {
    let mut all: BTreeMap<&str, Holders> = BTreeMap::new();
    for (here, silence) in presence.workers(now) {
        let holders = all.entry(&here.catalog).or_default();
        let is_there = silence < MAX_SILENCE;
        holders.there += usize::from(is_there);
        holders.serving += usize::from(is_there && !here.draining);
    }
    all
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
    /// Returns workers whose catalogues have to be fetched, each digest once, and marks them. After
    /// a failure another worker with the same catalogue is asked.
    pub(crate) fn begin_fetches(
        &mut self,
        now: Moment,
        presence: &Presence,
    ) -> Vec<(String, String)> {
        let mut wanted = Vec::new();
        for (digest, holders) in count_holders(now, presence) {
            let failure = self.failed.get(digest);
            let is_early = failure.is_some_and(|one| now.saturating_sub(one.at) < RETRY);
            let is_known = digest.is_empty() || self.catalogues.contains_key(digest);
            if holders.there == 0 || is_known || is_early || self.fetching.contains(digest) {
                continue;
            }
            let number = failure.map_or(0, |one| one.count) % holders.there;
            let holders = presence
                .workers(now)
                .filter(|(here, silence)| *here.catalog == *digest && *silence < MAX_SILENCE);
            if let Some((here, _)) = holders.into_iter().nth(number) {
                self.fetching.insert(digest.to_owned());
                wanted.push((here.node.clone(), digest.to_owned()));
            }
        }
        wanted
    }

    /// Takes a catalogue that was fetched, or the failure.
    pub(crate) fn add(&mut self, now: Moment, digest: &str, fetched: Option<Catalogue>) {
        self.fetching.remove(digest);
        match fetched {
            Some(catalogue) => {
                self.failed.remove(digest);
                self.catalogues
                    .insert(digest.to_owned(), Arc::new(catalogue));
            }
            None => {
                let count = self.failed.get(digest).map_or(0, |one| one.count) + 1;
                let failure = Failure { at: now, count };
                self.failed.insert(digest.to_owned(), failure);
            }
        }
    }

    /// Selects what is served. Returns whether that has changed. A front that is away goes by what
    /// it knew before.
    pub(crate) fn select(&mut self, now: Moment, presence: &Presence) -> bool {
        if presence.echo.trusted_from(now).is_none() && !self.catalogues.is_empty() {
            let known = self.selection.served().next().is_some();
            if known {
                return false;
            }
        }
        let holders = count_holders(now, presence);
        self.catalogues
            .retain(|digest, _| holders.contains_key(&**digest));
        self.failed
            .retain(|digest, _| holders.contains_key(&**digest));
        let serving = self.catalogues.iter().filter_map(|(digest, catalogue)| {
            let workers = holders.get(&**digest)?.serving;
            (workers > 0).then_some((catalogue, workers))
        });
        let scripts = serving.flat_map(|(catalogue, workers)| {
            let scripts = catalogue.scripts.iter();
            scripts.map(move |(path, script)| (&**path, &script.version, workers))
        });
        self.selection.update(now, scripts)
    }

    /// Returns the served scripts.
    pub(crate) fn served(&self) -> Vec<Script> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Kind;

    #[test]
    fn catalogue_is_fetched_from_another_worker_after_a_failure() {
        let mut presence = Presence::new(Moment::ZERO);
        for node in ["a", "b"] {
            let mut here = Here::new(node, 1, Kind::Worker);
            here.catalog = "same".to_owned();
            presence.hear(Moment::ZERO, here);
        }
        let mut inventory = Inventory::default();
        let mut asked = Vec::new();
        for second in [0, 1, 2] {
            let now = Moment::from_secs(second);
            let wanted = inventory.begin_fetches(now, &presence);
            assert_eq!(inventory.begin_fetches(now, &presence), []);
            asked.extend(wanted.into_iter().map(|(node, _)| node));
            inventory.add(now, "same", None);
        }
        assert_eq!(asked, ["a", "b", "a"]);
    }
}
