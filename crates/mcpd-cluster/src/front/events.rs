//! Exchange of events among fronts, for subscribers of resources and tasks. Lossy: an event that is
//! sent while a front is away is lost to it.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use mcpd_server::Server;
use mcpd_server::remote::SharedEvent;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::Cluster;
use crate::error::Error;
use crate::node::{Incoming, Node};
use crate::wire::{Frame, PROTOCOL_VERSION, heads};

/// Pause after a failure.
const RETRY: Duration = Duration::from_secs(5);

/// Event of a front.
#[derive(Debug, Serialize, Deserialize)]
struct EventHead {
    v: u32,
    /// Start of the front where it happened.
    from: String,
    #[serde(flatten)]
    event: SharedEvent,
}

heads!(EventHead);

impl Cluster {
    /// Exchanges the events of a server with those of the other fronts, for as long as the future
    /// is polled.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the exchange.
    pub async fn share_events(&self, server: &Server) -> Infallible {
        loop {
            match self.exchange(server).await {
                // The server is gone.
                Ok(()) => std::future::pending::<()>().await,
                Err(error) => tracing::warn!(%error, "events of other fronts are not received"),
            }
            sleep(RETRY).await;
        }
    }

    async fn exchange(&self, server: &Server) -> Result<(), Error> {
        let node = Node::connect(&self.settings).await?;
        let subject = node.subject_of_all("event");
        let mut received = node.subscribe(subject.clone()).await?;
        let mut events = server.shared_events();
        loop {
            tokio::select! {
                event = events.next() => {
                    let Some(event) = event else {
                        return Ok(());
                    };
                    let from = node.identity();
                    let head = EventHead { v: PROTOCOL_VERSION, from, event };
                    node.send_frame(&subject, None, &Frame::new(head, Bytes::new()));
                }
                message = received.next() => {
                    let message = Incoming::from(message.ok_or(Error::Closed)?);
                    // One of a newer kind is none for this version.
                    let decoded = Frame::<EventHead>::decode(&message.payload);
                    if let Ok(Frame { head, .. }) = decoded && head.from != node.identity() {
                        server.receive_event(head.event);
                    }
                }
            }
        }
    }
}
