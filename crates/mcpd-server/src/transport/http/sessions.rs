//! Sessions of the stateful wire, by id. Bounded in number, with an idle timeout: an abandoned
//! session is removed when it expires or when another needs its place.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub(super) mod sealed;

use super::Options;
use super::event_log::{EventBudget, EventLog};
use crate::client::session::Session;
use crate::observe::metrics::{Metrics, OpenGuard};
use crate::policy::principal::Principal;
use crate::support::random_id;
use crate::support::sync::lock;
use crate::transport::conversation::Conversation;

/// Number of sessions that can keep as many events as each may; more of them share that.
const FULL_EVENT_LOGS: usize = 1024;
/// Number of ended sessions whose ids are remembered, so that no server continues with them.
const MAX_ENDED: usize = 4096;
/// Idle timeout of a session.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3600);
/// Interval at which expired sessions are looked for, at most.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Sessions of one listener.
#[derive(Debug)]
pub(super) struct Sessions {
    stored: Mutex<Stored>,
    /// Maximum number of sessions.
    max: usize,
    /// Size of the events that each session keeps for clients that reconnect, in bytes; 0 for
    /// none.
    resume_buffer: usize,
    /// Budget of all sessions for these events.
    event_budget: EventBudget,
    /// Beginning of each id, if there is one.
    prefix: Option<String>,
    /// Names of sessions that their clients have ended, with the times of that.
    ended: Mutex<BTreeMap<String, Instant>>,
}

#[derive(Debug)]
struct Stored {
    by_id: BTreeMap<String, StoredSession>,
    /// Time at which expired sessions were last looked for.
    swept: Instant,
}

/// Session with its owner and its usage.
#[derive(Debug)]
struct StoredSession {
    owner: Principal,
    usage: Arc<Mutex<Usage>>,
    conversation: Conversation,
    event_log: Option<Arc<EventLog>>,
    _open: OpenGuard,
}

#[derive(Debug)]
struct Usage {
    /// Number of visits.
    visits: usize,
    /// Time at which the last visit began or ended.
    since: Instant,
}

/// Visit of a request to a conversation. As long as one exists, the session is in use.
#[derive(Debug)]
pub(super) struct Visit {
    conversation: Conversation,
    /// Usage of the session, if it is stored.
    usage: Option<Arc<Mutex<Usage>>>,
    event_log: Option<Arc<EventLog>>,
}

impl Sessions {
    /// Creates an empty store.
    pub(super) fn new(options: &Options) -> Self {
        let event_budget = options.resume_buffer.saturating_mul(FULL_EVENT_LOGS);
        Self {
            stored: Mutex::new(Stored {
                by_id: BTreeMap::new(),
                swept: Instant::now(),
            }),
            max: options.max_sessions,
            resume_buffer: options.resume_buffer,
            event_budget: EventBudget::new(event_budget),
            prefix: options.session_prefix.clone(),
            ended: Mutex::default(),
        }
    }

    /// Maximum number of sessions.
    pub(super) fn max(&self) -> usize {
        self.max
    }

    /// Stores a session under a new, unguessable id. `None` if the maximum is reached, and all
    /// are in use.
    pub(super) fn insert(
        &self,
        session: Session,
        owner: Principal,
        metrics: &Metrics,
    ) -> Option<String> {
        let id = match &self.prefix {
            Some(prefix) => format!("{prefix}-{}", random_id::new()),
            None => random_id::new(),
        };
        self.insert_as(id, session, owner, metrics)
    }

    /// Stores a session under this id, as [`insert`](Self::insert) does.
    pub(super) fn insert_as(
        &self,
        id: String,
        mut session: Session,
        owner: Principal,
        metrics: &Metrics,
    ) -> Option<String> {
        session.id = Some(id.clone());
        let usage = Usage::new();
        let mut stored = lock(&self.stored);
        stored.sweep(usage.since);
        let sessions = &mut stored.by_id;
        if sessions.len() >= self.max {
            let abandoned = choose_evicted(sessions, &owner)?;
            if let Some(abandoned) = sessions.remove(&abandoned) {
                abandoned.end();
            }
        }
        let event_log = (self.resume_buffer > 0)
            .then(|| Arc::new(EventLog::new(self.resume_buffer, &self.event_budget)));
        let inserted = StoredSession {
            owner,
            usage: Arc::new(Mutex::new(usage)),
            conversation: Conversation::new(session, Arc::default()),
            event_log,
            _open: metrics.open_session(),
        };
        // Of two requests that continue with a session at once, the second finds that of the first.
        sessions.entry(id.clone()).or_insert(inserted);
        Some(id)
    }

    /// Name of this server in ids, if other servers may continue with its sessions.
    pub(super) fn prefix(&self) -> Option<&str> {
        self.prefix.as_deref()
    }

    /// Remembers that a session is over, and ends it if it is here.
    pub(super) fn end(&self, name: &str) {
        let mut ended = lock(&self.ended);
        if ended.len() >= MAX_ENDED {
            let oldest = ended.iter().min_by_key(|(_, at)| **at);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                ended.remove(&oldest);
            }
        }
        ended.insert(name.to_owned(), Instant::now());
        drop(ended);
        let sessions = &mut lock(&self.stored).by_id;
        let found = sessions.keys().find(|id| sealed::name_of(id) == name);
        if let Some(id) = found.cloned()
            && let Some(removed) = sessions.remove(&id)
        {
            removed.end();
        }
    }

    /// Returns whether the client has ended a session.
    pub(super) fn has_ended(&self, id: &str) -> bool {
        lock(&self.ended).contains_key(&sealed::name_of(id))
    }

    /// Visits the session with this name. The server that has sent it has checked the owner.
    pub(super) fn named(&self, name: &str) -> Option<Visit> {
        let stored = lock(&self.stored);
        let mut found = stored.by_id.iter();
        let (_, stored) = found.find(|(id, _)| sealed::name_of(id) == name)?;
        Some(stored.visit())
    }

    /// Visits the session with this id, if it belongs to the caller.
    pub(super) fn get(&self, id: &str, caller: &Principal) -> Option<Visit> {
        let sessions = &mut lock(&self.stored).by_id;
        let stored = sessions.get(id).filter(|stored| stored.owner == *caller)?;
        if lock(&stored.usage).is_over(Instant::now()) {
            stored.end();
            sessions.remove(id);
            return None;
        }
        Some(stored.visit())
    }

    /// Ends a session of this caller. Returns whether it existed.
    pub(super) fn remove(&self, id: &str, caller: &Principal) -> bool {
        let sessions = &mut lock(&self.stored).by_id;
        let is_theirs = sessions
            .get(id)
            .is_some_and(|stored| stored.owner == *caller);
        if is_theirs && let Some(removed) = sessions.remove(id) {
            removed.end();
        }
        is_theirs
    }
}

impl Stored {
    /// Ends and removes expired sessions, unless that has just been done.
    fn sweep(&mut self, now: Instant) {
        if now.saturating_duration_since(self.swept) < SWEEP_INTERVAL {
            return;
        }
        self.swept = now;
        self.by_id.retain(|_, stored| {
            let keep = !lock(&stored.usage).is_over(now);
            if !keep {
                stored.end();
            }
            keep
        });
    }
}

impl StoredSession {
    fn visit(&self) -> Visit {
        lock(&self.usage).count(|visits| visits + 1);
        Visit {
            conversation: self.conversation.clone(),
            usage: Some(Arc::clone(&self.usage)),
            event_log: self.event_log.clone(),
        }
    }

    /// Ends the session with its streams, and cancels its open requests.
    fn end(&self) {
        if let Some(log) = &self.event_log {
            log.end();
        }
        self.conversation.session.end();
        self.conversation.inflight.cancel_all();
    }
}

impl Usage {
    fn new() -> Self {
        Self {
            visits: 0,
            since: Instant::now(),
        }
    }

    fn count(&mut self, change: impl FnOnce(usize) -> usize) {
        self.visits = change(self.visits);
        self.since = Instant::now();
    }

    fn is_in_use(&self) -> bool {
        self.visits > 0
    }

    /// Returns whether the idle timeout has expired.
    fn is_over(&self, now: Instant) -> bool {
        !self.is_in_use() && now.duration_since(self.since) >= IDLE_TIMEOUT
    }
}

impl Visit {
    /// Creates a visit to a conversation for one request alone.
    pub(super) fn for_one_request(session: Session) -> Self {
        Self {
            conversation: Conversation::new(session, Arc::default()),
            usage: None,
            event_log: None,
        }
    }

    /// Event log of the session, if it keeps events.
    pub(super) fn event_log(&self) -> Option<&Arc<EventLog>> {
        self.event_log.as_ref()
    }
}

impl Deref for Visit {
    type Target = Conversation;

    fn deref(&self) -> &Conversation {
        &self.conversation
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if let Some(usage) = &self.usage {
            lock(usage).count(|visits| visits - 1);
        }
    }
}

/// Chooses the session to evict: the longest unused one of the owner with the most sessions, so
/// that no owner loses one because another opens many. A session in use is evicted only for a
/// newcomer of another name.
fn choose_evicted(
    sessions: &BTreeMap<String, StoredSession>,
    newcomer: &Principal,
) -> Option<String> {
    let mut counts = BTreeMap::new();
    for stored in sessions.values() {
        *counts.entry(stored.owner.name()).or_insert(0) += 1;
    }
    let (owner, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    let theirs = sessions
        .iter()
        .filter(|(_, stored)| stored.owner.name() == owner);
    let used = theirs.map(|(id, stored)| {
        let usage = lock(&stored.usage);
        (usage.is_in_use(), usage.since, id)
    });
    let (is_in_use, _, id) = used.min()?;
    (!is_in_use || owner != newcomer.name()).then(|| id.clone())
}

#[cfg(test)]
mod tests {
    use mcpd_protocol::ProtocolVersion;

    use super::*;
    use crate::client::session::Introduction;
    use crate::client::subscribers::Subscribers;
    use crate::transport::http::auth::Auth;

    /// Maximum number of sessions.
    const MAX: usize = 64;

    fn sessions(prefix: Option<&str>) -> Sessions {
        let mut options = Options::new(Auth::without_credentials(Principal::new("owner")));
        options.max_sessions = MAX;
        options.session_prefix = prefix.map(str::to_owned);
        Sessions::new(&options)
    }

    fn introduction() -> Introduction {
        Introduction::none(ProtocolVersion::LATEST_STATEFUL)
    }

    #[test]
    fn longest_unused_session_is_evicted() {
        let (sessions, subscribers) = (sessions(None), Arc::new(Subscribers::default()));
        let owner = Principal::new("owner");
        let open = || {
            let session = Session::new(introduction(), &owner, &subscribers);
            let id = sessions.insert(session, owner.clone(), &Metrics::new());
            id.expect("not all are in use")
        };
        let (first, second) = (open(), open());
        for _ in 2..MAX {
            open();
        }
        sessions.get(&first, &owner).expect("it is not full yet");
        let used = lock(&sessions.stored).by_id[&first].conversation.clone();
        let unused = lock(&sessions.stored).by_id[&second].conversation.clone();
        let last = open();
        let is_there = |id: &str| sessions.get(id, &owner).is_some();
        assert!(is_there(&first) && is_there(&last) && !is_there(&second));
        assert!(
            unused.session.end_token().is_cancelled() && !used.session.end_token().is_cancelled()
        );
    }

    #[test]
    fn session_ids_begin_with_the_prefix() {
        let sessions = sessions(Some("front-1"));
        let (owner, subscribers) = (Principal::new("owner"), Arc::new(Subscribers::default()));
        let session = Session::new(introduction(), &owner, &subscribers);
        let id = sessions.insert(session, owner.clone(), &Metrics::new());
        let id = id.expect("there is room");
        assert!(id.starts_with("front-1-") && id.len() > 32, "{id}");
        assert!(sessions.get(&id, &owner).is_some());
    }

    #[test]
    fn session_in_use_is_not_evicted_for_its_owner() {
        let (sessions, subscribers) = (sessions(None), Arc::new(Subscribers::default()));
        let metrics = Metrics::new();
        let open = |owner: &Principal| {
            let session = Session::new(introduction(), owner, &subscribers);
            sessions.insert(session, owner.clone(), &metrics)
        };
        let (alice, bob) = (Principal::new("alice"), Principal::new("bob"));
        let visit =
            |id: Option<String>| sessions.get(&id.expect("a session"), &bob).expect("there");
        let oldest = visit(open(&bob));
        for _ in 0..2 * MAX {
            open(&bob);
        }
        assert!(!oldest.session.end_token().is_cancelled());
        let mut visits: Vec<_> = (1..MAX).map(|_| visit(open(&bob))).collect();
        assert_eq!(open(&bob), None);
        assert!(open(&alice).is_some());
        assert!(oldest.session.end_token().is_cancelled());
        assert_eq!(open(&bob), None);
        visits.pop();
        assert!(open(&bob).is_some());
    }

    #[test]
    fn idle_timeout_ends_a_session() {
        let (sessions, subscribers) = (sessions(None), Arc::new(Subscribers::default()));
        let owner = Principal::new("owner");
        let session = Session::new(introduction(), &owner, &subscribers);
        let id = sessions.insert(session, owner.clone(), &Metrics::new());
        let id = id.expect("a place");
        let is_over = || {
            let sessions = &lock(&sessions.stored).by_id;
            let usage = lock(&sessions[&id].usage);
            usage.is_over(usage.since + IDLE_TIMEOUT)
        };
        let before = lock(&lock(&sessions.stored).by_id[&id].usage).since;
        assert!(is_over());
        let (first, second) = (sessions.get(&id, &owner), sessions.get(&id, &owner));
        drop(first);
        assert!(!is_over());
        drop(second);
        assert!(is_over());
        assert!(lock(&lock(&sessions.stored).by_id[&id].usage).since > before);
    }

    #[test]
    fn session_is_evicted_from_the_owner_with_most() {
        let (sessions, subscribers) = (sessions(None), Arc::new(Subscribers::default()));
        let metrics = Metrics::new();
        let open = |owner: &Principal| {
            let session = Session::new(introduction(), owner, &subscribers);
            let id = sessions.insert(session, owner.clone(), &metrics);
            id.expect("not all are in use")
        };
        let (alice, bob) = (Principal::new("alice"), Principal::new("bob"));
        let hers = open(&alice);
        for _ in 0..2 * MAX {
            open(&bob);
        }
        assert!(sessions.get(&hers, &alice).is_some());
        assert_eq!(lock(&sessions.stored).by_id.len(), MAX);
    }

    #[test]
    fn session_of_another_principal_is_unreachable() {
        let (sessions, subscribers) = (sessions(None), Arc::new(Subscribers::default()));
        let (alice, bob) = (Principal::new("alice"), Principal::new("bob"));
        let session = Session::new(introduction(), &alice, &subscribers);
        let id = sessions.insert(session, alice.clone(), &Metrics::new());
        let id = id.expect("a place");
        assert!(sessions.get(&id, &bob).is_none() && !sessions.remove(&id, &bob));
        assert!(sessions.get(&id, &alice).is_some() && sessions.remove(&id, &alice));
        assert!(sessions.get(&id, &alice).is_none());
    }
}
