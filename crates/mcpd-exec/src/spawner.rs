//! Pool of spawner threads. Starting a process blocks its caller until the new process has
//! reached its program, so it never happens on an async worker. The thread then stays with the
//! process for its first milliseconds, in which most processes end: the async workers are woken
//! once, when everything is read.

mod start_limit;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{env, io, thread};

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::command::Command;
use crate::egress::Password;
use crate::error::{StartError, diagnosis};
use crate::os::{self, InstalledClass, Output, Pipe, SpawnerClass, System};
use crate::outcome::StdinReport;
use crate::process::{EndSignal, Process, Reaper, RunSlot};
use crate::spawner::start_limit::StartLimit;
pub(crate) use crate::spawner::start_limit::per_core;
use crate::warm::Warmth;

/// Process that was just started, with our ends of its pipes.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) process: Process,
    /// Socket for its proxy, if it has one, with the password of its clients.
    pub(crate) proxy: Option<(TcpListener, Option<Password>)>,
    /// Start of the process, if a warm one was asked for.
    pub(crate) warmth: Option<Warmth>,
    pub(crate) stdin: Input,
    pub(crate) stdout: Output,
    pub(crate) stderr: Output,
    /// Time at which it was running.
    pub(crate) at: Instant,
    /// Time to create it.
    pub(crate) spawn: Duration,
}

/// Standard input that is yet to be written.
#[derive(Debug)]
pub(crate) struct Input {
    /// `None` once everything is written, or the other end is closed.
    pub(crate) pipe: Option<Pipe>,
    pub(crate) rest: Bytes,
    pub(crate) report: StdinReport,
}

/// Threads of an executor, one pool per kind of confinement. A pool grows with demand.
#[derive(Debug)]
pub(crate) struct Spawners {
    limit: Arc<StartLimit>,
    pools: Box<[Threads]>,
    reaper: Reaper,
    system: Arc<System>,
    /// Cloned by each thread until its end.
    end: EndSignal,
    /// Dropped last.
    _ends: Ends,
}

/// Receiver of the ends of all threads. Dropping it waits for them. The lock makes it `Sync`.
#[derive(Debug)]
struct Ends(Mutex<Receiver<Infallible>>);

/// Threads that take jobs in order. They end when this is dropped.
#[derive(Debug)]
struct Threads(Arc<Queue>);

/// Job queue of a pool. Each job holds a slot of the executor, which bounds the queue.
#[derive(Debug)]
struct Queue {
    limit: Arc<StartLimit>,
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    jobs: VecDeque<Job>,
    threads: usize,
    /// Number of threads that wait for a job.
    idle: usize,
    /// Number of threads that were woken for a job, and still count as idle.
    woken: usize,
    closed: bool,
}

#[derive(Debug)]
struct Job {
    command: Arc<Command>,
    slot: RunSlot,
    reaper: Reaper,
    reply: oneshot::Sender<Result<Box<Started>, StartError>>,
}

impl Spawners {
    /// Creates the pools, for `concurrency` processes at a time.
    pub(crate) fn new(concurrency: usize, system: System) -> io::Result<Self> {
        let system = Arc::new(system);
        let limit = Arc::new(StartLimit::new(concurrency));
        let (end, ends) = mpsc::channel();
        Ok(Self {
            pools: SpawnerClass::ALL
                .iter()
                .map(|_| Threads::new(&limit))
                .collect(),
            limit,
            reaper: Reaper::start(Arc::clone(&system), end.clone())?,
            system,
            end,
            _ends: Ends(Mutex::new(ends)),
        })
    }

    /// Starts `command`, and stays with it for a while. Dropping the future starts nothing, or
    /// kills the process.
    pub(crate) async fn spawn(
        &self,
        command: &Arc<Command>,
        slot: &RunSlot,
    ) -> Result<Box<Started>, StartError> {
        let (reply, started) = oneshot::channel();
        let job = Job {
            command: Arc::clone(command),
            slot: Arc::clone(slot),
            reaper: self.reaper.clone(),
            reply,
        };
        self.push(job).map_err(|source| StartError::Resource {
            program: command.parts.program.clone(),
            source,
        })?;
        // The reply is only lost if the thread panics.
        started.await.map_err(|_| StartError::ShuttingDown)?
    }

    /// Starts fewer processes at a time for a while, as the host has other work.
    pub(crate) fn note_other_work(&self) {
        self.limit.note_other_work();
    }

    /// Kills the processes that still have grace.
    pub(crate) fn end_all_graces(&self) {
        self.reaper.end_all_graces();
    }

    /// Queues a job. Starts a thread for it if all are busy and the pool may grow.
    fn push(&self, job: Job) -> io::Result<()> {
        if job.command.parts.warm.is_some() {
            self.system.prepare_warm_starts();
        }
        let index = SpawnerClass::index_for(&job.command.parts.sandbox);
        let queue = &self.pools[index].0;
        let mut state = queue.state();
        let limit = self.limit.current();
        let can_wake = state.can_wake(limit);
        if !can_wake && state.active() < limit {
            match self.start(index, state.threads) {
                Ok(()) => state.threads += 1,
                Err(error) if state.threads == 0 => return Err(error),
                // The existing threads will do it later.
                Err(_) => {}
            }
        }
        state.jobs.push_back(job);
        queue.wake_one_if(can_wake, state);
        Ok(())
    }

    fn start(&self, index: usize, number: usize) -> io::Result<()> {
        let queue = Arc::clone(&self.pools[index].0);
        let (system, end) = (Arc::clone(&self.system), self.end.clone());
        let thread = thread::Builder::new().name(format!("mcpd-spawn-{index}-{number}"));
        thread.spawn(move || {
            let class = SpawnerClass::ALL[index].install(&system);
            let _counted = CountedThread(&queue);
            while let Some(job) = queue.next() {
                job.run(&system, &class);
            }
            drop(system);
            drop(end);
        })?;
        Ok(())
    }
}

impl Drop for Spawners {
    fn drop(&mut self) {
        self.reaper.end_all_graces();
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        /// Far more than it takes, unless something is wrong with the machine.
        const THREADS_END_TIMEOUT: Duration = Duration::from_millis(500);
        // The host may be about to end. Its threads would end with it, but not the processes they
        // were to end, nor the directories they were to remove.
        let ends = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        ends.recv_timeout(THREADS_END_TIMEOUT).ok();
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.0.state().closed = true;
        self.0.changed.notify_all();
    }
}

impl Threads {
    fn new(limit: &Arc<StartLimit>) -> Self {
        Self(Arc::new(Queue {
            limit: Arc::clone(limit),
            state: Mutex::default(),
            changed: Condvar::new(),
        }))
    }
}

/// Thread of a pool, which counts until its end, even if a job panics.
struct CountedThread<'a>(&'a Queue);

impl Drop for CountedThread<'_> {
    fn drop(&mut self) {
        self.0.state().threads -= 1;
    }
}

impl QueueState {
    /// Number of threads that are at a job, or about to be.
    fn active(&self) -> usize {
        self.threads - self.idle + self.woken
    }

    /// Returns whether an idle thread may take a job.
    fn can_wake(&self, limit: usize) -> bool {
        self.active() < limit && self.woken < self.idle
    }
}

impl Queue {
    /// Waits for a job. `None` when the pool is closed.
    fn next(&self) -> Option<Job> {
        let mut state = self.state();
        loop {
            // This thread is one of the active ones.
            let limit = self.limit.current();
            let may_start = state.active() <= limit;
            if state.closed || (may_start && !state.jobs.is_empty()) {
                let job = state.jobs.pop_front();
                // The limit may have risen since the others were pushed.
                let can_wake = !state.jobs.is_empty() && state.can_wake(limit);
                self.wake_one_if(can_wake, state);
                return job;
            }
            state.idle += 1;
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
            state.woken = state.woken.saturating_sub(1);
        }
    }

    /// Wakes an idle thread for a job on a condition, and releases the lock.
    fn wake_one_if(&self, condition: bool, mut state: MutexGuard<'_, QueueState>) {
        state.woken += usize::from(condition);
        // A thread that is woken under the lock would only wait for it.
        drop(state);
        if condition {
            self.changed.notify_one();
        }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    fn run(self, system: &System, class: &InstalledClass) {
        let Self {
            command,
            slot,
            reaper,
            reply,
        } = self;
        if reply.is_closed() {
            return;
        }
        if let Some(precondition) = &command.parts.precondition {
            if let Err(refused) = precondition.check() {
                // Without a receiver, its run was dropped.
                reply.send(Err(refused)).ok();
                return;
            }
            if reply.is_closed() {
                return;
            }
        }
        let mut started = start(&command, slot, reaper, system, class);
        if let Ok(started) = &mut started
            && started.stdin.pipe.is_none()
            // It may wait for its proxy, which the runtime serves.
            && started.proxy.is_none()
        {
            let outputs = [&mut started.stdout, &mut started.stderr];
            let is_wanted = || !reply.is_closed();
            (started.process).wait_first(outputs, command.parts.limits.wall, is_wanted);
        }
        // If the run was dropped meanwhile, `send` returns the process, and dropping it kills it.
        drop(reply.send(started));
    }
}

fn start(
    command: &Command,
    slot: RunSlot,
    reaper: Reaper,
    system: &System,
    class: &InstalledClass,
) -> Result<Box<Started>, StartError> {
    diagnosis::check(command)?;
    let program = resolve(command)?;
    let start_time = Instant::now();
    let spawned = system.start(command, &program, class)?;
    let at = Instant::now();
    let process = Process::new(spawned.child, slot, command.parts.held.clone(), reaper);
    let proxy = spawned.proxy.transpose();
    // Without its proxy, the process is killed.
    let proxy = proxy.map_err(|source| StartError::Resource { program, source })?;
    Ok(Box::new(Started {
        process,
        proxy,
        warmth: spawned.warmth,
        stdin: feed(
            spawned.stdin,
            command.parts.stdin.clone().unwrap_or_default(),
        ),
        stdout: Output::new(spawned.stdout),
        stderr: Output::new(spawned.stderr),
        at,
        spawn: at - start_time,
    }))
}

/// Writes what the pipe takes at once. Most inputs fit, which saves a wake-up.
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

/// Returns the absolute path of the program.
pub(crate) fn resolve(command: &Command) -> Result<PathBuf, StartError> {
    let program = &command.parts.program;
    if cfg!(windows) {
        // Windows does not fork, and std knows the suffixes of programs.
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

/// Makes a path absolute. A relative one, also from a relative or empty entry of `PATH`, is
/// relative to the caller's directory.
fn absolute(program: PathBuf) -> Result<PathBuf, StartError> {
    std::path::absolute(&program).map_err(|source| StartError::Io { program, source })
}
