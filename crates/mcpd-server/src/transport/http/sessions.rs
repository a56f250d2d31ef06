//! Sessions of the stateful wire, by their id. Bounded in number and in time: an abandoned one goes
//! when it has been idle, or when another needs its place.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::conversation::Conversation;
use crate::id;
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
    by_id: Mutex<BTreeMap<String, (Instant, Conversation)>>,
}

impl Sessions {
    /// Keeps a session and gives it an id that nobody can guess.
    pub(super) fn insert(&self, session: Session) -> String {
        let id = id::random();
        let conversation = Conversation::new(session, Arc::default());
        let now = Instant::now();
        let mut sessions = lock(&self.by_id);
        sessions.retain(|_, (used, session)| {
            let keep = now.duration_since(*used) < IDLE;
            if !keep {
                end(session);
            }
            keep
        });
        if sessions.len() >= MAX_SESSIONS
            && let Some(oldest) = sessions
                .iter()
                .min_by_key(|(_, (used, _))| *used)
                .map(|(id, _)| id.clone())
            && let Some((_, abandoned)) = sessions.remove(&oldest)
        {
            end(&abandoned);
        }
        sessions.insert(id.clone(), (now, conversation));
        id
    }

    /// The session of an id, which counts as used now.
    pub(super) fn get(&self, id: &str) -> Option<Conversation> {
        let mut sessions = lock(&self.by_id);
        let (used, session) = sessions.get_mut(id)?;
        if used.elapsed() >= IDLE {
            end(session);
            sessions.remove(id);
            return None;
        }
        *used = Instant::now();
        Some(session.clone())
    }

    /// Ends a session; says whether there was one.
    pub(super) fn remove(&self, id: &str) -> bool {
        let removed = lock(&self.by_id).remove(id);
        removed.is_some_and(|(_, session)| {
            end(&session);
            true
        })
    }
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
        let open = || {
            let introduction = Introduction::none(ProtocolVersion::LATEST_STATEFUL);
            let session = Session::new(introduction, &subscribers);
            sessions.insert(session)
        };
        let (first, second) = (open(), open());
        for _ in 2..MAX_SESSIONS {
            open();
        }
        let used = sessions.get(&first).expect("it is not full yet");
        let unused = lock(&sessions.by_id)[&second].1.clone();
        let last = open();
        assert!(sessions.get(&first).is_some() && sessions.get(&last).is_some());
        assert!(sessions.get(&second).is_none());
        assert!(unused.session.ended().is_cancelled() && !used.session.ended().is_cancelled());
    }
}
