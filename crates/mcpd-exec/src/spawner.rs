//! The threads that start processes. Starting one blocks its caller until the new process has reached its program,
//! so it never happens on an async worker. And as the thread is awake, it stays with the process for its first
//! milliseconds, in which most end: the async workers then hear of it once, when everything is read.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{env, io, thread};

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::command::Command;
use crate::error::{StartError, diagnosis};
use crate::os::{self, Entered, Lane, Output, Pipe, System};
use crate::outcome::StdinReport;
use crate::process::{Announced, Process, Reaper, Turn};

/// A process just started, with our ends of its pipes.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) process: Process,
    pub(crate) stdin: Input,
    pub(crate) stdout: Output,
    pub(crate) stderr: Output,
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

/// The threads of an executor: for each kind of confinement as many as are ever needed at a time, up to a number.
#[derive(Debug)]
pub(crate) struct Spawners {
    count: usize,
    lanes: Box<[Threads]>,
    reaper: Reaper,
    system: Arc<System>,
    /// What each thread holds to its end.
    end: Announced,
    /// Dropped last.
    _ends: Ends,
}

/// The ends of all threads. Dropping it waits for them. The lock makes it fit to be shared.
#[derive(Debug)]
struct Ends(Mutex<Receiver<Infallible>>);

/// Threads that take jobs in order. They end when this is dropped.
#[derive(Debug, Default)]
struct Threads(Arc<Queue>);

/// No longer than there are turns, since a job holds one.
#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    /// Those of them that wait for a job.
    idle: usize,
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
    /// At most so many threads of a kind.
    pub(crate) fn new(count: usize, system: System) -> io::Result<Self> {
        let system = Arc::new(system);
        let (end, ends) = mpsc::channel();
        Ok(Self {
            count,
            lanes: Lane::ALL.iter().map(|_| Threads::default()).collect(),
            reaper: Reaper::start(Arc::clone(&system), end.clone())?,
            system,
            end,
            _ends: Ends(Mutex::new(ends)),
        })
    }

    /// Starts `command`, and stays with it for a while. Dropping the future starts nothing, or kills the process.
    pub(crate) async fn spawn(
        &self,
        command: &Arc<Command>,
        turn: &Turn,
    ) -> Result<Started, StartError> {
        let (reply, started) = oneshot::channel();
        let job = Job {
            command: Arc::clone(command),
            turn: Arc::clone(turn),
            reaper: self.reaper.clone(),
            reply,
        };
        self.push(job).map_err(|source| StartError::Resource {
            program: command.program.clone(),
            source,
        })?;
        // The reply is only lost if the thread is, to a panic.
        started.await.map_err(|_| StartError::ShuttingDown)?
    }

    /// Kills what was left to end by itself.
    pub(crate) fn hurry(&self) {
        self.reaper.hurry();
    }

    /// Hands a job to a thread, to a new one if all are busy and there may be more.
    fn push(&self, job: Job) -> io::Result<()> {
        let index = Lane::of(&job.command.sandbox);
        let queue = &self.lanes[index].0;
        let mut state = queue.state();
        let is_awaited = state.jobs.len() < state.idle;
        if !is_awaited && state.threads < self.count {
            match self.start(index, state.threads) {
                Ok(()) => state.threads += 1,
                Err(error) if state.threads == 0 => return Err(error),
                // One of those there are will do it, later.
                Err(_) => {}
            }
        }
        state.jobs.push_back(job);
        // Whoever is woken would wait for us otherwise.
        drop(state);
        if is_awaited {
            queue.changed.notify_one();
        }
        Ok(())
    }

    fn start(&self, index: usize, number: usize) -> io::Result<()> {
        let queue = Arc::clone(&self.lanes[index].0);
        let (system, end) = (Arc::clone(&self.system), self.end.clone());
        let thread = thread::Builder::new().name(format!("mcpd-spawn-{index}-{number}"));
        thread.spawn(move || {
            let lane = Lane::ALL[index].enter(&system);
            while let Some(job) = queue.next() {
                job.run(&system, &lane);
            }
            drop(system);
            drop(end);
        })?;
        Ok(())
    }
}

impl Drop for Spawners {
    fn drop(&mut self) {
        self.reaper.hurry();
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        /// Far more than it takes, unless something is wrong with the machine.
        const PATIENCE: Duration = Duration::from_millis(500);
        // The host may be about to end, and its threads with it, but not what they were to end and to remove.
        let ends = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        ends.recv_timeout(PATIENCE).ok();
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
        let mut state = self.state();
        state.idle += 1;
        let is_idle = |state: &mut State| state.jobs.is_empty() && !state.closed;
        let state = self.changed.wait_while(state, is_idle);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.idle -= 1;
        state.jobs.pop_front()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    fn run(self, system: &System, lane: &Entered) {
        let Self {
            command,
            turn,
            reaper,
            reply,
        } = self;
        if reply.is_closed() {
            return;
        }
        let mut started = start(&command, turn, reaper, system, lane);
        if let Ok(started) = &mut started
            && started.stdin.pipe.is_none()
        {
            let outputs = [&mut started.stdout, &mut started.stderr];
            let is_wanted = || !reply.is_closed();
            (started.process).attend(outputs, command.limits.wall, is_wanted);
        }
        // If the run was dropped meanwhile, the process comes back to us and is killed here.
        drop(reply.send(started));
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
        process: Process::new(born.child, turn, command.held.clone(), reaper),
        stdin: feed(born.stdin, command.stdin.clone().unwrap_or_default()),
        stdout: Output::new(born.stdout),
        stderr: Output::new(born.stderr),
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
pub(crate) fn resolve(command: &Command) -> Result<PathBuf, StartError> {
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
            Ok(metadata) if os::is_executable(&metadata) && os::may_execute(&candidate) => {
                return absolute(candidate);
            }
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
