//! What clients must show, whose each token and each certificate is, and who has shown wrong tokens too often.

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
use crate::Principal;
use crate::id;
use crate::sync::lock;

/// What is kept of a token, or known of a certificate: what is compared with is of no use to whoever reads it.
pub(super) type Hash = [u8; 32];

/// A token, as its SHA-256 hash, and whose it is.
#[derive(Clone)]
pub struct Token {
    hash: Hash,
    owner: Principal,
}

impl Token {
    /// The token `secret`.
    #[must_use]
    pub fn new(secret: &str, owner: Principal) -> Self {
        let hash = Sha256::digest(secret).into();
        Self { hash, owner }
    }

    /// The token that has this SHA-256 hash, in hexadecimal; `None` if that is none. The token must be long and random:
    /// one that people choose is guessed.
    #[must_use]
    pub fn from_hash(hex: &str, owner: Principal) -> Option<Self> {
        let hash = unhex(hex)?;
        Some(Self { hash, owner })
    }

    /// The hash that [`from_hash`](Self::from_hash) takes, of `secret`.
    #[must_use]
    pub fn hash(secret: &str) -> String {
        id::hex(&Sha256::digest(secret))
    }
}

/// Not even the hash: a `Debug` ends up in logs.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("owner", &self.owner.name())
            .finish_non_exhaustive()
    }
}

/// The certificate of a client, by its SHA-256 hash, and whose it is.
///
/// Whoever has shown it in a handshake of TLS has its key, and it comes from an authority that is accepted there.
#[derive(Debug, Clone)]
pub struct Certificate {
    hash: Hash,
    owner: Principal,
}

impl Certificate {
    /// The certificate that has this SHA-256 hash, in hexadecimal and perhaps with colons between its bytes; `None` if
    /// that is none. The hash is of all the certificate in DER: its fingerprint.
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

/// What a client must show to be served. All clones are one, so that it can be replaced while it is in force.
#[derive(Debug, Clone)]
pub struct Auth {
    accepted: Arc<ArcSwap<Accepted>>,
}

#[derive(Debug, Clone)]
enum Accepted {
    /// Whoever comes is this one.
    Anybody(Principal),
    /// Whoever shows one of these.
    Known(Known),
}

#[derive(Debug, Clone, Default)]
struct Known {
    tokens: Vec<Token>,
    certificates: Vec<Certificate>,
    /// Those that somebody else has made.
    oauth: Option<Arc<OAuth>>,
}

/// What a client shows of itself with a request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shown<'a> {
    /// Nothing, or nothing of use.
    Nothing,
    Token(&'a [u8]),
    /// The one of its connection, by its hash.
    Certificate(&'a Hash),
}

/// Why it is not known who sends a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "oauth"),
    expect(dead_code, reason = "all but OAuth is plain")
)]
pub(super) enum Unidentified {
    NoToken,
    /// The token is nobody's.
    UnknownToken,
    /// What is wrong with the token of an issuer.
    InvalidToken(&'static str),
    /// It can't be said now whose the token is, but perhaps in this time.
    Unavailable(Duration),
}

/// What a client is told to mend.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(
    not(feature = "oauth"),
    expect(dead_code, reason = "there is one challenge then")
)]
pub(super) enum Problem<'a> {
    NoToken,
    InvalidToken(&'static str),
    /// The scope that the token lacks.
    InsufficientScope(&'a str),
}

impl Auth {
    /// Nothing, for listeners that only trusted programs can reach: all of them are `principal`.
    #[must_use]
    pub fn anybody(principal: Principal) -> Self {
        Self::new(Accepted::Anybody(principal))
    }

    /// One of these bearer tokens.
    #[must_use]
    pub fn tokens(tokens: impl IntoIterator<Item = Token>) -> Self {
        Self::new(Accepted::Known(Known {
            tokens: tokens.into_iter().collect(),
            ..Known::default()
        }))
    }

    /// The same, or no token and one of these certificates. Where anybody is let in, that makes no difference.
    #[must_use]
    pub fn certificates(self, certificates: impl IntoIterator<Item = Certificate>) -> Self {
        self.or(|known| known.certificates = certificates.into_iter().collect())
    }

    /// The same, or an access token that an issuer has made. Where anybody is let in, that makes no difference.
    #[cfg(feature = "oauth")]
    #[must_use]
    pub fn oauth(self, oauth: OAuth) -> Self {
        self.or(|known| known.oauth = Some(Arc::new(oauth)))
    }

    fn or(self, add: impl FnOnce(&mut Known)) -> Self {
        let mut accepted = Accepted::clone(&self.accepted.load());
        if let Accepted::Known(known) = &mut accepted {
            add(known);
        }
        Self::new(accepted)
    }

    fn new(accepted: Accepted) -> Self {
        Self {
            accepted: Arc::new(ArcSwap::from_pointee(accepted)),
        }
    }

    /// Wants what `other` wants, from the next request on.
    pub fn replace(&self, other: &Self) {
        let new = other.accepted.load_full();
        if let (Some(old), Some(new)) = (self.accepted.load().oauth(), new.oauth()) {
            new.succeed(old);
        }
        self.accepted.store(new);
    }

    /// Wants the token `secret` of `owner` in the place of the one that `owner` has, from the next request on. Whether
    /// that is another.
    pub fn exchange(&self, owner: &str, secret: &str) -> bool {
        let hash: Hash = Sha256::digest(secret).into();
        let is_old = |token: &Token| token.owner.name() == owner && token.hash != hash;
        if !self.accepted.load().tokens().iter().any(is_old) {
            return false;
        }
        self.accepted.rcu(|accepted| {
            let mut accepted = Accepted::clone(accepted);
            if let Accepted::Known(known) = &mut accepted {
                let old = known.tokens.iter_mut().filter(|token| is_old(token));
                old.for_each(|token| token.hash = hash);
            }
            accepted
        });
        true
    }

    /// Who shows this to a server at `url`.
    pub(super) async fn principal(
        &self,
        shown: Shown<'_>,
        url: &str,
    ) -> Result<Principal, Unidentified> {
        let accepted = self.accepted.load_full();
        let known = match &*accepted {
            Accepted::Anybody(principal) => return Ok(principal.clone()),
            Accepted::Known(known) => known,
        };
        match shown {
            Shown::Nothing => Err(Unidentified::NoToken),
            Shown::Certificate(hash) => {
                let mut certificates = known.certificates.iter();
                let certificate = certificates.find(|certificate| certificate.hash == *hash);
                let certificate = certificate.ok_or(Unidentified::NoToken)?;
                Ok(certificate.owner.clone())
            }
            Shown::Token(token) => match (owner(&known.tokens, token), &known.oauth) {
                (Some(owner), _) => Ok(owner),
                (None, Some(oauth)) => oauth.principal(token, url).await,
                (None, None) => Err(Unidentified::UnknownToken),
            },
        }
    }

    /// How a client of a server at `url` is told what to mend. Without OAuth there is no `resource_metadata`: a client
    /// that finds it ignores the token it was configured with.
    pub(super) fn challenge(&self, problem: Problem<'_>, url: &str) -> HeaderValue {
        match (self.accepted.load().oauth(), problem) {
            (Some(oauth), _) => oauth.challenge(problem, url),
            (None, Problem::InvalidToken(_)) => {
                HeaderValue::from_static("Bearer error=\"invalid_token\"")
            }
            (None, _) => HeaderValue::from_static("Bearer"),
        }
    }

    /// What a server at `url` says of itself at `path` for clients that want to get a token, if there are any to get.
    pub(super) fn metadata(&self, path: &str, url: &str) -> Option<Value> {
        self.accepted.load().oauth()?.metadata(path, url)
    }
}

impl Accepted {
    fn tokens(&self) -> &[Token] {
        match self {
            Self::Anybody(_) => &[],
            Self::Known(known) => &known.tokens,
        }
    }

    /// Whoever else has made tokens that are accepted.
    fn oauth(&self) -> Option<&OAuth> {
        match self {
            Self::Anybody(_) => None,
            Self::Known(known) => known.oauth.as_deref(),
        }
    }
}

/// Whose token it is. How long that takes tells nothing of the tokens there are but their number.
fn owner(tokens: &[Token], shown: &[u8]) -> Option<Principal> {
    let shown: Hash = Sha256::digest(shown).into();
    let mut owner = None;
    for token in tokens {
        if bool::from(token.hash.ct_eq(&shown)) {
            owner = Some(token.owner.clone());
        }
    }
    owner
}

/// How many wrong tokens an address may show in [`WINDOW`] before it is told to wait.
const MAX_FAILURES: u32 = 10;
const WINDOW: Duration = Duration::from_secs(60);
/// How many addresses are remembered.
const MAX_ADDRESSES: usize = 1024;

/// Wrong tokens of late, by the address they came from.
#[derive(Debug, Default)]
pub(super) struct Failures {
    by_address: Mutex<BTreeMap<IpAddr, (Instant, u32)>>,
}

impl Failures {
    /// Counts one more. Says how long its sender should wait, if these are too many.
    pub(super) fn count(&self, address: IpAddr) -> Option<Duration> {
        let now = Instant::now();
        let mut failures = lock(&self.by_address);
        if failures.len() >= MAX_ADDRESSES && !failures.contains_key(&address) {
            failures.retain(|_, (since, _)| now.duration_since(*since) < WINDOW);
            // Somebody with that many addresses is not kept off by counting them.
            if failures.len() >= MAX_ADDRESSES {
                failures.pop_first();
            }
        }
        let (since, count) = failures.entry(address).or_insert((now, 0));
        if now.duration_since(*since) >= WINDOW {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        (*count > MAX_FAILURES).then(|| WINDOW.saturating_sub(now.duration_since(*since)))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn each_token_is_somebodys_until_it_is_replaced() {
        let token = |secret, name| Token::new(secret, Principal::new(name));
        let auth = Auth::tokens([token("one", "alice"), token("two", "bob")]);
        let identify = |shown: Option<&str>| {
            let shown = shown.map_or(Shown::Nothing, |token| Shown::Token(token.as_bytes()));
            let principal = auth.principal(shown, "http://localhost/mcp");
            let principal = principal.now_or_never().expect("nobody is asked");
            principal.map(|principal| principal.name().to_owned())
        };
        let owner = |shown| identify(Some(shown));
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
        auth.replace(&Auth::anybody(Principal::anonymous()));
        assert_eq!(identify(None).as_deref(), Ok("anonymous"));
    }

    #[test]
    fn a_certificate_is_known_by_its_hash() {
        let hash: Hash = Sha256::digest("a certificate").into();
        let hex = id::hex(&hash);
        let with_colons: Vec<_> = (0..hex.len())
            .step_by(2)
            .map(|at| &hex[at..at + 2])
            .collect();
        for hex in [hex.clone(), with_colons.join(":").to_uppercase()] {
            let certificate = Certificate::from_hash(&hex, Principal::new("alice")).unwrap();
            let auth = Auth::tokens([]).certificates([certificate]);
            let identify = |shown| {
                let principal = auth
                    .principal(shown, "https://localhost/mcp")
                    .now_or_never();
                let principal = principal.expect("nobody is asked");
                principal.map(|principal| principal.name().to_owned())
            };
            assert_eq!(identify(Shown::Certificate(&hash)).as_deref(), Ok("alice"));
            let other = Hash::default();
            assert_eq!(
                identify(Shown::Certificate(&other)),
                Err(Unidentified::NoToken)
            );
            assert_eq!(
                identify(Shown::Token(&hash)),
                Err(Unidentified::UnknownToken)
            );
            assert_eq!(identify(Shown::Nothing), Err(Unidentified::NoToken));
        }
        assert!(Certificate::from_hash(&hex[1..], Principal::new("alice")).is_none());
    }

    #[test]
    fn an_address_with_too_many_wrong_tokens_has_to_wait() {
        let failures = Failures::default();
        let address = |last| IpAddr::from([127, 0, 0, last]);
        for _ in 0..MAX_FAILURES {
            assert_eq!(failures.count(address(1)), None);
        }
        assert!(
            failures
                .count(address(1))
                .is_some_and(|wait| wait <= WINDOW)
        );
        assert_eq!(failures.count(address(2)), None);
        for number in 0..2 * MAX_ADDRESSES as u32 {
            failures.count(IpAddr::from(number.to_be_bytes()));
        }
        assert!(lock(&failures.by_address).len() <= MAX_ADDRESSES);
    }
}
