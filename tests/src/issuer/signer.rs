//! Private keys and their public counterparts.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair as _, RSA_PKCS1_SHA256, RSA_PSS_SHA384, RsaKeyPair,
};
use serde_json::{Value, json};

/// Test key, because the library can't generate RSA keys.
const RSA: &[u8] = include_bytes!("rsa.pk8");

/// Signature algorithm of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "tests name all of them")]
pub enum Algorithm {
    /// ECDSA over P-256.
    Es256,
    /// ECDSA over P-384.
    Es384,
    /// Ed25519.
    EdDsa,
    /// RSA, PKCS #1.
    Rs256,
    /// RSA, PSS.
    Ps384,
}

impl Algorithm {
    /// One of each kind.
    pub const ALL: [Self; 5] = [
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
        Self::Rs256,
        Self::Ps384,
    ];

    /// Returns its name in token headers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
            Self::Rs256 => "RS256",
            Self::Ps384 => "PS384",
        }
    }
}

#[derive(Debug)]
pub(super) struct Signer {
    algorithm: Algorithm,
    key: Key,
}

#[derive(Debug)]
enum Key {
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(RsaKeyPair),
}

impl Signer {
    pub(super) fn new(algorithm: Algorithm) -> Self {
        let random = SystemRandom::new();
        let ecdsa = |kind| {
            let pair = EcdsaKeyPair::generate_pkcs8(kind, &random).expect("a key");
            Key::Ecdsa(EcdsaKeyPair::from_pkcs8(kind, pair.as_ref(), &random).expect("a key"))
        };
        let key = match algorithm {
            Algorithm::Es256 => ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING),
            Algorithm::Es384 => ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING),
            Algorithm::EdDsa => {
                let pair = Ed25519KeyPair::generate_pkcs8(&random).expect("a key");
                Key::Ed25519(Ed25519KeyPair::from_pkcs8(pair.as_ref()).expect("a key"))
            }
            Algorithm::Rs256 | Algorithm::Ps384 => {
                Key::Rsa(RsaKeyPair::from_pkcs8(RSA).expect("a key"))
            }
        };
        Self { algorithm, key }
    }

    pub(super) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    pub(super) fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.key {
            Key::Ecdsa(key) => key
                .sign(&random, message)
                .expect("a signature")
                .as_ref()
                .to_vec(),
            Key::Ed25519(key) => key.sign(message).as_ref().to_vec(),
            Key::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                let signed = match self.algorithm {
                    Algorithm::Ps384 => key.sign(&RSA_PSS_SHA384, &random, message, &mut signature),
                    _ => key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature),
                };
                signed.expect("a signature");
                signature
            }
        }
    }

    /// Returns the public key as a JSON Web Key without a key id.
    pub(super) fn public_key(&self) -> Value {
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match &self.key {
            Key::Ecdsa(key) => {
                let point = &key.public_key().as_ref()[1..];
                let (x, y) = point.split_at(point.len() / 2);
                let curve = if x.len() == 32 { "P-256" } else { "P-384" };
                json!({"kty": "EC", "crv": curve, "x": encode(x), "y": encode(y)})
            }
            Key::Ed25519(key) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": encode(key.public_key().as_ref())})
            }
            Key::Rsa(key) => {
                let numbers: PublicKeyComponents<Vec<u8>> = key.public().into();
                let [n, e] = [numbers.n, numbers.e].map(|number| encode(&number));
                json!({"kty": "RSA", "use": "sig", "alg": self.algorithm.name(), "n": n, "e": e})
            }
        }
    }
}
