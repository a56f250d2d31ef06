//! mcpd-exec.
