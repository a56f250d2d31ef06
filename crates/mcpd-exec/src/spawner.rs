//! The threads that start processes. Starting one blocks its caller until the new process has reached its program,
//! so it never happens on an async worker.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use std::{env, io, thread};

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::command::Command;
use crate::error::{StartError, diagnosis};
use crate::os::{self, Entered, Lane, Pipe, System};
use crate::outcome::StdinReport;
use crate::process::{Process, Reaper, Turn};
use crate::sandbox::Sandbox;

/// A process just started, with our ends of its pipes.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) process: Process,
    pub(crate) stdin: Input,
    pub(crate) stdout: Pipe,
    pub(crate) stderr: Pipe,
    /// When it was running.
    pub(crate) at: Instant,
    /// How long creating it took.
    pub(crate) spawn: Duration,
}

/// What is left to write.
#[derive(Debug)]
pub(crate) struct Input {
    /// `None` once everything is written, or nobody reads.
    pub(crate) pipe: Option<Pipe>,
    pub(crate) rest: Bytes,
    pub(crate) report: StdinReport,
}

/// The threads of an executor: a fixed number for each kind of confinement, from its first use on.
#[derive(Debug)]
pub(crate) struct Spawners {
    count: usize,
    lanes: Box<[OnceLock<Threads>]>,
    reaper: Reaper,
    system: Arc<System>,
}

/// A fixed set of threads, taking jobs in order. They end when this is dropped.
#[derive(Debug)]
struct Threads(Arc<Queue>);

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
    /// Starts nothing yet: a thread is started with the first process that needs its kind.
    pub(crate) fn new(count: usize, system: System) -> io::Result<Self> {
        let system = Arc::new(system);
        let spawners = Self {
            count: count.max(1),
            lanes: Lane::ALL.iter().map(|_| OnceLock::new()).collect(),
            reaper: Reaper::start(Arc::clone(&system))?,
            system,
        };
        spawners.lane(&Sandbox::none())?;
        Ok(spawners)
    }

    /// Starts `command`. Dropping the future starts nothing, or kills what is being started.
    pub(crate) async fn spawn(
        &self,
        command: &Arc<Command>,
        turn: &Turn,
    ) -> Result<Started, StartError> {
        let queue = self
            .lane(&command.sandbox)
            .map_err(|source| StartError::Resource {
                program: command.program.clone(),
                source,
            })?;
        let (reply, started) = oneshot::channel();
        let (command, turn) = (Arc::clone(command), Arc::clone(turn));
        queue.state().jobs.push_back(Job {
            command,
            turn,
            reaper: self.reaper.clone(),
            reply,
        });
        queue.changed.notify_one();
        // The reply is only lost if the thread is, to a panic.
        started.await.map_err(|_| StartError::ShuttingDown)?
    }

    /// The queue of the threads for a sandbox.
    fn lane(&self, sandbox: &Sandbox) -> io::Result<&Queue> {
        let index = Lane::of(sandbox);
        let lane = &self.lanes[index];
        if lane.get().is_none() {
            // Two at a time may come here; the threads of the one that loses end with its queue.
            lane.set(self.start(index)?).ok();
        }
        lane.get()
            .map(|threads| &*threads.0)
            .ok_or_else(|| io::Error::other("no threads"))
    }

    fn start(&self, index: usize) -> io::Result<Threads> {
        let threads = Threads(Arc::default());
        for number in 0..self.count {
            let queue = Arc::clone(&threads.0);
            let system = Arc::clone(&self.system);
            thread::Builder::new()
                .name(format!("mcpd-spawn-{index}-{number}"))
                .spawn(move || {
                    let lane = Lane::ALL[index].enter(&system);
                    while let Some(job) = queue.next() {
                        job.run(&system, &lane);
                    }
                })?;
        }
        Ok(threads)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.0.state().closed = true;
        self.0.changed.notify_all();
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
    fn run(self, system: &System, lane: &Entered) {
        if !self.reply.is_closed() {
            let started = start(&self.command, self.turn, self.reaper, system, lane);
            // If the run was dropped meanwhile, the process comes back to us and is killed here.
            drop(self.reply.send(started));
        }
    }
}

fn start(
    command: &Command,
    turn: Turn,
    reaper: Reaper,
    system: &System,
    lane: &Entered,
) -> Result<Started, StartError> {
    diagnosis::check(command)?;
    let program = resolve(command)?;
    let begun = Instant::now();
    let born = system.start(command, &program, lane)?;
    let at = Instant::now();
    Ok(Started {
        process: Process::new(born.child, turn, reaper),
        stdin: feed(born.stdin, command.stdin.clone().unwrap_or_default()),
        stdout: born.stdout,
        stderr: born.stderr,
        at,
        spawn: at - begun,
    })
}

/// Writes what the pipe takes at once; for most inputs that is all, and saves a wake-up.
fn feed(pipe: Option<Pipe>, mut rest: Bytes) -> Input {
    let mut report = StdinReport::default();
    let Some(pipe) = pipe else {
        return Input {
            pipe: None,
            rest,
            report,
        };
    };
    let mut open = !rest.is_empty();
    if open {
        match os::first_write(&pipe, &rest) {
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

/// The absolute path of the program.
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
