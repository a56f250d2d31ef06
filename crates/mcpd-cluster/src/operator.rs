//! The operator's view: which nodes there are, what they have and run, and the request to drain.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use serde::{Serialize, Serializer};
use tokio::time::{Instant, sleep, timeout_at};

use crate::catalogue::{Catalogue, Collection};
use crate::error::Error;
use crate::node::{Incoming, Node, RequestError};
use crate::settings::{Name, Settings};
use crate::wire::{Control, Frame, Here, Kind, Pong, Request};

/// Time limit for the connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time in which every node has announced itself, which it does each second.
const LISTEN: Duration = Duration::from_millis(1500);

mod describing;

pub use describing::{describe, described_status};

/// State of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NodeStatus {
    /// Name of the node.
    #[serde(rename = "node")]
    pub name: String,
    /// It runs scripts; otherwise it is a front.
    #[serde(rename = "kind", serialize_with = "as_kind")]
    pub is_worker: bool,
    /// Version of mcpd.
    pub version: String,
    /// Number of scripts that it runs at a time.
    pub slots: u32,
    /// Number of scripts that run.
    pub running: u32,
    /// Number of runs that wait for a slot.
    pub waiting: u32,
    /// Labels that fronts can ask for.
    pub labels: Vec<String>,
    /// It takes no new runs.
    #[serde(rename = "draining")]
    pub is_draining: bool,
    /// Digest of all its scripts.
    pub catalog: String,
    /// Path and version of each script. The list is shared by all nodes with the same digest.
    #[serde(serialize_with = "as_map")]
    pub scripts: Arc<[(String, String)]>,
}

impl NodeStatus {
    /// Returns what the node is, in a word.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        kind(self.is_worker)
    }
}

fn kind(is_worker: bool) -> &'static str {
    match is_worker {
        true => "worker",
        false => "front",
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde has it so")]
fn as_kind<S: Serializer>(is_worker: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind(*is_worker))
}

fn as_map<S: Serializer>(
    scripts: &Arc<[(String, String)]>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(scripts.iter().map(|(path, version)| (path, version)))
}

/// Connects, for one question.
async fn connect(settings: &Settings) -> Result<Node, Error> {
    let node = Node::connect(settings).await?;
    let deadline = Instant::now() + CONNECT_TIMEOUT;
    while !node.is_connected() {
        if Instant::now() >= deadline {
            let urls = settings.urls.join(", ");
            return Err(Error::Connect(format!(
                "none of {urls} can be reached, or they refuse this node"
            )));
        }
        sleep(Duration::from_millis(20)).await;
    }
    Ok(node)
}

/// Returns all nodes that announce themselves, by their names.
///
/// # Errors
///
/// Fails without a connection.
///
/// # Cancel safety
///
/// May be dropped at any time.
pub async fn status(settings: &Settings) -> Result<Vec<NodeStatus>, Error> {
    let node = connect(settings).await?;
    let mut here = node.subscribe(node.subject("here", "*")).await?;
    let who = Frame::new(node.here(Kind::Other), Bytes::new());
    node.send_frame(&node.subject_of_all("who"), None, &who);
    let mut nodes = BTreeMap::new();
    let deadline = Instant::now() + LISTEN;
    while let Ok(Some(message)) = timeout_at(deadline, here.next()).await {
        let message = Incoming::from(message);
        let Ok(Frame { head, .. }) = Frame::<Here>::decode(&message.payload) else {
            continue;
        };
        if *message.subject == *node.subject("here", &head.node) {
            nodes.insert((head.node.clone(), head.kind == Kind::Worker), head);
        }
    }
    let mut catalogues: BTreeMap<String, Arc<[(String, String)]>> = BTreeMap::new();
    let mut all = Vec::new();
    for here in nodes.into_values().filter(|here| here.kind != Kind::Other) {
        let known = catalogues.get(&here.catalog).cloned();
        let scripts = match known {
            Some(scripts) => scripts,
            None => list_scripts(&node, &here).await,
        };
        catalogues.insert(here.catalog.clone(), Arc::clone(&scripts));
        all.push(NodeStatus {
            is_worker: here.kind == Kind::Worker,
            name: here.node,
            version: here.version,
            slots: here.slots,
            running: here.running,
            waiting: here.waiting,
            labels: here.labels,
            is_draining: here.draining,
            catalog: here.catalog,
            scripts,
        });
    }
    Ok(all)
}

/// Returns the scripts of a worker; none if it does not tell them.
async fn list_scripts(node: &Node, here: &Here) -> Arc<[(String, String)]> {
    if here.kind != Kind::Worker || here.catalog.is_empty() {
        return Arc::new([]);
    }
    let catalogue = fetch_catalogue(node, &here.node, &here.catalog).await;
    let catalogue = catalogue.unwrap_or_default();
    let scripts = catalogue.scripts.into_iter();
    scripts
        .map(|(path, script)| (path, script.version.to_string()))
        .collect()
}

/// Fetches the catalogue of a worker.
///
/// # Errors
///
/// Says why it can't be had.
pub(crate) async fn fetch_catalogue(
    node: &Node,
    worker: &str,
    digest: &str,
) -> Result<Catalogue, String> {
    let mut collection = Collection::new(digest.to_owned());
    let subject = node.subject("catalog", worker);
    loop {
        let part = node.request(subject.clone(), &collection.question()).await;
        let part = part.map_err(|error| error.to_string())?;
        if let Some(catalogue) = collection.add(part)? {
            return Ok(catalogue);
        }
    }
}

/// Lets a worker drain: it takes nothing new, and ends when it is idle.
///
/// # Errors
///
/// Fails if the worker does not answer.
///
/// # Cancel safety
///
/// After a drop the worker may or may not drain.
pub async fn drain(settings: &Settings, worker: &Name) -> Result<(), Error> {
    let node = connect(settings).await?;
    let control = Control::new(&node.identity(), Request::Drain);
    let question = Frame::new(control, Bytes::new());
    let subject = node.subject("ctl", worker.as_str());
    let answer: Result<Frame<Pong>, RequestError> = node.request(subject, &question).await;
    match answer {
        Ok(_) => Ok(()),
        Err(error) => {
            tracing::debug!(%error, "a worker did not confirm that it drains");
            Err(Error::Silent(worker.to_string()))
        }
    }
}
