//! Where a server is, for programs that look for one: a file with its address and the place of its token, there as long
//! as the server is.

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

use crate::sockets::Address;
use crate::{directories, private_file};

/// How often a server looks whether one is found.
const LOOK: Duration = Duration::from_secs(2);

/// What the file says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Discovery {
    pub(crate) url: String,
    /// What to connect with instead of the host of the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) socket: Option<PathBuf>,
    /// Where the token is; never the token itself.
    pub(crate) token_path: Option<PathBuf>,
    pub(crate) pid: u32,
    pub(crate) version: String,
    pub(crate) capabilities: ServerCapabilities,
}

impl Discovery {
    /// What this process has to say of `server`, which listens at `address`.
    pub(crate) fn new(server: &Server, address: &Address, token_path: Option<&Path>) -> Self {
        Self {
            url: address.url(),
            socket: address.file().map(Path::to_owned),
            token_path: token_path.map(|path| std::path::absolute(path).unwrap_or(path.into())),
            pid: process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            capabilities: server.capabilities(),
        }
    }

    /// What a server has left that runs still. A file of one that was killed says nothing.
    fn running() -> anyhow::Result<Option<Self>> {
        let file = file()?;
        let text = match fs::read(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.with_context(|| format!("read `{}`", file.display()))?,
        };
        // A newer mcpd may say something else.
        let found: Option<Self> = serde_json::from_slice(&text).ok();
        Ok(found.filter(|found| is_running(found.pid)))
    }

    /// Leaves it where programs look. It goes when what this returns does.
    ///
    /// # Errors
    ///
    /// The file can't be written.
    pub(crate) fn publish(self) -> anyhow::Result<Published> {
        if let Some(other) = Self::running()? {
            tracing::info!(
                pid = other.pid,
                "another server is no longer the one that is found"
            );
        }
        self.write()?;
        Ok(Published(self))
    }

    fn write(&self) -> anyhow::Result<()> {
        let file = file()?;
        let text = serde_json::to_string_pretty(self).context("encode where the server is")?;
        private_file::replace(&file, format!("{text}\n").as_bytes())
            .with_context(|| format!("write `{}`", file.display()))
    }

    /// Leaves it again if no server is found. Whether that was so.
    fn restore(&self) -> anyhow::Result<bool> {
        let is_lost = Self::running()?.is_none();
        if is_lost {
            self.write()?;
        }
        Ok(is_lost)
    }
}

/// `$XDG_STATE_HOME/mcpd/server.json`.
fn file() -> anyhow::Result<PathBuf> {
    Ok(directories::state()?.join("server.json"))
}

/// What this process has to say, as long as it is to be found.
#[derive(Debug)]
pub(crate) struct Published(Discovery);

impl Published {
    /// Has this server found again when another that came after it has ended, for ever.
    pub(crate) async fn stay(&self) -> Infallible {
        loop {
            sleep(LOOK).await;
            let discovery = self.0.clone();
            match spawn_blocking(move || discovery.restore()).await {
                Ok(Ok(true)) => tracing::info!("this server is the one that is found again"),
                Ok(Err(error)) => tracing::debug!("failed to {error:#}"),
                _ => {}
            }
        }
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        // Another server may have written its own meanwhile.
        if let (Ok(file), Ok(Some(found))) = (file(), Discovery::running())
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
    // Somebody else's process can't be signalled, but it runs.
    pid.is_some_and(|pid| {
        rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH) && is_mcpd(pid)
    })
}

/// Whether it is called as this process is. The number of a server that was killed may be anybody's by now.
#[cfg(unix)]
fn is_mcpd(pid: rustix::process::Pid) -> bool {
    let name = |process: &str| fs::read(format!("/proc/{process}/comm"));
    match (name(&pid.to_string()), name("self")) {
        (Ok(theirs), Ok(ours)) => theirs == ours,
        // Not every system says.
        _ => true,
    }
}

/// Nobody is asked there.
#[cfg(not(unix))]
fn is_running(_: u32) -> bool {
    true
}
