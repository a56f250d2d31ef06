//! Requests of the server to a client of the stateful wire, and the answers that come back. The
//! stateless wire has none: there the questions are part of a result.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use mcpd_protocol::jsonrpc::{self, ErrorObject, RequestId, Response};
use mcpd_protocol::{CancelledNotification, CancelledNotificationParams};
use mcpd_protocol::{InputRequest, JsonObject};
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use crate::context::notify;
use crate::outbox::Outbox;
use crate::sync::lock;

/// How long a person may think.
const PATIENCE: Duration = Duration::from_secs(600);

/// What a client answered: a result, or that it won't.
type Answer = Result<Box<RawValue>, ErrorObject>;

/// Why a question has no answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The client won't, or nobody has answered it in time.
    Declined(ErrorObject),
    /// It has reached nobody.
    NotAsked(&'static str),
}

/// The questions one client has not answered yet.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    asked: i64,
    waiting: BTreeMap<RequestId, oneshot::Sender<Answer>>,
    /// Nothing may be asked any more: the client has begun anew, and numbers go on elsewhere.
    is_over: bool,
}

/// A question is called off when whoever asked it waits no longer: "the sender SHOULD issue a
/// cancellation notification for that request" -- 2025-11-25/basic/lifecycle#timeouts
struct Asked<'a> {
    id: RequestId,
    questions: &'a Questions,
    outbox: &'a Outbox,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let unanswered = lock(&self.questions.open).waiting.remove(&self.id);
        if unanswered.is_some() {
            let params = CancelledNotificationParams::new(self.id.clone());
            notify::<CancelledNotification>(self.outbox, &params);
        }
    }
}

impl Questions {
    /// Asks the client and waits for its answer.
    ///
    /// # Errors
    ///
    /// See [`Unanswered`].
    ///
    /// # Cancel safety
    ///
    /// Dropped, the question is called off; an answer that comes all the same is ignored.
    pub(crate) async fn ask(
        &self,
        outbox: &Outbox,
        request: &InputRequest,
    ) -> Result<Box<RawValue>, Unanswered> {
        let (answered, answer) = oneshot::channel();
        let id = {
            let mut open = lock(&self.open);
            if open.is_over {
                return Err(Unanswered::NotAsked("the client has begun another session"));
            }
            open.asked += 1;
            let id = RequestId::from(open.asked);
            open.waiting.insert(id.clone(), answered);
            id
        };
        let asked = Asked {
            id,
            questions: self,
            outbox,
        };
        let method = request.method.name();
        let mut message = match &request.params {
            Some(params) => jsonrpc::request(&asked.id, method, params),
            None => jsonrpc::request(&asked.id, method, &JsonObject::new()),
        }
        .map_err(|_| Unanswered::NotAsked("it could not be encoded"))?;
        jsonrpc::replace_nul(&mut message);
        let gone = || Unanswered::NotAsked("the client does not listen");
        outbox.send(message.into()).await.map_err(|_| gone())?;
        match tokio::time::timeout(PATIENCE, answer).await {
            Ok(answer) => answer.map_err(|_| gone())?.map_err(Unanswered::Declined),
            Err(_) => Err(Unanswered::Declined(ErrorObject::internal_error(format!(
                "the client did not answer within {PATIENCE:?}"
            )))),
        }
    }

    /// Takes the place of those of the session before on the same channel, which nobody will answer: numbers go on.
    pub(crate) fn replace(&self, before: &Self) {
        let mut before = lock(&before.open);
        before.is_over = true;
        before.waiting.clear();
        lock(&self.open).asked = before.asked;
    }

    /// Takes a response of the client. One that answers nothing is ignored.
    pub(crate) fn answered(&self, response: Response<'_>) {
        let waiting = response
            .id
            .and_then(|id| lock(&self.open).waiting.remove(&id));
        if let Some(waiting) = waiting {
            // Whoever asked may have stopped waiting this very moment.
            waiting.send(response.outcome.map(RawValue::to_owned)).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn whoever_begins_anew_is_asked_under_other_numbers() {
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
