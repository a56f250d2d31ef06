//! `mcpd stdio` with a client on its pipes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStderr, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::sandbox::Sandbox;
use crate::wait::{EVENT_TIMEOUT, eventually};

fn serving(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    sandbox.command(&[&["stdio", "scripts"], arguments].concat())
}

/// Server with one client. It is killed on drop.
#[derive(Debug)]
pub struct Pipes {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<String>,
}

impl Pipes {
    /// Starts `mcpd stdio scripts` with further arguments.
    ///
    /// # Panics
    ///
    /// Panics if it does not start.
    #[must_use]
    pub fn start(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        Self::of(serving(sandbox, arguments))
    }

    /// Starts a server by this command.
    ///
    /// # Panics
    ///
    /// Panics if it does not start.
    #[must_use]
    pub fn of(command: Command) -> Self {
        Self::reading(Self::unread(command))
    }

    fn reading(mut pipes: Self) -> Self {
        let stdout = BufReader::new(pipes.child.stdout.take().expect("it is piped"));
        let (sender, output) = mpsc::channel();
        thread::spawn(move || {
            stdout
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
                .ok()
        });
        pipes.output = output;
        pipes
    }

    /// Starts `mcpd stdio scripts` with a client that reads nothing.
    ///
    /// # Panics
    ///
    /// Panics if it does not start.
    #[must_use]
    pub fn start_unread(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        Self::unread(serving(sandbox, arguments))
    }

    /// Starts a server whose client reads its answers and never its log.
    ///
    /// # Panics
    ///
    /// Panics if it does not start.
    #[must_use]
    pub fn start_with_unread_log(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        let mut command = serving(sandbox, arguments);
        command.stderr(Stdio::piped());
        Self::reading(Self::spawn(command))
    }

    /// Returns the log of the server, of which nothing has been read so far.
    ///
    /// # Panics
    ///
    /// Panics if the log is being read already.
    pub fn take_log(&mut self) -> ChildStderr {
        self.child.stderr.take().expect("the log is unread")
    }

    fn unread(mut command: Command) -> Self {
        command.stderr(Stdio::null());
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("mcpd starts");
        Self {
            input: child.stdin.take(),
            child,
            output: mpsc::channel().1,
        }
    }

    /// Sends one message.
    ///
    /// # Panics
    ///
    /// Panics if mcpd does not read it.
    pub fn send(&mut self, message: &[u8]) {
        let input = self.input.as_mut().expect("the input is open");
        input
            .write_all(message)
            .and_then(|()| input.write_all(b"\n"))
            .expect("mcpd reads");
    }

    /// Returns the next message of mcpd.
    ///
    /// # Panics
    ///
    /// Panics if there is none, or it is no JSON.
    #[must_use]
    #[track_caller]
    pub fn receive(&self) -> Value {
        let line = self
            .output
            .recv_timeout(EVENT_TIMEOUT)
            .expect("mcpd answers");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Kills it, and returns the messages that it had sent by then and that were not received.
    ///
    /// # Panics
    ///
    /// Panics if it has ended already.
    #[must_use]
    pub fn kill(mut self) -> Vec<Value> {
        self.child.kill().expect("mcpd is running");
        self.child.wait().expect("it is ours");
        // The last line may be incomplete.
        let lines = self.output.iter();
        lines
            .filter_map(|line| serde_json::from_str(&line).ok())
            .collect()
    }

    /// Returns its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Closes the server's input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Sends it a signal.
    ///
    /// # Panics
    ///
    /// Panics if it has ended already.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("mcpd is running");
    }

    /// Waits for its end and returns its exit code.
    ///
    /// # Panics
    ///
    /// Panics if it does not end, or is ended by a signal.
    #[track_caller]
    pub fn wait(self) -> i32 {
        self.wait_with_rest().0
    }

    /// Waits for its end, and returns its exit code and the messages that were not received.
    ///
    /// # Panics
    ///
    /// Panics if it does not end, or is ended by a signal.
    #[track_caller]
    pub fn wait_with_rest(mut self) -> (i32, Vec<Value>) {
        let status = eventually("the end of mcpd", || {
            self.child.try_wait().expect("it is ours")
        });
        let rest = self.output.iter();
        let rest = rest.map(|line| serde_json::from_str(&line).expect("messages are JSON"));
        (status.code().expect("it ends by itself"), rest.collect())
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        // Killing fails if the process has ended, as it should have.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
