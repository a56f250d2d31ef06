//! Authentication: tokens and certificates with their principals, and a rate limit on wrong
//! tokens per address.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use hyper::header::HeaderValue;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::oauth::OAuth;
use crate::policy::principal::Principal;
use crate::support::random_id;
use crate::support::sync::lock;

/// SHA-256 hash of a token or a certificate. Only the hash is kept, because it is useless to a
/// reader of this memory.
pub(super) type Hash = [u8; 32];

/// Bearer token, stored as its SHA-256 hash, with its principal.
#[derive(Clone)]
pub struct Token {
    hash: Hash,
    owner: Principal,
}

impl Token {
    /// Creates the token `secret`.
    #[must_use]
    pub fn new(secret: &str, owner: Principal) -> Self {
        let hash = Sha256::digest(secret).into();
        Self { hash, owner }
    }

    /// Creates the token with this SHA-256 hash, in hexadecimal; `None` if that is malformed. The
    /// token must be long and random: one that a person chooses can be guessed.
    #[must_use]
    pub fn from_hash(hex: &str, owner: Principal) -> Option<Self> {
        let hash = unhex(hex)?;
        Some(Self { hash, owner })
    }

    /// Returns the hash of `secret`, as [`from_hash`](Self::from_hash) takes it.
    #[must_use]
    pub fn hash(secret: &str) -> String {
        random_id::hex(&Sha256::digest(secret))
    }
}

/// Omits the hash as well: a `Debug` text ends up in logs.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("owner", &self.owner.name())
            .finish_non_exhaustive()
    }
}

/// Client certificate, known by its SHA-256 hash, with its principal.
///
/// A client that has presented it in a TLS handshake has its key, and the certificate is issued
/// by an authority accepted there.
#[derive(Debug, Clone)]
pub struct Certificate {
    hash: Hash,
    owner: Principal,
}

impl Certificate {
    /// Creates the certificate with this SHA-256 hash, in hexadecimal and optionally with colons
    /// between the bytes; `None` if that is malformed. The hash is the fingerprint: of the whole
    /// certificate in DER.
    #[must_use]
    pub fn from_hash(hex: &str, owner: Principal) -> Option<Self> {
        let hash = unhex(&hex.replace(':', ""))?;
        Some(Self { hash, owner })
    }
}

fn unhex(hex: &str) -> Option<Hash> {
    let mut hash = Hash::default();
    if hex.len() != 2 * hash.len() || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, place) in hash.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&hex[place..place + 2], 16).ok()?;
    }
    Some(hash)
}

/// Credentials that clients need. All clones share them, so that they can be replaced while in
/// use.
#[derive(Debug, Clone)]
pub struct Auth {
    accepted: Arc<ArcSwap<AcceptedCredentials>>,
}

#[derive(Debug, Clone)]
enum AcceptedCredentials {
    /// Every client is this principal.
    NotRequired(Principal),
    /// Clients with one of these credentials.
    Listed(KnownCredentials),
}

#[derive(Debug, Clone, Default)]
struct KnownCredentials {
    tokens: Vec<Token>,
    certificates: Vec<Certificate>,
    /// Access tokens of issuers.
    oauth: Option<Arc<OAuth>>,
}

/// Credentials of a request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Credentials<'a> {
    /// None, or none of use.
    Nothing,
    Token(&'a [u8]),
    /// Hash of the certificate of the connection.
    Certificate(&'a Hash),
    /// Hash of the token that a session of the console stands for.
    Session(&'a Hash),
}

/// Reason why the sender of a request is not identified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "oauth"),
    expect(dead_code, reason = "all but OAuth is plain")
)]
pub(super) enum Unidentified {
    NoToken,
    /// The token belongs to no principal.
    UnknownToken,
    /// Fault of an issuer's token.
    InvalidToken(&'static str),
    /// The token cannot be verified now, but perhaps after this time.
    Unavailable(Duration),
}

/// Problem that the client can solve.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(
    not(feature = "oauth"),
    expect(dead_code, reason = "there is one challenge then")
)]
pub(super) enum Problem<'a> {
    NoToken,
    InvalidToken(&'static str),
    /// Scope that the token lacks.
    InsufficientScope(&'a str),
}

impl Auth {
    /// Accepts every client as `principal`, for listeners that only trusted programs can reach.
    #[must_use]
    pub fn without_credentials(principal: Principal) -> Self {
        Self::new(AcceptedCredentials::NotRequired(principal))
    }

    /// Accepts these bearer tokens.
    #[must_use]
    pub fn tokens(tokens: impl IntoIterator<Item = Token>) -> Self {
        Self::new(AcceptedCredentials::Listed(KnownCredentials {
            tokens: tokens.into_iter().collect(),
            ..KnownCredentials::default()
        }))
    }

    /// Also accepts requests without a token from clients with one of these certificates. No
    /// effect if every client is accepted.
    #[must_use]
    pub fn certificates(self, certificates: impl IntoIterator<Item = Certificate>) -> Self {
        self.with_known(|known| known.certificates = certificates.into_iter().collect())
    }

    /// Also accepts access tokens of issuers. No effect if every client is accepted.
    #[cfg(feature = "oauth")]
    #[must_use]
    pub fn oauth(self, oauth: OAuth) -> Self {
        self.with_known(|known| known.oauth = Some(Arc::new(oauth)))
    }

    fn with_known(self, add: impl FnOnce(&mut KnownCredentials)) -> Self {
        let mut accepted = AcceptedCredentials::clone(&self.accepted.load());
        if let AcceptedCredentials::Listed(known) = &mut accepted {
            add(known);
        }
        Self::new(accepted)
    }

    fn new(accepted: AcceptedCredentials) -> Self {
        Self {
            accepted: Arc::new(ArcSwap::from_pointee(accepted)),
        }
    }

    /// Switches to the credentials of `other`, from the next request on.
    pub fn replace(&self, other: &Self) {
        let new = other.accepted.load_full();
        if let (Some(old), Some(new)) = (self.accepted.load().oauth(), new.oauth()) {
            new.inherit_keys(old);
        }
        self.accepted.store(new);
    }

    /// Replaces the token of `owner` by `secret`, from the next request on. Returns whether that
    /// changes it.
    pub fn exchange(&self, owner: &str, secret: &str) -> bool {
        let hash: Hash = Sha256::digest(secret).into();
        let is_old = |token: &Token| token.owner.name() == owner && token.hash != hash;
        if !self.accepted.load().tokens().iter().any(is_old) {
            return false;
        }
        self.accepted.rcu(|accepted| {
            let mut accepted = AcceptedCredentials::clone(accepted);
            if let AcceptedCredentials::Listed(known) = &mut accepted {
                let old = known.tokens.iter_mut().filter(|token| is_old(token));
                old.for_each(|token| token.hash = hash);
            }
            accepted
        });
        true
    }

    /// Lists the callers with credentials of their own, each once.
    #[must_use]
    pub fn callers(&self) -> Vec<Principal> {
        let accepted = self.accepted.load();
        let known = match &**accepted {
            AcceptedCredentials::NotRequired(principal) => return vec![principal.clone()],
            AcceptedCredentials::Listed(known) => known,
        };
        let tokens = known.tokens.iter().map(|token| &token.owner);
        let certificates = known.certificates.iter().map(|one| &one.owner);
        let callers = tokens.chain(certificates);
        let callers: BTreeMap<_, _> = callers.map(|caller| (caller.name(), caller)).collect();
        callers.into_values().cloned().collect()
    }

    /// Identifies the principal with these credentials, at a server with `url`.
    pub(super) async fn principal(
        &self,
        credentials: Credentials<'_>,
        url: &str,
    ) -> Result<Principal, Unidentified> {
        let accepted = self.accepted.load_full();
        let known = match &*accepted {
            AcceptedCredentials::NotRequired(principal) => return Ok(principal.clone()),
            AcceptedCredentials::Listed(known) => known,
        };
        match credentials {
            Credentials::Nothing => Err(Unidentified::NoToken),
            Credentials::Certificate(hash) => {
                let mut certificates = known.certificates.iter();
                let certificate = certificates.find(|certificate| certificate.hash == *hash);
                let certificate = certificate.ok_or(Unidentified::NoToken)?;
                Ok(certificate.owner.clone())
            }
            Credentials::Session(hash) => {
                owner_of(&known.tokens, hash).ok_or(Unidentified::UnknownToken)
            }
            Credentials::Token(token) => match (owner(&known.tokens, token), &known.oauth) {
                (Some(owner), _) => Ok(owner),
                (None, Some(oauth)) => oauth.principal(token, url).await,
                (None, None) => Err(Unidentified::UnknownToken),
            },
        }
    }

    /// Returns the challenge for a client of a server at `url`. Without OAuth there is no
    /// `resource_metadata`: a client that finds it ignores its configured token.
    pub(super) fn challenge(&self, problem: Problem<'_>, url: &str) -> HeaderValue {
        match (self.accepted.load().oauth(), problem) {
            (Some(oauth), _) => oauth.challenge(problem, url),
            (None, Problem::InvalidToken(_)) => {
                HeaderValue::from_static("Bearer error=\"invalid_token\"")
            }
            (None, _) => HeaderValue::from_static("Bearer"),
        }
    }

    /// Returns the metadata that a server at `url` has at `path`, for clients that want to get a
    /// token.
    pub(super) fn metadata(&self, path: &str, url: &str) -> Option<Value> {
        self.accepted.load().oauth()?.metadata(path, url)
    }
}

impl AcceptedCredentials {
    fn tokens(&self) -> &[Token] {
        match self {
            Self::NotRequired(_) => &[],
            Self::Listed(known) => &known.tokens,
        }
    }

    /// Resource server for tokens of issuers, if there is one.
    fn oauth(&self) -> Option<&OAuth> {
        match self {
            Self::NotRequired(_) => None,
            Self::Listed(known) => known.oauth.as_deref(),
        }
    }
}

/// Finds the owner of a token. The comparison takes constant time: its duration reveals only the
/// number of tokens.
fn owner(tokens: &[Token], token: &[u8]) -> Option<Principal> {
    owner_of(tokens, &Sha256::digest(token).into())
}

/// Finds the owner of the token with this hash, likewise.
fn owner_of(tokens: &[Token], hash: &Hash) -> Option<Principal> {
    let mut owner = None;
    for known in tokens {
        if bool::from(known.hash.ct_eq(hash)) {
            owner = Some(known.owner.clone());
        }
    }
    owner
}

/// Rate limit: maximum number of wrong tokens per address in [`FAILURE_WINDOW`] before it has to
/// wait.
const MAX_FAILURES: u32 = 10;
const FAILURE_WINDOW: Duration = Duration::from_secs(60);
/// Maximum number of addresses remembered.
const MAX_ADDRESSES: usize = 1024;

/// Recent wrong tokens, by address.
#[derive(Debug, Default)]
pub(super) struct Failures {
    by_address: Mutex<BTreeMap<IpAddr, (Instant, u32)>>,
}

impl Failures {
    /// Counts a wrong token. Returns the time to wait, if the address exceeds the limit.
    pub(super) fn count(&self, address: IpAddr) -> Option<Duration> {
        let now = Instant::now();
        let mut failures = lock(&self.by_address);
        if failures.len() >= MAX_ADDRESSES && !failures.contains_key(&address) {
            failures.retain(|_, (since, _)| now.duration_since(*since) < FAILURE_WINDOW);
            // A client with that many addresses is not stopped by counting them.
            if failures.len() >= MAX_ADDRESSES {
                failures.pop_first();
            }
        }
        let (since, count) = failures.entry(address).or_insert((now, 0));
        if now.duration_since(*since) >= FAILURE_WINDOW {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        (*count > MAX_FAILURES).then(|| FAILURE_WINDOW.saturating_sub(now.duration_since(*since)))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn token_belongs_to_its_principal_until_replaced() {
        let token = |secret, name| Token::new(secret, Principal::new(name));
        let auth = Auth::tokens([token("one", "alice"), token("two", "bob")]);
        let identify = |credentials: Option<&str>| {
            let credentials = credentials.map_or(Credentials::Nothing, |token| {
                Credentials::Token(token.as_bytes())
            });
            let principal = auth.principal(credentials, "http://localhost/mcp");
            let principal = principal.now_or_never().expect("nobody is asked");
            principal.map(|principal| principal.name().to_owned())
        };
        let owner = |credentials| identify(Some(credentials));
        assert_eq!(owner("one").as_deref(), Ok("alice"));
        assert_eq!(owner("two").as_deref(), Ok("bob"));
        for wrong in ["", "on", "onee", "ONE", "a.b.c"] {
            assert_eq!(owner(wrong), Err(Unidentified::UnknownToken), "{wrong}");
        }
        assert_eq!(identify(None), Err(Unidentified::NoToken));
        let hashed = Token::from_hash(&Token::hash("one"), Principal::new("alice")).unwrap();
        assert_eq!(hashed.hash, token("one", "alice").hash);
        for wrong in ["", "12", &"x".repeat(64), &"é".repeat(32)] {
            assert!(
                Token::from_hash(wrong, Principal::new("alice")).is_none(),
                "{wrong}"
            );
        }
        assert!(!format!("{auth:?}").contains("hash"));

        assert!(auth.exchange("alice", "another") && !auth.exchange("alice", "another"));
        assert_eq!(owner("one"), Err(Unidentified::UnknownToken));
        assert_eq!(owner("another").as_deref(), Ok("alice"));
        assert_eq!(owner("two").as_deref(), Ok("bob"));
        assert!(!auth.exchange("carol", "another"));

        auth.clone()
            .replace(&Auth::tokens([token("three", "alice")]));
        assert_eq!(owner("one"), Err(Unidentified::UnknownToken));
        assert_eq!(owner("three").as_deref(), Ok("alice"));
        auth.replace(&Auth::without_credentials(Principal::anonymous()));
        assert_eq!(identify(None).as_deref(), Ok("anonymous"));
    }

    #[test]
    fn certificate_is_known_by_its_hash() {
        let hash: Hash = Sha256::digest("a certificate").into();
        let hex = random_id::hex(&hash);
        let with_colons: Vec<_> = (0..hex.len())
            .step_by(2)
            .map(|at| &hex[at..at + 2])
            .collect();
        for hex in [hex.clone(), with_colons.join(":").to_uppercase()] {
            let certificate = Certificate::from_hash(&hex, Principal::new("alice")).unwrap();
            let auth = Auth::tokens([]).certificates([certificate]);
            let identify = |credentials| {
                let principal = auth
                    .principal(credentials, "https://localhost/mcp")
                    .now_or_never();
                let principal = principal.expect("nobody is asked");
                principal.map(|principal| principal.name().to_owned())
            };
            assert_eq!(
                identify(Credentials::Certificate(&hash)).as_deref(),
                Ok("alice")
            );
            let other = Hash::default();
            assert_eq!(
                identify(Credentials::Certificate(&other)),
                Err(Unidentified::NoToken)
            );
            assert_eq!(
                identify(Credentials::Token(&hash)),
                Err(Unidentified::UnknownToken)
            );
            assert_eq!(identify(Credentials::Nothing), Err(Unidentified::NoToken));
        }
        assert!(Certificate::from_hash(&hex[1..], Principal::new("alice")).is_none());
    }

    #[test]
    fn rate_limit_delays_addresses_with_wrong_tokens() {
        let failures = Failures::default();
        let address = |last| IpAddr::from([127, 0, 0, last]);
        for _ in 0..MAX_FAILURES {
            assert_eq!(failures.count(address(1)), None);
        }
        assert!(
            failures
                .count(address(1))
                .is_some_and(|wait| wait <= FAILURE_WINDOW)
        );
        assert_eq!(failures.count(address(2)), None);
        for number in 0..2 * MAX_ADDRESSES as u32 {
            failures.count(IpAddr::from(number.to_be_bytes()));
        }
        assert!(lock(&failures.by_address).len() <= MAX_ADDRESSES);
    }
}
