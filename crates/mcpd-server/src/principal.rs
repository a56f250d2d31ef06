//! Who calls: whoever a transport has found a client to be.

use std::fmt;
use std::sync::Arc;

use crate::access::Access;
use crate::quota::Quota;

/// Who calls. What is kept for somebody, such as a session or a task, is theirs alone: two of one name are one.
#[derive(Debug, Clone)]
pub struct Principal {
    name: Arc<str>,
    access: Option<Arc<Access>>,
    quota: Quota,
}

impl Principal {
    /// The one of this name, who may use everything.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            access: None,
            quota: Quota::default(),
        }
    }

    /// The same with this access and no more.
    #[must_use]
    pub fn with(self, access: Access) -> Self {
        self.with_shared(Arc::new(access))
    }

    /// The same with an access that others have, too: what is worked out for one holds for all of them.
    pub(crate) fn with_shared(mut self, access: Arc<Access>) -> Self {
        self.access = Some(access);
        self
    }

    /// The same under another name.
    #[cfg(feature = "oauth")]
    pub(crate) fn called(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// The same with this quota.
    #[must_use]
    pub fn limited(mut self, quota: Quota) -> Self {
        self.quota = quota;
        self
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

    /// The same for tables.
    pub(crate) fn shared_name(&self) -> &Arc<str> {
        &self.name
    }

    /// How much they may ask for.
    pub(crate) fn quota(&self) -> &Quota {
        &self.quota
    }

    /// What they may use, if not everything.
    pub(crate) fn access(&self) -> Option<&Arc<Access>> {
        self.access.as_ref()
    }
}

impl PartialEq for Principal {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Principal {}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
