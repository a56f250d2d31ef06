//! Server that the drivers connect to: a command for stdio, an address and a token for HTTP.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use anyhow::Context as _;
use tempfile::TempDir;

use super::Transport;

/// mcpd over the fixture scripts, with a state directory of its own. Its process is killed on
/// drop.
#[derive(Debug)]
pub(super) struct ServerUnderTest {
    binary: PathBuf,
    scripts: PathBuf,
    state: TempDir,
    served: Mutex<Option<Child>>,
}

impl ServerUnderTest {
    /// Makes a server that is not started yet.
    ///
    /// # Errors
    ///
    /// Fails if there is no place for its state.
    pub(super) fn new(binary: &Path, scripts: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            binary: binary.to_owned(),
            scripts: scripts.to_owned(),
            state: tempfile::tempdir()?,
            served: Mutex::new(None),
        })
    }

    /// Returns the arguments that tell a driver where the server is. Starts the server, unless
    /// drivers do.
    ///
    /// # Errors
    ///
    /// Fails if it doesn't start.
    pub(super) fn target(&self, transport: Transport) -> anyhow::Result<Vec<String>> {
        match transport {
            Transport::Stdio => {
                // Frameworks pass few variables on.
                let command = ["stdio", "/usr/bin/env"].map(str::to_owned);
                let mcpd = [
                    self.binary.as_path().display().to_string(),
                    "stdio".to_owned(),
                ];
                let scripts = self.scripts.display().to_string();
                Ok(command
                    .into_iter()
                    .chain(self.variables())
                    .chain(mcpd)
                    .chain([scripts])
                    .collect())
            }
            Transport::Http => {
                let url = self.serve()?;
                let token = fs::read_to_string(self.state.path().join("mcpd/agent-token"))?;
                Ok(vec!["http".to_owned(), url, token.trim().to_owned()])
            }
        }
    }

    fn variables(&self) -> [String; 2] {
        ["XDG_STATE_HOME", "XDG_CACHE_HOME"]
            .map(|name| format!("{name}={}", self.state.path().display()))
    }

    #[expect(clippy::disallowed_methods, reason = "mcpd itself is no script")]
    fn serve(&self) -> anyhow::Result<String> {
        let mut child = Command::new("/usr/bin/env")
            .args(self.variables())
            .arg(&self.binary)
            .args(["serve", "--port", "0"])
            .arg(&self.scripts)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("mcpd doesn't start")?;
        let stderr = child.stderr.take().context("its stderr is a pipe")?;
        *self
            .served
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(child);
        let mut lines = BufReader::new(stderr).lines();
        let mut url = None;
        // The token exists once the server reports its address.
        for line in lines.by_ref() {
            let line = line?;
            if let Some((_, listening)) = line.split_once("mcpd listens on ") {
                url = Some(listening.to_owned());
            }
            if line.trim_start().starts_with("tools:") {
                break;
            }
        }
        // The log is read to its end, as a full pipe would block the server.
        std::thread::spawn(move || lines.for_each(drop));
        url.context("mcpd doesn't listen")
    }
}

impl Drop for ServerUnderTest {
    fn drop(&mut self) {
        let served = self
            .served
            .get_mut()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(child) = served {
            child.kill().ok();
            child.wait().ok();
        }
    }
}
