//! OAuth 2.1 resource server: validates access tokens of configured issuers, and maps them to
//! principals and permissions. It keeps only the hash of a token, unless tokens are exchanged for
//! others at their issuer, and never passes a token on to anything else.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use super::auth::Unidentified;
use crate::policy::access::{Access, CallPattern};
use crate::policy::principal::{AccessToken, Grant, Principal};
use crate::support::sync::lock;

mod address;
mod challenge;
mod crypto;
mod exchange;
mod fetch;
mod issuer;
mod keys;
mod token;
mod verified;

pub use exchange::TokenExchange;
pub use issuer::Issuer;
use token::TokenClaims;
use verified::VerifiedTokens;

/// Maximum length of a token, in bytes.
const MAX_TOKEN_BYTES: usize = 8 << 10;
/// Maximum number of cached combinations of scopes.
const MAX_CACHED_ACCESSES: usize = 64;

/// Error in the configuration of OAuth.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OAuthError {
    /// Unusable URL, with the reason.
    Url(String, &'static str),
    /// Unusable set of keys, with the reason.
    Keys(String),
    /// Invalid name of a scope: a name consists of visible characters, without `"` and `\`.
    Scope(String),
    /// Failure to create the HTTP client.
    Client(String),
}

impl fmt::Display for OAuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url, why) => write!(f, "use the URL `{url}`: {why}"),
            Self::Keys(why) => write!(f, "use the keys: {why}"),
            Self::Scope(name) => write!(f, "use the scope `{name}`: invalid name of a scope"),
            Self::Client(why) => write!(f, "create an HTTP client: {why}"),
        }
    }
}

impl std::error::Error for OAuthError {}

/// OAuth scope with the calls that it allows.
#[derive(Debug, Clone)]
pub struct Scope {
    name: String,
    calls: CallPattern,
    in_step_up: bool,
}

impl Scope {
    /// Creates the scope `name`, which allows the tools of these calls; patterns of arguments are
    /// ignored.
    ///
    /// # Errors
    ///
    /// The name is not valid for a scope.
    pub fn new(name: &str, calls: CallPattern) -> Result<Self, OAuthError> {
        // "scope-token = 1*( %x21 / %x23-5B / %x5D-7E )" -- RFC 6749, 3.3
        let is_allowed = |byte| matches!(byte, b'!' | b'#'..=b'[' | b']'..=b'~');
        if name.is_empty() || !name.bytes().all(is_allowed) {
            return Err(OAuthError::Scope(name.to_owned()));
        }
        Ok(Self {
            name: name.to_owned(),
            calls,
            in_step_up: false,
        })
    }

    /// Makes it a step-up scope, announced to clients only when they need it.
    #[must_use]
    pub fn in_step_up(mut self) -> Self {
        self.in_step_up = true;
        self
    }
}

/// OAuth 2.1 resource server: accepts access tokens of some issuers, each a JWT that names this
/// server as its audience.
///
/// The bearer of a token becomes the principal `ISSUER#SUBJECT`.
///
/// ```no_run
/// use mcpd_server::policy::CallPattern;
/// use mcpd_server::transport::http::{Auth, Issuer, OAuth, Options, Scope};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let oauth = OAuth::new([Issuer::new("https://auth.example.com")?])
///     .resource("https://tools.example.com/mcp")?
///     .scope(Scope::new("tools:read", CallPattern::default().tool("reports/*")?)?)
///     .scope(Scope::new("tools:deploy", CallPattern::default().tool("deploy")?)?.in_step_up());
/// let options = Options::new(Auth::tokens([]).oauth(oauth));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct OAuth {
    resource: Option<String>,
    audiences: Vec<String>,
    claims: Vec<String>,
    keeps_tokens: bool,
    issuers: Vec<Issuer>,
    scopes: Vec<Scope>,
    clients: BTreeMap<String, Principal>,
    others: Principal,
    accesses: Mutex<BTreeMap<AccessKey, Arc<Access>>>,
    verified: VerifiedTokens,
}

/// Name of a separately configured principal, if it is one, and indices of the granted scopes.
type AccessKey = (Option<String>, Vec<usize>);

impl OAuth {
    /// Creates a resource server that accepts tokens of these issuers.
    #[must_use]
    pub fn new(issuers: impl IntoIterator<Item = Issuer>) -> Self {
        Self {
            resource: None,
            audiences: Vec::new(),
            claims: Vec::new(),
            keeps_tokens: false,
            issuers: issuers.into_iter().collect(),
            scopes: Vec::new(),
            clients: BTreeMap::new(),
            others: Principal::new(""),
            accesses: Mutex::default(),
            verified: VerifiedTokens::default(),
        }
    }

    /// Sets the public URL of `/mcp`, which tokens must name as their audience. The default is
    /// the listening address.
    ///
    /// # Errors
    ///
    /// `url` is not of `http` or `https`, or has a query or a fragment.
    pub fn resource(mut self, url: &str) -> Result<Self, OAuthError> {
        address::parse_resource_url(url)?;
        self.resource = Some(url.to_owned());
        Ok(self)
    }

    /// Accepts tokens for this audience as well, for issuers that name audiences differently.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// Lets scripts that want the context of their caller learn this claim of its token.
    #[must_use]
    pub fn claim(mut self, name: impl Into<String>) -> Self {
        self.claims.push(name.into());
        self
    }

    /// Keeps accepted tokens in memory while they are in use, so that a [`TokenExchange`] can
    /// exchange them. By default their hashes alone are kept.
    #[must_use]
    pub fn keep_tokens(mut self) -> Self {
        self.keeps_tokens = true;
        self
    }

    /// Grants the calls of `scope` to tokens that contain it. Without any scope, every valid
    /// token may use everything.
    #[must_use]
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scopes.push(scope);
        self
    }

    /// Configures the client of this name: its permissions apply, and scopes can only narrow
    /// them.
    #[must_use]
    pub fn client(mut self, client: Principal) -> Self {
        self.clients.insert(client.name().to_owned(), client);
        self
    }

    /// Sets the template of every other principal; only the name differs.
    #[must_use]
    pub fn others(mut self, like: Principal) -> Self {
        self.others = like;
        self
    }

    /// Takes over the cached keys of `old`: an issuer may be down.
    pub(super) fn inherit_keys(&self, old: &Self) {
        for issuer in &self.issuers {
            old.issuers.iter().for_each(|old| issuer.inherit_keys(old));
        }
    }

    /// Validates a token for this server, which is at `url`, and returns its principal.
    pub(super) async fn principal(
        &self,
        token: &[u8],
        url: &str,
    ) -> Result<Principal, Unidentified> {
        if let Some(principal) = self.verified.find(token) {
            return Ok(principal);
        }
        let claims = self.verify_claims(token, url).await?;
        let principal = self.principal_of(&claims).with_grant(Grant {
            scopes: claims.scopes().map(str::to_owned).collect(),
            claims: token::claims(token, &self.claims),
            token: self.keeps_tokens.then(|| AccessToken::new(token)).flatten(),
        });
        tracing::debug!(%principal, client = claims.client(), "token accepted");
        self.verified
            .insert(token, principal.clone(), claims.expires());
        Ok(principal)
    }

    async fn verify_claims(&self, token: &[u8], url: &str) -> Result<TokenClaims, Unidentified> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(Unidentified::InvalidToken("the token is too long"));
        }
        // The claims of an unverified token serve only to find the issuer that may have made it.
        let issuer = token::issuer(token).ok_or(Unidentified::UnknownToken)?;
        let known = self.issuers.iter().find(|known| known.url() == issuer);
        let issuer = known.ok_or(Unidentified::UnknownToken)?;
        let header = token::Header::of(token).map_err(Unidentified::InvalidToken)?;
        let key = issuer.key(&header).await?;
        let resource = self.resource.as_deref().unwrap_or(url);
        let audiences = self.audiences.iter().map(String::as_str);
        let audiences: Vec<_> = audiences.chain([resource]).collect();
        token::verify(token, &key, issuer.url(), &audiences).map_err(Unidentified::InvalidToken)
    }

    fn principal_of(&self, claims: &TokenClaims) -> Principal {
        // An issuer has no fragment, so no two pairs result in the same name.
        let name = format!("{}#{}", claims.issuer(), claims.subject());
        let (principal, own) = match self.clients.get(&name) {
            Some(client) => (client.clone(), Some(name)),
            None => (self.others.clone().with_name(&name), None),
        };
        if self.scopes.is_empty() {
            return principal;
        }
        let scopes = self.scopes.iter().enumerate();
        let granted = scopes.filter(|(_, scope)| claims.has_scope(&scope.name));
        let granted: Vec<usize> = granted.map(|(place, _)| place).collect();
        let access = self.shared_access(principal.access(), (own, granted));
        principal.with_shared_access(access)
    }

    /// Returns the access for a set of scopes, shared by all principals with the same set.
    fn shared_access(&self, access: Option<&Arc<Access>>, key: AccessKey) -> Arc<Access> {
        let mut accesses = lock(&self.accesses);
        if let Some(known) = accesses.get(&key) {
            return Arc::clone(known);
        }
        let access = access
            .map(|access| Access::clone(access))
            .unwrap_or_default();
        let access = Arc::new(self.with_scopes(access, &key.1));
        if accesses.len() >= MAX_CACHED_ACCESSES {
            accesses.clear();
        }
        accesses.insert(key, Arc::clone(&access));
        access
    }

    fn with_scopes(&self, access: Access, granted: &[usize]) -> Access {
        let (mut allowed, mut missing) = (Vec::new(), Vec::new());
        for (place, scope) in self.scopes.iter().enumerate() {
            if granted.contains(&place) {
                allowed.push(scope.calls.clone());
            } else {
                missing.push((scope.name.clone(), scope.calls.clone()));
            }
        }
        access.with_scopes(allowed, missing)
    }
}
