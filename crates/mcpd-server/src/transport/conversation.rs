//! Stateful wire with one client: its session, its open requests, and the handling of each
//! message. Knows neither channels nor HTTP; the caller has decided that a message is of this
//! wire.

use std::sync::Arc;

use mcpd_protocol::Params;
use mcpd_protocol::jsonrpc::{ErrorObject, Message, Request};
use serde_json::value::RawValue;

use crate::client::inflight::Inflight;
use crate::client::request::context::PeerContext;
use crate::client::request::envelope;
use crate::client::session::Session;
use crate::methods::dispatch::{self, CancellableAnswer};
use crate::server::Server;
use crate::transport::connection::Reply;

/// Maximum number of messages in one batch: each costs a response.
const MAX_BATCH: usize = 50;

/// One session and the open requests of its client.
#[derive(Debug, Clone)]
pub(crate) struct Conversation {
    pub(crate) session: Arc<Session>,
    pub(crate) inflight: Arc<Inflight>,
}

impl Conversation {
    pub(crate) fn new(session: Session, inflight: Arc<Inflight>) -> Self {
        Self {
            session: Arc::new(session),
            inflight,
        }
    }

    /// Answers a request other than `initialize`, which begins another conversation.
    ///
    /// # Errors
    ///
    /// The request is malformed or cannot begin.
    pub(crate) fn request(
        &self,
        server: &Server,
        request: &Request<'_>,
        params: &Params<'_>,
        peer: Arc<PeerContext>,
    ) -> Result<CancellableAnswer, ErrorObject> {
        let context = envelope::stateful_context(
            server.engine().stamp(self.session.version.wire()),
            &params.meta,
            Arc::clone(&self.session),
            peer,
        )?
        .narrow_by_client(&server.engine().selections.load());
        dispatch::answer(server, &self.inflight, request, params, context)
    }

    /// Receives a batch, whose responses form one array. "Implementations MUST support receiving
    /// JSON-RPC batches" -- 2025-03-26/basic. No later revision has them.
    ///
    /// # Errors
    ///
    /// `-32600` where the revision has no batches, or the batch has too many messages.
    pub(crate) fn batch(
        &self,
        server: &Server,
        elements: &[&RawValue],
        peer: &Arc<PeerContext>,
    ) -> Result<Reply, ErrorObject> {
        if !self.session.version.has_batches() {
            return Err(ErrorObject::invalid_request(
                "batches exist only up to revision 2025-03-26; send one message at a time",
            ));
        }
        if elements.len() > MAX_BATCH {
            let refused = format!(
                "a batch may have at most {MAX_BATCH} messages; send the rest in another batch"
            );
            return Err(ErrorObject::invalid_request(refused));
        }
        let replies =
            elements
                .iter()
                .map(|element| match Message::decode(element.get().as_bytes()) {
                    Ok(message) => self.element(server, message, Arc::clone(peer)),
                    Err(error) => Reply::refuse(&error),
                });
        Ok(Reply::all(replies.collect()))
    }

    fn element(&self, server: &Server, message: Message<'_>, peer: Arc<PeerContext>) -> Reply {
        match message {
            Message::Request(request) => {
                let answer = Params::read(request.params).and_then(|params| {
                    if params.meta.is_stateless() {
                        return Err(ErrorObject::invalid_request(
                            "batches do not exist since revision 2026-07-28; send one message at a time",
                        ));
                    }
                    self.request(server, &request, &params, peer)
                });
                Reply::to(&request.id, answer)
            }
            Message::Notification(notification) => {
                self.inflight.apply_notification(&notification);
                self.session.apply_notification(&notification);
                Reply::Nothing
            }
            Message::Response(response) => {
                self.session.questions.accept_response(response);
                Reply::Nothing
            }
        }
    }
}
