//! Presence of workers as one front sees it: heartbeats, epochs, absence and silence, and the
//! judgement of its own connection. Pure: the caller brings every message and the time.
//!
//! ```text
//!            own heartbeats come back      own heartbeats are old
//! trusting ─────────────────────────────────────────► away
//!     ▲                                                │ a fresh one comes back
//!     └───── RETURN_GRACE is over ──── returned ◄──────┘
//! ```
//!
//! A node hears its own heartbeat as any other node does. As long as that comes back, messages get
//! through; when it does not, the node itself may be cut off, frozen or starved, and concludes
//! nothing about others.

use std::time::Duration;

use indexmap::IndexMap;

use crate::placement::{Pool, name_hash};
use crate::wire::{Here, Kind};

/// Time on the clock of this process, since any fixed moment.
pub(crate) type Moment = Duration;

/// Interval of heartbeats.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(1);
/// Age of the last heartbeat that came back from which a node regards itself as away.
pub(crate) const AWAY_AFTER: Duration = Duration::from_millis(2500);
/// Time after a return for which a front believes neither absence nor silence: others may not be
/// back yet.
pub(crate) const RETURN_GRACE: Duration = Duration::from_secs(5);
/// Silence from which a worker gets no new runs.
const PLACEABLE_SILENCE: Duration = Duration::from_secs(3);
/// Silence after which a worker is forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(60);

/// Connection of this node, judged by its own heartbeats.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Echo {
    /// Time at which the newest heartbeat that came back was sent. The time of its arrival says
    /// less: it may have waited in a buffer while the process was frozen.
    last: Moment,
    trusted_from: Moment,
}

impl Echo {
    /// Starts at `now`, as if a heartbeat had just come back.
    pub(crate) fn new(now: Moment) -> Self {
        Self {
            last: now,
            trusted_from: now,
        }
    }

    /// A heartbeat that was sent at `sent` has come back.
    pub(crate) fn hear(&mut self, now: Moment, sent: Moment) {
        // One from the future was not sent by this process.
        let sent = sent.min(now);
        if sent <= self.last {
            return;
        }
        if self.is_away(now) || sent.saturating_sub(self.last) >= AWAY_AFTER {
            self.trusted_from = now + RETURN_GRACE;
        }
        self.last = sent;
    }

    /// Returns whether this node may be cut off.
    pub(crate) fn is_away(&self, now: Moment) -> bool {
        self.away_for(now) >= AWAY_AFTER
    }

    /// Returns for how long nothing has proved that messages get through.
    pub(crate) fn away_for(&self, now: Moment) -> Duration {
        now.saturating_sub(self.last)
    }

    /// Returns the time from which absence and silence count; `None` if they don't at present.
    pub(crate) fn trusted_from(&self, now: Moment) -> Option<Moment> {
        (!self.is_away(now) && now >= self.trusted_from).then_some(self.trusted_from)
    }
}

/// One worker as a front sees it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) here: Here,
    /// Arrival of the last message of any kind from this start of the worker.
    last: Moment,
    /// First of the answers that the server gave for lack of a subscriber, since the last message.
    absent_since: Option<Moment>,
    /// First message of this start.
    since: Moment,
    /// Hash of its name, for homes.
    hash: u64,
}

/// Contact of a front with the start of a worker at which it has a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contact {
    /// No reason to doubt.
    Fine,
    /// Another start of the same worker has been seen: this one is over.
    Replaced { since: Moment },
    /// The server says that the worker is not connected.
    Absent { since: Moment },
    /// Connected as far as the server knows, but silent.
    Silent { since: Moment },
}

/// Workers as one front sees them, and its own connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Presence {
    pub(crate) echo: Echo,
    workers: IndexMap<String, Seen>,
    forgotten_at: Moment,
}

impl Presence {
    pub(crate) fn new(now: Moment) -> Self {
        Self {
            echo: Echo::new(now),
            workers: IndexMap::new(),
            forgotten_at: now,
        }
    }

    /// Records a heartbeat. Returns whether other scripts may be served from now on.
    pub(crate) fn hear(&mut self, now: Moment, here: Here) -> bool {
        if here.kind != Kind::Worker {
            return false;
        }
        let known = self.workers.get_mut(&here.node);
        let (since, is_news) = match known {
            // A late message of an earlier start, or a second worker of the same name.
            Some(seen) if here.epoch < seen.here.epoch => return false,
            Some(seen) if here.epoch == seen.here.epoch => {
                let has_other = seen.here.catalog != here.catalog;
                (seen.since, has_other || seen.here.draining != here.draining)
            }
            _ => (now, true),
        };
        let known = self.workers.get(&here.node).map(|seen| seen.hash);
        let seen = Seen {
            last: now,
            absent_since: None,
            since,
            hash: known.unwrap_or_else(|| name_hash(&here.node)),
            here,
        };
        match self.workers.get_mut(&seen.here.node) {
            Some(known) => *known = seen,
            None => {
                self.workers.insert(seen.here.node.clone(), seen);
            }
        }
        is_news
    }

    /// Records any other message of a worker. One of a newer start than the known one says that
    /// this is over, and the next heartbeat says the rest.
    pub(crate) fn hear_from(&mut self, now: Moment, node: &str, epoch: u64) {
        let Some(seen) = self.workers.get_mut(node) else {
            return;
        };
        if epoch == seen.here.epoch {
            seen.last = now;
            seen.absent_since = None;
        } else if epoch > seen.here.epoch {
            seen.here.epoch = epoch;
            (seen.since, seen.last, seen.absent_since) = (now, now, None);
            // Nothing is known of what this start can run.
            seen.here.draining = true;
        }
    }

    /// Records that the server had no subscriber for a message to `node`.
    pub(crate) fn miss(&mut self, now: Moment, node: &str) {
        if self.echo.trusted_from(now).is_none() {
            return;
        }
        if let Some(seen) = self.workers.get_mut(node) {
            seen.absent_since.get_or_insert(now);
        }
    }

    /// Forgets workers that have been silent for long.
    pub(crate) fn forget_old(&mut self, now: Moment) {
        if now.saturating_sub(self.forgotten_at) < HEARTBEAT {
            return;
        }
        self.forgotten_at = now;
        if self.echo.trusted_from(now).is_some() {
            self.workers
                .retain(|_, seen| now.saturating_sub(seen.last) < FORGET_AFTER);
        }
    }

    /// Judges a start of a worker. `heard` is the last sign of the run itself, where that counts.
    pub(crate) fn contact(
        &self,
        now: Moment,
        node: &str,
        epoch: u64,
        heard: Option<Moment>,
    ) -> Contact {
        let Some(trusted) = self.echo.trusted_from(now) else {
            return Contact::Fine;
        };
        let Some(seen) = self.workers.get(node) else {
            // Forgotten after a long silence, or not heard yet by a front that has just been
            // started and continues with a task.
            let since = trusted.max(now.saturating_sub(FORGET_AFTER));
            return Contact::Silent { since };
        };
        if seen.here.epoch > epoch {
            let since = seen.since.max(trusted);
            return Contact::Replaced { since };
        }
        if let Some(since) = seen.absent_since {
            return Contact::Absent { since };
        }
        let last = heard.unwrap_or(seen.last).min(seen.last).max(trusted);
        match now.saturating_sub(last) {
            quiet if quiet > AWAY_AFTER => Contact::Silent { since: last },
            _ => Contact::Fine,
        }
    }

    /// Returns the workers, of which new runs can be sent to those that can be got.
    pub(crate) fn placeable(&self, now: Moment) -> Placeable<'_> {
        Placeable {
            presence: self,
            now,
            // While it is away or has just returned, a front goes by what it knew before.
            trusted: self.echo.trusted_from(now),
        }
    }

    /// Returns every worker that is known, and for how long it has been silent.
    pub(crate) fn workers(&self, now: Moment) -> impl Iterator<Item = (&Here, Duration)> {
        let all = self.workers.values();
        all.map(move |seen| (&seen.here, now.saturating_sub(seen.last)))
    }
}

/// Workers that new runs can be sent to.
#[derive(Debug)]
pub(crate) struct Placeable<'a> {
    presence: &'a Presence,
    now: Moment,
    trusted: Option<Moment>,
}

impl Pool for Placeable<'_> {
    fn count(&self) -> usize {
        self.presence.workers.len()
    }

    fn get(&self, index: usize) -> Option<(&Here, u64)> {
        let (_, seen) = self.presence.workers.get_index(index)?;
        let quiet = |from: Moment| self.now.saturating_sub(seen.last.max(from));
        let is_quiet = self
            .trusted
            .is_some_and(|from| quiet(from) >= PLACEABLE_SILENCE);
        let is_there = seen.absent_since.is_none() && !is_quiet;
        (is_there && !seen.here.draining).then_some((&seen.here, seen.hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: f64) -> Moment {
        Duration::from_secs_f64(secs)
    }

    fn worker(node: &str, epoch: u64) -> Here {
        Here::new(node, epoch, Kind::Worker)
    }

    /// A front whose own heartbeats have come back until `now`.
    fn presence(until: u64) -> Presence {
        let mut presence = Presence::new(Moment::ZERO);
        for second in 1..=until {
            let now = secs(second as f64);
            presence.echo.hear(now, now);
        }
        presence
    }

    #[test]
    fn earlier_start_of_a_worker_is_ignored() {
        let mut presence = presence(1);
        assert!(presence.hear(secs(1.0), worker("a", 2)));
        assert!(!presence.hear(secs(1.0), worker("a", 1)));
        assert!(!presence.hear(secs(1.1), worker("a", 2)));
        let contact = presence.contact(secs(1.2), "a", 1, None);
        assert_eq!(contact, Contact::Replaced { since: secs(1.0) });
    }

    #[test]
    fn absence_ends_with_a_message() {
        let mut presence = presence(2);
        presence.hear(secs(1.0), worker("a", 1));
        presence.miss(secs(1.5), "a");
        let contact = presence.contact(secs(2.0), "a", 1, None);
        assert_eq!(contact, Contact::Absent { since: secs(1.5) });
        assert_eq!(presence.placeable(secs(2.0)).iter().count(), 0);
        presence.hear_from(secs(2.1), "a", 1);
        assert_eq!(presence.contact(secs(2.2), "a", 1, None), Contact::Fine);
    }

    #[test]
    fn front_that_was_away_believes_neither() {
        let mut presence = presence(1);
        presence.hear(secs(1.0), worker("a", 1));
        // Frozen, or cut off, for ten seconds.
        presence.miss(secs(11.0), "a");
        assert_eq!(presence.contact(secs(11.0), "a", 1, None), Contact::Fine);
        presence.echo.hear(secs(11.1), secs(11.0));
        presence.echo.hear(secs(12.0), secs(12.0));
        presence.miss(secs(12.0), "a");
        assert_eq!(presence.contact(secs(12.0), "a", 1, None), Contact::Fine);
        for second in 13..17 {
            presence.echo.hear(secs(second.into()), secs(second.into()));
        }
        presence.miss(secs(16.5), "a");
        let contact = presence.contact(secs(16.6), "a", 1, None);
        assert_eq!(contact, Contact::Absent { since: secs(16.5) });
    }

    #[test]
    fn worker_that_a_new_front_has_not_heard_is_silent_since_its_start() {
        let presence = presence(100);
        let contact = presence.contact(secs(2.0), "a", 1, None);
        assert_eq!(contact, Contact::Silent { since: secs(0.0) });
        let contact = presence.contact(secs(100.0), "a", 1, None);
        assert_eq!(contact, Contact::Silent { since: secs(40.0) });
    }

    #[test]
    fn old_heartbeats_that_come_back_late_prove_nothing() {
        let mut echo = Echo::new(Moment::ZERO);
        echo.hear(secs(1.0), secs(1.0));
        echo.hear(secs(20.0), secs(1.9));
        assert!(echo.is_away(secs(20.0)));
        assert_eq!(echo.away_for(secs(20.0)), secs(20.0) - secs(1.9));
    }

    #[test]
    fn silent_worker_gets_nothing_new() {
        let mut presence = presence(5);
        presence.hear(secs(1.0), worker("a", 1));
        presence.hear(secs(4.0), worker("b", 1));
        let placeable: Vec<_> = presence
            .placeable(secs(5.0))
            .iter()
            .map(|(here, _)| here.node.clone())
            .collect();
        assert_eq!(placeable, ["b"]);
        let contact = presence.contact(secs(5.0), "a", 1, None);
        assert_eq!(contact, Contact::Silent { since: secs(1.0) });
    }
}
