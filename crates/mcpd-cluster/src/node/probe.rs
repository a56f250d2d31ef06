//! Connection for an examination: one attempt at one server, whose complaints are collected.

use std::collections::BTreeSet;
use std::error::Error as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::{Client, ConnectErrorKind, Event, ServerError, ServerInfo, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::connect;
use crate::error::Error;
use crate::settings::Settings;
use crate::wire::subject_prefix;

/// Time limit for the answer of a server.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Time for which another complaint is waited for after an answer.
const LATE_COMPLAINTS: Duration = Duration::from_millis(50);
/// Prefixes of what a server says when it refuses something.
const REFUSALS: [(&str, bool); 2] = [
    ("Permissions Violation for Publish to \"", false),
    ("Permissions Violation for Subscription to \"", true),
];

/// Subject that a server has refused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Refused {
    pub(crate) subject: String,
    /// To be subscribed to, and not published to.
    pub(crate) is_subscription: bool,
}

/// Connection with one server.
pub(crate) struct Probe {
    client: Client,
    complaints: mpsc::UnboundedReceiver<String>,
    inbox: Subscriber,
    inbox_subject: String,
    /// Name of a node that does not exist.
    nowhere: String,
    /// Beginning of the subjects of the requests for a round trip.
    fence: String,
    round_trips: u32,
    refused: BTreeSet<Refused>,
}

/// Connects once. Returns the reason if the server can't be reached, with what to do.
///
/// # Errors
///
/// Fails for settings that can never work.
pub(crate) async fn connect(
    settings: &Settings,
    url: &str,
) -> Result<Result<Probe, String>, Error> {
    let address = connect::parse(url)?;
    let (complained, complaints) = mpsc::unbounded_channel();
    let complained = Arc::new(complained);
    let options = connect::options(settings).await?;
    let options = options
        .ignore_discovered_servers()
        .event_callback(move |event| {
            if let Event::ServerError(ServerError::Other(complaint)) = event {
                // Without a receiver the examination is over.
                complained.send(complaint).ok();
            }
            std::future::ready(())
        });
    let client = match options.connect(address).await {
        Ok(client) => client,
        Err(error) => {
            let cause = error.source().map(ToString::to_string);
            return Ok(Err(explain(error.kind(), cause)));
        }
    };
    let probe = format!("_INBOX.{}.probe", settings.node);
    let inbox = client.subscribe(probe.clone()).await;
    let inbox = inbox.map_err(|error| Error::Connect(error.to_string()))?;
    let nowhere = format!("doctor-{}", super::new_epoch());
    Ok(Ok(Probe {
        client,
        complaints,
        inbox,
        inbox_subject: probe,
        fence: format!("{}.in.{nowhere}", subject_prefix(settings.cluster.as_str())),
        nowhere,
        round_trips: 0,
        refused: BTreeSet::new(),
    }))
}

/// Says why there is no connection, and what to do.
fn explain(kind: ConnectErrorKind, cause: Option<String>) -> String {
    let what = cause.unwrap_or_else(|| kind.to_string());
    let what = what.trim_start_matches("nats: ");
    let advice = match kind {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            "it refuses this node; add what `mcpd cluster grants` prints to its configuration, and check the credentials in `[cluster]`"
        }
        ConnectErrorKind::Dns => "check the name of the host",
        // An alert comes after the handshake, when the client regards TLS as established.
        _ if what.starts_with("received fatal alert") => {
            "check `certificate` and `key` in `[cluster]`: it demands a certificate of an authority that it trusts"
        }
        _ if kind == ConnectErrorKind::Tls || what.starts_with("invalid peer certificate") => {
            "check `ca` in `[cluster]`, and whether the server has TLS and a certificate for this name"
        }
        ConnectErrorKind::TimedOut => "check the address, and firewalls on the way",
        _ => "check the address, and whether the server runs",
    };
    format!("{what}: {advice}")
}

impl Probe {
    pub(crate) fn server_info(&self) -> ServerInfo {
        self.client.server_info()
    }

    /// Returns a subject for a node that does not exist.
    pub(crate) fn nowhere(&self) -> &str {
        &self.nowhere
    }

    pub(crate) async fn publish(&self, subject: String, payload: Bytes) {
        // A connection that is lost shows in the next answer.
        self.client.publish(subject, payload).await.ok();
    }

    pub(crate) async fn subscribe(&self, subject: String) -> Option<Subscriber> {
        self.client.subscribe(subject).await.ok()
    }

    /// Sends a message to no node, and waits for what the server says of it: that no node is
    /// there, or that this one has no right. Everything before it has been judged then.
    pub(crate) async fn round_trip(&mut self) -> Duration {
        let start = Instant::now();
        self.round_trips += 1;
        // A subject of its own, as the complaint about an earlier one may still be on its way.
        let fence = format!("{}-{}", self.fence, self.round_trips);
        let inbox = self.inbox_subject.clone();
        let sent = self
            .client
            .publish_with_reply(fence.clone(), inbox, Bytes::new());
        sent.await.ok();
        timeout(ANSWER_TIMEOUT, self.hear_fence(&fence)).await.ok();
        let round_trip = start.elapsed();
        // Complaints take another way through the client than answers, and may come after them.
        while let Ok(Some(complaint)) = timeout(LATE_COMPLAINTS, self.complaints.recv()).await {
            self.note(&complaint);
        }
        round_trip
    }

    async fn hear_fence(&mut self, fence: &str) {
        loop {
            tokio::select! {
                biased;
                complaint = self.complaints.recv() => {
                    let Some(complaint) = complaint else { return };
                    self.note(&complaint);
                    if complaint.contains(fence) {
                        return;
                    }
                }
                _ = self.inbox.next() => return,
            }
        }
    }

    fn note(&mut self, complaint: &str) {
        for (prefix, is_subscription) in REFUSALS {
            let subject = complaint
                .strip_prefix(prefix)
                .and_then(|rest| rest.split('"').next());
            if let Some(subject) = subject {
                self.refused.insert(Refused {
                    subject: subject.to_owned(),
                    is_subscription,
                });
            }
        }
    }

    pub(crate) fn has_refused(&self, subject: &str, is_subscription: bool) -> bool {
        self.refused.contains(&Refused {
            subject: subject.to_owned(),
            is_subscription,
        })
    }
}
