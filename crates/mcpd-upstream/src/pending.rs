//! Pending requests of a connection, and the attribution of errors without an id.
//!
//! An error without an id, or with one that was never used, belongs to a request that was pending
//! when it arrived. If there was only one, the error is its answer. If there were several, the
//! error is kept until the answers to all others show which it was.

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, RequestId,
    ServerJsonRpcMessage, ServerNotification,
};

use crate::remarks::Remarks;

/// Maximum number of errors kept without a request.
const MAX_STRAYS: usize = 16;

/// Kind of a request, as far as its answer is read differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Initialize,
    Discover,
    ListTools,
    CallTool,
    GetPrompt,
    ReadResource,
    Listen,
    Other,
}

impl Kind {
    pub(crate) fn of(request: &ClientRequest) -> Self {
        match request.method() {
            "initialize" => Self::Initialize,
            "server/discover" => Self::Discover,
            "tools/list" => Self::ListTools,
            "tools/call" => Self::CallTool,
            "prompts/get" => Self::GetPrompt,
            "resources/read" => Self::ReadResource,
            "subscriptions/listen" => Self::Listen,
            _ => Self::Other,
        }
    }

    /// Returns whether a caller made the request and receives its failure. The failure of any
    /// other request is a fault of the server.
    pub(crate) fn belongs_to_caller(self) -> bool {
        matches!(self, Self::CallTool | Self::GetPrompt | Self::ReadResource)
    }
}

/// Table of the pending requests of one connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pending(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    requests: Vec<PendingRequest>,
    strays: Vec<Stray>,
    /// Highest id used for a request.
    last: Option<i64>,
    has_skipped_discover: bool,
}

#[derive(Debug)]
struct PendingRequest {
    id: RequestId,
    kind: Kind,
    /// No sign yet that the server has accepted it.
    may_have_failed: bool,
}

/// Error that names no request.
#[derive(Debug)]
struct Stray {
    error: ErrorData,
    suspects: Vec<RequestId>,
}

impl Pending {
    /// Records an outgoing message.
    pub(crate) fn record_sent(&self, message: &ClientJsonRpcMessage) {
        let mut state = self.lock();
        match message {
            ClientJsonRpcMessage::Request(request) => {
                let kind = Kind::of(&request.request);
                if kind == Kind::Initialize {
                    // The handshake replaces the unanswered discovery, so a late answer to that is
                    // ignored.
                    let before = state.requests.len();
                    state
                        .requests
                        .retain(|request| request.kind != Kind::Discover);
                    state.has_skipped_discover |= state.requests.len() < before;
                }
                if let RequestId::Number(number) = request.id {
                    state.last = state.last.max(Some(number));
                }
                state.requests.push(PendingRequest {
                    id: request.id.clone(),
                    kind,
                    may_have_failed: true,
                });
            }
            ClientJsonRpcMessage::Notification(said) => {
                if let ClientNotification::CancelledNotification(cancelled) = &said.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    // Nothing waits for a cancelled request, so its answer is late if it comes.
                    state.close(id);
                }
            }
            _ => {}
        }
    }

    /// Returns the pending request that an answer's id refers to, as its own id and its kind.
    pub(crate) fn find(&self, id: &RequestId) -> Option<(RequestId, Kind)> {
        let state = self.lock();
        let mut requests = state.requests.iter();
        let found = requests.find(|request| is_same(&request.id, id))?;
        Some((found.id.clone(), found.kind))
    }

    /// Returns whether the server was greeted by a handshake because it did not answer
    /// `server/discover`.
    pub(crate) fn has_skipped_discover(&self) -> bool {
        self.lock().has_skipped_discover
    }

    /// Records a message that arrived. Returns it if it is the answer to a pending request, or not
    /// an answer at all.
    pub(crate) fn record_received(
        &self,
        message: ServerJsonRpcMessage,
        remarks: &Remarks,
    ) -> Option<ServerJsonRpcMessage> {
        let mut state = self.lock();
        match message {
            ServerJsonRpcMessage::Response(answer) => {
                let id = state.close(&answer.id)?;
                Some(ServerJsonRpcMessage::response(answer.result, id))
            }
            ServerJsonRpcMessage::Error(answer) => {
                if let Some(id) = answer.id.as_ref().and_then(|id| state.close(id)) {
                    return Some(ServerJsonRpcMessage::error(answer.error, Some(id)));
                }
                // rmcp counts from 0.
                let is_late = |id: &RequestId| match id {
                    RequestId::Number(number) => *number >= 0 && Some(*number) <= state.last,
                    RequestId::String(_) => false,
                };
                // An id that was used and is no longer pending was cancelled or answered before.
                // Its error must not be attributed to another request.
                if answer.id.as_ref().is_some_and(is_late) {
                    return None;
                }
                remarks.add(format!(
                    "sends an error without a request id: {}",
                    answer.error.message
                ));
                state.add_stray(answer.error);
                None
            }
            ServerJsonRpcMessage::Notification(said) => {
                if let ServerNotification::SubscriptionsAcknowledgedNotification(_) =
                    &said.notification
                {
                    state.trust_subscriptions();
                }
                Some(ServerJsonRpcMessage::Notification(said))
            }
            message @ ServerJsonRpcMessage::Request(_) => Some(message),
        }
    }

    /// Returns an error as the answer to the only request that it can belong to.
    pub(crate) fn attribute_error(&self) -> Option<ServerJsonRpcMessage> {
        let mut state = self.lock();
        let is_clear = |stray: &Stray| stray.suspects.len() == 1;
        let place = state.strays.iter().position(is_clear)?;
        let Stray { error, suspects } = state.strays.swap_remove(place);
        let id = state.close(suspects.first()?)?;
        Some(ServerJsonRpcMessage::error(error, Some(id)))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Removes the request with this id, if there is one, and returns its id as sent.
    fn close(&mut self, id: &RequestId) -> Option<RequestId> {
        let mut requests = self.requests.iter();
        let place = requests.position(|request| is_same(&request.id, id))?;
        let id = self.requests.swap_remove(place).id;
        self.clear_suspicion(&id);
        Some(id)
    }

    fn add_stray(&mut self, error: ErrorData) {
        // Only a request that was pending when the error arrived can be the one that failed.
        let suspects = self
            .requests
            .iter()
            .filter(|request| request.may_have_failed);
        let suspects: Vec<_> = suspects.map(|request| request.id.clone()).collect();
        if !suspects.is_empty() && self.strays.len() < MAX_STRAYS {
            self.strays.push(Stray { error, suspects });
        }
    }

    /// Marks subscriptions as accepted: they stay pending and have not failed.
    fn trust_subscriptions(&mut self) {
        let mut trusted = Vec::new();
        for request in &mut self.requests {
            if request.kind == Kind::Listen {
                request.may_have_failed = false;
                trusted.push(request.id.clone());
            }
        }
        for id in trusted {
            self.clear_suspicion(&id);
        }
    }

    /// Removes a request that has been answered or accepted from the suspects of every error. An
    /// error without suspects is dropped, as nothing waits for it.
    fn clear_suspicion(&mut self, id: &RequestId) {
        for stray in &mut self.strays {
            stray.suspects.retain(|suspect| suspect != id);
        }
        self.strays.retain(|stray| !stray.suspects.is_empty());
    }
}

/// Returns whether an answer's id `named` belongs to the request with the id `sent`: some servers
/// answer `7` with `"7"`.
pub(crate) fn is_same(sent: &RequestId, named: &RequestId) -> bool {
    match (sent, named) {
        (RequestId::Number(sent), RequestId::String(named)) => named.parse() == Ok(*sent),
        _ => sent == named,
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CustomRequest, ErrorCode, ServerResult};

    use super::*;

    fn pending(ids: &[i64]) -> Pending {
        let pending = Pending::default();
        for id in ids {
            let request = ClientRequest::CustomRequest(CustomRequest::new("tools/call", None));
            pending.record_sent(&ClientJsonRpcMessage::request(
                request,
                RequestId::Number(*id),
            ));
        }
        pending
    }

    fn error(id: Option<RequestId>) -> ServerJsonRpcMessage {
        ServerJsonRpcMessage::error(ErrorData::new(ErrorCode(-32000), "no", None), id)
    }

    /// Returns the request that an error answers.
    #[track_caller]
    fn answered_request(message: Option<ServerJsonRpcMessage>) -> Option<RequestId> {
        match message? {
            ServerJsonRpcMessage::Error(answer) => answer.id,
            other => panic!("{other:?}"),
        }
    }

    fn receive(pending: &Pending, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        pending.record_received(message, &Remarks::default())
    }

    #[test]
    fn error_without_an_id_answers_the_only_request() {
        for id in [None, Some(RequestId::String("server-error".into()))] {
            let pending = pending(&[7]);
            assert!(receive(&pending, error(id)).is_none());
            let id = answered_request(pending.attribute_error());
            assert_eq!(id, Some(RequestId::Number(7)));
            assert!(pending.attribute_error().is_none());
        }
    }

    #[test]
    fn error_without_an_id_answers_the_request_that_is_left() {
        let pending = pending(&[7, 8, 9]);
        assert!(receive(&pending, error(None)).is_none());
        for id in [7, 9] {
            assert!(pending.attribute_error().is_none());
            let answer =
                ServerJsonRpcMessage::response(ServerResult::empty(()), RequestId::Number(id));
            assert!(receive(&pending, answer).is_some());
        }
        assert_eq!(
            answered_request(pending.attribute_error()),
            Some(RequestId::Number(8))
        );
    }

    #[test]
    fn late_answer_belongs_to_no_other_request() {
        let pending = pending(&[7, 8]);
        assert!(receive(&pending, error(Some(RequestId::Number(7)))).is_some());
        assert!(receive(&pending, error(Some(RequestId::Number(7)))).is_none());
        assert!(pending.attribute_error().is_none());
    }

    #[test]
    fn id_in_quotes_is_the_number() {
        let pending = pending(&[7]);
        let answer = receive(&pending, error(Some(RequestId::String("7".into()))));
        assert_eq!(answered_request(answer), Some(RequestId::Number(7)));
    }
}
