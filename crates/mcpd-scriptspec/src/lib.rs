//! mcpd-scriptspec.
