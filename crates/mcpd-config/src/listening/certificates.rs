//! Hot reload of the TLS certificate: the files are read again when they change and when the
//! configuration does. Faulty files leave the certificate in use.

use std::convert::Infallible;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use mcpd_server::transport::http::{ClientCertificates, Tls, TlsIdentity};
use mcpd_service::signals::Reload;

use crate::options::Certificates as Demand;

/// Poll interval of the files.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Paths of the files, all in PEM.
#[derive(Debug, Clone)]
pub(crate) struct CertificateFiles {
    /// Certificate of the server, with the chain to its authority.
    pub(crate) certificate: PathBuf,
    /// Private key of the certificate.
    pub(crate) key: PathBuf,
    /// Authorities of clients, and whether clients must present a certificate.
    pub(crate) clients: Option<(PathBuf, Demand)>,
}

impl CertificateFiles {
    fn read(&self) -> anyhow::Result<TlsIdentity> {
        let read = |path: &Path| {
            fs::read(path).with_context(|| format!("read the file `{}`", path.display()))
        };
        let mut identity = TlsIdentity::new(read(&self.certificate)?, read(&self.key)?);
        if let Some((path, demand)) = &self.clients {
            identity.clients = match demand {
                Demand::Optional => ClientCertificates::Optional(read(path)?),
                Demand::Required => ClientCertificates::Required(read(path)?),
            };
        }
        Ok(identity)
    }

    fn tls(&self, identity: &TlsIdentity) -> anyhow::Result<Tls> {
        Tls::new(identity).with_context(|| format!("serve `{}`", self.certificate.display()))
    }
}

/// The certificate in use, and the state of its files.
#[derive(Debug)]
pub struct TlsCertificates {
    files: CertificateFiles,
    /// Content of the files at the last poll, valid or not.
    seen: Option<TlsIdentity>,
    tls: Tls,
}

impl TlsCertificates {
    /// Loads the files.
    ///
    /// # Errors
    ///
    /// They can't be read, or do not fit together.
    pub(crate) fn load(files: CertificateFiles) -> anyhow::Result<Self> {
        let identity = files.read()?;
        Ok(Self {
            tls: files.tls(&identity)?,
            seen: Some(identity),
            files,
        })
    }

    /// TLS settings of connections; they follow the files.
    pub fn tls(&self) -> &Tls {
        &self.tls
    }

    /// Follows the files for ever: reads them when they change, and when a signal requests a
    /// reload.
    ///
    /// # Errors
    ///
    /// The system refuses to deliver reload signals.
    pub async fn follow(mut self) -> io::Result<Infallible> {
        let mut reload = Reload::listen()?;
        loop {
            let asked = tokio::time::timeout(POLL_INTERVAL, reload.wait()).await;
            self.reload(asked.is_ok()).await;
        }
    }

    /// Reads the files again, and uses the certificate if they are new and valid. An invalid file
    /// is logged once, and at every request by a user (`is_asked`).
    async fn reload(&mut self, is_asked: bool) {
        let files = self.files.clone();
        if let Ok(read) = tokio::task::spawn_blocking(move || files.read()).await {
            self.refresh(read, is_asked);
        }
    }

    /// Replaces the certificate if the files are valid and new. Reports invalid files once, and on
    /// every explicit reload.
    fn refresh(&mut self, read: anyhow::Result<TlsIdentity>, is_asked: bool) {
        let found = read.as_ref().ok().cloned();
        let is_new = found != self.seen;
        self.seen = found;
        if !is_new && !is_asked {
            return;
        }
        match read.and_then(|identity| self.files.tls(&identity)) {
            Ok(tls) if is_new => {
                self.tls.replace(&tls);
                tracing::info!("TLS certificate reloaded; new connections use it");
            }
            Ok(_) => {}
            Err(error) => tracing::error!(
                "TLS certificate not reloaded, still using the previous one: failed to {error:#}"
            ),
        }
    }
}
