//! Cryptography provider for JWT signatures: ring, which TLS needs anyway.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use ring::signature::{self as ring_signature, RsaParameters, RsaPublicKeyComponents};
use ring::signature::{UnparsedPublicKey, VerificationAlgorithm};
use signature::Verifier;

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| unsupported_error(),
    verifier_factory: |algorithm, key| {
        Ok(Box::new(Signature {
            algorithm: *algorithm,
            key: key.clone(),
        }))
    },
    key_utils: KeyUtils {
        rsa_pub_components_from_private_key: |_| unsupported_error(),
        rsa_pub_components_from_public_key: |_| unsupported_error(),
        ec_pub_components_from_private_key: |_, _| unsupported_error(),
        ed_pub_components_from_private_key: |_, _| unsupported_error(),
        compute_digest: |_, _| unsupported_error(),
    },
};

/// Installs the provider. An embedding program may have installed another one already, which is
/// fine.
pub(super) fn install() {
    PROVIDER.install_default().ok();
}

fn unsupported_error<T>() -> Result<T, Error> {
    Err(ErrorKind::UnsupportedAlgorithm.into())
}

/// Verifier of signatures of one algorithm with one key.
struct Signature {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl JwtVerifier for Signature {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for Signature {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let verified = match (self.key.kind(), rsa(self.algorithm), curve(self.algorithm)) {
            (DecodingKeyKind::RsaModulusExponent { n, e }, Some(parameters), _) => {
                let key = RsaPublicKeyComponents {
                    n: without_zeros(n),
                    e: without_zeros(e),
                };
                key.verify(parameters, message, signature)
            }
            (DecodingKeyKind::SecretOrDer(point), _, Some(curve)) => {
                UnparsedPublicKey::new(curve, point).verify(message, signature)
            }
            _ => return Err(signature::Error::new()),
        };
        verified.map_err(|_| signature::Error::new())
    }
}

/// Returns the parameters for an RSA algorithm, which exclude keys of fewer than 2048 bits.
fn rsa(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        Algorithm::RS256 => &ring_signature::RSA_PKCS1_2048_8192_SHA256,
        Algorithm::RS384 => &ring_signature::RSA_PKCS1_2048_8192_SHA384,
        Algorithm::RS512 => &ring_signature::RSA_PKCS1_2048_8192_SHA512,
        Algorithm::PS256 => &ring_signature::RSA_PSS_2048_8192_SHA256,
        Algorithm::PS384 => &ring_signature::RSA_PSS_2048_8192_SHA384,
        Algorithm::PS512 => &ring_signature::RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}

fn curve(algorithm: Algorithm) -> Option<&'static dyn VerificationAlgorithm> {
    Some(match algorithm {
        Algorithm::ES256 => &ring_signature::ECDSA_P256_SHA256_FIXED,
        Algorithm::ES384 => &ring_signature::ECDSA_P384_SHA384_FIXED,
        Algorithm::EdDSA => &ring_signature::ED25519,
        _ => return None,
    })
}

/// Strips leading zeros, which some issuers write.
fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}
