//! One-time codes and sessions of a console, bounded in number and in time. Secrets are kept as
//! hashes, and each stands for a token, also by its hash.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::super::auth::Hash;
use crate::support::random_id;
use crate::support::sync::lock;

/// Time for which a one-time code is valid.
const CODE_LIFETIME: Duration = Duration::from_secs(10 * 60);
/// Idle timeout of a session.
const IDLE_TIMEOUT: Duration = Duration::from_secs(12 * 60 * 60);
/// Maximum number of codes, and of sessions.
const MAX_ENTRIES: usize = 64;

/// Codes that are not used, and open sessions.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    codes: Mutex<BTreeMap<Hash, Code>>,
    open: Mutex<BTreeMap<Hash, Session>>,
}

#[derive(Debug)]
struct Code {
    token: Hash,
    created: Instant,
}

#[derive(Debug)]
struct Session {
    token: Hash,
    key: Hash,
    used: Instant,
}

/// Secrets of a new session.
#[derive(Debug)]
pub(super) struct Opened {
    /// Value of the cookie.
    pub(super) id: String,
    /// Key of the page.
    pub(super) key: String,
}

impl Sessions {
    /// Makes a code for the holder of the token `secret`.
    pub(super) fn add_code(&self, secret: &str) -> String {
        self.add_code_for(hash(secret.as_bytes()))
    }

    /// Makes a code for the holder of the token with this hash.
    pub(super) fn add_code_for(&self, token: Hash) -> String {
        let code = random_id::new();
        let mut codes = lock(&self.codes);
        codes.retain(|_, code| code.created.elapsed() < CODE_LIFETIME);
        remove_oldest(&mut codes, |code| code.created);
        let created = Instant::now();
        codes.insert(hash(code.as_bytes()), Code { token, created });
        code
    }

    /// Uses a code up, and returns the hash of its token.
    pub(super) fn take_code(&self, code: &str) -> Option<Hash> {
        // Found by its hash, so that the time of the search tells nothing about the codes.
        let code = lock(&self.codes).remove(&hash(code.as_bytes()))?;
        (code.created.elapsed() < CODE_LIFETIME).then_some(code.token)
    }

    /// Opens a session for the token with this hash.
    pub(super) fn open(&self, token: Hash) -> Opened {
        let opened = Opened {
            id: random_id::new(),
            key: random_id::new(),
        };
        let session = Session {
            token,
            key: hash(opened.key.as_bytes()),
            used: Instant::now(),
        };
        let mut open = lock(&self.open);
        open.retain(|_, session| session.used.elapsed() < IDLE_TIMEOUT);
        remove_oldest(&mut open, |session| session.used);
        open.insert(hash(opened.id.as_bytes()), session);
        opened
    }

    /// Returns the hash of the token of a session, if the page has its key.
    pub(super) fn find(&self, id: &str, key: &[u8]) -> Option<Hash> {
        let mut open = lock(&self.open);
        let session = open.get_mut(&hash(id.as_bytes()))?;
        let is_valid = session.used.elapsed() < IDLE_TIMEOUT;
        if !is_valid || !bool::from(session.key.ct_eq(&hash(key))) {
            return None;
        }
        session.used = Instant::now();
        Some(session.token)
    }

    /// Ends a session.
    pub(super) fn remove(&self, id: &str) {
        lock(&self.open).remove(&hash(id.as_bytes()));
    }
}

/// Removes the oldest entry of a full table.
fn remove_oldest<T>(entries: &mut BTreeMap<Hash, T>, time: impl Fn(&T) -> Instant) {
    if entries.len() < MAX_ENTRIES {
        return;
    }
    let oldest = entries.iter().min_by_key(|(_, entry)| time(entry));
    if let Some(oldest) = oldest.map(|(hash, _)| *hash) {
        entries.remove(&oldest);
    }
}

fn hash(secret: &[u8]) -> Hash {
    Sha256::digest(secret).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_opens_one_session() {
        let sessions = Sessions::default();
        let code = sessions.add_code("secret");
        assert_eq!(sessions.take_code("wrong"), None);
        assert_eq!(sessions.take_code(&code), Some(hash(b"secret")));
        assert_eq!(sessions.take_code(&code), None);
    }

    #[test]
    fn session_needs_its_cookie_and_its_key() {
        let sessions = Sessions::default();
        let one = sessions.open(hash(b"one"));
        let two = sessions.open(hash(b"two"));
        let find = |id: &str, key: &str| sessions.find(id, key.as_bytes());
        assert_eq!(find(&one.id, &one.key), Some(hash(b"one")));
        assert_eq!(find(&two.id, &two.key), Some(hash(b"two")));
        assert_eq!(find(&one.id, &two.key), None);
        assert_eq!(find(&one.id, ""), None);
        assert_eq!(find("", &one.key), None);
        sessions.remove(&one.id);
        assert_eq!(find(&one.id, &one.key), None);
        assert_eq!(find(&two.id, &two.key), Some(hash(b"two")));
    }

    #[test]
    fn tables_are_bounded() {
        let sessions = Sessions::default();
        let first = sessions.open(hash(b"one"));
        let code = sessions.add_code("one");
        for _ in 0..MAX_ENTRIES {
            sessions.open(hash(b"two"));
            sessions.add_code("two");
        }
        assert_eq!(lock(&sessions.open).len(), MAX_ENTRIES);
        assert_eq!(lock(&sessions.codes).len(), MAX_ENTRIES);
        assert_eq!(sessions.find(&first.id, first.key.as_bytes()), None);
        assert_eq!(sessions.take_code(&code), None);
    }
}
