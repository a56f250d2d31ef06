//! The failure table: what becomes of a run when contact with its worker is lost.
//!
//! | contact | read only | idempotent | anything else |
//! |---|---|---|---|
//! | another start of the worker was seen | again at once | again after lease + 1 s | lost |
//! | not connected | again at once | again after lease + 1 s | lost after 3 s |
//! | silent | again after 3 s | again after 15 s | lost after 15 s |

use std::time::Duration;

use super::{Answer, Catalogues, Order};
use crate::placement::Pool as _;
use crate::presence::{Contact, Moment, Presence};

/// Number of times that a run is made again.
pub(crate) const MAX_RERUNS: u32 = 2;
/// Absence from which a run that must not be made again is reported as lost.
const MAX_ABSENCE: Duration = Duration::from_secs(3);
/// Silence from which a run that only reads is made again.
const READ_ONLY_SILENCE: Duration = Duration::from_secs(3);
/// Silence from which any other run is given up.
const MAX_SILENCE: Duration = Duration::from_secs(15);
/// Time above the lease until an idempotent run is made again: its worker has ended it by then.
const LEASE_MARGIN: Duration = Duration::from_secs(1);

/// Runs that may be made again, by what their script says and the operator allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rerun {
    /// It changes something, so it must not be made again.
    Never,
    /// It changes nothing, so two at the same time do no harm.
    ReadOnly,
    /// Made again after its end, it changes nothing more.
    Idempotent,
}

/// Decision about a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judgement {
    Wait,
    /// Made again elsewhere.
    Rerun,
    /// Reported as lost.
    Lost,
}

/// Looks up the table.
pub(super) fn judge(rerun: Rerun, contact: Contact, now: Moment, lease: Duration) -> Judgement {
    let after_lease = lease + LEASE_MARGIN;
    let (since, patience) = match (contact, rerun) {
        (Contact::Fine, _) => return Judgement::Wait,
        (Contact::Replaced { since } | Contact::Absent { since }, Rerun::ReadOnly) => {
            (since, Duration::ZERO)
        }
        (Contact::Replaced { since } | Contact::Absent { since }, Rerun::Idempotent) => {
            (since, after_lease)
        }
        (Contact::Replaced { since }, Rerun::Never) => (since, Duration::ZERO),
        (Contact::Absent { since }, Rerun::Never) => (since, MAX_ABSENCE),
        (Contact::Silent { since }, Rerun::ReadOnly) => (since, READ_ONLY_SILENCE),
        (Contact::Silent { since }, _) => (since, MAX_SILENCE),
    };
    match rerun {
        _ if now.saturating_sub(since) < patience => Judgement::Wait,
        Rerun::Never => Judgement::Lost,
        Rerun::ReadOnly | Rerun::Idempotent => Judgement::Rerun,
    }
}

/// Returns whether the script is there, but in other versions only.
pub(super) fn is_replaced(
    catalogues: &impl Catalogues,
    presence: &Presence,
    now: Moment,
    order: &Order,
) -> bool {
    let path = &order.requirements.path;
    let workers = presence.placeable(now);
    let has_any = workers
        .iter()
        .any(|(here, _)| catalogues.has_any(here, path));
    let mut all = workers.iter().map(|(here, _)| here);
    has_any && !all.any(|here| catalogues.has(here, path, &order.digest))
}

impl Answer {
    /// Returns whether the caller is told that nothing was run.
    pub(super) fn says_nothing_ran(&self) -> bool {
        matches!(self, Self::Busy | Self::Unavailable | Self::Refused { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(10);

    /// Checks that nothing is decided before `after` seconds, and `expected` from then on.
    #[track_caller]
    fn check(rerun: Rerun, contact: fn(Moment) -> Contact, after: u64, expected: Judgement) {
        let since = Duration::from_secs(100);
        let moment = since + Duration::from_secs(after);
        assert_eq!(judge(rerun, contact(since), moment, LEASE), expected);
        if after > 0 {
            let before = moment - Duration::from_millis(1);
            assert_eq!(judge(rerun, contact(since), before, LEASE), Judgement::Wait);
        }
    }

    #[test]
    fn failure_table_holds_row_by_row() {
        let replaced = |since| Contact::Replaced { since };
        let absent = |since| Contact::Absent { since };
        let silent = |since| Contact::Silent { since };
        check(Rerun::ReadOnly, replaced, 0, Judgement::Rerun);
        check(Rerun::Idempotent, replaced, 11, Judgement::Rerun);
        check(Rerun::Never, replaced, 0, Judgement::Lost);
        check(Rerun::ReadOnly, absent, 0, Judgement::Rerun);
        check(Rerun::Idempotent, absent, 11, Judgement::Rerun);
        check(Rerun::Never, absent, 3, Judgement::Lost);
        check(Rerun::ReadOnly, silent, 3, Judgement::Rerun);
        check(Rerun::Idempotent, silent, 15, Judgement::Rerun);
        check(Rerun::Never, silent, 15, Judgement::Lost);
    }
}
