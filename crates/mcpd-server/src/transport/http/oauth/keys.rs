//! Keys of an issuer (JSON Web Key Set, RFC 7517), and the choice of the key for a token.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

use super::token::Header;

/// Maximum number of keys in a set.
const MAX_KEYS: usize = 64;

/// Key with the algorithms that it may be used for. The header of a token adds none.
#[derive(Debug, Clone)]
pub(super) struct Key {
    id: Option<String>,
    pub(super) algorithms: Vec<Algorithm>,
    pub(super) key: DecodingKey,
}

/// Usable keys of an issuer.
#[derive(Debug)]
pub(super) struct Keys(Vec<Key>);

/// Reason why there is no key for a token.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoKey {
    /// The issuer may have published one since.
    Unknown,
    /// Another fetch would not help.
    Unfit(&'static str),
}

impl Keys {
    /// Parses the usable keys of a set. Keys of unknown kinds are allowed, and ignored.
    ///
    /// # Errors
    ///
    /// The text is not a key set, or the set is too large.
    pub(super) fn parse(json: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct KeySetJson {
            keys: Vec<Value>,
        }
        let set: KeySetJson =
            serde_json::from_slice(json).map_err(|_| "it is not a JSON Web Key Set")?;
        if set.keys.len() > MAX_KEYS {
            return Err(format!("it has more than {MAX_KEYS} keys"));
        }
        Ok(Self(set.keys.into_iter().filter_map(Key::new).collect()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the key that `header` names, or without a name the only one that fits.
    pub(super) fn find(&self, header: &Header) -> Result<&Key, NoKey> {
        let fits = |key: &&Key| key.algorithms.contains(&header.algorithm);
        let Some(id) = &header.key_id else {
            let mut fitting = self.0.iter().filter(fits);
            let key = fitting.next().ok_or(NoKey::Unknown)?;
            return match fitting.next() {
                None => Ok(key),
                Some(_) => Err(NoKey::Unfit("the token does not name its key (`kid`)")),
            };
        };
        let mut named = self
            .0
            .iter()
            .filter(|key| key.id.as_ref() == Some(id))
            .peekable();
        if named.peek().is_none() {
            return Err(NoKey::Unknown);
        }
        named.find(fits).ok_or(NoKey::Unfit(
            "the key of the token is for another algorithm",
        ))
    }
}

impl Key {
    fn new(json: Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(json).ok()?;
        let common = &jwk.common;
        let is_for_signatures = common
            .public_key_use
            .as_ref()
            .is_none_or(|usage| *usage == PublicKeyUse::Signature)
            && common
                .key_operations
                .as_ref()
                .is_none_or(|operations| operations.contains(&KeyOperations::Verify));
        if !is_for_signatures {
            return None;
        }
        let mut algorithms = algorithms(&jwk.algorithm);
        if let Some(only) = &common.key_algorithm {
            let only: Algorithm = only.to_string().parse().ok()?;
            algorithms.retain(|algorithm| *algorithm == only);
        }
        if algorithms.is_empty() {
            return None;
        }
        Some(Self {
            id: common.key_id.clone(),
            algorithms,
            key: DecodingKey::from_jwk(&jwk).ok()?,
        })
    }
}

/// Algorithms of a kind of key. None of them uses a shared secret, so that no public key can be
/// used as one (algorithm confusion).
fn algorithms(parameters: &AlgorithmParameters) -> Vec<Algorithm> {
    match parameters {
        AlgorithmParameters::RSA(_) => AlgorithmFamily::Rsa.algorithms().to_vec(),
        AlgorithmParameters::EllipticCurve(key) => match key.curve {
            EllipticCurve::P256 => vec![Algorithm::ES256],
            EllipticCurve::P384 => vec![Algorithm::ES384],
            _ => Vec::new(),
        },
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            vec![Algorithm::EdDSA]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Parses a set of these keys, each completed with the members that its kind requires.
    fn set(keys: &[Value]) -> Keys {
        let whole = |key: &Value| {
            let mut whole = json!({"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA", "n": "AA", "e": "AQAB", "k": "AA"});
            whole
                .as_object_mut()
                .unwrap()
                .extend(key.as_object().unwrap().clone());
            whole
        };
        let keys: Vec<_> = keys.iter().map(whole).collect();
        Keys::parse(json!({"keys": keys}).to_string().as_bytes()).unwrap()
    }

    fn header(key_id: Option<&str>, algorithm: Algorithm) -> Header {
        Header {
            key_id: key_id.map(str::to_owned),
            algorithm,
        }
    }

    #[test]
    fn key_algorithms_follow_kind_and_declaration() {
        #[track_caller]
        fn check(key: &Value, expected: &[Algorithm]) {
            let keys = set(std::slice::from_ref(key));
            let algorithms = keys.0.first().map_or(&[][..], |key| &key.algorithms);
            assert_eq!(algorithms, expected, "{key}");
        }
        check(&json!({}), &[Algorithm::ES256]);
        check(&json!({"crv": "P-384"}), &[Algorithm::ES384]);
        check(
            &json!({"kty": "OKP", "crv": "Ed25519"}),
            &[Algorithm::EdDSA],
        );
        check(&json!({"kty": "RSA", "alg": "PS256"}), &[Algorithm::PS256]);
        check(&json!({"kty": "RSA"}), AlgorithmFamily::Rsa.algorithms());
        check(
            &json!({"use": "sig", "key_ops": ["verify"]}),
            &[Algorithm::ES256],
        );
        for unusable in [
            json!({"kty": "oct"}),
            json!({"kty": "oct", "alg": "HS256"}),
            json!({"kty": "RSA", "alg": "HS256"}),
            json!({"kty": "RSA", "alg": "RSA-OAEP"}),
            json!({"kty": "RSA", "n": "*"}),
            json!({"alg": "ES384"}),
            json!({"alg": "none"}),
            json!({"crv": "P-521"}),
            json!({"crv": "secp256k1"}),
            json!({"use": "enc"}),
            json!({"key_ops": ["sign"]}),
            json!({"kty": "AKP"}),
        ] {
            check(&unusable, &[]);
        }
    }

    #[test]
    fn key_is_found_by_id_or_if_it_is_the_only_one() {
        let keys = set(&[
            json!({"kid": "a"}),
            json!({"kid": "../../etc/passwd", "kty": "RSA"}),
            json!({"kid": "a", "crv": "P-384"}),
            json!({"crv": "P-384"}),
        ]);
        let find = |id, algorithm| {
            keys.find(&header(id, algorithm))
                .map(|key| key.id.as_deref())
        };
        assert_eq!(find(Some("a"), Algorithm::ES256), Ok(Some("a")));
        assert_eq!(find(Some("a"), Algorithm::ES384), Ok(Some("a")));
        assert_eq!(
            find(Some("../../etc/passwd"), Algorithm::RS256),
            Ok(Some("../../etc/passwd"))
        );
        assert_eq!(find(Some("b"), Algorithm::ES256), Err(NoKey::Unknown));
        assert!(matches!(
            find(Some("a"), Algorithm::RS256),
            Err(NoKey::Unfit(_))
        ));
        assert_eq!(find(None, Algorithm::PS512), Ok(Some("../../etc/passwd")));
        assert_eq!(find(None, Algorithm::EdDSA), Err(NoKey::Unknown));
        assert!(matches!(find(None, Algorithm::ES384), Err(NoKey::Unfit(_))));
    }

    #[test]
    fn malformed_key_set_is_refused() {
        for wrong in ["", "[]", "{}", r#"{"keys": 1}"#] {
            assert!(Keys::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
        let keys = |count| json!({"keys": vec![1; count]}).to_string();
        assert!(Keys::parse(keys(MAX_KEYS).as_bytes()).is_ok());
        assert!(Keys::parse(keys(MAX_KEYS + 1).as_bytes()).is_err());
    }
}
