//! Question to a node whether it is there.

use std::time::Duration;

use async_nats::RequestErrorKind;
use serde::Serialize;
use tokio::time::timeout;

use super::Node;
use crate::wire::{Frame, Head};

/// Time limit for the answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Answer of a node that was asked whether it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PingResult<A> {
    Answer(A),
    /// The server says that it is not connected.
    Absent,
    /// No answer in time, or one that can't be read.
    Silent,
}

impl Node {
    /// Asks once whether a node is there.
    pub(crate) async fn ping<Q, A>(&self, subject: String, question: &Frame<Q>) -> PingResult<A>
    where
        Q: Serialize,
        A: Head,
    {
        let Ok(payload) = question.encode() else {
            return PingResult::Silent;
        };
        let request = self.client.request(subject, payload);
        match timeout(ANSWER_TIMEOUT, request).await {
            Ok(Ok(answer)) => match Frame::decode(&answer.payload) {
                Ok(frame) => PingResult::Answer(frame.head),
                Err(_) => PingResult::Silent,
            },
            Ok(Err(error)) if error.kind() == RequestErrorKind::NoResponders => PingResult::Absent,
            _ => PingResult::Silent,
        }
    }
}
