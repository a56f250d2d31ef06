//! `mcpd serve` in the background.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use crate::client::Client;
use crate::sandbox::Sandbox;
use crate::wait::{EVENT_TIMEOUT, eventually};

/// Running server. It is killed on drop.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    log: Receiver<String>,
    announcement: String,
    url: String,
    address: String,
    token: Option<String>,
}

impl Daemon {
    /// Starts `mcpd serve scripts --port 0` with further arguments, and waits until it reports its
    /// address and what it serves.
    ///
    /// # Panics
    ///
    /// Panics if it does not.
    #[must_use]
    #[track_caller]
    pub fn start(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        Self::listening(sandbox, &[&["--port", "0"], arguments].concat())
    }

    /// Starts `mcpd dev scripts --port 0`, and waits likewise.
    ///
    /// # Panics
    ///
    /// Panics if it does not.
    #[must_use]
    #[track_caller]
    pub fn developing(sandbox: &Sandbox) -> Self {
        Self::of(sandbox, &["dev", "scripts", "--port", "0"])
    }

    /// Starts `mcpd serve --port 0` with further arguments, and without scripts of its own, and
    /// waits likewise.
    ///
    /// # Panics
    ///
    /// Panics if it does not.
    #[must_use]
    #[track_caller]
    pub fn front(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        Self::of(sandbox, &[&["serve", "--port", "0"], arguments].concat())
    }

    /// Starts a front of another program, which is an mcpd as well, and waits likewise.
    ///
    /// # Panics
    ///
    /// Panics if it does not.
    #[must_use]
    #[track_caller]
    pub fn front_of(program: &Path, sandbox: &Sandbox, arguments: &[&str]) -> Self {
        let mut command = sandbox.program(program);
        command.args(["serve", "--port", "0"]).args(arguments);
        Self::started(sandbox, command)
    }

    /// Starts `mcpd serve scripts` with arguments that set its address, and waits likewise.
    ///
    /// # Panics
    ///
    /// Panics if it does not.
    #[must_use]
    #[track_caller]
    pub fn listening(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        Self::of(sandbox, &[&["serve", "scripts"], arguments].concat())
    }

    /// Starts a command that serves, and waits until it reports its address.
    #[track_caller]
    fn of(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        Self::started(sandbox, sandbox.command(arguments))
    }

    #[track_caller]
    fn started(sandbox: &Sandbox, mut command: Command) -> Self {
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("mcpd starts");
        let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let (sender, log) = mpsc::channel();
        thread::spawn(move || {
            let mut lines = stderr.lines().map_while(Result::ok);
            lines.try_for_each(|line| sender.send(line)).ok()
        });
        let mut announcement = String::new();
        while !announcement.contains("  tools: ") {
            let line = log.recv_timeout(EVENT_TIMEOUT);
            let line = line.unwrap_or_else(|_| panic!("mcpd does not listen:\n{announcement}"));
            announcement += &format!("{line}\n");
        }
        let url = announcement
            .split("mcpd listens on ")
            .nth(1)
            .and_then(|rest| rest.split([',', '\n']).next())
            .expect("the address is announced")
            .to_owned();
        let address = url.split('/').nth(2).unwrap_or_default().to_owned();
        let token = fs::read_to_string(sandbox.path().join("state/mcpd/agent-token")).ok();
        let token = token.map(|token| token.trim().to_owned());
        Self {
            child,
            log,
            announcement,
            url,
            address,
            token,
        }
    }

    /// Returns its output up to the report of its address.
    #[must_use]
    pub fn announcement(&self) -> &str {
        &self.announcement
    }

    /// Returns host and port.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the URL of the MCP endpoint.
    #[must_use]
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// Returns the token it requires, if it generated one.
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Makes a client with the token.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::new(&self.address, self.token())
    }

    /// Returns its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    ///
    /// # Panics
    ///
    /// Panics if it has ended already.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("mcpd is running");
    }

    /// Waits for a line of output that contains `words`, and returns the line.
    ///
    /// # Panics
    ///
    /// Panics if there is none.
    #[track_caller]
    pub fn wait_for_line(&self, words: &str) -> String {
        let mut before = String::new();
        loop {
            let line = self.log.recv_timeout(EVENT_TIMEOUT);
            let line = line.unwrap_or_else(|_| panic!("`{words}` is not said:\n{before}"));
            if line.contains(words) {
                return line;
            }
            before += &format!("{line}\n");
        }
    }

    /// Waits for its end; returns its exit code and its output since it listened.
    ///
    /// # Panics
    ///
    /// Panics if it does not end, or is ended by a signal.
    #[track_caller]
    pub fn wait(mut self) -> (i32, String) {
        let status = eventually("the end of mcpd", || {
            self.child.try_wait().expect("it is ours")
        });
        let log: Vec<String> = self.log.iter().collect();
        (status.code().expect("it ends by itself"), log.join("\n"))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Killing fails if the process has ended, as it should have.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
