//! The certificate that the server shows, as long as the files are good for one. They are read again when they change,
//! and when the configuration is.

use std::convert::Infallible;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use mcpd_server::transport::http::{ClientCertificates, Identity, Tls};

use crate::args::Certificates as Demand;
use crate::signals::Reload;

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(5);

/// Where everything is; all of it in PEM.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    /// The authorities of clients, and whether they have to show a certificate.
    pub(crate) clients: Option<(PathBuf, Demand)>,
}

impl Files {
    fn read(&self) -> anyhow::Result<Identity> {
        let read = |path: &Path| {
            fs::read(path).with_context(|| format!("read the file `{}`", path.display()))
        };
        let mut identity = Identity::new(read(&self.certificate)?, read(&self.key)?);
        if let Some((path, demand)) = &self.clients {
            identity.clients = match demand {
                Demand::Optional => ClientCertificates::Optional(read(path)?),
                Demand::Required => ClientCertificates::Required(read(path)?),
            };
        }
        Ok(identity)
    }

    fn tls(&self, identity: &Identity) -> anyhow::Result<Tls> {
        Tls::new(identity).with_context(|| format!("serve `{}`", self.certificate.display()))
    }
}

/// What is shown now.
#[derive(Debug)]
pub(crate) struct Certificates {
    files: Files,
    /// What was last in them, good or not.
    seen: Option<Identity>,
    tls: Tls,
}

impl Certificates {
    /// What is in these files.
    ///
    /// # Errors
    ///
    /// They can't be read, or make no sense together.
    pub(crate) fn load(files: Files) -> anyhow::Result<Self> {
        let identity = files.read()?;
        Ok(Self {
            tls: files.tls(&identity)?,
            seen: Some(identity),
            files,
        })
    }

    /// What connections are encrypted with; it follows the files.
    pub(crate) fn tls(&self) -> &Tls {
        &self.tls
    }

    /// Follows the files for ever.
    ///
    /// # Errors
    ///
    /// Nobody can be told of changes.
    pub(crate) async fn follow(mut self) -> io::Result<Infallible> {
        let mut reload = Reload::listen()?;
        loop {
            let is_asked = tokio::time::timeout(LOOK, reload.requested()).await.is_ok();
            let files = self.files.clone();
            let read = tokio::task::spawn_blocking(move || files.read());
            self.refresh(read.await.map_err(io::Error::other)?, is_asked);
        }
    }

    /// Shows what is in the files if that is good and new. Of what is no good it speaks once, and whenever it is asked.
    fn refresh(&mut self, read: anyhow::Result<Identity>, is_asked: bool) {
        let found = read.as_ref().ok().cloned();
        let is_new = found != self.seen;
        self.seen = found;
        if !is_new && !is_asked {
            return;
        }
        match read.and_then(|identity| self.files.tls(&identity)) {
            Ok(tls) if is_new => {
                self.tls.replace(&tls);
                tracing::info!("new connections are shown the certificate that is there now");
            }
            Ok(_) => {}
            Err(error) => tracing::error!("the certificate stays as it was: failed to {error:#}"),
        }
    }
}
