//! Sessions that several servers serve: one that another server has begun is continued here, and
//! what a client sends here for a request there is forwarded as an event.

use mcpd_protocol::jsonrpc::Message;

use super::router::Router;
use super::sessions::{Visit, sealed};
use crate::client::questions::Questions;
use crate::client::session::Session;
use crate::policy::principal::Principal;
use crate::remote::SharedEvent;
use crate::support::random_id;

/// Maximum size of a message that is forwarded, in bytes.
const MAX_FORWARDED: usize = 512 * 1024;

impl Router {
    /// Stores a session. `None` if there is no room.
    pub(super) fn insert_session(&self, session: Session, owner: Principal) -> Option<String> {
        let engine = self.server.engine();
        let metrics = &engine.observers.metrics;
        let Some(server) = self.sessions.prefix() else {
            return self.sessions.insert(session, owner, metrics);
        };
        let id = sealed::seal(&engine.seal, server, &session, &owner);
        let session = with_shared_ids(session, server);
        match id {
            Some(id) => self.sessions.insert_as(id, session, owner, metrics),
            None => self.sessions.insert(session, owner, metrics),
        }
    }

    /// Visits a session that is here, or that another server has begun.
    pub(super) fn find_session(&self, id: &str, caller: &Principal) -> Option<Visit> {
        if let Some(visit) = self.sessions.get(id, caller) {
            return Some(visit);
        }
        let server = self.sessions.prefix()?;
        let engine = self.server.engine();
        let introduction = sealed::open(&engine.seal, id, caller)?;
        if self.sessions.has_ended(id) {
            return None;
        }
        let session = Session::new(introduction, caller, &engine.subscribers);
        let session = with_shared_ids(session, server);
        let (id, owner) = (id.to_owned(), caller.clone());
        let metrics = &engine.observers.metrics;
        let id = self.sessions.insert_as(id, session, owner, metrics)?;
        self.sessions.get(&id, caller)
    }

    /// Forwards a message of a client to the server that waits for it, which may be another.
    pub(super) fn forward(&self, visit: &Visit, body: &[u8]) {
        let id = visit.session.id.as_deref();
        let (Some(_), Some(id)) = (self.sessions.prefix(), id) else {
            return;
        };
        if body.len() > MAX_FORWARDED {
            tracing::warn!("an answer of a client to another front is too large to be forwarded");
            return;
        }
        if let Ok(message) = String::from_utf8(body.to_owned()) {
            let session = sealed::name_of(id);
            let outlet = &self.server.engine().subscribers.outlet;
            outlet.pass(|| SharedEvent::ClientMessage { session, message });
        }
    }

    /// Tells other servers that a client has ended its session.
    pub(super) fn announce_end(&self, id: &str) {
        if self.sessions.prefix().is_none() {
            return;
        }
        let session = sealed::name_of(id);
        self.sessions.end(&session);
        let outlet = &self.server.engine().subscribers.outlet;
        outlet.pass(|| SharedEvent::SessionEnded { session });
    }

    /// Applies an event of another server.
    pub(super) fn receive_session_event(&self, event: SharedEvent) {
        match event {
            SharedEvent::SessionEnded { session } => self.sessions.end(&session),
            SharedEvent::ClientMessage { session, message } => {
                let Some(visit) = self.sessions.named(&session) else {
                    return;
                };
                match Message::decode(message.as_bytes()) {
                    Ok(Message::Notification(notification)) => {
                        visit.inflight.apply_notification(&notification);
                    }
                    Ok(Message::Response(response)) => {
                        visit.session.questions.accept_response(response);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

/// Gives the questions of a session ids that no other server uses, nor an earlier start of this
/// one.
fn with_shared_ids(mut session: Session, server: &str) -> Session {
    let start = random_id::new();
    session.questions = Questions::with_prefix(format!("{server}.{}", &start[..8]));
    session
}
