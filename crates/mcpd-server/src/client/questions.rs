//! Requests of the server to a client of the stateful wire, and the responses to them. The
//! stateless wire has none: there the questions are part of a result.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use mcpd_protocol::JsonObject;
use mcpd_protocol::jsonrpc::{self, ErrorObject, RequestId, Response};
use mcpd_protocol::method::{CancelledNotification, CancelledNotificationParams, InputRequest};
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use crate::client::outbox::Outbox;
use crate::client::outbox::notify;
use crate::support::sync::lock;

/// Time for a person to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

/// Response of a client: a result, or the error of a refusal.
type ClientAnswer = Result<Box<RawValue>, ErrorObject>;

/// Reason why a question has no answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The client refused.
    Declined(ErrorObject),
    /// The client did not answer within this time.
    TimedOut(Duration),
    /// The question never reached the client.
    NotAsked(&'static str),
}

/// Questions that one client has not answered yet.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    open: Mutex<OpenQuestions>,
    /// Beginning of the ids, where several servers ask the same client.
    prefix: Option<String>,
}

#[derive(Debug, Default)]
struct OpenQuestions {
    last_id: i64,
    waiting: BTreeMap<RequestId, oneshot::Sender<ClientAnswer>>,
    /// No more questions are allowed: the client has begun another session, and the ids continue
    /// there.
    is_over: bool,
}

/// One open question. Dropping it cancels the question: "the sender SHOULD issue a cancellation
/// notification for that request" -- 2025-11-25/basic/lifecycle#timeouts
struct OpenQuestion<'a> {
    id: RequestId,
    questions: &'a Questions,
    outbox: &'a Outbox,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        let unanswered = lock(&self.questions.open).waiting.remove(&self.id);
        if unanswered.is_some() {
            let params = CancelledNotificationParams::new(self.id.clone());
            notify::<CancelledNotification>(self.outbox, &params);
        }
    }
}

impl Questions {
    /// Creates questions whose ids begin with `prefix`.
    #[cfg(feature = "http")]
    pub(crate) fn with_prefix(prefix: String) -> Self {
        Self {
            prefix: Some(prefix),
            ..Self::default()
        }
    }

    /// Asks the client, and waits for its answer.
    ///
    /// # Errors
    ///
    /// See [`Unanswered`].
    ///
    /// # Cancel safety
    ///
    /// See [`Self::ask_within`].
    pub(crate) async fn ask(
        &self,
        outbox: &Outbox,
        request: &InputRequest,
    ) -> Result<Box<RawValue>, Unanswered> {
        self.ask_within(outbox, request, ANSWER_TIMEOUT).await
    }

    /// Asks the client, and waits for its answer for at most `limit`.
    ///
    /// # Errors
    ///
    /// See [`Unanswered`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the question; a late answer is ignored.
    pub(crate) async fn ask_within(
        &self,
        outbox: &Outbox,
        request: &InputRequest,
        limit: Duration,
    ) -> Result<Box<RawValue>, Unanswered> {
        let (answered, answer) = oneshot::channel();
        let id = {
            let mut open = lock(&self.open);
            if open.is_over {
                return Err(Unanswered::NotAsked(
                    "the client has started another session",
                ));
            }
            open.last_id += 1;
            let id = match &self.prefix {
                Some(prefix) => RequestId::from(&*format!("{prefix}.{}", open.last_id)),
                None => RequestId::from(open.last_id),
            };
            open.waiting.insert(id.clone(), answered);
            id
        };
        let question = OpenQuestion {
            id,
            questions: self,
            outbox,
        };
        let method = request.method.name();
        let mut message = match &request.params {
            Some(params) => jsonrpc::request(&question.id, method, params),
            None => jsonrpc::request(&question.id, method, &JsonObject::new()),
        }
        .map_err(|_| Unanswered::NotAsked("the request could not be encoded"))?;
        jsonrpc::replace_nul(&mut message);
        let gone = || Unanswered::NotAsked("the client is disconnected");
        outbox.send(message.into()).await.map_err(|_| gone())?;
        match tokio::time::timeout(limit, answer).await {
            Ok(answer) => answer.map_err(|_| gone())?.map_err(Unanswered::Declined),
            Err(_) => Err(Unanswered::TimedOut(limit)),
        }
    }

    /// Replaces the questions of the previous session on the same channel, which will not be
    /// answered. The ids continue.
    pub(crate) fn replace(&self, before: &Self) {
        let mut before = lock(&before.open);
        before.is_over = true;
        before.waiting.clear();
        lock(&self.open).last_id = before.last_id;
    }

    /// Accepts a response of the client. Returns whether it answers a question; one with an unknown
    /// id is ignored.
    pub(crate) fn accept_response(&self, response: Response<'_>) -> bool {
        let waiting = response
            .id
            .and_then(|id| lock(&self.open).waiting.remove(&id));
        let is_answer = waiting.is_some();
        if let Some(waiting) = waiting {
            // The task that asked may have stopped waiting at this moment.
            waiting.send(response.outcome.map(RawValue::to_owned)).ok();
        }
        is_answer
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn question_ids_continue_in_the_next_session() {
        let request = json!({"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}});
        let request: InputRequest = serde_json::from_value(request).unwrap();
        let (outbox, mut messages) = Outbox::new();
        let (before, after) = (Questions::default(), Questions::default());
        let mut first = Box::pin(before.ask(&outbox, &request));
        assert!(futures_util::poll!(&mut first).is_pending());
        after.replace(&before);
        assert!(matches!(first.await, Err(Unanswered::NotAsked(_))));
        let late = before.ask(&outbox, &request).await;
        assert!(matches!(late, Err(Unanswered::NotAsked(_))));
        let mut second = Box::pin(after.ask(&outbox, &request));
        assert!(futures_util::poll!(&mut second).is_pending());
        for id in [1, 2] {
            let message: serde_json::Value =
                serde_json::from_slice(&messages.try_recv().unwrap()).unwrap();
            assert_eq!(message["id"], id);
        }
    }
}
