//! Token issuer and its cached keys: fetched when needed, by one task for all that wait, and kept
//! in use while new ones are unavailable.
//!
//! ```text
//! none ──fetch──► fresh ──lifetime over──► overdue: still used, renewed in the background
//!                   ▲                         │   └─ after 24 h: unused, requests wait
//!                   └───────── fetched ───────┘
//! a token with an unknown key: fetch, at most every 60 s; a failed fetch is retried after 10 s
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use reqwest::Url;
use tokio::sync::Mutex;

use super::fetch::{Fetched, Fetcher};
use super::keys::{Key, Keys, NoKey};
use super::token::Header;
use super::{OAuthError, address, crypto};
use crate::transport::http::auth::Unidentified;

/// Timeout for fetching the keys of an issuer.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// Minimum interval between fetches for an unknown key.
const UNKNOWN_KEY_INTERVAL: Duration = Duration::from_secs(60);
/// Delay after a failed fetch.
const RETRY_DELAY: Duration = Duration::from_secs(10);
/// Maximum time that keys stay in use after their lifetime, while new ones are unavailable.
const MAX_OVERDUE: Duration = Duration::from_secs(24 * 60 * 60);

/// Authorization server whose tokens are accepted. All clones share the keys.
#[derive(Debug, Clone)]
pub struct Issuer(Arc<IssuerState>);

#[derive(Debug)]
struct IssuerState {
    url: String,
    source: KeySource,
    set: ArcSwapOption<KeySet>,
    attempts: Mutex<Attempts>,
}

/// Source of the keys.
#[derive(Debug)]
enum KeySource {
    /// URL named by the issuer's metadata.
    Metadata(Fetcher),
    Address(Fetcher, Url),
    /// Configured keys, which never change.
    Given,
}

/// Keys at one point in time.
#[derive(Debug)]
struct KeySet {
    keys: Keys,
    fetched: Instant,
    age: Duration,
}

/// Times of the last fetches.
#[derive(Debug, Default)]
struct Attempts {
    failed: Option<Instant>,
    for_unknown_key: Option<Instant>,
}

/// Reason for a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FetchReason {
    /// The keys are missing or overdue.
    Due,
    /// A token names a key that is not among them.
    UnknownKey,
}

impl Issuer {
    /// Creates the issuer that identifies itself as `url`, byte for byte. It names its keys in
    /// the metadata of RFC 8414 or OpenID Connect.
    ///
    /// Installs the cryptography providers of `rustls` and of `jsonwebtoken` for this process,
    /// where none is installed.
    ///
    /// # Errors
    ///
    /// Nothing can be fetched there: it is not a URL of `https`, or of `http` on this machine.
    pub fn new(url: &str) -> Result<Self, OAuthError> {
        let parsed = address::parse_fetch_url(url)?;
        if parsed.query().is_some() {
            return Err(OAuthError::Url(url.to_owned(), "it has a query"));
        }
        let fetcher = Fetcher::new(&parsed, FETCH_TIMEOUT)?;
        Ok(Self::with(url, KeySource::Metadata(fetcher), None))
    }

    /// Sets the URL of the key set, `keys`.
    ///
    /// # Errors
    ///
    /// Nothing can be fetched there.
    pub fn keys_at(self, keys: &str) -> Result<Self, OAuthError> {
        let keys = address::parse_fetch_url(keys)?;
        let fetcher = Fetcher::new(&keys, FETCH_TIMEOUT)?;
        Ok(Self::with(
            self.url(),
            KeySource::Address(fetcher, keys),
            None,
        ))
    }

    /// Sets the keys, a JSON Web Key Set.
    ///
    /// # Errors
    ///
    /// None of the keys is usable.
    pub fn keys(self, keys: &[u8]) -> Result<Self, OAuthError> {
        let keys = Keys::parse(keys).map_err(OAuthError::Keys)?;
        if keys.is_empty() {
            return Err(OAuthError::Keys("none of the keys is usable".to_owned()));
        }
        let set = KeySet::new(keys, Duration::MAX);
        Ok(Self::with(self.url(), KeySource::Given, Some(set)))
    }

    fn with(url: &str, source: KeySource, set: Option<KeySet>) -> Self {
        crypto::install();
        Self(Arc::new(IssuerState {
            url: url.to_owned(),
            source,
            set: ArcSwapOption::from_pointee(set),
            attempts: Mutex::default(),
        }))
    }

    /// Identifier of the issuer.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.0.url
    }

    /// Takes over the keys of `old`, if they come from the same source.
    pub(super) fn inherit_keys(&self, old: &Self) {
        let is_same = match (&self.0.source, &old.0.source) {
            (KeySource::Metadata(_), KeySource::Metadata(_)) => self.url() == old.url(),
            (KeySource::Address(_, place), KeySource::Address(_, old)) => place == old,
            _ => false,
        };
        if is_same {
            self.0.set.store(old.0.set.load_full());
        }
    }

    /// Returns the key for a token with this header.
    pub(super) async fn key(&self, header: &Header) -> Result<Key, Unidentified> {
        let set = self.current().await?;
        match set.keys.find(header) {
            Ok(key) => Ok(key.clone()),
            Err(NoKey::Unfit(why)) => Err(Unidentified::InvalidToken(why)),
            Err(NoKey::Unknown) => {
                self.renew(Some(set), FetchReason::UnknownKey).await?;
                let set = self.0.set.load_full();
                let key = set.as_ref().and_then(|set| set.keys.find(header).ok());
                key.cloned().ok_or(Unidentified::InvalidToken(
                    "the key of the token is unknown",
                ))
            }
        }
    }

    /// Returns the cached keys, without waiting if they may still be used.
    async fn current(&self) -> Result<Arc<KeySet>, Unidentified> {
        let known = self.0.set.load_full();
        if let Some(set) = known.as_ref().filter(|set| set.overdue() <= MAX_OVERDUE) {
            let is_renewing = self.0.attempts.try_lock().is_err();
            if !set.overdue().is_zero() && !is_renewing {
                let (this, set) = (self.clone(), Arc::clone(set));
                tokio::spawn(async move { this.renew(Some(set), FetchReason::Due).await.ok() });
            }
            return Ok(Arc::clone(set));
        }
        self.renew(known, FetchReason::Due).await?;
        let renewed = self.0.set.load_full();
        renewed.ok_or(Unidentified::Unavailable(RETRY_DELAY))
    }

    /// Fetches the keys again, unless another task has done so since they were `seen`.
    ///
    /// # Errors
    ///
    /// No other keys are available at the moment.
    async fn renew(
        &self,
        seen: Option<Arc<KeySet>>,
        reason: FetchReason,
    ) -> Result<(), Unidentified> {
        let inner = Arc::clone(&self.0);
        // A separate task, because the client whose request started the fetch for all may
        // disconnect.
        let renewing = tokio::spawn(async move { inner.renew(seen.as_ref(), reason).await });
        renewing
            .await
            .unwrap_or(Err(Unidentified::Unavailable(RETRY_DELAY)))
    }
}

impl KeySet {
    fn new(keys: Keys, age: Duration) -> Self {
        Self {
            keys,
            fetched: Instant::now(),
            age,
        }
    }

    /// Time since the end of the lifetime.
    fn overdue(&self) -> Duration {
        self.fetched.elapsed().saturating_sub(self.age)
    }
}

impl IssuerState {
    async fn renew(
        &self,
        seen: Option<&Arc<KeySet>>,
        reason: FetchReason,
    ) -> Result<(), Unidentified> {
        if matches!(self.source, KeySource::Given) {
            return Ok(());
        }
        // Concurrent renewals wait here; all but the first find other keys than they had seen.
        let mut attempts = self.attempts.lock().await;
        let is_as_seen = match (&*self.set.load(), seen) {
            (Some(set), Some(seen)) => Arc::ptr_eq(set, seen),
            (set, seen) => set.is_none() && seen.is_none(),
        };
        if !is_as_seen {
            return Ok(());
        }
        let left = |since: Option<Instant>, pause: Duration| {
            since.and_then(|since| pause.checked_sub(since.elapsed()))
        };
        if let Some(left) = left(attempts.failed, RETRY_DELAY) {
            return Err(Unidentified::Unavailable(left));
        }
        let was_asked = left(attempts.for_unknown_key, UNKNOWN_KEY_INTERVAL).is_some();
        if reason == FetchReason::UnknownKey && was_asked {
            return Ok(());
        }
        let fetched = tokio::time::timeout(FETCH_TIMEOUT, self.fetch()).await;
        match fetched.unwrap_or_else(|_| Err("the issuer does not respond in time".to_owned())) {
            Ok(set) => {
                attempts.failed = None;
                if reason == FetchReason::UnknownKey {
                    attempts.for_unknown_key = Some(Instant::now());
                }
                self.set.store(Some(Arc::new(set)));
                Ok(())
            }
            Err(why) => {
                tracing::warn!(
                    issuer = self.url,
                    "failed to fetch the keys of an issuer: {why}"
                );
                attempts.failed = Some(Instant::now());
                Err(Unidentified::Unavailable(RETRY_DELAY))
            }
        }
    }

    async fn fetch(&self) -> Result<KeySet, String> {
        let Fetched { body, age } = match &self.source {
            KeySource::Metadata(fetcher) => {
                let place = fetcher.discover(&self.url).await?;
                fetcher.get(&place).await?
            }
            KeySource::Address(fetcher, place) => fetcher.get(place).await?,
            KeySource::Given => return Err("the keys are fixed".to_owned()),
        };
        let set = KeySet::new(Keys::parse(&body)?, age);
        tracing::debug!(issuer = self.url, "fetched the keys of an issuer");
        Ok(set)
    }
}
