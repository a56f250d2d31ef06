//! Who may run now: a bounded number at a time, a bounded number waiting, first come, first served.

use std::future::{self, Future};
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::{FusedFuture as _, FutureExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time;

use crate::command::Command;
use crate::error::{StartError, diagnosis};
use crate::line::{Line, OnLine};
use crate::os;
use crate::outcome::Outcome;
use crate::process::Turn;
use crate::run;
use crate::spawner::{self, Spawners, Started};

/// Pauses between attempts to start a file that is open for writing: 191 ms in all.
///
/// A file just written is often still open for writing in a child that another thread is about to start.
const BUSY_PAUSES: [u64; 8] = [1, 2, 4, 8, 16, 32, 64, 64];

/// How long a start is waited for that nobody wants any more. Only a file system that hangs takes so long.
const START: Duration = Duration::from_millis(250);

/// More processes than any system has.
const MOST_AT_A_TIME: usize = 1 << 22;

/// How much an [`Executor`] does at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// Processes running at a time, at least one. Four per core.
    pub concurrency: usize,
    /// Runs waiting for their turn; one more is refused as [`StartError::Busy`]. 256.
    pub queue: usize,
    /// This process becomes the reaper of orphans among its descendants, for as long as it lives. False.
    ///
    /// Needed to prove that nothing of a confined run is left, and to know what an unconfined one has left behind
    /// (Linux). The host must not wait for children it did not start. Orphans fall to the main thread, which must not end; those
    /// of children that no executor has started stay zombies, for the host alone to reap, or for [`Config::init`].
    pub reaper: bool,
    /// As the [reaper](Self::reaper) this process is that of a whole container, as its first process is: every child that
    /// has been dead for ten seconds without anybody waiting for it is reaped, whoever it was. False.
    ///
    /// The host must wait for the children that it starts itself before that time is up (Linux).
    pub init: bool,
    /// From the first run on a second process watches over this one, and ends what is left of all runs if it is killed. False.
    ///
    /// All executors of a process have the same. The second process is this program again, so its `main` must begin with
    /// [`run_watchdog`](crate::run_watchdog) (Linux).
    pub watchdog: bool,
    /// A control group (version 2) that was delegated to this process: a directory below `/sys/fs/cgroup`. None.
    ///
    /// Needed for [`Limits::memory`](crate::Limits::memory), and to hold [`Limits::processes`](crate::Limits::processes)
    /// exactly at every level. If this process is in that group itself it moves into one below it (Linux).
    pub cgroup: Option<PathBuf>,
    /// Where confined runs have their temporary directories, and long outputs their files. The system's place for them.
    ///
    /// Nobody else may be able to write this directory or one above it, unless it is sticky as `/tmp` is: they could put
    /// another in its place.
    pub temporary: Option<PathBuf>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            concurrency: per_core(PER_CORE),
            queue: 256,
            reaper: false,
            init: false,
            watchdog: false,
            cgroup: None,
            temporary: None,
        }
    }
}

/// So many processes keep the cores busy while some of them wait.
const PER_CORE: usize = 4;

/// So many processes for two cores in their first milliseconds, when most want nothing but a core. Everybody else waits
/// for one behind them, this process and its clients too: with one more, a client who wants no process waits up to twice as
/// long, and the rate of short processes rises by five in a hundred at most.
const FRESH_PER_TWO_CORES: usize = 3;

fn per_core(count: usize) -> usize {
    count * std::thread::available_parallelism().map_or(1, NonZero::get)
}

impl Config {
    /// Where temporary files go.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.temporary
            .clone()
            .unwrap_or_else(crate::temporary_directory)
    }
}

/// Runs processes. Cheap to clone; all clones share their limits.
///
/// It needs a Tokio runtime with I/O and time enabled when something is run, of either flavour, and remembers none.
/// It installs no signal handler, and changes nothing of the host process unless its [`Config`] says so; what it has of its
/// own are its threads, which end with the last clone: dropping that waits until they have ended and removed what was left,
/// for half a second at most.
#[derive(Debug, Clone)]
pub struct Executor(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    spawners: Spawners,
    turns: Arc<Semaphore>,
    concurrency: u32,
    queued: AtomicUsize,
    queue: usize,
    temporary: Arc<Path>,
    stop: watch::Sender<Stop>,
}

/// How far a shutdown has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stop {
    No,
    /// Nothing new; what runs is asked to end.
    Ask,
    /// What runs is killed.
    Kill,
}

impl Executor {
    /// Starts the threads of an executor.
    ///
    /// # Errors
    ///
    /// The system refuses a thread, or what [`Config::reaper`], [`Config::watchdog`] and [`Config::cgroup`] need; or this
    /// process ignores SIGCHLD (Linux), see [`prepare_signals`](crate::prepare_signals).
    pub fn new(config: Config) -> io::Result<Self> {
        let concurrency = config.concurrency.clamp(1, MOST_AT_A_TIME);
        Ok(Self(Arc::new(Shared {
            spawners: Spawners::new(
                concurrency.min(per_core(FRESH_PER_TWO_CORES).div_ceil(2)),
                os::System::new(&config)?,
            )?,
            turns: Arc::new(Semaphore::new(concurrency)),
            concurrency: concurrency as u32,
            queued: AtomicUsize::new(0),
            queue: config.queue,
            temporary: config.temporary().into(),
            stop: watch::Sender::new(Stop::No),
        })))
    }

    /// Looks at the program of a command without starting it: whether there is one, whether it may be run, and whether
    /// there is the interpreter that its first line names. Blocks.
    ///
    /// # Errors
    ///
    /// What would keep it from starting. Where nothing is found, something else still may.
    pub fn look(&self, command: &Command) -> Result<(), StartError> {
        spawner::resolve(command).and_then(|program| diagnosis::look(command, &program))
    }

    /// Runs a command to its end, whatever that is.
    ///
    /// # Errors
    ///
    /// No process was started, or it had to be killed at once for lack of descriptors: see [`StartError`].
    /// A process that fails is an [`Outcome`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future asks the process and its whole group to end; after [`Limits::grace`](crate::Limits::grace), or
    /// when the last clone of the executor is dropped, what is left of it is killed. That goes on in the background, without
    /// the runtime, and holds the turn. What it prints meanwhile is not read. In its first 10 ms a process is killed at once.
    /// If it was still waiting for its turn, nothing is started.
    /// To keep the output of what was ended, use [`run_until`](Self::run_until).
    pub async fn run(&self, command: Command) -> Result<Outcome, StartError> {
        self.execute(command, None, future::pending()).await
    }

    /// As [`run`](Self::run), and calls `on_line` with every line of output as it arrives.
    ///
    /// Lines of its first 10 ms may come together at their end.
    /// The process waits while `on_line` does, and so does the runtime's thread: hand the line on with something like `try_send`.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run).
    pub async fn run_with(
        &self,
        command: Command,
        on_line: impl FnMut(Line<'_>) + Send,
    ) -> Result<Outcome, StartError> {
        self.run_until(command, on_line, future::pending()).await
    }

    /// As [`run_with`](Self::run_with), until `cancel` resolves: then the group is asked to end, given
    /// [`Limits::grace`](crate::Limits::grace), killed, and the outcome is
    /// [`Ending::Cancelled`](crate::Ending::Cancelled) with the output so far.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run).
    pub async fn run_until(
        &self,
        command: Command,
        mut on_line: impl FnMut(Line<'_>) + Send,
        cancel: impl Future<Output = ()> + Send,
    ) -> Result<Outcome, StartError> {
        self.execute(command, Some(&mut on_line), cancel).await
    }

    /// How many processes run at a time at most.
    pub fn concurrency(&self) -> usize {
        self.0.concurrency as usize
    }

    /// How many processes are running, or killed and not yet reaped. While a shutdown waits it may say more.
    pub fn running(&self) -> usize {
        self.concurrency() - self.0.turns.available_permits()
    }

    /// How many runs wait for their turn.
    pub fn queued(&self) -> usize {
        self.0.queued.load(Ordering::Relaxed)
    }

    /// Ends everything: runs that wait fail with [`StartError::ShuttingDown`], as do new ones; processes are asked to end
    /// as in [`run_until`](Self::run_until), and killed after `deadline` at the latest.
    ///
    /// Returns how many processes are left a second after that: with runs that are still polled, or dropped, it is 0
    /// unless the kernel can't end one.
    ///
    /// # Cancel safety
    ///
    /// What was reached stays: nothing new is started. Calling it again goes on.
    pub async fn shutdown(&self, deadline: Duration) -> usize {
        const AFTER_KILL: Duration = Duration::from_secs(1);
        for (stop, patience) in [(Stop::Ask, deadline), (Stop::Kill, AFTER_KILL)] {
            self.0.stop.send_replace(stop);
            if stop == Stop::Kill {
                self.0.spawners.hurry();
            }
            // All turns at once are to be had when nothing runs.
            if time::timeout(patience, self.0.turns.acquire_many(self.0.concurrency))
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
        let turn: Turn = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop >= Stop::Ask) => return Err(StartError::ShuttingDown),
            () = &mut cancel => return Ok(run::cancelled_before_start(arrived.elapsed())),
            turn = self.turn() => Arc::new(turn?),
        };
        // What is being started when this is left is killed by whoever starts it; what has started is ended gently.
        let is_unwanted = async {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop >= Stop::Ask) => {}
                () = &mut cancel => {}
            }
            time::sleep(START).await;
        };
        let started = tokio::select! {
            biased;
            started = self.start(&command, &turn) => started?,
            () = is_unwanted => return match cancel.is_terminated() {
                true => Ok(run::cancelled_before_start(arrived.elapsed())),
                false => Err(StartError::ShuttingDown),
            },
        };
        let queued = (started.at - arrived).saturating_sub(started.spawn);
        let (limits, temporary) = (&command.limits, &self.0.temporary);
        run::run(started, limits, temporary, on_line, cancel, stop, queued)
            .await
            .map_err(|source| StartError::Resource {
                program: command.program.clone(),
                source,
            })
    }

    async fn turn(&self) -> Result<OwnedSemaphorePermit, StartError> {
        let turns = &self.0.turns;
        // Does not overtake: a turn given back goes to whoever waits first.
        if let Ok(turn) = Arc::clone(turns).try_acquire_owned() {
            return Ok(turn);
        }
        let _place = Place::take(&self.0)?;
        Arc::clone(turns)
            .acquire_owned()
            .await
            .map_err(|_| StartError::ShuttingDown)
    }

    async fn start(&self, command: &Arc<Command>, turn: &Turn) -> Result<Started, StartError> {
        let mut pauses = BUSY_PAUSES.iter();
        loop {
            match self.0.spawners.spawn(command, turn).await {
                Err(error @ StartError::TextBusy { .. }) => match pauses.next() {
                    Some(pause) => time::sleep(Duration::from_millis(*pause)).await,
                    None => return Err(error),
                },
                result => return result,
            }
        }
    }
}

/// A place in the queue, given up when dropped.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
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

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
