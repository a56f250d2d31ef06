//! Tokens that an authorization server has granted, and what it takes to refresh them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::header::HeaderValue;
use serde::{Deserialize, Serialize};

use crate::target::bearer;

/// Grant, as it is stored. It is never shown: most of it is secret.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Grant {
    /// URL of the MCP server.
    pub(super) server: String,
    pub(super) token_endpoint: String,
    pub(super) client_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client_secret: Option<String>,
    pub(super) resource: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) scope: Option<String>,
    pub(super) access_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refresh_token: Option<String>,
    /// Seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<u64>,
}

/// Answer of a token endpoint.
#[derive(Deserialize)]
pub(super) struct Tokens {
    access_token: String,
    token_type: String,
    expires_in: Option<u64>,
    refresh_token: Option<String>,
    scope: Option<String>,
}

impl Tokens {
    /// Returns whether they can be used as this client uses them.
    pub(super) fn is_usable(&self) -> bool {
        self.token_type.eq_ignore_ascii_case("bearer") && bearer(&self.access_token).is_some()
    }
}

impl Grant {
    /// Returns this grant with other tokens.
    pub(super) fn renewed(&self, tokens: Tokens) -> Self {
        let mut grant = self.clone();
        grant.access_token = tokens.access_token;
        // Without a new refresh token, or scope, the old one stays valid.
        grant.refresh_token = tokens.refresh_token.or(grant.refresh_token);
        grant.scope = tokens.scope.or(grant.scope);
        grant.expires_at = tokens
            .expires_in
            .map(|seconds| now().saturating_add(seconds));
        grant
    }

    /// Returns the value of `Authorization`.
    pub(super) fn header(&self) -> Option<HeaderValue> {
        bearer(&self.access_token)
    }

    pub(super) fn expires_within(&self, margin: Duration) -> bool {
        let deadline = now().saturating_add(margin.as_secs());
        self.expires_at.is_some_and(|expiry| expiry <= deadline)
    }

    /// Returns the fields of the request for new tokens, if there is a refresh token.
    pub(super) fn refresh_fields(&self) -> Option<Vec<(&str, &str)>> {
        let refresh_token = self.refresh_token.as_deref()?;
        let mut fields = vec![
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh_token),
            ("client_id", &self.client_id),
            ("resource", &self.resource),
        ];
        fields.extend(
            self.client_secret
                .as_deref()
                .map(|secret| ("client_secret", secret)),
        );
        Some(fields)
    }
}

impl std::fmt::Debug for Grant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grant").finish_non_exhaustive()
    }
}

fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}
