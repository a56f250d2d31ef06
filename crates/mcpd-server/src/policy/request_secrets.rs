//! Secrets that a request brings for the scripts it calls: a header, or a credential that is made
//! from the caller's own. The caller's token for this server is never one of them.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::Secret;
use crate::policy::principal::Principal;

/// Maximum size of a header that scripts get, in bytes: a longer one is left out.
#[cfg(feature = "http")]
const MAX_HEADER: usize = 16 << 10;

/// Origin of the value of a variable that differs from request to request.
#[derive(Debug, Clone)]
pub(crate) enum RequestSecret {
    /// Header of the request over HTTP, by its name in lower case.
    Header(String),
    /// Credential for the caller.
    Credential(Arc<dyn CredentialSource>),
}

impl PartialEq for RequestSecret {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Header(one), Self::Header(other)) => one == other,
            (Self::Credential(one), Self::Credential(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

/// Source of credentials for callers, each for other services than this one.
pub trait CredentialSource: fmt::Debug + Send + Sync {
    /// Returns the credential of `caller`.
    ///
    /// # Errors
    ///
    /// The reason why there is none, as a sentence fragment without secrets, for the caller and
    /// the log.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped when the call is cancelled.
    fn credential<'a>(&'a self, caller: &'a Principal) -> BoxFuture<'a, Result<String, String>>;
}

/// Headers of one request that scripts may get, by their names in lower case.
#[derive(Debug, Clone, Default)]
pub(crate) struct SecretHeaders(Option<Arc<[(String, Secret)]>>);

impl SecretHeaders {
    /// Collects the headers called `names`; `value` looks one up.
    #[cfg(feature = "http")]
    pub(crate) fn collect(names: &[String], value: impl Fn(&str) -> Option<String>) -> Self {
        if names.is_empty() {
            return Self::default();
        }
        let given = names.iter();
        let given = given.filter_map(|name| {
            let value = value(name).filter(|value| value.len() <= MAX_HEADER)?;
            Some((name.clone(), Secret(value)))
        });
        Self(Some(given.collect()))
    }

    fn get(&self, name: &str) -> Option<&Secret> {
        let mut headers = self.0.iter().flat_map(|headers| headers.iter());
        headers
            .find(|(known, _)| known == name)
            .map(|(_, value)| value)
    }
}

/// Returns the variables of a request whose values it brings. A missing header leaves its variable
/// unset.
///
/// # Errors
///
/// The variable without a value, and the reason for that.
pub(super) async fn resolve(
    variables: &[(String, RequestSecret)],
    caller: &Principal,
    headers: &SecretHeaders,
) -> Result<Vec<(String, Secret)>, String> {
    let mut resolved = Vec::with_capacity(variables.len());
    for (name, source) in variables {
        let value = match source {
            RequestSecret::Header(header) => headers.get(header).cloned(),
            RequestSecret::Credential(source) => {
                let credential = source.credential(caller).await;
                let credential =
                    credential.map_err(|why| format!("`{name}` could not be set: {why}"))?;
                Some(Secret(credential))
            }
        };
        resolved.extend(value.map(|value| (name.clone(), value)));
    }
    Ok(resolved)
}
