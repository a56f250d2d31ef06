//! Sealed ids of sessions: an id holds what the client has said of itself, so that any server with
//! the same key can continue with the session. What else a session has stays where it came about:
//! subscriptions, the log level, remembered approvals, events to resume.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcpd_protocol::{ClientCapabilities, Implementation, ProtocolVersion};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::client::session::{Introduction, Session};
use crate::execution::seal::Seal;
use crate::policy::principal::Principal;
use crate::support::random_id::hex;

/// Time for which a sealed id can be opened where the session is not known.
const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum length of a sealed id: intermediaries limit the size of headers. A client that says
/// more of itself has a session here alone.
const MAX_LENGTH: usize = 4096;
/// Mark between the name of the server and the sealed part, which neither has.
const MARK: char = '~';

#[derive(Serialize, Deserialize)]
struct Sealed {
    version: String,
    capabilities: ClientCapabilities,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client: Option<Implementation>,
    lists: bool,
    /// Seconds since 1970.
    begun: u64,
}

fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}

/// Returns what an id is sealed for: the server in it, and its owner.
fn purpose(server: &str, owner: &Principal) -> Vec<u8> {
    ["mcpd session", server, owner.name()].join("\0").into()
}

/// Returns the id of a session that begins at `server`, if it can be sealed.
pub(in super::super) fn seal(
    seal: &Seal,
    server: &str,
    session: &Session,
    owner: &Principal,
) -> Option<String> {
    let sealed = Sealed {
        version: session.version.as_str().to_owned(),
        capabilities: ClientCapabilities::clone(&session.capabilities),
        client: session.client.as_deref().cloned(),
        lists: session.has_list_changes,
        begun: now(),
    };
    let plain = serde_json::to_vec(&sealed).ok()?;
    let closed = seal.close(&plain, &purpose(server, owner))?;
    let id = format!("{server}-{MARK}{closed}");
    (id.len() <= MAX_LENGTH).then_some(id)
}

/// Opens an id that any server with the same key has sealed for `owner`.
pub(in super::super) fn open(seal: &Seal, id: &str, owner: &Principal) -> Option<Introduction> {
    if id.len() > MAX_LENGTH {
        return None;
    }
    let (server, closed) = id.split_once(MARK)?;
    let plain = seal.open(closed, &purpose(server.strip_suffix('-')?, owner))?;
    let sealed: Sealed = serde_json::from_slice(&plain).ok()?;
    if sealed.begun.saturating_add(LIFETIME.as_secs()) < now() {
        return None;
    }
    let version: ProtocolVersion = sealed.version.parse().ok()?;
    Some(Introduction {
        version,
        capabilities: sealed.capabilities,
        client: sealed.client,
        is_given: true,
        has_list_changes: sealed.lists,
    })
}

/// Returns the name of a session in events, which is no credential.
pub(in super::super) fn name_of(id: &str) -> String {
    hex(&Sha256::digest(id.as_bytes())[..16])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::client::subscribers::Subscribers;

    fn session() -> Session {
        let mut introduction = Introduction::none(ProtocolVersion::LATEST_STATEFUL);
        introduction.has_list_changes = true;
        let subscribers = Arc::new(Subscribers::default());
        Session::new(introduction, &Principal::new("ada"), &subscribers)
    }

    #[test]
    fn sealed_id_is_opened_with_the_same_key_for_its_owner_alone() {
        let (key, ada) = (Seal::new(b"one"), Principal::new("ada"));
        let id = seal(&key, "front-1", &session(), &ada).unwrap();
        assert!(id.starts_with("front-1-") && id.is_ascii());
        let opened = open(&Seal::new(b"one"), &id, &ada).unwrap();
        assert_eq!(opened.version, ProtocolVersion::LATEST_STATEFUL);
        assert!(opened.is_given && opened.has_list_changes);
        assert!(open(&key, &id, &Principal::new("bob")).is_none());
        assert!(open(&Seal::new(b"two"), &id, &ada).is_none());
        assert_ne!(id, seal(&key, "front-1", &session(), &ada).unwrap());
    }

    #[test]
    fn altered_id_is_refused() {
        let (key, ada) = (Seal::new(b"one"), Principal::new("ada"));
        let id = seal(&key, "front-1", &session(), &ada).unwrap();
        for position in 0..id.len() {
            let mut altered = id.clone().into_bytes();
            altered[position] = if altered[position] == b'A' {
                b'B'
            } else {
                b'A'
            };
            let altered = String::from_utf8(altered).unwrap();
            assert!(
                open(&key, &altered, &ada).is_none(),
                "altered at {position}"
            );
        }
        let long = format!("{id}{}", "A".repeat(MAX_LENGTH));
        for forged in ["", "~", "front-1-", "front-1-~", &id[1..], &long] {
            assert!(open(&key, forged, &ada).is_none(), "{forged}");
        }
    }
}
