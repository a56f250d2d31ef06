//! Examination of a cluster from the place of one node: reach of each server, rights at it, and
//! the nodes with their versions and clocks. It changes nothing and runs nothing.
//!
//! Rights are tried out: what the server refuses, it says. Messages go to a node that does not
//! exist, and subscriptions end at once.

mod nodes;
mod rights;
mod text;

use std::time::{Duration, Instant};

use serde::Serialize;

pub use self::nodes::ExaminedNode;
pub use self::rights::RoleRights;
use self::rights::Trial;
use crate::error::Error;
use crate::node::probe;
use crate::settings::Settings;
use crate::wire::MAX_FRAME;

/// Examined cluster.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Examination {
    /// Name of the cluster.
    pub cluster: String,
    /// Name under which this node has connected.
    pub node: String,
    /// Servers, in the order of the settings.
    pub servers: Vec<ExaminedServer>,
    /// Rights for each role; none without a server.
    pub rights: Vec<RoleRights>,
    /// The server lets any client do everything.
    pub is_open: bool,
    /// Nodes that announce themselves; `None` if this node has no right to hear them.
    pub nodes: Option<Vec<ExaminedNode>>,
}

/// Examined server.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ExaminedServer {
    /// Address in the settings.
    pub url: String,
    /// Facts that it states, or the reason why it can't be reached.
    #[serde(flatten)]
    pub reach: Reach,
}

/// Reach of a server.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reach {
    /// It is connected.
    #[non_exhaustive]
    Reached {
        /// Version of the server.
        version: String,
        /// Time until a message of this node was answered.
        round_trip_ms: f64,
        /// Maximum size of a message in bytes.
        max_payload: usize,
        /// It keeps streams, which tasks need that are to outlive their front.
        jetstream: bool,
    },
    /// Reason, and what to do.
    Unreachable(String),
}

impl Reach {
    /// Returns whether messages of every size get through.
    fn is_sound(&self) -> bool {
        matches!(self, Self::Reached { max_payload, .. } if *max_payload >= MAX_FRAME)
    }
}

impl Examination {
    /// Returns whether something must be corrected: a server without reach or with a limit that is
    /// too low, a node without the rights of any role, a clock or a protocol that differs.
    #[must_use]
    pub fn has_faults(&self) -> bool {
        let mut nodes = self.nodes.iter().flatten();
        self.servers.iter().any(|server| !server.reach.is_sound())
            || (!self.rights.is_empty() && self.rights.iter().all(|role| !role.is_complete()))
            || nodes.any(ExaminedNode::is_faulty)
    }
}

/// Examines the cluster.
///
/// # Errors
///
/// Fails for settings that can never work. A server that can't be reached is part of the result.
///
/// # Cancel safety
///
/// May be dropped at any time.
pub async fn examine(settings: &Settings) -> Result<Examination, Error> {
    let mut examination = Examination {
        cluster: settings.cluster.to_string(),
        node: settings.node.to_string(),
        servers: Vec::new(),
        rights: Vec::new(),
        is_open: false,
        nodes: None,
    };
    for url in &settings.urls {
        let reach = match probe::connect(settings, url).await? {
            Err(reason) => Reach::Unreachable(reason),
            Ok(mut probe) => {
                let round_trip = probe.round_trip().await;
                let info = probe.server_info();
                if examination.rights.is_empty() {
                    let mut trial = Trial::new(settings, &mut probe);
                    examination.rights = trial.try_roles().await;
                    examination.is_open = trial.is_open().await;
                    examination.nodes = nodes::listen(settings, &mut probe).await;
                }
                Reach::Reached {
                    version: info.version,
                    round_trip_ms: millis(round_trip),
                    max_payload: info.max_payload,
                    jetstream: info.jetstream,
                }
            }
        };
        let url = url.clone();
        examination.servers.push(ExaminedServer { url, reach });
    }
    Ok(examination)
}

/// Rounds to hundredths of a millisecond.
fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 100_000.0).round() / 100.0
}

/// Returns the time until `deadline`.
fn remaining(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}
