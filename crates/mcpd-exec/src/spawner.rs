//! The threads that start processes. Starting one blocks its caller until the new process has reached its program,
//! so it never happens on an async worker.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdin, ChildStdout, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{env, io, thread};

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::command::Command;
use crate::error::{StartError, diagnosis};
use crate::os;
use crate::outcome::StdinReport;
use crate::process::{Process, Reaper, Turn};

/// A process just started, with our ends of its pipes.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) process: Process,
    pub(crate) stdin: Input,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
    /// When it was running.
    pub(crate) at: Instant,
    /// How long creating it took.
    pub(crate) spawn: Duration,
}

/// What is left to write.
#[derive(Debug)]
pub(crate) struct Input {
    /// `None` once everything is written, or nobody reads.
    pub(crate) pipe: Option<ChildStdin>,
    pub(crate) rest: Bytes,
    pub(crate) report: StdinReport,
}

/// A fixed set of threads, taking jobs in order. They end when this is dropped.
#[derive(Debug)]
pub(crate) struct Spawners {
    queue: Arc<Queue>,
    reaper: Reaper,
}

/// As long as turns are, since a job holds one.
#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<Job>,
    closed: bool,
}

#[derive(Debug)]
struct Job {
    command: Arc<Command>,
    turn: Turn,
    reaper: Reaper,
    reply: oneshot::Sender<Result<Started, StartError>>,
}

impl Spawners {
    pub(crate) fn start(count: usize) -> io::Result<Self> {
        let spawners = Self {
            queue: Arc::default(),
            reaper: Reaper::start()?,
        };
        for index in 0..count.max(1) {
            let queue = Arc::clone(&spawners.queue);
            thread::Builder::new()
                .name(format!("mcpd-spawn-{index}"))
                .spawn(move || {
                    while let Some(job) = queue.next() {
                        job.run();
                    }
                })?;
        }
        Ok(spawners)
    }

    /// Starts `command`. Dropping the future starts nothing, or kills what is being started.
    pub(crate) async fn spawn(
        &self,
        command: &Arc<Command>,
        turn: &Turn,
    ) -> Result<Started, StartError> {
        let (reply, started) = oneshot::channel();
        let (command, turn) = (Arc::clone(command), Arc::clone(turn));
        self.queue.state().jobs.push_back(Job {
            command,
            turn,
            reaper: self.reaper.clone(),
            reply,
        });
        self.queue.changed.notify_one();
        // The reply is only lost if the thread is, to a panic.
        started.await.map_err(|_| StartError::ShuttingDown)?
    }
}

impl Drop for Spawners {
    fn drop(&mut self) {
        self.queue.state().closed = true;
        self.queue.changed.notify_all();
    }
}

impl Queue {
    /// Waits for a job. `None` when there will be none.
    fn next(&self) -> Option<Job> {
        let idle = |state: &mut State| state.jobs.is_empty() && !state.closed;
        let state = self.changed.wait_while(self.state(), idle);
        state
            .unwrap_or_else(PoisonError::into_inner)
            .jobs
            .pop_front()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    fn run(self) {
        if !self.reply.is_closed() {
            let started = start(&self.command, self.turn, self.reaper);
            // If the run was dropped meanwhile, the process comes back to us and is killed here.
            drop(self.reply.send(started));
        }
    }
}

fn start(command: &Command, turn: Turn, reaper: Reaper) -> Result<Started, StartError> {
    diagnosis::check(command)?;
    let program = resolve(command)?;
    let begun = Instant::now();
    let mut child = match prepare(command, &program).spawn() {
        Ok(child) => child,
        Err(error) => return Err(diagnosis::diagnose(error, command, program)),
    };
    let at = Instant::now();
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let process = Process::new(child, turn, reaper);
    let (stdin, Some(stdout), Some(stderr)) = pipes else {
        return Err(StartError::Io {
            program,
            source: io::Error::other("no pipes"),
        });
    };
    let stdin = feed(stdin, command.stdin.clone().unwrap_or_default());
    Ok(Started {
        process,
        stdin,
        stdout,
        stderr,
        at,
        spawn: at - begun,
    })
}

/// Writes what the pipe takes at once; for most inputs that is all, and saves a wake-up.
fn feed(pipe: Option<ChildStdin>, mut rest: Bytes) -> Input {
    let mut report = StdinReport::default();
    let Some(mut pipe) = pipe else {
        return Input {
            pipe: None,
            rest,
            report,
        };
    };
    let mut open = !rest.is_empty();
    if open {
        match os::first_write(&mut pipe, &rest) {
            Ok(written) => {
                report.written = written as u64;
                rest = rest.split_off(written);
                open = !rest.is_empty();
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => {
                report.closed_early = true;
                open = false;
            }
        }
    }
    Input {
        pipe: open.then_some(pipe),
        rest,
        report,
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place where processes are started"
)]
fn prepare(command: &Command, program: &Path) -> std::process::Command {
    let mut prepared = std::process::Command::new(program);
    prepared
        .args(&command.args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    prepared.stdin(if command.stdin.is_some() {
        Stdio::piped()
    } else {
        Stdio::null()
    });
    if let Some(names) = &command.inherited {
        prepared.env_clear();
        prepared.envs(
            names
                .iter()
                .filter_map(|name| Some((name, env::var_os(name)?))),
        );
    }
    for (name, value) in &command.changes {
        match value {
            Some(value) => prepared.env(name, value),
            None => prepared.env_remove(name),
        };
    }
    if let Some(directory) = &command.current_dir {
        prepared.current_dir(directory);
    }
    os::configure(&mut prepared);
    prepared
}

/// The absolute path of the program. With a bare name std would have to fork when `PATH` is changed.
fn resolve(command: &Command) -> Result<PathBuf, StartError> {
    let program = &command.program;
    if cfg!(windows) {
        // Nothing forks there, and std knows the endings a program may have.
        return Ok(program.clone());
    }
    if program.as_os_str().as_encoded_bytes().contains(&b'/') {
        return absolute(program.clone());
    }
    let path = command
        .variable("PATH")
        .unwrap_or_else(|| "/usr/bin:/bin".into());
    let mut denied = None;
    for candidate in env::split_paths(&path).map(|directory| directory.join(program)) {
        match candidate.metadata() {
            Ok(metadata) if os::is_executable(&metadata) => return absolute(candidate),
            Ok(metadata) if metadata.is_file() => denied = Some(candidate),
            _ => {}
        }
    }
    Err(match denied {
        Some(program) => StartError::NotExecutable { program },
        None => StartError::NotFound {
            program: program.clone(),
        },
    })
}

/// An empty or relative entry of `PATH` is meant relative to the caller's directory, as a relative program is.
fn absolute(program: PathBuf) -> Result<PathBuf, StartError> {
    std::path::absolute(&program).map_err(|source| StartError::Io { program, source })
}
