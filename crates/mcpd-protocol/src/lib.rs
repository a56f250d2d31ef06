//! mcpd-protocol.
