//! Hot reload of the TLS certificate: the files are read again when they change and when the
//! configuration does.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use mcpd_config::listening::TlsCertificates;

use mcpd_service::signals::Reload;

/// Poll interval of the files.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Follows the files for ever.
///
/// # Errors
///
/// The system refuses to deliver reload signals.
pub(crate) async fn follow(mut certificates: TlsCertificates) -> io::Result<Infallible> {
    let mut reload = Reload::listen()?;
    loop {
        let asked = tokio::time::timeout(POLL_INTERVAL, reload.wait()).await;
        certificates.reload(asked.is_ok()).await;
    }
}
