//! Identity of a server: what clients are told of it, which a reload can replace as a whole.

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
    pub(crate) fn implementation(&self) -> &Implementation {
        &self.implementation
    }

    /// Hints for models on how to use the server.
    pub(crate) fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// The mark of results of the stateless wire, which name the server.
    pub(super) fn stateless(&self) -> &Arc<Stamp> {
        &self.stateless
    }
}

/// Identity that a server was built with, for settings that say less.
#[derive(Debug)]
pub(super) struct BuiltWith {
    implementation: Implementation,
    instructions: Vec<String>,
}

impl BuiltWith {
    pub(super) fn new(implementation: Implementation, instructions: Vec<String>) -> Self {
        Self {
            implementation,
            instructions,
        }
    }

    /// Returns the identity with what settings say of it.
    pub(super) fn with(
        &self,
        implementation: Option<Implementation>,
        instructions: Option<String>,
    ) -> Identity {
        let implementation = implementation.unwrap_or_else(|| self.implementation.clone());
        let implementation = Arc::new(implementation);
        let instructions: Vec<_> = instructions
            .iter()
            .chain(&self.instructions)
            .map(String::as_str)
            .collect();
        Identity {
            // Lists are pushed when they change, and state may change at any time: nothing to cache.
            stateless: Arc::new(Stamp::Stateless {
                server_info: Arc::clone(&implementation),
                cache: CacheHint::NONE,
            }),
            implementation,
            instructions: (!instructions.is_empty()).then(|| instructions.join("\n\n")),
        }
    }
}
