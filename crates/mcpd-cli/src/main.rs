//! The `mcpd` binary.
fn main() {}
