//! Concurrency limit and FIFO queue of processes: a bounded number runs at a time, and a bounded
//! number waits. A full queue rejects new runs.
//!
//! This queue protects the system and knows no callers: first come, first served. A server that
//! must be fair puts a scheduler in front of it. The module `run_queue` of `mcpd-server` is one: it
//! serves callers round-robin, and releases no more calls than this executor runs at a time.

use std::future::{self, Future};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::{FusedFuture as _, FutureExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time;

use crate::command::Command;
use crate::egress::Proxy;
use crate::error::{StartError, diagnosis};
use crate::line::{Line, OnLine};
use crate::os;
use crate::outcome::Outcome;
use crate::process::RunSlot;
use crate::run;
use crate::spawner::{self, Spawners, Started, per_core};

/// Back-off between attempts to start a file that is open for writing (ETXTBSY), in ms: 191 ms in
/// all.
///
/// A file just written is often still open for writing in a child that another thread is about to
/// start.
const BUSY_PAUSES: [u64; 8] = [1, 2, 4, 8, 16, 32, 64, 64];

/// Time that an unwanted start may still take. Only a file system that hangs takes so long.
const UNWANTED_START_TIMEOUT: Duration = Duration::from_millis(250);

/// Upper bound of the concurrency: more processes than any system has.
const MAX_CONCURRENCY: usize = 1 << 22;

/// Settings of an [`Executor`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// Processes running at a time, at least one. Four per core.
    pub concurrency: usize,
    /// Runs waiting in the queue; one more is refused as [`StartError::Busy`]. 256.
    pub queue: usize,
    /// Makes this process the reaper of orphans among its descendants, for as long as it lives.
    /// False.
    ///
    /// It is needed to prove that nothing of a confined run is left, and to count what an
    /// unconfined run leaves behind (Linux). The host must not wait for children that it did not
    /// start. Orphans become children of the main thread, which must not end. Orphans of children
    /// that no executor has started stay zombies until the host reaps them, or [`Config::init`]
    /// does.
    pub reaper: bool,
    /// Makes the [reaper](Self::reaper) that of a whole container, as its first process must be.
    /// Every child that has been dead for ten seconds without being waited for is reaped, even a
    /// foreign one. False.
    ///
    /// The host must wait for the children that it starts itself within that time (Linux).
    pub init: bool,
    /// Starts a watchdog process with the first run. If this process is killed, the watchdog ends
    /// what is left of all runs. False.
    ///
    /// All executors of a process share it. The watchdog is this program again, so its `main`
    /// must begin with [`run_watchdog`](crate::run_watchdog) (Linux).
    pub watchdog: bool,
    /// Control group (version 2) that was delegated to this process: a directory below
    /// `/sys/fs/cgroup`. None.
    ///
    /// It is needed for [`Limits::memory`](crate::Limits::memory), and to enforce
    /// [`Limits::processes`](crate::Limits::processes) exactly at every level. If this process is
    /// itself in that group, it moves into one below it (Linux).
    pub cgroup: Option<PathBuf>,
    /// Directory for the temporary directories of confined runs and the files of long outputs.
    /// The system's directory for temporary files.
    ///
    /// No other user may be able to write it or a directory above it, unless that one is sticky
    /// as `/tmp` is. Such a user could replace the directory.
    pub temporary: Option<PathBuf>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            concurrency: per_core(PROCESSES_PER_CORE),
            queue: 256,
            reaper: false,
            init: false,
            watchdog: false,
            cgroup: None,
            temporary: None,
        }
    }
}

/// Processes per core, so that the cores stay busy while some processes wait.
const PROCESSES_PER_CORE: usize = 4;

impl Config {
    /// Returns the directory for temporary files.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.temporary
            .clone()
            .unwrap_or_else(crate::temporary_directory)
    }
}

/// Runs processes. Cheap to clone; all clones share their limits.
///
/// A run needs a Tokio runtime of either flavour with I/O and time enabled; the executor
/// remembers none. It installs no signal handler, and changes nothing of the host process unless
/// its [`Config`] says so. It owns a few threads, which end with the last clone. Dropping that
/// one waits until they have ended and removed what was left, for half a second at most.
#[derive(Debug, Clone)]
pub struct Executor(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    spawners: Spawners,
    slots: Arc<Semaphore>,
    concurrency: u32,
    queued: AtomicUsize,
    queue: usize,
    temporary: Arc<Path>,
    stop: watch::Sender<ShutdownStage>,
}

/// Progress of a shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ShutdownStage {
    No,
    /// No new runs; TERM to those that run.
    Ask,
    /// KILL to those that run.
    Kill,
}

impl Executor {
    /// Starts the threads of an executor.
    ///
    /// # Errors
    ///
    /// The system refuses a thread, or something that [`Config::reaper`], [`Config::watchdog`] or
    /// [`Config::cgroup`] needs. Or this process ignores SIGCHLD (Linux): see
    /// [`prepare_signals`](crate::prepare_signals).
    pub fn new(config: Config) -> io::Result<Self> {
        let concurrency = config.concurrency.clamp(1, MAX_CONCURRENCY);
        Ok(Self(Arc::new(Shared {
            spawners: Spawners::new(concurrency, os::System::new(&config)?)?,
            slots: Arc::new(Semaphore::new(concurrency)),
            concurrency: concurrency as u32,
            queued: AtomicUsize::new(0),
            queue: config.queue,
            temporary: config.temporary().into(),
            stop: watch::Sender::new(ShutdownStage::No),
        })))
    }

    /// Inspects the program of a command without starting it: that it exists, that it may be
    /// executed, and that the interpreter in its first line exists. Blocks.
    ///
    /// # Errors
    ///
    /// The first reason that would keep it from starting. A program that passes may still fail to
    /// start.
    pub fn inspect(&self, command: &Command) -> Result<(), StartError> {
        spawner::resolve(command).and_then(|program| diagnosis::inspect(command, &program))
    }

    /// Runs a command until it is over, however it ends.
    ///
    /// # Errors
    ///
    /// No process was started, or it was killed at once for lack of descriptors: see
    /// [`StartError`]. A process that fails is an [`Outcome`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future sends TERM to the process and its whole group. After
    /// [`Limits::grace`](crate::Limits::grace), or when the last clone of the executor is
    /// dropped, what is left is killed. That happens in the background, without the runtime, and
    /// holds the slot of the run. Output printed meanwhile is not read. In its first 10 ms a
    /// process is killed at once. If the run was still queued, nothing is started. To keep the
    /// output of a run that is cut short, use [`run_until`](Self::run_until).
    pub async fn run(&self, command: Command) -> Result<Outcome, StartError> {
        self.execute(command, None, future::pending()).await
    }

    /// Runs a command like [`run`](Self::run), and calls `on_line` with every line of output as
    /// it arrives.
    ///
    /// Lines of the first 10 ms may come together at their end. Both the process and the thread
    /// of the runtime wait while `on_line` runs: hand the line on with something like `try_send`.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run).
    ///
    /// # Cancel safety
    ///
    /// That of [`run`](Self::run).
    pub async fn run_with(
        &self,
        command: Command,
        mut on_line: impl FnMut(Line<'_>) + Send,
    ) -> Result<Outcome, StartError> {
        self.execute(command, Some(&mut on_line), future::pending())
            .await
    }

    /// Runs a command like [`run_with`](Self::run_with) until `cancel` resolves. Then the group
    /// gets TERM, and KILL after [`Limits::grace`](crate::Limits::grace). The outcome is
    /// [`Ending::Cancelled`](crate::Ending::Cancelled) with the output so far.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run).
    ///
    /// # Cancel safety
    ///
    /// That of [`run`](Self::run).
    pub async fn run_until(
        &self,
        command: Command,
        mut on_line: impl FnMut(Line<'_>) + Send,
        cancel: impl Future<Output = ()> + Send,
    ) -> Result<Outcome, StartError> {
        self.execute(command, Some(&mut on_line), cancel).await
    }

    /// Maximum number of processes that run at a time.
    pub fn concurrency(&self) -> usize {
        self.0.concurrency as usize
    }

    /// Number of processes that are running, or killed and not yet reaped. It may be too large
    /// while a shutdown waits.
    pub fn running(&self) -> usize {
        self.concurrency() - self.0.slots.available_permits()
    }

    /// Notes that this program has work other than processes: for a tenth of a second, fewer of
    /// them are started at a time.
    ///
    /// Call it for every answer that needs no process. Such an answer waits several times as long
    /// beside many processes in their first milliseconds; beside few, the rate of short processes
    /// is up to a tenth lower.
    pub fn note_other_work(&self) {
        self.0.spawners.note_other_work();
    }

    /// Number of runs in the queue.
    pub fn queue_length(&self) -> usize {
        self.0.queued.load(Ordering::Relaxed)
    }

    /// Shuts the executor down. Queued and new runs fail with [`StartError::ShuttingDown`].
    /// Running processes get TERM as in [`run_until`](Self::run_until), and KILL after `deadline`
    /// at the latest.
    ///
    /// Returns the number of processes left one second after that. It is 0 if all runs are still
    /// polled, or dropped, unless the kernel can't end a process.
    ///
    /// # Cancel safety
    ///
    /// The steps so far stay in force: nothing new is started. Another call continues.
    pub async fn shutdown(&self, deadline: Duration) -> usize {
        const KILL_TIMEOUT: Duration = Duration::from_secs(1);
        for (stop, timeout) in [
            (ShutdownStage::Ask, deadline),
            (ShutdownStage::Kill, KILL_TIMEOUT),
        ] {
            self.0.stop.send_replace(stop);
            if stop == ShutdownStage::Kill {
                self.0.spawners.end_all_graces();
            }
            // All slots are free only when nothing runs.
            if time::timeout(timeout, self.0.slots.acquire_many(self.0.concurrency))
                .await
                .is_ok()
            {
                return 0;
            }
        }
        self.running()
    }

    async fn execute(
        &self,
        command: Command,
        on_line: Option<&mut OnLine<'_>>,
        cancel: impl Future<Output = ()> + Send,
    ) -> Result<Outcome, StartError> {
        let arrived = Instant::now();
        let mut cancel = pin!(cancel.fuse());
        let mut stop = self.0.stop.subscribe();
        let command = Arc::new(command);
        let slot: RunSlot = tokio::select! {
            // In this order: a run that is cancelled or shut down must not take a free slot.
            biased;
            _ = stop.wait_for(|stop| *stop >= ShutdownStage::Ask) => return Err(StartError::ShuttingDown),
            () = &mut cancel => return Ok(run::cancelled_before_start(arrived.elapsed())),
            slot = self.acquire_slot() => Arc::new(slot?),
        };
        // A start that is abandoned is killed by its spawner thread. If the start completes in
        // time, the run ends it gently.
        let is_unwanted = async {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop >= ShutdownStage::Ask) => {}
                () = &mut cancel => {}
            }
            time::sleep(UNWANTED_START_TIMEOUT).await;
        };
        let started = tokio::select! {
            biased;
            started = self.start(&command, &slot) => started?,
            () = is_unwanted => return match cancel.is_terminated() {
                true => Ok(run::cancelled_before_start(arrived.elapsed())),
                false => Err(StartError::ShuttingDown),
            },
        };
        let queued = (started.at - arrived).saturating_sub(started.spawn);
        let exhausted = |source| StartError::Resource {
            program: command.parts.program.clone(),
            source,
        };
        let mut started = started;
        let proxy = started.proxy.take().map(|(listener, password)| {
            let list = command.parts.sandbox.destinations.clone();
            Proxy::serve(listener, password, list, command.parts.observer.clone())
        });
        let proxy = proxy.transpose().map_err(exhausted)?;
        let (limits, temporary) = (&command.parts.limits, &self.0.temporary);
        let ended = run::run(started, limits, temporary, on_line, cancel, stop, queued).await;
        if let Some(proxy) = proxy {
            proxy.end().await;
        }
        ended.map_err(exhausted)
    }

    async fn acquire_slot(&self) -> Result<OwnedSemaphorePermit, StartError> {
        let slots = &self.0.slots;
        // `try_acquire` does not overtake: the semaphore hands a free slot to its first waiter.
        if let Ok(slot) = Arc::clone(slots).try_acquire_owned() {
            return Ok(slot);
        }
        let _place = QueuePlace::take(&self.0)?;
        Arc::clone(slots)
            .acquire_owned()
            .await
            .map_err(|_| StartError::ShuttingDown)
    }

    async fn start(
        &self,
        command: &Arc<Command>,
        slot: &RunSlot,
    ) -> Result<Box<Started>, StartError> {
        let mut pauses = BUSY_PAUSES.iter();
        loop {
            match self.0.spawners.spawn(command, slot).await {
                Err(error @ StartError::TextBusy { .. }) => match pauses.next() {
                    Some(pause) => time::sleep(Duration::from_millis(*pause)).await,
                    None => return Err(error),
                },
                result => return result,
            }
        }
    }
}

/// Place in the queue, given up when dropped.
struct QueuePlace<'a>(&'a AtomicUsize);

impl<'a> QueuePlace<'a> {
    fn take(shared: &'a Shared) -> Result<Self, StartError> {
        let next = |queued| (queued < shared.queue).then_some(queued + 1);
        match shared
            .queued
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
        {
            Ok(_) => Ok(Self(&shared.queued)),
            Err(queued) => Err(StartError::Busy { queued }),
        }
    }
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
