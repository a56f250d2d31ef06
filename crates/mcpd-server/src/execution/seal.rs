//! Sealed state: script state that a client carries from one round of questions to the next.
//! Encryption and authentication keep the client from reading or changing it, and from using it
//! for another request or after its expiry.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use mcpd_protocol::jsonrpc::ErrorObject;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

/// Lifetime of sealed state.
const STATE_LIFETIME: Duration = Duration::from_secs(3600);
const NONCE_LENGTH: usize = 24;

/// Key of the sealed state.
pub(crate) struct Seal {
    cipher: XChaCha20Poly1305,
}

/// Request that a state belongs to: the one of the same caller, repeated with answers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Binding<'a> {
    pub(crate) principal: &'a str,
    pub(crate) method: &'static str,
    /// Subject of the method, such as the path of a tool.
    pub(crate) name: &'a str,
    /// Arguments in canonical form.
    pub(crate) arguments: &'a [u8],
}

#[derive(Serialize, Deserialize)]
struct SealedState {
    /// Seconds since the epoch.
    expires: u64,
    state: Box<RawValue>,
}

impl Binding<'_> {
    /// Computed only when there is a state, because the arguments may be large.
    fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        let names = [self.principal, self.method, self.name].map(str::as_bytes);
        for part in names.into_iter().chain([self.arguments]) {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }
}

impl Seal {
    /// Derives the key from `secret`, of any length: servers that share it accept each other's
    /// state.
    pub(crate) fn new(secret: &[u8]) -> Self {
        let key = Key::from(<[u8; 32]>::from(Sha256::digest(secret)));
        Self {
            cipher: XChaCha20Poly1305::new(&key),
        }
    }

    /// Creates a random key.
    ///
    /// # Errors
    ///
    /// Fails if the system has no randomness.
    pub(crate) fn random() -> Result<Self, getrandom::Error> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        Ok(Self::new(&secret))
    }

    /// Seals a state for a client.
    ///
    /// # Errors
    ///
    /// `-32603` if the system has no randomness.
    pub(crate) fn seal_state(
        &self,
        state: Box<RawValue>,
        binding: Binding<'_>,
    ) -> Result<String, ErrorObject> {
        let failed =
            || ErrorObject::internal_error("the state of this request could not be sealed");
        let sealed = SealedState {
            expires: now() + STATE_LIFETIME.as_secs(),
            state,
        };
        let plain = serde_json::to_vec(&sealed).map_err(|_| failed())?;
        self.close(&plain, &binding.digest()).ok_or_else(failed)
    }

    /// Seals `plain` for a reader that knows `purpose`. `None` if the system has no randomness.
    pub(crate) fn close(&self, plain: &[u8], purpose: &[u8]) -> Option<String> {
        let mut nonce = [0; NONCE_LENGTH];
        getrandom::fill(&mut nonce).ok()?;
        let payload = Payload {
            msg: plain,
            aad: purpose,
        };
        let closed = self.cipher.encrypt(&XNonce::from(nonce), payload).ok()?;
        Some(URL_SAFE_NO_PAD.encode([&nonce[..], &closed].concat()))
    }

    /// Opens what [`close`](Self::close) has sealed for `purpose`. `None` for anything else.
    pub(crate) fn open(&self, sealed: &str, purpose: &[u8]) -> Option<Vec<u8>> {
        let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, closed) = bytes.split_first_chunk::<NONCE_LENGTH>()?;
        let payload = Payload {
            msg: closed,
            aad: purpose,
        };
        self.cipher.decrypt(&XNonce::from(*nonce), payload).ok()
    }

    /// Opens a state that a client has returned.
    ///
    /// # Errors
    ///
    /// `-32602` if it was not sealed here, altered, expired, or belongs to another request. The
    /// error does not distinguish these, because only an attacker benefits.
    pub(crate) fn unseal(
        &self,
        state: &str,
        binding: Binding<'_>,
    ) -> Result<Box<RawValue>, ErrorObject> {
        let refused = || {
            ErrorObject::invalid_params(
                "`requestState` is not valid for this request; start over without it",
            )
        };
        let plain = self.open(state, &binding.digest()).ok_or_else(refused)?;
        let sealed: SealedState = serde_json::from_slice(&plain).map_err(|_| refused())?;
        if sealed.expires < now() {
            Err(refused())
        } else {
            Ok(sealed.state)
        }
    }
}

/// Seconds since the epoch.
pub(super) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

/// Omits the key.
impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seal").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> Box<RawValue> {
        RawValue::from_string(r#"{"round":1,"big":12345678901234567890.5}"#.to_owned()).unwrap()
    }

    fn binding(arguments: &str) -> Binding<'_> {
        Binding {
            principal: "agent",
            method: "tools/call",
            name: "greet",
            arguments: arguments.as_bytes(),
        }
    }

    #[test]
    fn sealed_state_is_restored_exactly() {
        let seal = Seal::new(b"secret");
        let closed = seal.seal_state(state(), binding("{}")).unwrap();
        assert!(!closed.contains("round"));
        assert_eq!(
            seal.unseal(&closed, binding("{}")).unwrap().get(),
            state().get()
        );
        assert!(
            Seal::new(b"secret").unseal(&closed, binding("{}")).is_ok(),
            "replicas share the secret"
        );
    }

    #[test]
    fn forged_state_is_rejected() {
        let seal = Seal::new(b"secret");
        let closed = seal.seal_state(state(), binding("{}")).unwrap();
        assert!(
            seal.unseal(&closed, binding("[]")).is_err(),
            "other arguments"
        );
        let mut other = binding("{}");
        other.method = "prompts/get";
        assert!(seal.unseal(&closed, other).is_err(), "another method");
        other = binding("{}");
        other.principal = "somebody";
        assert!(seal.unseal(&closed, other).is_err(), "another caller");
        assert!(
            Seal::random()
                .unwrap()
                .unseal(&closed, binding("{}"))
                .is_err(),
            "another server"
        );
        for forged in ["", "x", "e30", "!!!", &closed[1..], &format!("{closed}A")] {
            assert!(seal.unseal(forged, binding("{}")).is_err(), "{forged}");
        }
        for position in 0..closed.len() {
            let mut altered = closed.clone().into_bytes();
            altered[position] = if altered[position] == b'A' {
                b'B'
            } else {
                b'A'
            };
            let altered = String::from_utf8(altered).unwrap();
            assert!(
                seal.unseal(&altered, binding("{}")).is_err(),
                "altered at {position}"
            );
        }
    }
}
