//! Discovery file for local programs: the address of a running server and the path of its token.
//! It exists as long as the server runs.

use std::convert::Infallible;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process;
use std::time::Duration;

use anyhow::Context as _;
use mcpd_protocol::ServerCapabilities;
use mcpd_server::Server;
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::listening::Address;
use crate::{directories, private_file};

/// Poll interval of the file, to restore a missing one.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Content of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Discovery {
    /// URL to connect to.
    pub url: String,
    /// Unix domain socket to connect to, instead of the host in the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<PathBuf>,
    /// Path of the token; never the token itself.
    pub token_path: Option<PathBuf>,
    /// Process of the server.
    pub pid: u32,
    /// Version of mcpd.
    pub version: String,
    /// Capabilities of the server.
    pub capabilities: ServerCapabilities,
}

impl Discovery {
    /// Describes `server`, which listens at `address`, for discovery.
    pub fn new(server: &Server, address: &Address, token_path: Option<&Path>) -> Self {
        Self {
            url: address.url(),
            socket: address.file().map(Path::to_owned),
            token_path: token_path.map(|path| std::path::absolute(path).unwrap_or(path.into())),
            pid: process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            capabilities: server.capabilities(),
        }
    }

    /// Reads the file of a server that still runs. The file of a killed server does not count.
    ///
    /// # Errors
    ///
    /// There is no directory for it, or the file can't be read.
    pub fn read_running() -> anyhow::Result<Option<Self>> {
        let file = file()?;
        let text = match fs::read(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.with_context(|| format!("read `{}`", file.display()))?,
        };
        // A newer mcpd may use another format.
        let found: Option<Self> = serde_json::from_slice(&text).ok();
        Ok(found.filter(|found| is_running(found.pid)))
    }

    /// Writes the file. Dropping the returned guard removes it.
    ///
    /// # Errors
    ///
    /// The file can't be written.
    pub fn publish(self) -> anyhow::Result<Published> {
        if let Some(other) = Self::read_running()? {
            tracing::info!(
                pid = other.pid,
                "this server replaces another one in the discovery file"
            );
        }
        self.write()?;
        Ok(Published(self))
    }

    fn write(&self) -> anyhow::Result<()> {
        let file = file()?;
        let text =
            serde_json::to_string_pretty(self).context("encode the address of the server")?;
        private_file::replace(&file, format!("{text}\n").as_bytes())
            .with_context(|| format!("write `{}`", file.display()))
    }

    /// Writes the file again if it names no running server, and returns whether it did.
    fn restore(&self) -> anyhow::Result<bool> {
        let is_lost = Self::read_running()?.is_none();
        if is_lost {
            self.write()?;
        }
        Ok(is_lost)
    }
}

/// Path of the file: `$XDG_STATE_HOME/mcpd/server.json`.
fn file() -> anyhow::Result<PathBuf> {
    Ok(directories::state()?.join("server.json"))
}

/// Guard of the published file.
#[derive(Debug)]
pub struct Published(Discovery);

impl Published {
    /// Restores the file after a later server has replaced and removed it, for ever.
    pub async fn restore_when_lost(&self) -> Infallible {
        loop {
            sleep(POLL_INTERVAL).await;
            let discovery = self.0.clone();
            match spawn_blocking(move || discovery.restore()).await {
                Ok(Ok(true)) => tracing::info!("this server is back in the discovery file"),
                Ok(Err(error)) => tracing::debug!("failed to {error:#}"),
                _ => {}
            }
        }
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        // Another server may have replaced the file meanwhile.
        if let (Ok(file), Ok(Some(found))) = (file(), Discovery::read_running())
            && found.pid == self.0.pid
        {
            fs::remove_file(file).ok();
        }
    }
}

#[cfg(unix)]
fn is_running(pid: u32) -> bool {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    // A process of another user can't be signalled, but it runs.
    pid.is_some_and(|pid| {
        rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH) && is_mcpd(pid)
    })
}

/// Returns whether the process has the name of this one. Another program may have the process ID
/// of a killed server by now.
#[cfg(unix)]
fn is_mcpd(pid: rustix::process::Pid) -> bool {
    let name = |process: &str| fs::read(format!("/proc/{process}/comm"));
    match (name(&pid.to_string()), name("self")) {
        (Ok(theirs), Ok(ours)) => theirs == ours,
        // Not every system has this file.
        _ => true,
    }
}

/// This system has no check.
#[cfg(not(unix))]
fn is_running(_: u32) -> bool {
    true
}
