//! One-time codes and sessions of a console, bounded in time, and in number for each token: no
//! holder of one ends the sessions of another. Secrets are kept as hashes, and each stands for a
//! token, also by its hash. Callers say what time it is.

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
/// Maximum number of codes, and of sessions, of a token.
const MAX_PER_TOKEN: usize = 16;

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

/// Entry of a table: it stands for a token, and has an age.
trait Entry {
    fn token(&self) -> &Hash;
    /// Beginning of its age.
    fn time(&self) -> Instant;
}

impl Entry for Code {
    fn token(&self) -> &Hash {
        &self.token
    }

    fn time(&self) -> Instant {
        self.created
    }
}

impl Entry for Session {
    fn token(&self) -> &Hash {
        &self.token
    }

    fn time(&self) -> Instant {
        self.used
    }
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
    pub(super) fn add_code(&self, secret: &str, now: Instant) -> String {
        self.add_code_for(hash(secret.as_bytes()), now)
    }

    /// Makes a code for the holder of the token with this hash.
    pub(super) fn add_code_for(&self, token: Hash, now: Instant) -> String {
        let code = random_id::new();
        let mut codes = lock(&self.codes);
        make_room(&mut codes, &token, CODE_LIFETIME, now);
        let created = now;
        codes.insert(hash(code.as_bytes()), Code { token, created });
        code
    }

    /// Uses a code up, and returns the hash of its token.
    pub(super) fn take_code(&self, code: &str, now: Instant) -> Option<Hash> {
        // Found by its hash, so that the time of the search tells nothing about the codes.
        let code = lock(&self.codes).remove(&hash(code.as_bytes()))?;
        is_valid(&code, CODE_LIFETIME, now).then_some(code.token)
    }

    /// Opens a session for the token with this hash.
    pub(super) fn open(&self, token: Hash, now: Instant) -> Opened {
        let opened = Opened {
            id: random_id::new(),
            key: random_id::new(),
        };
        let mut open = lock(&self.open);
        make_room(&mut open, &token, IDLE_TIMEOUT, now);
        let session = Session {
            token,
            key: hash(opened.key.as_bytes()),
            used: now,
        };
        open.insert(hash(opened.id.as_bytes()), session);
        opened
    }

    /// Returns the hash of the token of a session, if the page has its key.
    pub(super) fn find(&self, id: &str, key: &[u8], now: Instant) -> Option<Hash> {
        let mut open = lock(&self.open);
        let session = open.get_mut(&hash(id.as_bytes()))?;
        if !is_valid(session, IDLE_TIMEOUT, now) || !bool::from(session.key.ct_eq(&hash(key))) {
            return None;
        }
        session.used = now;
        Some(session.token)
    }

    /// Ends a session.
    pub(super) fn remove(&self, id: &str) {
        lock(&self.open).remove(&hash(id.as_bytes()));
    }
}

fn is_valid(entry: &impl Entry, lifetime: Duration, now: Instant) -> bool {
    now.saturating_duration_since(entry.time()) < lifetime
}

/// Removes expired entries, and the oldest of a token that has as many as it may have.
fn make_room<T: Entry>(
    entries: &mut BTreeMap<Hash, T>,
    token: &Hash,
    lifetime: Duration,
    now: Instant,
) {
    entries.retain(|_, entry| is_valid(entry, lifetime, now));
    let own = entries.iter().filter(|(_, entry)| entry.token() == token);
    if own.clone().count() < MAX_PER_TOKEN {
        return;
    }
    let oldest = own.min_by_key(|(_, entry)| entry.time());
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

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn code_opens_one_session() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let code = sessions.add_code("secret", now);
        assert_eq!(sessions.take_code("wrong", now), None);
        assert_eq!(sessions.take_code(&code, now), Some(hash(b"secret")));
        assert_eq!(sessions.take_code(&code, now), None);
    }

    #[test]
    fn code_is_valid_for_ten_minutes() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let [one, two] = ["one", "two"].map(|secret| sessions.add_code(secret, now));
        let end = now + Duration::from_secs(600);
        assert_eq!(sessions.take_code(&one, end - SECOND), Some(hash(b"one")));
        assert_eq!(sessions.take_code(&two, end), None);
    }

    #[test]
    fn session_ends_twelve_hours_after_its_last_use() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let Opened { id, key } = sessions.open(hash(b"one"), now);
        let find = |now| sessions.find(&id, key.as_bytes(), now);
        let half_day = Duration::from_secs(12 * 60 * 60);
        let used = now + half_day - SECOND;
        assert_eq!(find(used), Some(hash(b"one")));
        // A request without the key is no use.
        assert_eq!(sessions.find(&id, b"", used + SECOND), None);
        assert_eq!(find(used + half_day), None);
    }

    #[test]
    fn session_needs_its_cookie_and_its_key() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let one = sessions.open(hash(b"one"), now);
        let two = sessions.open(hash(b"two"), now);
        let find = |id: &str, key: &str| sessions.find(id, key.as_bytes(), now);
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
    fn tables_are_bounded_for_each_token() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let operator = sessions.open(hash(b"one"), now);
        let link = sessions.add_code("one", now);
        let first = sessions.open(hash(b"two"), now);
        let first_code = sessions.add_code("two", now);
        let later = now + SECOND;
        for _ in 0..MAX_PER_TOKEN {
            sessions.open(hash(b"two"), later);
            sessions.add_code("two", later);
        }
        assert_eq!(lock(&sessions.open).len(), MAX_PER_TOKEN + 1);
        assert_eq!(lock(&sessions.codes).len(), MAX_PER_TOKEN + 1);
        let find = |opened: &Opened| sessions.find(&opened.id, opened.key.as_bytes(), later);
        assert_eq!(find(&first), None);
        assert_eq!(sessions.take_code(&first_code, later), None);
        assert_eq!(find(&operator), Some(hash(b"one")));
        assert_eq!(sessions.take_code(&link, later), Some(hash(b"one")));
    }
}
