//! Sessions of the stateful wire, by their id. Bounded in number and in time: an abandoned one goes
//! when it has been idle, or when another needs its place.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::conversation::Conversation;
use crate::id;
use crate::metrics::{Metrics, Open};
use crate::principal::Principal;
use crate::session::Session;
use crate::sync::lock;

/// How many sessions there may be.
const MAX_SESSIONS: usize = 1024;
/// How long a session lives without a request.
const IDLE: Duration = Duration::from_secs(3600);

/// Ends a session with its streams, and cancels its open requests.
fn end(conversation: &Conversation) {
    conversation.session.end();
    conversation.inflight.cancel_all();
}

/// The sessions of one listener.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    by_id: Mutex<BTreeMap<String, Kept>>,
}

/// A session, whose it is, and when it was used last.
#[derive(Debug)]
struct Kept {
    owner: Principal,
    used: Instant,
    conversation: Conversation,
    _open: Open,
}

impl Sessions {
    /// Keeps a session and gives it an id that nobody can guess.
    pub(super) fn insert(
        &self,
        mut session: Session,
        owner: Principal,
        metrics: &Metrics,
    ) -> String {
        let id = id::random();
        session.id = Some(id.clone());
        let conversation = Conversation::new(session, Arc::default());
        let used = Instant::now();
        let mut sessions = lock(&self.by_id);
        sessions.retain(|_, kept| {
            let keep = used.duration_since(kept.used) < IDLE;
            if !keep {
                end(&kept.conversation);
            }
            keep
        });
        if sessions.len() >= MAX_SESSIONS
            && let Some(id) = expendable(&sessions)
            && let Some(abandoned) = sessions.remove(&id)
        {
            end(&abandoned.conversation);
        }
        let kept = Kept {
            owner,
            used,
            conversation,
            _open: metrics.session(),
        };
        sessions.insert(id.clone(), kept);
        id
    }

    /// The session of an id, if it is this caller's. It counts as used now.
    pub(super) fn get(&self, id: &str, caller: &Principal) -> Option<Conversation> {
        let mut sessions = lock(&self.by_id);
        let kept = sessions.get_mut(id).filter(|kept| kept.owner == *caller)?;
        if kept.used.elapsed() >= IDLE {
            end(&kept.conversation);
            sessions.remove(id);
            return None;
        }
        kept.used = Instant::now();
        Some(kept.conversation.clone())
    }

    /// Ends a session of this caller; says whether there was one.
    pub(super) fn remove(&self, id: &str, caller: &Principal) -> bool {
        let mut sessions = lock(&self.by_id);
        let is_theirs = sessions.get(id).is_some_and(|kept| kept.owner == *caller);
        if is_theirs && let Some(removed) = sessions.remove(id) {
            end(&removed.conversation);
        }
        is_theirs
    }
}

/// The longest unused session of whoever has most: nobody loses one because another opens many.
fn expendable(sessions: &BTreeMap<String, Kept>) -> Option<String> {
    let mut counts = BTreeMap::new();
    for kept in sessions.values() {
        *counts.entry(kept.owner.name()).or_insert(0) += 1;
    }
    let (owner, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    let theirs = sessions
        .iter()
        .filter(|(_, kept)| kept.owner.name() == owner);
    let (id, _) = theirs.min_by_key(|(_, kept)| kept.used)?;
    Some(id.clone())
}

#[cfg(test)]
mod tests {
    use mcpd_protocol::ProtocolVersion;

    use super::*;
    use crate::session::Introduction;
    use crate::subscribers::Subscribers;

    #[test]
    fn of_too_many_the_longest_unused_gives_way() {
        let (sessions, subscribers) = (Sessions::default(), Arc::new(Subscribers::default()));
        let owner = Principal::new("owner");
        let open = || {
            let introduction = Introduction::none(ProtocolVersion::LATEST_STATEFUL);
            let session = Session::new(introduction, &subscribers);
            sessions.insert(session, owner.clone(), &Metrics::new())
        };
        let (first, second) = (open(), open());
        for _ in 2..MAX_SESSIONS {
            open();
        }
        let used = sessions.get(&first, &owner).expect("it is not full yet");
        let unused = lock(&sessions.by_id)[&second].conversation.clone();
        let last = open();
        let is_there = |id: &str| sessions.get(id, &owner).is_some();
        assert!(is_there(&first) && is_there(&last) && !is_there(&second));
        assert!(unused.session.ended().is_cancelled() && !used.session.ended().is_cancelled());
    }

    #[test]
    fn nobody_loses_one_because_another_opens_many() {
        let (sessions, subscribers) = (Sessions::default(), Arc::new(Subscribers::default()));
        let metrics = Metrics::new();
        let open = |owner: &Principal| {
            let introduction = Introduction::none(ProtocolVersion::LATEST_STATEFUL);
            sessions.insert(
                Session::new(introduction, &subscribers),
                owner.clone(),
                &metrics,
            )
        };
        let (alice, bob) = (Principal::new("alice"), Principal::new("bob"));
        let hers = open(&alice);
        for _ in 0..2 * MAX_SESSIONS {
            open(&bob);
        }
        assert!(sessions.get(&hers, &alice).is_some());
        assert_eq!(lock(&sessions.by_id).len(), MAX_SESSIONS);
    }

    #[test]
    fn nobody_gets_at_the_session_of_another() {
        let (sessions, subscribers) = (Sessions::default(), Arc::new(Subscribers::default()));
        let (alice, bob) = (Principal::new("alice"), Principal::new("bob"));
        let introduction = Introduction::none(ProtocolVersion::LATEST_STATEFUL);
        let id = sessions.insert(
            Session::new(introduction, &subscribers),
            alice.clone(),
            &Metrics::new(),
        );
        assert!(sessions.get(&id, &bob).is_none() && !sessions.remove(&id, &bob));
        assert!(sessions.get(&id, &alice).is_some() && sessions.remove(&id, &alice));
        assert!(sessions.get(&id, &alice).is_none());
    }
}
