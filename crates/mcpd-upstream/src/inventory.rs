//! Inventory of a server: its lists, all pages, as far as it declares to have them. Bounded
//! against endless lists. Entries are kept raw, so that an invalid one does not affect others, and
//! a list that fails does not affect other lists. A list that never ends is served up to the
//! limit.

use std::time::Duration;

use mcpd_scriptspec::excerpt;
use rmcp::model::{ClientRequest, CustomRequest, ErrorCode};
use rmcp::service::{Peer, RoleClient, ServiceError};
use serde_json::{Value, json};

use crate::conversion;
use crate::remarks::Remarks;

/// Time limit for fetching all lists.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of entries fetched of one list: one more than is ever served, so that the excess
/// is reported.
const MAX_ENTRIES: usize = mcpd_server::source::MAX_ENTRIES + 1;
/// Maximum length of a cursor in a fault, in characters.
const MAX_CURSOR: usize = 40;
/// Maximum number of pages fetched of one list.
const MAX_PAGES: usize = 100;

/// Lists of a server.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    pub(crate) tools: Vec<Value>,
    pub(crate) prompts: Vec<Value>,
    pub(crate) resources: Vec<Value>,
    pub(crate) templates: Vec<Value>,
    /// Reasons for lists that could not be renewed, as fragments that follow the name of the
    /// server.
    pub(crate) faults: Vec<String>,
    /// Oddities of lists that are served all the same, likewise. Another try would not help.
    pub(crate) oddities: Vec<String>,
}

/// Reason why there is no list.
enum ListFault {
    /// The server has no such list at the moment.
    List(String),
    /// The connection failed.
    Connection(String),
}

impl Inventory {
    /// Fetches all lists again. A list that fails stays as it was.
    ///
    /// # Errors
    ///
    /// Returns the reason why the connection is unusable, as a fragment that follows the name of
    /// the server.
    pub(crate) async fn refresh(
        &mut self,
        peer: &Peer<RoleClient>,
        remarks: &Remarks,
    ) -> Result<(), String> {
        tokio::time::timeout(LIST_TIMEOUT, self.fetch(peer, remarks))
            .await
            .unwrap_or_else(|_| Err(format!("did not list its tools within {LIST_TIMEOUT:?}")))
    }

    async fn fetch(&mut self, peer: &Peer<RoleClient>, remarks: &Remarks) -> Result<(), String> {
        let server = peer.peer_info().ok_or("has not initialized")?;
        let has = &server.capabilities;
        let (tools, prompts) = (has.tools.is_some(), has.prompts.is_some());
        let resources = has.resources.is_some();
        self.faults.clear();
        self.oddities.clear();
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
                true => fetch_list(peer, method, member, remarks).await,
                false => Ok(List::default()),
            };
            let told = |why| format!("failed to list its {plural}: {why}");
            match listed {
                Ok(list) => {
                    let oddity = list.oddity.map(|what| format!("lists its {plural} {what}"));
                    self.oddities.extend(oddity);
                    *entries = list.entries;
                }
                Err(ListFault::List(why)) => self.faults.push(told(why)),
                Err(ListFault::Connection(why)) => return Err(told(why)),
            }
        }
        Ok(())
    }
}

/// List as far as it was fetched.
#[derive(Default)]
struct List {
    entries: Vec<Value>,
    /// Oddity of the list, as a fragment that follows "lists its tools".
    oddity: Option<String>,
}

impl List {
    /// Removes repeated entries: a server that ignores cursors returns the first page again.
    fn remove_repeated(&mut self) {
        let mut entries = Vec::with_capacity(self.entries.len());
        for entry in self.entries.drain(..) {
            if !entries.contains(&entry) {
                entries.push(entry);
            }
        }
        self.entries = entries;
    }
}

/// Fetches all pages of a list, up to [`MAX_ENTRIES`].
async fn fetch_list(
    peer: &Peer<RoleClient>,
    method: &str,
    member: &str,
    remarks: &Remarks,
) -> Result<List, ListFault> {
    let mut list = List::default();
    let mut cursors: Vec<Value> = Vec::new();
    while cursors.len() < MAX_PAGES {
        let params = cursors.last().map(|cursor| json!({ "cursor": cursor }));
        // Requested as raw JSON: rmcp would reject the whole page for one invalid entry.
        let request = ClientRequest::CustomRequest(CustomRequest::new(method, params));
        let page = match peer.send_request(request).await {
            Ok(page) => page,
            // Some servers have resources but not the method for templates.
            Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                return Ok(list);
            }
            Err(error @ (ServiceError::TransportSend(_) | ServiceError::TransportClosed)) => {
                return Err(ListFault::Connection(conversion::reason(&error)));
            }
            Err(error) => return Err(ListFault::List(conversion::reason(&error))),
        };
        let mut page: Value = conversion::convert(&page).map_err(ListFault::List)?;
        let entries = page.get_mut(member).map(Value::take);
        list.entries.extend(read_entries(entries, member, remarks)?);
        let next = page["nextCursor"].take();
        if next == "" {
            remarks.add("sends an empty cursor; taken for the end of the list");
        }
        if is_end(&next) || list.entries.len() >= MAX_ENTRIES {
            list.entries.truncate(MAX_ENTRIES);
            return Ok(list);
        }
        if cursors.contains(&next) {
            let cursor = excerpt(&next.to_string(), MAX_CURSOR);
            list.oddity = Some(format!("without an end: the cursor {cursor} repeats"));
            list.remove_repeated();
            return Ok(list);
        }
        cursors.push(next);
    }
    list.oddity = Some(format!(
        "on more than {MAX_PAGES} pages; the rest is not served"
    ));
    Ok(list)
}

/// Returns the entries of a page, also in the form of an object, which stands for an array in
/// languages without arrays.
fn read_entries(
    entries: Option<Value>,
    member: &str,
    remarks: &Remarks,
) -> Result<Vec<Value>, ListFault> {
    let entries = match entries {
        Some(Value::Array(entries)) => return Ok(entries),
        Some(Value::Null) => Vec::new(),
        Some(Value::Object(entries)) if entries.values().all(Value::is_object) => {
            entries.into_iter().map(|(_, entry)| entry).collect()
        }
        _ => return Err(ListFault::List(format!("its response has no `{member}`"))),
    };
    remarks.add(format!("sends `{member}` that is not an array"));
    Ok(entries)
}

/// Returns whether a cursor means that there is no further page. An empty one does, too.
fn is_end(cursor: &Value) -> bool {
    match cursor {
        Value::String(cursor) => cursor.is_empty(),
        cursor => !cursor.is_number(),
    }
}
