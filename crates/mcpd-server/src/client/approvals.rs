//! Approvals of calls that count for later ones, and the answers that have been used. Both are
//! bounded: the oldest entries make room.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::support::sync::lock;

/// Maximum number of remembered approvals of a server, and of a session.
const MAX_APPROVALS: usize = 4096;
/// Maximum number of used answers.
const MAX_USED_ANSWERS: usize = 65_536;

/// Calls that an approval counts for: those of one caller and tool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ApprovedCalls {
    pub(crate) caller: String,
    pub(crate) tool: String,
    /// Digest of the only arguments; `None` for any.
    pub(crate) arguments: Option<[u8; 32]>,
}

/// Approvals that count for later calls, with the time of each.
#[derive(Debug, Default)]
pub(crate) struct RememberedApprovals(Mutex<BTreeMap<ApprovedCalls, Instant>>);

impl RememberedApprovals {
    /// Adds an approval that was given now.
    pub(crate) fn remember(&self, calls: ApprovedCalls) {
        let mut approvals = lock(&self.0);
        if approvals.len() >= MAX_APPROVALS && !approvals.contains_key(&calls) {
            let oldest = approvals.iter().min_by_key(|(_, given)| **given);
            if let Some(oldest) = oldest.map(|(calls, _)| calls.clone()) {
                approvals.remove(&oldest);
            }
        }
        approvals.insert(calls, Instant::now());
    }

    /// Returns whether an approval counts for `calls`, if it counts for `lifetime` or, without
    /// one, for good.
    pub(crate) fn cover(&self, calls: &ApprovedCalls, lifetime: Option<Duration>) -> bool {
        let mut approvals = lock(&self.0);
        let Some(given) = approvals.get(calls) else {
            return false;
        };
        let counts = lifetime.is_none_or(|lifetime| given.elapsed() < lifetime);
        if !counts {
            approvals.remove(calls);
        }
        counts
    }
}

/// Answers that clients have sent with a request, each of which counts once.
#[derive(Debug, Default)]
pub(crate) struct UsedAnswers(Mutex<UsedIds>);

#[derive(Debug, Default)]
struct UsedIds {
    known: BTreeSet<String>,
    /// Oldest first.
    order: VecDeque<String>,
}

impl UsedAnswers {
    /// Marks the answer `id` as used; returns false if it was.
    pub(crate) fn mark_used(&self, id: &str) -> bool {
        let mut used = lock(&self.0);
        if !used.known.insert(id.to_owned()) {
            return false;
        }
        used.order.push_back(id.to_owned());
        if used.order.len() > MAX_USED_ANSWERS
            && let Some(oldest) = used.order.pop_front()
        {
            used.known.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(tool: &str, arguments: Option<[u8; 32]>) -> ApprovedCalls {
        ApprovedCalls {
            caller: "agent".to_owned(),
            tool: tool.to_owned(),
            arguments,
        }
    }

    #[test]
    fn approval_counts_for_its_calls_and_its_time() {
        let approvals = RememberedApprovals::default();
        approvals.remember(calls("delete", Some([1; 32])));
        assert!(approvals.cover(&calls("delete", Some([1; 32])), None));
        for others in [
            calls("delete", Some([2; 32])),
            calls("delete", None),
            calls("move", Some([1; 32])),
        ] {
            assert!(!approvals.cover(&others, None));
        }
        let mut other_caller = calls("delete", Some([1; 32]));
        other_caller.caller = "ci".to_owned();
        assert!(!approvals.cover(&other_caller, None));
        let hour = Some(Duration::from_secs(3600));
        assert!(approvals.cover(&calls("delete", Some([1; 32])), hour));
        let none = Some(Duration::ZERO);
        assert!(!approvals.cover(&calls("delete", Some([1; 32])), none));
        assert!(!approvals.cover(&calls("delete", Some([1; 32])), hour));
    }

    #[test]
    fn oldest_approval_makes_room() {
        let approvals = RememberedApprovals::default();
        for number in 0..=MAX_APPROVALS {
            approvals.remember(calls(&number.to_string(), None));
        }
        assert!(!approvals.cover(&calls("0", None), None));
        assert!(approvals.cover(&calls("1", None), None));
        assert_eq!(lock(&approvals.0).len(), MAX_APPROVALS);
    }

    #[test]
    fn answer_counts_once() {
        let used = UsedAnswers::default();
        assert!(used.mark_used("a") && !used.mark_used("a") && used.mark_used("b"));
        for number in 0..MAX_USED_ANSWERS {
            used.mark_used(&number.to_string());
        }
        assert!(used.mark_used("a"), "the oldest one makes room");
    }
}
