//! What clients must show, whose each token is, and who has shown wrong ones too often.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::Principal;
use crate::id;
use crate::sync::lock;

/// What is kept of a token: what is compared with is of no use to whoever reads it.
type Hash = [u8; 32];

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
        let mut hash = Hash::default();
        if hex.len() != 2 * hash.len() || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        for (byte, place) in hash.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&hex[place..place + 2], 16).ok()?;
        }
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

/// What a client must show to be served. All clones are one, so that it can be replaced while it is in force.
#[derive(Debug, Clone)]
pub struct Auth {
    accepted: Arc<ArcSwap<Accepted>>,
}

#[derive(Debug)]
enum Accepted {
    /// Whoever comes is this one.
    Anybody(Principal),
    Tokens(Vec<Token>),
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
        Self::new(Accepted::Tokens(tokens.into_iter().collect()))
    }

    fn new(accepted: Accepted) -> Self {
        Self {
            accepted: Arc::new(ArcSwap::from_pointee(accepted)),
        }
    }

    /// Wants what `other` wants, from the next request on.
    pub fn replace(&self, other: &Self) {
        self.accepted.store(other.accepted.load_full());
    }

    /// Who shows `token`, or nothing.
    pub(super) fn principal(&self, token: Option<&[u8]>) -> Option<Principal> {
        match &**self.accepted.load() {
            Accepted::Anybody(principal) => Some(principal.clone()),
            Accepted::Tokens(tokens) => owner(tokens, token?),
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
    use super::*;

    #[test]
    fn each_token_is_somebodys_until_it_is_replaced() {
        let token = |secret, name| Token::new(secret, Principal::new(name));
        let auth = Auth::tokens([token("one", "alice"), token("two", "bob")]);
        let owner = |shown: &str| Some(auth.principal(Some(shown.as_bytes()))?.name().to_owned());
        assert_eq!(owner("one").as_deref(), Some("alice"));
        assert_eq!(owner("two").as_deref(), Some("bob"));
        for wrong in ["", "on", "onee", "ONE"] {
            assert_eq!(owner(wrong), None, "{wrong}");
        }
        assert_eq!(auth.principal(None), None);
        let hashed = Token::from_hash(&Token::hash("one"), Principal::new("alice")).unwrap();
        assert_eq!(hashed.hash, token("one", "alice").hash);
        for wrong in ["", "12", &"x".repeat(64), &"é".repeat(32)] {
            assert!(
                Token::from_hash(wrong, Principal::new("alice")).is_none(),
                "{wrong}"
            );
        }
        assert!(!format!("{auth:?}").contains("hash"));

        auth.clone()
            .replace(&Auth::tokens([token("three", "alice")]));
        assert_eq!(
            (owner("one"), owner("three").as_deref()),
            (None, Some("alice"))
        );
        auth.replace(&Auth::anybody(Principal::anonymous()));
        assert_eq!(auth.principal(None), Some(Principal::anonymous()));
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
