//! Roster of fronts: which of those that have run tasks are still there. Pure: the caller brings
//! every message and the time.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::presence::Moment;

/// Silence from which a front is asked whether it is there.
const SUSPICIOUS: Duration = Duration::from_millis(2500);
/// Time for which the server must say that a front is not connected.
const ABSENCE: Duration = Duration::from_secs(2);
/// Silence from which a front is gone.
const SILENCE: Duration = Duration::from_secs(15);

/// One front.
#[derive(Debug, Clone)]
struct Seen {
    /// Name under which its present start runs tasks.
    runner: String,
    last: Moment,
    has_left: bool,
    absent_since: Option<Moment>,
    /// Its tasks have been looked for since it is gone.
    is_settled: bool,
}

/// Fronts as one of them sees them.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    fronts: BTreeMap<String, Seen>,
    /// Time from which silence counts, if it does at present.
    trusted_from: Option<Moment>,
}

/// Judgement of a front that has run a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judgement {
    There,
    Gone,
    /// It has to be asked.
    Unclear,
}

/// Returns the node of a runner, which is `node.start`.
pub(crate) fn node_of(runner: &str) -> &str {
    runner.split('.').next().unwrap_or_default()
}

impl Roster {
    /// Sets the time from which silence counts; `None` while this node may be cut off.
    pub(crate) fn set_trust(&mut self, trusted_from: Option<Moment>) {
        self.trusted_from = trusted_from;
    }

    /// Returns whether silence counts at present.
    pub(crate) fn is_trusting(&self) -> bool {
        self.trusted_from.is_some()
    }

    /// Records a sign of life of a front, or its good-bye.
    pub(crate) fn hear(&mut self, now: Moment, runner: &str, has_left: bool) {
        let node = node_of(runner);
        let known = self.fronts.get(node);
        if known.is_some_and(|known| known.has_left && known.runner == runner) {
            // A late heartbeat.
            return;
        }
        let seen = Seen {
            runner: runner.to_owned(),
            last: now,
            has_left,
            absent_since: None,
            is_settled: false,
        };
        self.fronts.insert(node.to_owned(), seen);
    }

    /// Records that the server has no subscriber for messages to a runner.
    pub(crate) fn miss(&mut self, now: Moment, runner: &str) {
        let node = node_of(runner);
        let seen = self.fronts.entry(node.to_owned()).or_insert_with(|| Seen {
            runner: runner.to_owned(),
            last: Moment::ZERO,
            has_left: false,
            absent_since: None,
            is_settled: false,
        });
        if self.trusted_from.is_some() {
            seen.absent_since.get_or_insert(now);
        } else {
            seen.absent_since = None;
        }
    }

    /// Judges a runner other than this one.
    pub(crate) fn judge(&self, now: Moment, runner: &str) -> Judgement {
        let Some(trusted_from) = self.trusted_from else {
            return Judgement::There;
        };
        let Some(seen) = self.fronts.get(node_of(runner)) else {
            return match now.saturating_sub(trusted_from) >= SILENCE {
                true => Judgement::Gone,
                false => Judgement::Unclear,
            };
        };
        if seen.runner != runner {
            // Another start of the same front.
            return Judgement::Gone;
        }
        let is_absent = seen
            .absent_since
            .is_some_and(|since| now.saturating_sub(since.max(trusted_from)) >= ABSENCE);
        let quiet = now.saturating_sub(seen.last.max(trusted_from));
        match quiet {
            _ if seen.has_left || is_absent || quiet >= SILENCE => Judgement::Gone,
            _ if quiet >= SUSPICIOUS || seen.absent_since.is_some() => Judgement::Unclear,
            _ => Judgement::There,
        }
    }

    /// Returns whether a front may be gone whose tasks have not been looked for since.
    pub(crate) fn has_suspects(&self, now: Moment) -> bool {
        let mut fronts = self.fronts.values();
        fronts.any(|seen| !seen.is_settled && self.judge(now, &seen.runner) != Judgement::There)
    }

    /// The tasks of all fronts that are gone have been looked for.
    pub(crate) fn settle(&mut self, now: Moment) {
        let gone: Vec<_> = self
            .fronts
            .iter()
            .filter(|(_, seen)| self.judge(now, &seen.runner) == Judgement::Gone)
            .map(|(node, _)| node.clone())
            .collect();
        for node in gone {
            if let Some(seen) = self.fronts.get_mut(&node) {
                seen.is_settled = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: f64) -> Moment {
        Duration::from_secs_f64(secs)
    }

    fn roster() -> Roster {
        let mut roster = Roster::default();
        roster.set_trust(Some(Moment::ZERO));
        roster
    }

    #[test]
    fn front_is_gone_when_it_leaves_or_starts_again() {
        let mut roster = roster();
        roster.hear(secs(1.0), "a.1", false);
        assert_eq!(roster.judge(secs(2.0), "a.1"), Judgement::There);
        assert!(!roster.has_suspects(secs(2.0)));
        roster.hear(secs(2.0), "a.1", true);
        roster.hear(secs(2.1), "a.1", false);
        assert_eq!(roster.judge(secs(2.2), "a.1"), Judgement::Gone);
        assert!(roster.has_suspects(secs(2.2)));
        roster.settle(secs(2.2));
        assert!(!roster.has_suspects(secs(2.3)));
        roster.hear(secs(3.0), "a.2", false);
        assert_eq!(roster.judge(secs(3.0), "a.1"), Judgement::Gone);
        assert_eq!(roster.judge(secs(3.0), "a.2"), Judgement::There);
    }

    #[test]
    fn absence_counts_after_two_seconds_and_silence_after_fifteen() {
        let mut roster = roster();
        roster.hear(secs(1.0), "a.1", false);
        roster.miss(secs(4.0), "a.1");
        assert_eq!(roster.judge(secs(5.9), "a.1"), Judgement::Unclear);
        assert_eq!(roster.judge(secs(6.0), "a.1"), Judgement::Gone);
        roster.hear(secs(6.0), "a.1", false);
        assert_eq!(roster.judge(secs(6.0), "a.1"), Judgement::There);
        assert_eq!(roster.judge(secs(20.9), "a.1"), Judgement::Unclear);
        assert_eq!(roster.judge(secs(21.0), "a.1"), Judgement::Gone);
        assert_eq!(roster.judge(secs(14.0), "b.1"), Judgement::Unclear);
        assert_eq!(roster.judge(secs(15.0), "b.1"), Judgement::Gone);
    }

    #[test]
    fn front_that_is_cut_off_believes_nothing() {
        let mut roster = roster();
        roster.hear(secs(1.0), "a.1", false);
        roster.set_trust(None);
        roster.miss(secs(30.0), "a.1");
        assert_eq!(roster.judge(secs(60.0), "a.1"), Judgement::There);
        roster.set_trust(Some(secs(61.0)));
        assert_eq!(roster.judge(secs(62.0), "a.1"), Judgement::There);
    }
}
