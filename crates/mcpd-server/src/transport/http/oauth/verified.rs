//! Cache of verified tokens, so that a busy client does not cost a signature check per request.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};

use crate::policy::principal::Principal;
use crate::support::sync::lock;

/// Maximum number of cached tokens.
const MAX_TOKENS: usize = 1024;
/// Lifetime of an entry; a key that its issuer has withdrawn stays valid for as long.
const ENTRY_LIFETIME: Duration = Duration::from_secs(60);

type Hash = [u8; 32];

/// Principals of the tokens, by hash.
#[derive(Debug, Default)]
pub(super) struct VerifiedTokens {
    by_hash: Mutex<BTreeMap<Hash, CachedToken>>,
}

#[derive(Debug)]
struct CachedToken {
    principal: Principal,
    /// Expiry of the token, since 1970.
    expires: Duration,
    since: Instant,
}

impl CachedToken {
    fn is_valid(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        self.since.elapsed() < ENTRY_LIFETIME && now.is_ok_and(|now| now < self.expires)
    }
}

impl VerifiedTokens {
    pub(super) fn find(&self, token: &[u8]) -> Option<Principal> {
        let entries = lock(&self.by_hash);
        let entry = entries.get(&hash(token)).filter(|entry| entry.is_valid())?;
        Some(entry.principal.clone())
    }

    pub(super) fn insert(&self, token: &[u8], principal: Principal, expires: Duration) {
        let mut entries = lock(&self.by_hash);
        if entries.len() >= MAX_TOKENS {
            entries.retain(|_, entry| entry.is_valid());
        }
        if entries.len() >= MAX_TOKENS {
            // The hashes are random, so this is a random entry.
            entries.pop_first();
        }
        let since = Instant::now();
        let entry = CachedToken {
            principal,
            expires,
            since,
        };
        entries.insert(hash(token), entry);
    }
}

fn hash(token: &[u8]) -> Hash {
    Sha256::digest(token).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verified_tokens_expire_and_are_bounded() {
        let verified = VerifiedTokens::default();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let insert = |token: &str, expires| {
            verified.insert(token.as_bytes(), Principal::new(token), expires)
        };
        insert("old", now);
        insert("new", now + Duration::from_secs(600));
        assert_eq!(verified.find(b"old"), None);
        assert_eq!(verified.find(b"new"), Some(Principal::new("new")));
        for number in 0..2 * MAX_TOKENS {
            insert(&number.to_string(), now + Duration::from_secs(600));
        }
        assert_eq!(lock(&verified.by_hash).len(), MAX_TOKENS);
    }
}
