//! Identity that a server was built with: the default for settings without one.

use mcpd_protocol::Implementation;

use crate::message::identity::Identity;

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
        let instructions: Vec<_> = instructions
            .iter()
            .chain(&self.instructions)
            .map(String::as_str)
            .collect();
        let instructions = (!instructions.is_empty()).then(|| instructions.join("\n\n"));
        Identity::new(implementation, instructions)
    }
}
