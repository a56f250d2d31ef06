//! Placement of runs: candidates, least load, power of two choices, and homes by rendezvous
//! hashing. Pure functions of what the workers announced.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use crate::wire::Here;

/// Number of runs above its slots that one front sends to one worker.
const MAX_AHEAD: u32 = 64;
/// Number of candidates above which two are drawn and the better is taken.
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

/// Chooses a worker among `workers`, which are there and take runs.
/// `has` tells whether the catalogue of a worker has the script in the wanted version.
pub(crate) fn choose<'a>(
    workers: impl Iterator<Item = &'a Here>,
    requirements: &Requirements,
    has: impl Fn(&Here) -> bool,
    excluded: &[String],
    in_flight: &InFlight,
    chance: &mut Chance,
) -> Choice {
    let is_fit = |here: &&Here| {
        let mut wanted = requirements.labels.iter();
        wanted.all(|label| here.labels.contains(label)) && has(here)
    };
    let fit = workers.filter(is_fit);
    let mut candidates: Vec<_> = fit.filter(|here| !excluded.contains(&here.node)).collect();
    if requirements.home {
        let path = &requirements.path;
        let home = candidates
            .into_iter()
            .max_by_key(|here| affinity(path, &here.node));
        candidates = home.into_iter().collect();
    }
    if candidates.is_empty() {
        return Choice::Nowhere;
    }
    let mine = |here: &Here| in_flight.get(&here.node).copied().unwrap_or_default();
    candidates.retain(|here| mine(here) < here.slots.saturating_add(MAX_AHEAD));
    let best = if candidates.len() > MAX_COMPARED {
        let drawn = [(); 2].map(|()| candidates[chance.below(candidates.len())]);
        drawn.into_iter().min_by_key(|here| load(here, mine(here)))
    } else {
        // Ties are frequent while little runs, and must not all go to the first.
        let first = chance.below(candidates.len().max(1));
        let (before, from) = candidates.split_at(first.min(candidates.len()));
        let turned = from.iter().chain(before).copied();
        turned.min_by_key(|here| load(here, mine(here)))
    };
    best.map_or(Choice::Busy, |here| Choice::Worker {
        node: here.node.clone(),
        epoch: here.epoch,
    })
}

/// Load of a worker, in thousandths of its slots.
fn load(here: &Here, mine: u32) -> u64 {
    let work = u64::from(mine) + u64::from(here.waiting);
    1000 * work / u64::from(here.slots.max(1))
}

/// Rendezvous hash of a script and a worker; its home is the candidate with the highest.
fn affinity(path: &str, node: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(path.as_bytes());
    // Neither a path nor a name has this byte.
    hash.update([0]);
    hash.update(node.as_bytes());
    hash.finalize().into()
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

    fn choose_of(workers: &[Here], requirements: &Requirements, in_flight: &InFlight) -> Choice {
        let mut chance = Chance::new(7);
        choose(
            workers.iter(),
            requirements,
            |_| true,
            &[],
            in_flight,
            &mut chance,
        )
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
        let mut chance = Chance::new(7);
        let none = |_: &Here| false;
        let in_flight = InFlight::new();
        let choice = choose(workers.iter(), &gpu, none, &[], &in_flight, &mut chance);
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
            let choice = choose(workers.iter(), &any, |_| true, &[], &in_flight, &mut chance);
            *in_flight.entry(node(choice)).or_default() += 1;
        }
        let most = in_flight.values().max().copied().unwrap_or_default();
        // Drawn by chance alone, the fullest of 100 would have about 20.
        assert!(most <= 15, "{most}");
    }
}
