//! Identity of a server towards clients, which a reload can replace as a whole.

use std::sync::Arc;

use mcpd_protocol::{CacheHint, Implementation, Stamp};

/// Identity of a server as clients read it.
#[derive(Debug)]
pub(crate) struct Identity {
    implementation: Arc<Implementation>,
    instructions: Option<String>,
    stateless: Arc<Stamp>,
}

impl Identity {
    pub(crate) fn new(implementation: Implementation, instructions: Option<String>) -> Self {
        let implementation = Arc::new(implementation);
        Self {
            // Lists are pushed when they change, and state may change at any time: no result can
            // be cached.
            stateless: Arc::new(Stamp::Stateless {
                server_info: Arc::clone(&implementation),
                cache: CacheHint::NONE,
            }),
            implementation,
            instructions,
        }
    }

    pub(crate) fn implementation(&self) -> &Implementation {
        &self.implementation
    }

    /// Instructions for models on how to use the server.
    pub(crate) fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// Stamp on results of the stateless wire, which name the server.
    pub(crate) fn stateless(&self) -> &Arc<Stamp> {
        &self.stateless
    }
}
