//! Placement of runs: candidates, least load, power of two choices, and homes by rendezvous
//! hashing. Pure functions of what the workers announced.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use crate::wire::Here;

/// Number of draws until all workers are compared after all.
const MAX_DRAWS: usize = 64;
/// Number of runs above its slots that one front sends to one worker.
const MAX_AHEAD: u32 = 64;
/// Number of workers above which two candidates are drawn and the better is taken.
const MAX_COMPARED: usize = 16;

/// Requirements of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Requirements {
    pub(crate) path: String,
    /// Labels that the worker must have, all of them.
    pub(crate) labels: Vec<String>,
    /// Always on the same worker, as long as that is there.
    pub(crate) home: bool,
}

/// Returns labels as one text, the same for every order.
pub(crate) fn label_set(labels: &[String]) -> String {
    let mut labels: Vec<_> = labels.iter().map(String::as_str).collect();
    labels.sort_unstable();
    labels.dedup();
    labels.join(",")
}

/// Result of a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choice {
    Worker {
        node: String,
        epoch: u64,
    },
    /// There are candidates, and this front has sent each as much as it may.
    Busy,
    /// There is no candidate.
    Nowhere,
}

/// Number of runs that this front has at each worker.
pub(crate) type InFlight = BTreeMap<String, u32>;

/// Workers to choose from.
pub(crate) trait Pool {
    /// Number of workers, also of those that can't be got.
    fn count(&self) -> usize;

    /// Returns a worker with the hash of its name; `None` if it takes no runs.
    fn get(&self, index: usize) -> Option<(&Here, u64)>;

    /// Returns all that take runs.
    fn iter(&self) -> impl Iterator<Item = (&Here, u64)> {
        (0..self.count()).filter_map(|index| self.get(index))
    }
}

/// Question for a worker.
pub(crate) struct Search<'a, H> {
    pub(crate) requirements: &'a Requirements,
    /// Tells whether the catalogue of a worker has the script in the wanted version.
    pub(crate) has: H,
    /// Names of workers that are not asked.
    pub(crate) excluded: &'a [String],
    pub(crate) in_flight: &'a InFlight,
}

impl<H: Fn(&Here) -> bool> Search<'_, H> {
    /// Chooses a worker.
    pub(crate) fn choose(&self, workers: &impl Pool, chance: &mut Chance) -> Choice {
        if self.requirements.home {
            return self.choose_home(workers);
        }
        if workers.count() > MAX_COMPARED
            && let Some(better) = self.draw_two(workers, chance)
        {
            return better;
        }
        self.compare_all(workers, chance)
    }

    fn is_candidate(&self, here: &Here) -> bool {
        let mut wanted = self.requirements.labels.iter();
        wanted.all(|label| here.labels.contains(label))
            && !self.excluded.contains(&here.node)
            && (self.has)(here)
    }

    fn mine(&self, here: &Here) -> u32 {
        self.in_flight.get(&here.node).copied().unwrap_or_default()
    }

    /// Returns whether this front may send it another run.
    fn has_room(&self, here: &Here) -> bool {
        self.mine(here) < here.slots.saturating_add(MAX_AHEAD)
    }

    fn load(&self, here: &Here) -> u64 {
        load(here, self.mine(here))
    }

    fn choose_home(&self, workers: &impl Pool) -> Choice {
        let path = name_hash(&self.requirements.path);
        let candidates = workers.iter().filter(|(here, _)| self.is_candidate(here));
        let home = candidates.max_by_key(|(here, node)| (mix(path ^ node), &here.node));
        match home {
            None => Choice::Nowhere,
            Some((here, _)) if self.has_room(here) => Choice::of(here),
            Some(_) => Choice::Busy,
        }
    }

    /// Draws two different candidates, and takes the better. Returns `None` if they are rare.
    fn draw_two(&self, workers: &impl Pool, chance: &mut Chance) -> Option<Choice> {
        let mut first: Option<&Here> = None;
        for _ in 0..MAX_DRAWS {
            let Some((here, _)) = workers.get(chance.below(workers.count())) else {
                continue;
            };
            let is_same = first.is_some_and(|first| first.node == here.node);
            if is_same || !self.is_candidate(here) || !self.has_room(here) {
                continue;
            }
            let Some(first) = first.replace(here) else {
                continue;
            };
            let is_better = self.load(first) <= self.load(here);
            return Some(Choice::of(if is_better { first } else { here }));
        }
        None
    }

    fn compare_all(&self, workers: &impl Pool, chance: &mut Chance) -> Choice {
        let candidates = workers.iter().map(|(here, _)| here);
        let mut candidates: Vec<_> = candidates.filter(|here| self.is_candidate(here)).collect();
        if candidates.is_empty() {
            return Choice::Nowhere;
        }
        candidates.retain(|here| self.has_room(here));
        // Ties are frequent while little runs, and must not all go to the first.
        let first = chance.below(candidates.len().max(1));
        candidates.rotate_left(first);
        let best = candidates.into_iter().min_by_key(|here| self.load(here));
        best.map_or(Choice::Busy, Choice::of)
    }
}

impl Choice {
    fn of(here: &Here) -> Self {
        Self::Worker {
            node: here.node.clone(),
            epoch: here.epoch,
        }
    }
}

/// Load of a worker, in thousandths of its slots.
fn load(here: &Here, mine: u32) -> u64 {
    let work = u64::from(mine) + u64::from(here.waiting);
    1000 * work / u64::from(here.slots.max(1))
}

/// Hash of a name. All fronts of a cluster must have the same, whatever their version.
pub(crate) fn name_hash(name: &str) -> u64 {
    let digest: [u8; 32] = Sha256::digest(name.as_bytes()).into();
    digest.first_chunk().copied().map_or(0, u64::from_le_bytes)
}

/// Rendezvous hash of a script and a worker, from both hashes (the finalizer of SplitMix64). The
/// home of a script is the candidate with the highest.
fn mix(hashes: u64) -> u64 {
    let first = (hashes ^ (hashes >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let second = (first ^ (first >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    second ^ (second >> 31)
}

/// Pseudorandom numbers (xorshift), from a seed: good enough to spread load, and reproducible.
#[derive(Debug, Clone)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        // Zero would stay zero; neighbours must differ.
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number below `bound`, or 0 if there is none.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from((self.next() >> 11) % bound).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Kind;

    fn worker(number: usize, waiting: u32) -> Here {
        let mut here = Here::new(&format!("w{number:05}"), 1, Kind::Worker);
        (here.slots, here.waiting) = (4, waiting);
        here
    }

    struct Slice<'a>(&'a [Here]);

    impl Pool for Slice<'_> {
        fn count(&self) -> usize {
            self.0.len()
        }

        fn get(&self, index: usize) -> Option<(&Here, u64)> {
            self.0.get(index).map(|here| (here, name_hash(&here.node)))
        }
    }

    fn choose_of(workers: &[Here], requirements: &Requirements, in_flight: &InFlight) -> Choice {
        let mut chance = Chance::new(7);
        search(requirements, in_flight).choose(&Slice(workers), &mut chance)
    }

    fn search<'a>(
        requirements: &'a Requirements,
        in_flight: &'a InFlight,
    ) -> Search<'a, fn(&Here) -> bool> {
        Search {
            requirements,
            has: |_| true,
            excluded: &[],
            in_flight,
        }
    }

    fn node(choice: Choice) -> String {
        match choice {
            Choice::Worker { node, .. } => node,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn least_loaded_candidate_is_chosen() {
        let workers = [worker(0, 3), worker(1, 1), worker(2, 2)];
        let any = Requirements::default();
        assert_eq!(node(choose_of(&workers, &any, &InFlight::new())), "w00001");
        let in_flight = InFlight::from([("w00001".to_owned(), 9)]);
        assert_eq!(node(choose_of(&workers, &any, &in_flight)), "w00002");
    }

    #[test]
    fn labels_and_versions_exclude() {
        let mut workers = [worker(0, 0), worker(1, 0)];
        workers[1].labels = vec!["gpu".to_owned(), "eu".to_owned()];
        let gpu = Requirements {
            labels: vec!["gpu".to_owned()],
            ..Requirements::default()
        };
        assert_eq!(node(choose_of(&workers, &gpu, &InFlight::new())), "w00001");
        let in_flight = InFlight::new();
        let search = Search {
            has: |_: &Here| false,
            requirements: &gpu,
            excluded: &[],
            in_flight: &in_flight,
        };
        let choice = search.choose(&Slice(&workers), &mut Chance::new(7));
        assert_eq!(choice, Choice::Nowhere);
    }

    #[test]
    fn front_sends_no_more_than_slots_and_64() {
        let workers = [worker(0, 0)];
        let any = Requirements::default();
        let in_flight = InFlight::from([("w00000".to_owned(), 67)]);
        assert_eq!(node(choose_of(&workers, &any, &in_flight)), "w00000");
        let in_flight = InFlight::from([("w00000".to_owned(), 68)]);
        assert_eq!(choose_of(&workers, &any, &in_flight), Choice::Busy);
    }

    #[test]
    fn home_moves_only_with_its_worker() {
        let workers: Vec<_> = (0..20).map(|number| worker(number, 0)).collect();
        let at_home = |path: usize| Requirements {
            path: format!("notes/{path}"),
            home: true,
            ..Requirements::default()
        };
        let in_flight = InFlight::new();
        let home = |path, workers: &[Here]| node(choose_of(workers, &at_home(path), &in_flight));
        let homes: Vec<_> = (0..200).map(|path| home(path, &workers)).collect();
        let mut without: Vec<_> = workers.clone();
        without.remove(3);
        for (path, before) in homes.iter().enumerate() {
            let after = home(path, &without);
            assert_eq!(&after != before, before == "w00003", "notes/{path}");
        }
        let of_one = homes.iter().filter(|home| *home == "w00003").count();
        assert!((1..=40).contains(&of_one), "{of_one}");
    }

    #[test]
    fn load_spreads_over_many_workers() {
        let workers: Vec<_> = (0..100).map(|number| worker(number, 0)).collect();
        let mut in_flight = InFlight::new();
        let mut chance = Chance::new(3);
        for _ in 0..1000 {
            let any = Requirements::default();
            let search = search(&any, &in_flight);
            let choice = search.choose(&Slice(&workers), &mut chance);
            *in_flight.entry(node(choice)).or_default() += 1;
        }
        let most = in_flight.values().max().copied().unwrap_or_default();
        // Drawn by chance alone, the fullest of 100 would have about 20.
        assert!(most <= 15, "{most}");
    }
}
