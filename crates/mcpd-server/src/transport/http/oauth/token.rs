//! Access token: a JWT (RFC 9068). Its claims count only after its signature is verified.

use std::time::Duration;

use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, Validation, dangerous, decode, decode_header};
use mcpd_protocol::JsonObject;
use serde::Deserialize;

use super::keys::Key;

/// Tolerated difference between the clocks of an issuer and of this machine.
pub(super) const LEEWAY: Duration = Duration::from_secs(30);
/// Maximum length of a subject. "It MUST NOT exceed 255 ASCII characters in length" -- OpenID
/// Connect Core 1.0, 2
const MAX_SUBJECT: usize = 255;

/// Part of a token's header about the signature. Links to keys in it are ignored.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) algorithm: Algorithm,
    pub(super) key_id: Option<String>,
}

/// Claims of a token.
#[derive(Debug, Deserialize)]
pub(super) struct TokenClaims {
    // The JWT library would accept a list of issuers; here a list is invalid.
    iss: String,
    sub: String,
    exp: f64,
    scope: Option<ScopeList>,
    scp: Option<ScopeList>,
    client_id: Option<String>,
    azp: Option<String>,
}

/// Names separated by spaces, or an array of them.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ScopeList {
    Text(String),
    Array(Vec<String>),
}

impl ScopeList {
    fn names(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Self::Text(names) => Box::new(names.split_ascii_whitespace()),
            Self::Array(names) => Box::new(names.iter().map(String::as_str)),
        }
    }
}

impl TokenClaims {
    pub(super) fn issuer(&self) -> &str {
        &self.iss
    }

    pub(super) fn subject(&self) -> &str {
        &self.sub
    }

    /// Program that the token was issued for.
    pub(super) fn client(&self) -> Option<&str> {
        self.client_id.as_deref().or(self.azp.as_deref())
    }

    /// Time since 1970 from which the token is no longer accepted.
    pub(super) fn expires(&self) -> Duration {
        Duration::try_from_secs_f64(self.exp)
            .unwrap_or_default()
            .saturating_add(LEEWAY)
    }

    pub(super) fn has_scope(&self, name: &str) -> bool {
        self.scopes().any(|given| given == name)
    }

    /// Names of its scopes.
    pub(super) fn scopes(&self) -> impl Iterator<Item = &str> {
        let lists = self.scope.iter().chain(&self.scp);
        lists.flat_map(ScopeList::names)
    }
}

impl Header {
    /// Parses the header of `token`.
    ///
    /// # Errors
    ///
    /// The fault of the token.
    pub(super) fn of(token: &[u8]) -> Result<Self, &'static str> {
        let header = decode_header(token).map_err(|_| "the header of the token is invalid")?;
        if header.crit.is_some() {
            return Err("the token has critical extensions that this server does not support");
        }
        let is_access_token = |kind: &str| {
            ["JWT", "at+jwt", "application/at+jwt"]
                .iter()
                .any(|known| kind.eq_ignore_ascii_case(known))
        };
        if !header.typ.as_deref().is_none_or(is_access_token) {
            return Err("the token is not an access token");
        }
        Ok(Self {
            algorithm: header.alg,
            key_id: header.kid,
        })
    }
}

/// Returns the issuer that a token claims, unverified.
pub(super) fn issuer(token: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct IssuerClaim {
        iss: String,
    }
    let claims: IssuerClaim = dangerous::insecure_decode_claims(token).ok()?;
    Some(claims.iss)
}

/// Returns the claims among `names` in a token that has been verified.
pub(super) fn claims(token: &[u8], names: &[String]) -> JsonObject {
    if names.is_empty() {
        return JsonObject::new();
    }
    let all: JsonObject = dangerous::insecure_decode_claims(token).unwrap_or_default();
    let is_chosen = |(name, _): &(String, _)| names.contains(name);
    all.into_iter().filter(is_chosen).collect()
}

/// Verifies `token`, made by `issuer` for one of the `audiences`, including its time of validity.
///
/// # Errors
///
/// The fault of the token.
pub(super) fn verify(
    token: &[u8],
    key: &Key,
    issuer: &str,
    audiences: &[&str],
) -> Result<TokenClaims, &'static str> {
    let mut validation = Validation::default();
    validation.algorithms.clone_from(&key.algorithms);
    validation.leeway = LEEWAY.as_secs();
    validation.validate_nbf = true;
    validation.set_required_spec_claims(&["iss", "sub", "aud", "exp"]);
    validation.set_issuer(&[issuer]);
    validation.set_audience(audiences);
    let claims: TokenClaims = decode(token, &key.key, &validation)
        .map_err(|error| describe_error(&error))?
        .claims;
    if claims.sub.is_empty()
        || claims.sub.len() > MAX_SUBJECT
        || claims.sub.contains(char::is_control)
    {
        return Err("the subject of the token is not usable as a name");
    }
    Ok(claims)
}

/// Describes an error without content of the token, because the message may be read by third
/// parties.
fn describe_error(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::InvalidSignature => "the signature of the token is invalid",
        ErrorKind::ExpiredSignature => "the token has expired",
        ErrorKind::ImmatureSignature => "the token is not valid yet",
        ErrorKind::InvalidAudience => "the token is for another audience",
        ErrorKind::InvalidIssuer => "the token is from another issuer",
        ErrorKind::InvalidAlgorithm => "the algorithm of the token is not accepted",
        ErrorKind::MissingRequiredClaim(_) => "the token lacks a required claim",
        _ => "the token is malformed",
    }
}
