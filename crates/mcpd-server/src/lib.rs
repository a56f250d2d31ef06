//! mcpd-server.
