//! Who calls: whoever a transport has found a client to be.

use std::fmt;
use std::sync::Arc;

/// Who calls. What is kept for somebody, such as a session or a task, is theirs alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal {
    name: Arc<str>,
}

impl Principal {
    /// The one of this name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.into() }
    }

    /// Whoever has started the server and speaks to it over a channel of their own, such as a pipe.
    #[must_use]
    pub fn local() -> Self {
        Self::new("local")
    }

    /// Anybody, where nobody is asked who they are.
    #[must_use]
    pub fn anonymous() -> Self {
        Self::new("anonymous")
    }

    /// What logs and records call them.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
