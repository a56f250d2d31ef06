//! Principals: authenticated callers.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

use mcpd_protocol::JsonObject;

use crate::policy::access::Access;
use crate::policy::quota::Quota;

/// Authenticated caller. Sessions and tasks belong to one principal; equal names mean the same
/// one.
#[derive(Debug, Clone)]
pub struct Principal {
    name: Arc<str>,
    access: Option<Arc<Access>>,
    quota: Quota,
    is_operator: bool,
    grant: Option<Arc<Grant>>,
}

/// Contents of a caller's access token that scripts may learn.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Grant {
    /// Scopes of the token.
    pub(crate) scopes: Vec<String>,
    /// Claims that the operator has chosen.
    pub(crate) claims: JsonObject,
    /// The token itself, if it may be exchanged for others.
    pub(crate) token: Option<AccessToken>,
}

/// Access token, which `Debug` does not show.
#[derive(Clone, PartialEq)]
pub(crate) struct AccessToken(String);

impl AccessToken {
    /// Creates it from a verified token.
    #[cfg(feature = "oauth")]
    pub(crate) fn new(token: &[u8]) -> Option<Self> {
        Some(Self(String::from_utf8(token.to_owned()).ok()?))
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl Principal {
    /// Creates a principal with access to everything.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            access: None,
            quota: Quota::default(),
            is_operator: false,
            grant: None,
        }
    }

    /// Creates a principal whose calls another server has admitted.
    pub(crate) fn unlimited(name: &str) -> Self {
        Self::new(name).with_quota(Quota {
            concurrency: NonZeroUsize::MAX,
            ..Quota::default()
        })
    }

    /// Restricts the principal to `access`.
    #[must_use]
    pub fn with_access(self, access: Access) -> Self {
        self.with_shared_access(Arc::new(access))
    }

    /// Restricts it to an access that others share, so that cached views are shared as well.
    pub(crate) fn with_shared_access(mut self, access: Arc<Access>) -> Self {
        self.access = Some(access);
        self
    }

    /// Renames the principal.
    #[cfg(feature = "oauth")]
    pub(crate) fn with_name(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// Sets what its access token grants.
    #[cfg(feature = "oauth")]
    pub(crate) fn with_grant(mut self, grant: Grant) -> Self {
        self.grant = Some(Arc::new(grant));
        self
    }

    /// Sets the quota.
    #[must_use]
    pub fn with_quota(mut self, quota: Quota) -> Self {
        self.quota = quota;
        self
    }

    /// Makes the principal an operator of the server: a console shows everything to it.
    #[must_use]
    pub fn operator(mut self) -> Self {
        self.is_operator = true;
        self
    }

    /// Local user that started the server and is connected by a private channel, such as a pipe.
    #[must_use]
    pub fn local() -> Self {
        Self::new("local")
    }

    /// Unauthenticated caller, where authentication is off.
    #[must_use]
    pub fn anonymous() -> Self {
        Self::new("anonymous")
    }

    /// Name in logs and records.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the principal is an operator of the server.
    #[must_use]
    pub fn is_operator(&self) -> bool {
        self.is_operator
    }

    /// Name as a shared key of tables.
    pub(crate) fn shared_name(&self) -> &Arc<str> {
        &self.name
    }

    /// Quota.
    #[must_use]
    pub fn quota(&self) -> &Quota {
        &self.quota
    }

    /// Contents of its access token, if it has one.
    pub(crate) fn grant(&self) -> Option<&Grant> {
        self.grant.as_deref()
    }

    /// Access token that the principal presented, if it may be exchanged.
    #[cfg(feature = "oauth")]
    pub(crate) fn access_token(&self) -> Option<&str> {
        Some(&self.grant()?.token.as_ref()?.0)
    }

    /// Access, unless it is unrestricted.
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
