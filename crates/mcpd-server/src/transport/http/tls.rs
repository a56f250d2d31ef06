//! TLS: the server's certificate, and verification of client certificates.

use std::fmt;
use std::io;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::auth::Hash;
use crate::server::error::Error;

/// HTTP/2 and HTTP/1, negotiated in the TLS handshake (ALPN).
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Certificate of the server and requirements on clients, in PEM. The key is omitted from
/// `Debug`.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsIdentity {
    /// Certificate of the server, and the chain to an authority that clients trust.
    pub certificates: Vec<u8>,
    /// Private key of the first certificate.
    pub key: Vec<u8>,
    /// Handling of client certificates.
    pub clients: ClientCertificates,
}

/// Handling of client certificates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientCertificates {
    /// No certificate is requested.
    #[default]
    Unasked,
    /// A certificate is optional, and must come from one of these authorities, in PEM.
    Optional(Vec<u8>),
    /// A certificate of one of these authorities, in PEM, is required to connect.
    Required(Vec<u8>),
}

impl TlsIdentity {
    /// Creates an identity without client certificates.
    #[must_use]
    pub fn new(certificates: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        Self {
            certificates: certificates.into(),
            key: key.into(),
            clients: ClientCertificates::default(),
        }
    }
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsIdentity")
            .field("clients", &self.clients)
            .finish_non_exhaustive()
    }
}

/// Encryption by TLS 1.2 or 1.3. All clones share the configuration, so that it can be replaced
/// while in use.
#[derive(Debug, Clone)]
pub struct Tls {
    config: Arc<ArcSwap<ServerConfig>>,
}

impl Tls {
    /// Creates the configuration for `identity`.
    ///
    /// # Errors
    ///
    /// The certificate or the key is missing, or they do not belong together.
    pub fn new(identity: &TlsIdentity) -> Result<Self, Error> {
        let config = config(identity).map_err(Error::Tls)?;
        Ok(Self {
            config: Arc::new(ArcSwap::from_pointee(config)),
        })
    }

    /// Switches to the configuration of `other`, from the next connection on.
    pub fn replace(&self, other: &Self) {
        self.config.store(other.config.load_full());
    }

    /// Performs the handshake with a client.
    pub(super) async fn accept<S>(&self, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        TlsAcceptor::from(self.config.load_full())
            .accept(stream)
            .await
    }
}

/// Returns the hash of the verified client certificate.
pub(super) fn certificate<S>(stream: &TlsStream<S>) -> Option<Hash> {
    let (_, connection) = stream.get_ref();
    let shown = connection.peer_certificates()?.first()?;
    Some(Sha256::digest(shown).into())
}

/// Builds the configuration; an error is a fragment.
fn config(identity: &TlsIdentity) -> Result<ServerConfig, String> {
    let certificates = certificates(&identity.certificates)?;
    let key = PrivateKeyDer::from_pem_slice(&identity.key)
        .map_err(|error| format!("no usable key: {error}"))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_client_cert_verifier(verifier(&identity.clients)?)
        .with_single_cert(certificates, key)
        .map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                "the key belongs to another certificate".to_owned()
            }
            error => error.to_string(),
        })?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
    if identity.clients != ClientCertificates::Unasked {
        // A resumed TLS session presents no certificate, so an expired one would go unnoticed:
        // resumption is off.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(config)
}

/// Parses certificates, at least one.
fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("no usable certificate: {error}"))?;
    if certificates.is_empty() {
        return Err("no certificate found".to_owned());
    }
    Ok(certificates)
}

fn verifier(clients: &ClientCertificates) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let (authorities, is_optional) = match clients {
        ClientCertificates::Unasked => return Ok(WebPkiClientVerifier::no_client_auth()),
        ClientCertificates::Optional(authorities) => (authorities, true),
        ClientCertificates::Required(authorities) => (authorities, false),
    };
    let wrong = |error: String| format!("use the certificate authorities of clients: {error}");
    let mut roots = RootCertStore::empty();
    for authority in certificates(authorities).map_err(wrong)? {
        roots
            .add(authority)
            .map_err(|error| wrong(error.to_string()))?;
    }
    let provider = Arc::new(ring::default_provider());
    let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    if is_optional {
        builder = builder.allow_unauthenticated();
    }
    builder.build().map_err(|error| wrong(error.to_string()))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertifiedKey, generate_simple_self_signed};

    use super::*;

    fn issue_certificate() -> (String, String) {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (cert.pem(), signing_key.serialize_pem())
    }

    #[track_caller]
    fn check(identity: &TlsIdentity, refused: Option<&str>) {
        let error = Tls::new(identity).err().map(|error| error.to_string());
        let expected = refused.map(|reason| format!("use the certificate: {reason}"));
        assert_eq!(error, expected);
    }

    #[test]
    fn certificate_and_key_are_required() {
        let ((certificate, key), (_, other_key)) = (issue_certificate(), issue_certificate());
        let identity = |certificate: &str, key: &str| TlsIdentity::new(certificate, key);
        check(&identity(&certificate, &key), None);
        check(&identity(&format!("{certificate}{key}"), &key), None);
        let mismatch = "the key belongs to another certificate";
        check(&identity(&certificate, &other_key), Some(mismatch));
        check(&identity("", &key), Some("no certificate found"));
        check(&identity(&key, &key), Some("no certificate found"));
        let no_key = "no usable key: no items found";
        check(&identity(&certificate, &certificate), Some(no_key));
        assert!(!format!("{:?}", identity(&certificate, &key)).contains("key"));
    }

    #[test]
    fn client_authorities_must_be_certificates() {
        let (certificate, key) = issue_certificate();
        let with = |clients| TlsIdentity {
            clients,
            ..TlsIdentity::new(&*certificate, &*key)
        };
        let authorities = || certificate.clone().into_bytes();
        check(&with(ClientCertificates::Optional(authorities())), None);
        check(&with(ClientCertificates::Required(authorities())), None);
        let none = "use the certificate authorities of clients: no certificate found";
        check(&with(ClientCertificates::Required(Vec::new())), Some(none));
    }
}
