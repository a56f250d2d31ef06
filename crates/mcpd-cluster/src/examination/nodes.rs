//! Nodes of a cluster: versions and clocks.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt as _;
use serde::Serialize;
use tokio::time::timeout;

use super::remaining;
use crate::node::probe::Probe;
use crate::node::{self, Incoming};
use crate::settings::Settings;
use crate::wire::{Frame, FrameError, Here, Kind, PROTOCOL_VERSION, subject_prefix};

/// Time in which every node has announced itself.
const LISTEN: Duration = Duration::from_millis(1500);
/// Difference between clocks from which it is a fault.
const MAX_CLOCK_DIFFERENCE: i64 = 1000;

/// Examined node.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ExaminedNode {
    /// Name of the node.
    pub name: String,
    /// `front`, `worker`, or `other` for what this version does not know.
    pub kind: &'static str,
    /// Version of mcpd; empty if it can't be read.
    pub version: String,
    /// Version of the protocol.
    pub protocol: u32,
    /// Its clock compared with that of this machine, in milliseconds; positive if it is ahead.
    /// The way of the message is part of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_ms: Option<i64>,
}

impl ExaminedNode {
    /// Returns whether its clock differs.
    pub(super) fn is_off(&self) -> bool {
        let off = |difference: i64| difference.abs() > MAX_CLOCK_DIFFERENCE;
        self.clock_ms.is_some_and(off)
    }

    /// Returns whether it speaks another protocol.
    pub(super) fn is_foreign(&self) -> bool {
        self.protocol != PROTOCOL_VERSION
    }

    pub(super) fn is_faulty(&self) -> bool {
        self.is_off() || self.is_foreign()
    }
}

/// Returns the nodes that announce themselves, by their names; `None` without the right to hear
/// them.
pub(super) async fn listen(settings: &Settings, probe: &mut Probe) -> Option<Vec<ExaminedNode>> {
    let prefix = subject_prefix(settings.cluster.as_str());
    let subject = format!("{prefix}.here.*");
    let mut here = probe.subscribe(subject.clone()).await?;
    let who = Frame::new(
        Here::new(settings.node.as_str(), 0, Kind::Other),
        Bytes::new(),
    );
    let who = who.encode().unwrap_or_default();
    probe.publish(format!("{prefix}.who"), who).await;
    let mut nodes = BTreeMap::new();
    let deadline = Instant::now() + LISTEN;
    while let Ok(Some(message)) = timeout(remaining(deadline), here.next()).await {
        let message = Incoming::from(message);
        if let Some(node) = read(&message.subject, &message.payload) {
            nodes.insert((node.name.clone(), node.protocol, node.kind), node);
        }
    }
    probe.round_trip().await;
    here.unsubscribe().await.ok();
    (!probe.has_refused(&subject, true)).then(|| nodes.into_values().collect())
}

/// Reads the presence of a node; of one that is newer than this version, no more than its name.
fn read(subject: &str, payload: &Bytes) -> Option<ExaminedNode> {
    let name = subject.rsplit('.').next()?.to_owned();
    match Frame::<Here>::decode(payload) {
        Ok(Frame { head: here, .. }) if here.node == name && here.epoch > 0 => Some(ExaminedNode {
            name,
            kind: match here.kind {
                Kind::Front => "front",
                Kind::Worker => "worker",
                Kind::Other => "other",
            },
            clock_ms: (here.clock_ms > 0).then(|| difference(here.clock_ms)),
            version: here.version,
            protocol: here.v,
        }),
        Err(FrameError::Version(protocol)) => Some(ExaminedNode {
            name,
            kind: "other",
            version: String::new(),
            protocol,
            clock_ms: None,
        }),
        _ => None,
    }
}

/// Compares a time in milliseconds since 1970 with the clock of this machine.
fn difference(clock_ms: u64) -> i64 {
    let millis = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
    millis(clock_ms).saturating_sub(millis(node::clock_ms()))
}
