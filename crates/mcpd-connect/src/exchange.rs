//! Exchange of one request: its message goes out, its answer comes back. Every request gets exactly
//! one answer, unless the client cancels it.

use bytes::Bytes;
use reqwest::header::HeaderMap;

use crate::answer::{AnswerReader, Role};
use crate::http::Outgoing;
use crate::link::{Failure, Link, Reply};
use crate::pending::OpenRequest;

impl Link {
    /// Sends a request, and passes on its answer or the reason why there is none.
    pub(crate) async fn exchange(
        &self,
        request: &OpenRequest,
        message: Bytes,
        stateless: Option<HeaderMap>,
        role: Role,
    ) {
        if !request.start() {
            return;
        }
        let answered = self.try_exchange(request, message, stateless, role).await;
        if let Err(Failure(error)) = answered
            && !request.is_cancelled()
        {
            self.output.send_error(Some(&request.id), &error).await;
        }
    }

    async fn try_exchange(
        &self,
        request: &OpenRequest,
        message: Bytes,
        stateless: Option<HeaderMap>,
        role: Role,
    ) -> Result<(), Failure> {
        let outgoing = Outgoing::post(message).until(request.cancelled.clone());
        let reply = match (stateless, role) {
            (Some(headers), _) => self.send(&outgoing.with(headers)).await?,
            // It opens a session, so it belongs to none.
            (None, Role::Introduction) => self.send(&outgoing).await?,
            (None, _) => self.send_in_session(&outgoing).await?,
        };
        match reply {
            Reply::Success(response) => {
                let mut reader = AnswerReader::new(self, Some(request), role);
                reader.read(response).await
            }
            Reply::Refusal(refusal) => Err(Failure(refusal.into_error(&self.place()))),
        }
    }

    /// Sends a message that needs no answer: a notification, or a response.
    pub(crate) async fn post(&self, message: Bytes, stateless: Option<HeaderMap>) {
        let outgoing = Outgoing::post(message);
        let reply = match stateless {
            Some(headers) => self.send(&outgoing.with(headers)).await,
            None => self.send_in_session(&outgoing).await,
        };
        let fault = match reply {
            Ok(Reply::Success(_)) => return,
            Ok(Reply::Refusal(refusal)) => refusal.describe(),
            Err(Failure(error)) => error.message.into_owned(),
        };
        tracing::warn!("a message of the client was not delivered: {fault}");
    }
}
