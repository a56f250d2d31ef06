//! Deterministic simulation of fronts and workers: virtual time, a network in memory, and faults
//! drawn from a seed.

mod figures;
mod network;
mod simulation;
mod task_store;
mod versions;
mod world;

use std::thread;

use self::simulation::simulate;

/// Number of schedules in the ordinary suite. `MCPD_SIMULATION_SCHEDULES` asks for another, and
/// `MCPD_SIMULATION_SEED` for one seed alone.
const SCHEDULES: u64 = 10_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Checks the seeds of one thread. Returns the first that breaks a promise, and which.
fn check_seeds(seeds: impl Iterator<Item = u64>) -> Option<(u64, String)> {
    for seed in seeds {
        if let Err(fault) = simulate(seed) {
            return Some((seed, fault));
        }
    }
    None
}

#[test]
fn promises_hold_in_ten_thousand_schedules() {
    if let Some(seed) = number("MCPD_SIMULATION_SEED") {
        if let Err(fault) = simulate(seed) {
            panic!("seed {seed}: {fault}");
        }
        return;
    }
    let schedules = number("MCPD_SIMULATION_SCHEDULES").unwrap_or(SCHEDULES);
    let threads = thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let handles: Vec<_> = (0..threads)
        .map(|first| (first..schedules).step_by(threads as usize))
        .map(|seeds| thread::spawn(move || check_seeds(seeds)))
        .collect();
    for handle in handles {
        if let Some((seed, fault)) = handle.join().expect("a thread that ends") {
            panic!(
                "seed {seed}: {fault}\nMCPD_SIMULATION_SEED={seed} cargo test -p mcpd-cluster \
                 promises reproduces it"
            );
        }
    }
}
