//! Metrics of a cluster as a front sees it, in the text format of Prometheus: the ground for
//! autoscaling.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::AddAssign;
use std::time::Duration;

use crate::placement::label_set;
use crate::presence::{Moment, Presence};

/// Silence after which a worker does not count.
const MAX_SILENCE: Duration = Duration::from_secs(5);

/// Workers with the same labels, taken together.
#[derive(Debug, Default)]
struct Group {
    workers: u64,
    slots: u64,
    running: u64,
    waiting: u64,
}

impl AddAssign for Group {
    fn add_assign(&mut self, other: Self) {
        self.workers += other.workers;
        self.slots += other.slots;
        self.running += other.running;
        self.waiting += other.waiting;
    }
}

/// Returns the metrics. `waiting` are the calls that no worker has been found for, by their labels.
pub(crate) fn text(now: Moment, presence: &Presence, waiting: BTreeMap<String, u64>) -> String {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for (labels, group) in group_by_labels(now, presence) {
        *groups.entry(label_set(labels)).or_default() += group;
    }
    for (labels, count) in waiting {
        groups.entry(labels).or_default().waiting += count;
    }
    let mut text = String::new();
    family(
        &mut text,
        &groups,
        "workers",
        "Workers that take runs.",
        |one| one.workers,
    );
    family(
        &mut text,
        &groups,
        "slots",
        "Runs that they do at a time.",
        |one| one.slots,
    );
    family(
        &mut text,
        &groups,
        "running",
        "Scripts that run on them.",
        |one| one.running,
    );
    let help = "Runs that wait for a slot, and calls that wait for a worker.";
    family(&mut text, &groups, "waiting", help, |one| one.waiting);
    text
}

/// Groups the workers by their labels in the order in which they name them, so that a line of text
/// is made once for each group, and not for each worker.
fn group_by_labels(now: Moment, presence: &Presence) -> BTreeMap<&[String], Group> {
    let mut groups: BTreeMap<&[String], Group> = BTreeMap::new();
    for (here, silence) in presence.workers(now) {
        if silence < MAX_SILENCE && !here.draining {
            *groups.entry(&here.labels).or_default() += Group {
                workers: 1,
                slots: here.slots.into(),
                running: here.running.into(),
                waiting: here.waiting.into(),
            };
        }
    }
    groups
}

fn family(
    text: &mut String,
    groups: &BTreeMap<String, Group>,
    name: &str,
    help: &str,
    value: impl Fn(&Group) -> u64,
) {
    // Writing to a string can't fail, here and below.
    writeln!(text, "# HELP mcpd_cluster_{name} {help}").ok();
    writeln!(text, "# TYPE mcpd_cluster_{name} gauge").ok();
    for (labels, group) in groups {
        let value = value(group);
        // A worker says what its labels are, so they may be anything.
        let labels = labels.escape_default();
        writeln!(text, "mcpd_cluster_{name}{{labels=\"{labels}\"}} {value}").ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Here, Kind};

    #[test]
    fn workers_with_the_same_labels_are_one_line() {
        let mut presence = Presence::new(Moment::ZERO);
        for (node, labels) in [
            ("a", ["gpu", "eu"]),
            ("b", ["eu", "gpu"]),
            ("c", ["eu", "\"x"]),
        ] {
            let mut here = Here::new(node, 1, Kind::Worker);
            (here.slots, here.running, here.waiting) = (4, 3, 2);
            here.labels = labels.map(str::to_owned).to_vec();
            presence.hear(Moment::ZERO, here);
        }
        let waiting = BTreeMap::from([("tpu".to_owned(), 5)]);
        let text = text(Duration::from_secs(1), &presence, waiting);
        for line in [
            "# TYPE mcpd_cluster_slots gauge",
            r#"mcpd_cluster_workers{labels="eu,gpu"} 2"#,
            r#"mcpd_cluster_slots{labels="eu,gpu"} 8"#,
            r#"mcpd_cluster_waiting{labels="eu,gpu"} 4"#,
            r#"mcpd_cluster_waiting{labels="\"x,eu"} 2"#,
            r#"mcpd_cluster_waiting{labels="tpu"} 5"#,
        ] {
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        }
    }
}
