//! What a server lists, all pages of it, as far as it declares to have such lists. Bounded: no server makes it endless.
//! Entries are kept as they come: one that makes no sense takes no other with it, and no list that fails another list.

use std::time::Duration;

use rmcp::model::{ClientRequest, CustomRequest, ErrorCode};
use rmcp::service::{Peer, RoleClient, ServiceError};
use serde_json::{Value, json};

use crate::words;

/// How long listing everything may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many entries of one list are fetched: one more than is ever served, so that it is told.
const MAX_ENTRIES: usize = mcpd_server::source::MAX_ENTRIES + 1;
/// How many pages of one list are fetched.
const MAX_PAGES: usize = 100;

/// Everything that a server lists.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    pub(crate) tools: Vec<Value>,
    pub(crate) prompts: Vec<Value>,
    pub(crate) resources: Vec<Value>,
    pub(crate) templates: Vec<Value>,
    /// Which lists are as they were before, and why, in words that fit after the name of the server.
    pub(crate) faults: Vec<String>,
}

/// Why there is no list.
enum Fault {
    /// The server has none at the moment.
    List(String),
    /// It can't be asked.
    Connection(String),
}

impl Inventory {
    /// Asks for it anew. A list that fails stays as it was.
    ///
    /// # Errors
    ///
    /// Why the connection is of no use any more, in words that fit after the name of the server.
    pub(crate) async fn refresh(&mut self, peer: &Peer<RoleClient>) -> Result<(), String> {
        tokio::time::timeout(PATIENCE, self.fetch(peer))
            .await
            .unwrap_or_else(|_| Err(format!("has not listed what it has within {PATIENCE:?}")))
    }

    async fn fetch(&mut self, peer: &Peer<RoleClient>) -> Result<(), String> {
        let server = peer.peer_info().ok_or("has not introduced itself")?;
        let has = &server.capabilities;
        let (tools, prompts) = (has.tools.is_some(), has.prompts.is_some());
        let resources = has.resources.is_some();
        self.faults.clear();
        for (entries, is_there, method, member, plural) in [
            (&mut self.tools, tools, "tools/list", "tools", "tools"),
            (
                &mut self.prompts,
                prompts,
                "prompts/list",
                "prompts",
                "prompts",
            ),
            (
                &mut self.resources,
                resources,
                "resources/list",
                "resources",
                "resources",
            ),
            (
                &mut self.templates,
                resources,
                "resources/templates/list",
                "resourceTemplates",
                "resource templates",
            ),
        ] {
            let listed = match is_there {
                true => all(peer, method, member).await,
                false => Ok(Vec::new()),
            };
            let told = |why| format!("could not list its {plural}: {why}");
            match listed {
                Ok(listed) => *entries = listed,
                Err(Fault::List(why)) => self.faults.push(told(why)),
                Err(Fault::Connection(why)) => return Err(told(why)),
            }
        }
        Ok(())
    }
}

/// All entries of a list, up to [`MAX_ENTRIES`].
async fn all(peer: &Peer<RoleClient>, method: &str, member: &str) -> Result<Vec<Value>, Fault> {
    let mut entries = Vec::new();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let params = cursor.map(|cursor: String| json!({ "cursor": cursor }));
        // As rmcp knows it, a page with an entry that makes no sense would be none.
        let request = ClientRequest::CustomRequest(CustomRequest::new(method, params));
        let page = match peer.send_request(request).await {
            Ok(page) => page,
            // Some have resources, and never heard of templates.
            Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                return Ok(entries);
            }
            Err(error @ (ServiceError::TransportSend(_) | ServiceError::TransportClosed)) => {
                return Err(Fault::Connection(words::why(&error)));
            }
            Err(error) => return Err(Fault::List(words::why(&error))),
        };
        let mut page: Value = words::translated(&page).map_err(Fault::List)?;
        let Some(Value::Array(more)) = page.get_mut(member).map(Value::take) else {
            return Err(Fault::List(format!("its answer has no `{member}`")));
        };
        entries.extend(more);
        let next = page["nextCursor"].as_str();
        if next.is_none() || entries.len() >= MAX_ENTRIES {
            entries.truncate(MAX_ENTRIES);
            return Ok(entries);
        }
        cursor = next.map(ToOwned::to_owned);
    }
    let pages = format!("there are more than {MAX_PAGES} pages");
    Err(Fault::List(pages))
}
