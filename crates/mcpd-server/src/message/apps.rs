//! Names of MCP Apps: the extension by which clients show pages of tools, and the type of a page.

/// Extension by which clients show apps.
pub(crate) const APPS_EXTENSION: &str = "io.modelcontextprotocol/ui";

/// Media type of an app. "MUST be `text/html;profile=mcp-app`" -- MCP Apps, 2026-01-26
pub(crate) const APP_TYPE: &str = "text/html;profile=mcp-app";
