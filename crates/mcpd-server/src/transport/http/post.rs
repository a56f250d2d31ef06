//! POST handler: one message, one POST. Checks the headers and finds the session; the response to a
//! request is that of [`ongoing`](super::ongoing).

use std::future::ready;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};
use mcpd_protocol::Params;
use mcpd_protocol::jsonrpc::{
    ErrorCode, ErrorObject, Frame, Message, Notification, Request, RequestId,
    Response as RpcResponse,
};
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::headers::{self, PROTOCOL_VERSION, SESSION_ID, accepts_events};
use super::ongoing::{Ongoing, WholeAnswer, respond, run_attached, run_detached};
use super::reply::{self, RefusedResponse, ResponseBody, WholeResponse};
use super::resumption::Resumable;
use super::router::{Client, Router};
use super::sessions::Visit;
use crate::client::outbox::Outbox;
use crate::client::request::context::{Context, PeerContext};
use crate::client::session::{Introduction, Session};
use crate::limits::memory_budget::SharedReservation;
use crate::limits::rate_limit;
use crate::message::method::KnownMethod;
use crate::message::reply::Handled;
use crate::message::tool_names::ToolNames;
use crate::message::transport::Transport;
use crate::methods::dispatch::{self, CancellableAnswer};
use crate::policy::access::NeededScope;
use crate::policy::principal::Principal;
use crate::transport::connection::Reply;
use crate::transport::exchange::{self, Exchange};

/// Error for a session that never existed, or has ended.
pub(super) const NO_SESSION: &str = "unknown session; initialize again";

/// Properties of a POST that apply to all messages in its body.
struct PostHead<'a> {
    headers: &'a HeaderMap,
    names: ToolNames,
    wants_events: bool,
    client: &'a Client<'a>,
    /// Memory reservation of the body.
    reservation: SharedReservation,
    /// Scope that the client turns out to lack.
    needed_scope: NeededScope,
}

impl PostHead<'_> {
    async fn respond(
        &self,
        notifications: Option<mpsc::Receiver<Bytes>>,
        answer: WholeAnswer,
        resumable: Option<Resumable>,
    ) -> Response<ResponseBody> {
        let ongoing = Ongoing {
            notifications,
            answer,
            resumable: resumable.filter(|_| self.wants_events),
        };
        respond(ongoing, self.wants_events, Some(self.client.peer)).await
    }
}

impl Router {
    /// Handles a POST.
    pub(super) async fn post(
        &self,
        parts: &Parts,
        body: &mut Incoming,
        names: ToolNames,
        client: &Client<'_>,
    ) -> Response<ResponseBody> {
        let (body, reservation) = match self
            .body_reader
            .read(&client.principal, &parts.headers, body)
            .await
        {
            Ok(read) => read,
            Err(response) => return *response,
        };
        let wants_events = accepts_events(&parts.headers);
        let head = PostHead {
            headers: &parts.headers,
            names,
            wants_events,
            client,
            reservation,
            needed_scope: NeededScope::default(),
        };
        match Frame::decode(&body) {
            Ok(Frame::Single(Message::Request(request))) => {
                let mut response = self.request(&head, &request).await;
                if let Some(scope) = head.needed_scope.get() {
                    self.guard.ask_for(scope, &mut response);
                }
                response
            }
            Ok(Frame::Single(Message::Notification(notification))) => {
                self.notification(&head, &notification, &body)
            }
            Ok(Frame::Single(Message::Response(response))) => self.response(&head, response, &body),
            Ok(Frame::Batch(elements)) => self.batch(&head, &elements).await,
            Err(error) => reply::error(StatusCode::BAD_REQUEST, error.id.as_ref(), &error.error),
        }
    }

    /// Ends a session at the request of its client.
    pub(super) fn end_session(
        &self,
        headers: &HeaderMap,
        caller: &Principal,
    ) -> Response<ResponseBody> {
        if let Err(response) = self.find_conversation(headers, caller) {
            return *response;
        }
        match headers.get(&SESSION_ID).map(HeaderValue::to_str) {
            None => {
                let reason =
                    "POST messages here; DELETE ends the session that `Mcp-Session-Id` names";
                reply::not_allowed_as("POST", reason)
            }
            Some(Ok(id)) if self.sessions.remove(id, caller) => {
                self.announce_end(id);
                reply::text(StatusCode::NO_CONTENT, "")
            }
            Some(_) => reply::text(StatusCode::NOT_FOUND, NO_SESSION),
        }
    }

    async fn request(&self, head: &PostHead<'_>, request: &Request<'_>) -> Response<ResponseBody> {
        let refuse = |error| reply::error(StatusCode::BAD_REQUEST, Some(&request.id), &error);
        let params = match Params::read(request.params) {
            Ok(params) => params,
            Err(error) => return refuse(error),
        };
        match Exchange::of(request, &params, head.headers) {
            Ok(Exchange::Stateless) => {
                let wants_notifications =
                    params.meta.wants_notifications() || request.method == "subscriptions/listen";
                let (peer, notifications) = self.peer_context(head, wants_notifications);
                match exchange::open_stateless(&self.server, request, &params, head.headers, peer) {
                    Ok(context) => {
                        self.answer_stateless(head, request, (&params, context), notifications)
                            .await
                    }
                    Err(error) => refuse(error),
                }
            }
            Ok(Exchange::Initialize) => self.initialize(head, &request.id, &params).await,
            Ok(Exchange::Stateful) => self.answer_stateful(head, request, &params).await,
            Err(error) => refuse(error),
        }
    }

    /// Answers a stateless request, which ends when its client disconnects.
    async fn answer_stateless(
        &self,
        head: &PostHead<'_>,
        request: &Request<'_>,
        (params, context): (&Params<'_>, Context),
        notifications: Option<mpsc::Receiver<Bytes>>,
    ) -> Response<ResponseBody> {
        if request.method == "subscriptions/listen" && !head.wants_events {
            let reason = "a subscription needs an event stream; accept text/event-stream";
            let error = ErrorObject::invalid_request(reason);
            return reply::error(StatusCode::NOT_ACCEPTABLE, Some(&request.id), &error);
        }
        let id = request.id.clone();
        let method = KnownMethod::from_name(&request.method);
        let mut result = match dispatch::dispatch(&self.server, method, request, params, context) {
            Handled::Now(result) => return WholeResponse::new(&id, result, error_status).into(),
            Handled::Later(result) => result,
        };
        // Polled once, here, as by `dispatch::answer`.
        let answer = match (&mut result).now_or_never() {
            Some(result) => Box::pin(ready(Some(WholeResponse::new(&id, result, error_status)))),
            None => run_attached(
                async move { Some(WholeResponse::new(&id, result.await, error_status)) },
                head.client.peer,
                head.wants_events,
            ),
        };
        let is_endless = request.method == "subscriptions/listen";
        let response = head.respond(notifications, answer, None).await;
        if is_endless {
            return reply::without_end(response);
        }
        response
    }

    async fn initialize(
        &self,
        head: &PostHead<'_>,
        id: &RequestId,
        params: &Params<'_>,
    ) -> Response<ResponseBody> {
        let owner = head.client.principal.clone();
        let (session, result) = match exchange::initialize(&self.server, params, &owner) {
            Ok(opened) => opened,
            Err(error) => return reply::error(StatusCode::OK, Some(id), &error),
        };
        let result = result.await;
        let inserted = self.insert_session(session, owner);
        let Some(session) = inserted else {
            let reason = format!("{} sessions are in use", self.sessions.max());
            let error = rate_limit::overload_error(&reason);
            return reply::error(StatusCode::TOO_MANY_REQUESTS, Some(id), &error);
        };
        let mut response = Response::from(WholeResponse::new(id, result, error_status));
        if let Ok(session) = HeaderValue::try_from(session) {
            response.headers_mut().insert(&SESSION_ID, session);
        }
        response
    }

    /// Answers a request in a session, or of a client that never opened one. "Disconnection
    /// SHOULD NOT be interpreted as the client cancelling its request"
    /// -- 2025-11-25/basic/transports#sending-messages-to-the-server
    async fn answer_stateful(
        &self,
        head: &PostHead<'_>,
        request: &Request<'_>,
        params: &Params<'_>,
    ) -> Response<ResponseBody> {
        let visit = match self.conversation(head) {
            Ok(visit) => visit,
            Err(response) => return *response,
        };
        let (peer_context, notifications) = self.peer_context(head, true);
        let answer = visit.request(&self.server, request, params, peer_context);
        let id = request.id.clone();
        let resumable = Resumable::new(&visit, Some(id.clone()));
        let always_ok = |_: &ErrorObject| StatusCode::OK;
        let answer: WholeAnswer =
            match answer.unwrap_or_else(|error| CancellableAnswer::Now(Err(error))) {
                CancellableAnswer::Now(result) => {
                    Box::pin(ready(Some(WholeResponse::new(&id, result, always_ok))))
                }
                CancellableAnswer::Later(result) => run_detached(
                    Some(id.clone()),
                    async move { Some(WholeResponse::new(&id, result.await?, always_ok)) },
                    visit,
                ),
            };
        head.respond(notifications, answer, resumable).await
    }

    /// Answers a batch of 2025-03-26.
    async fn batch(&self, head: &PostHead<'_>, elements: &[&RawValue]) -> Response<ResponseBody> {
        let visit = match self.conversation(head) {
            Ok(visit) => visit,
            Err(response) => return *response,
        };
        let (peer_context, notifications) = self.peer_context(head, true);
        match visit.batch(&self.server, elements, &peer_context) {
            Ok(Reply::Pending(answers)) => {
                let resumable = Resumable::new(&visit, None);
                let answer = async move { Some(WholeResponse::ok(answers.await?)) };
                let answer = run_detached(None, answer, visit);
                head.respond(notifications, answer, resumable).await
            }
            Ok(Reply::Ready(answers)) => WholeResponse::ok(answers).into(),
            Ok(Reply::Nothing) => reply::accepted_response(),
            Err(error) => reply::error(StatusCode::BAD_REQUEST, None, &error),
        }
    }

    fn notification(
        &self,
        head: &PostHead<'_>,
        notification: &Notification<'_>,
        body: &[u8],
    ) -> Response<ResponseBody> {
        match self.conversation(head) {
            Ok(visit) => {
                if visit.inflight.apply_notification(notification) {
                    self.forward(&visit, body);
                }
                visit.session.apply_notification(notification);
                reply::accepted_response()
            }
            Err(response) => *response,
        }
    }

    /// Accepts the answer to a question that was asked on the stream of another request.
    fn response(
        &self,
        head: &PostHead<'_>,
        response: RpcResponse<'_>,
        body: &[u8],
    ) -> Response<ResponseBody> {
        match self.find_conversation(head.headers, &head.client.principal) {
            Ok(Some(visit)) => {
                if !visit.session.questions.accept_response(response) {
                    self.forward(&visit, body);
                }
                reply::accepted_response()
            }
            Ok(None) => reply::error(
                StatusCode::BAD_REQUEST,
                None,
                &ErrorObject::invalid_request("a response requires the header `Mcp-Session-Id`"),
            ),
            Err(response) => *response,
        }
    }

    /// Returns the conversation whose session a request names.
    ///
    /// # Errors
    ///
    /// The response for an unknown session, or one in another revision than the header names.
    pub(super) fn find_conversation(
        &self,
        headers: &HeaderMap,
        caller: &Principal,
    ) -> Result<Option<Visit>, RefusedResponse> {
        let Some(id) = headers.get(&SESSION_ID) else {
            return Ok(None);
        };
        let Some(visit) = id
            .to_str()
            .ok()
            .and_then(|id| self.find_session(id, caller))
        else {
            return Err(Box::new(reply::text(StatusCode::NOT_FOUND, NO_SESSION)));
        };
        let version = visit.session.version.as_str();
        if headers
            .get(&PROTOCOL_VERSION)
            .is_some_and(|header| header != version)
        {
            let reason = format!(
                "the session uses protocol version {version}, but the header `MCP-Protocol-Version` has another"
            );
            return Err(Box::new(reply::text(StatusCode::BAD_REQUEST, reason)));
        }
        Ok(Some(visit))
    }

    /// Returns the conversation whose session a request names, or one for this request alone.
    ///
    /// # Errors
    ///
    /// See [`find_conversation`](Self::find_conversation), and the response for an unknown
    /// revision.
    fn conversation(&self, head: &PostHead<'_>) -> Result<Visit, RefusedResponse> {
        if let Some(visit) = self.find_conversation(head.headers, &head.client.principal)? {
            return Ok(visit);
        }
        let version = headers::version(head.headers)
            .map_err(|error| Box::new(reply::error(StatusCode::BAD_REQUEST, None, &error)))?;
        let session = Session::new(
            Introduction::none(version),
            &head.client.principal,
            &self.server.engine().subscribers,
        );
        Ok(Visit::for_one_request(session))
    }

    /// Returns the context of a peer, and the queue of notifications for its response.
    fn peer_context(
        &self,
        head: &PostHead<'_>,
        wants_notifications: bool,
    ) -> (Arc<PeerContext>, Option<mpsc::Receiver<Bytes>>) {
        let (outbox, notifications) = if wants_notifications && head.wants_events {
            let (outbox, notifications) = Outbox::new();
            (outbox, Some(notifications))
        } else {
            (self.nowhere.clone(), None)
        };
        let engine = self.server.engine();
        let closing = engine.stopping.clone();
        (
            Arc::new(PeerContext {
                transport: Transport::Http,
                principal: head.client.principal.clone(),
                reservation: head.reservation.clone(),
                needed_scope: head.needed_scope.clone(),
                names: head.names,
                outbox,
                closing,
                trace: headers::trace(head.headers),
                parameters: Some(headers::parameters(head.headers)),
                directory: None,
                headers: headers::secrets(&self.server, head.headers),
            }),
            notifications,
        )
    }
}

/// Returns the status of an error on the stateless wire.
/// -- 2026-07-28/basic/transports/streamable-http#error-responses
fn error_status(error: &ErrorObject) -> StatusCode {
    match error.code {
        ErrorCode::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        ErrorCode::HEADER_MISMATCH | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY => {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::OK,
    }
}
