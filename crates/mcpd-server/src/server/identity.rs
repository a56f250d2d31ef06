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
    pub(crate) fn implementation(&self) -> &Implementation {
        &self.implementation
    }

    /// Instructions for models on how to use the server.
    pub(crate) fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// Stamp on results of the stateless wire, which name the server.
    pub(super) fn stateless(&self) -> &Arc<Stamp> {
        &self.stateless
    }
}

/// Identity that a server was built with: the default for settings without one.
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

    /// Returns the identity with the given settings.
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
            // Lists are pushed when they change, and state may change at any time: no result can
            // be cached.
            stateless: Arc::new(Stamp::Stateless {
                server_info: Arc::clone(&implementation),
                cache: CacheHint::NONE,
            }),
            implementation,
            instructions: (!instructions.is_empty()).then(|| instructions.join("\n\n")),
        }
    }
}
