//! What a server lists, all pages of it, as far as it declares to have such lists. Bounded: no server makes it endless.

use std::time::Duration;

use rmcp::model::{ErrorCode, PaginatedRequestParams, Prompt, Resource, ResourceTemplate, Tool};
use rmcp::service::{Peer, RoleClient, ServiceError};

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
    pub(crate) tools: Vec<Tool>,
    pub(crate) prompts: Vec<Prompt>,
    pub(crate) resources: Vec<Resource>,
    pub(crate) templates: Vec<ResourceTemplate>,
}

impl Inventory {
    /// Asks for it.
    ///
    /// # Errors
    ///
    /// Which list there is none of, and why, in words that fit after the name of the server.
    pub(crate) async fn of(peer: &Peer<RoleClient>) -> Result<Self, String> {
        tokio::time::timeout(PATIENCE, Self::fetch(peer))
            .await
            .unwrap_or_else(|_| Err(format!("has not listed what it has within {PATIENCE:?}")))
    }

    async fn fetch(peer: &Peer<RoleClient>) -> Result<Self, String> {
        let server = peer.peer_info().ok_or("has not introduced itself")?;
        let has = &server.capabilities;
        let mut inventory = Self::default();
        if has.tools.is_some() {
            let page = |params| async move {
                let page = peer.list_tools(Some(params)).await?;
                Ok((page.tools, page.next_cursor))
            };
            inventory.tools = all("tools", page).await?;
        }
        if has.prompts.is_some() {
            let page = |params| async move {
                let page = peer.list_prompts(Some(params)).await?;
                Ok((page.prompts, page.next_cursor))
            };
            inventory.prompts = all("prompts", page).await?;
        }
        if has.resources.is_some() {
            let page = |params| async move {
                let page = peer.list_resources(Some(params)).await?;
                Ok((page.resources, page.next_cursor))
            };
            inventory.resources = all("resources", page).await?;
            let page = |params| async move {
                let page = peer.list_resource_templates(Some(params)).await?;
                Ok((page.resource_templates, page.next_cursor))
            };
            inventory.templates = all("resource templates", page).await?;
        }
        Ok(inventory)
    }
}

/// All entries of a list, up to [`MAX_ENTRIES`]. A `page` is what is on it, and the cursor of the next.
async fn all<T, F>(what: &str, page: impl Fn(PaginatedRequestParams) -> F) -> Result<Vec<T>, String>
where
    F: Future<Output = Result<(Vec<T>, Option<String>), ServiceError>>,
{
    let mut entries = Vec::new();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let (more, next) = match page(params).await {
            Ok(page) => page,
            // Some have resources, and never heard of templates.
            Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                return Ok(entries);
            }
            Err(error) => {
                let why = words::why(&error);
                return Err(format!("could not list its {what}: {why}"));
            }
        };
        entries.extend(more);
        if next.is_none() || entries.len() >= MAX_ENTRIES {
            entries.truncate(MAX_ENTRIES);
            return Ok(entries);
        }
        cursor = next;
    }
    Err(format!("lists its {what} on more than {MAX_PAGES} pages"))
}
