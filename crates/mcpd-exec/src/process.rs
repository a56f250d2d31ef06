//! Process ownership and the reaper thread. Dropping a [`Process`] ends it and what it has
//! started, so no owner can leave anything behind by mistake.
//!
//! A dying run is polled with a back-off of its own:
//!
//! ```text
//! TERM ──leader gone, grace over or shutdown──► KILL ──► polled until all are dead ──► reaped
//!
//! pause between polls: none while there is something to kill (1000 polls at most),
//!                      then 100 µs up to poll 1000, then 5/4 of the last one, up to 1 s
//! ```

use std::convert::Infallible;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{io, thread};

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::command::HeldValue;
use crate::enforcement::Enforcement;
use crate::os::{self, Child, Output, Reader, System};
use crate::outcome::Usage;

/// Slot of a running process. It is free again when both clones are gone: the run's and the
/// process's.
pub(crate) type RunSlot = Arc<OwnedSemaphorePermit>;

/// A process that was started and has not been reaped.
#[derive(Debug)]
pub(crate) struct Process {
    /// `None` once it was reaped, or handed to the reaper.
    live: Option<LiveProcess>,
    /// Exit status of the leader when the process was handed to the reaper.
    status: Option<ExitStatus>,
    enforced: Enforcement,
    reaper: Reaper,
}

#[derive(Debug)]
struct LiveProcess {
    child: Child,
    has_exited: bool,
    /// Given back when the process is reaped, not when it is killed.
    _slot: RunSlot,
    /// The caller's value, with the same lifetime.
    _held: Option<HeldValue>,
    /// Set for a process that runs long.
    long_run: Option<LongRun>,
}

/// Result of reaping a run.
#[derive(Debug, Default)]
pub(crate) struct Remains {
    /// `None` if the status was taken elsewhere.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) usage: Usage,
    pub(crate) leftovers: Option<u32>,
    pub(crate) out_of_memory: bool,
}

/// Progress of ending a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Only the leader's status remains to be taken.
    Over,
    /// Processes were just killed. They may have forked meanwhile, so the next look must follow
    /// at once.
    Killing,
    /// Killed processes have yet to die.
    Waiting,
}

impl Progress {
    pub(crate) fn until(over: bool) -> Self {
        if over { Self::Over } else { Self::Waiting }
    }
}

/// Result of ending a run.
#[derive(Debug)]
pub(crate) enum End {
    /// It is over.
    Over(Remains),
    /// The reaper is ending it.
    Soon(oneshot::Receiver<Remains>),
}

impl Process {
    pub(crate) fn new(
        child: Child,
        slot: RunSlot,
        held: Option<HeldValue>,
        reaper: Reaper,
    ) -> Self {
        Self {
            enforced: child.enforcement().clone(),
            live: Some(LiveProcess {
                child,
                has_exited: false,
                _slot: slot,
                _held: held,
                long_run: None,
            }),
            status: None,
            reaper,
        }
    }

    /// Returns whether nothing may be left of its run.
    pub(crate) fn is_confined(&self) -> bool {
        self.live
            .as_ref()
            .is_some_and(|live| live.child.is_confined())
    }

    pub(crate) fn enforcement(&self) -> &Enforcement {
        &self.enforced
    }

    /// Returns what is known of a run that is still being ended.
    pub(crate) fn remains(&self) -> Remains {
        Remains {
            status: self.status,
            ..Remains::default()
        }
    }

    /// Sends TERM to the group.
    pub(crate) fn terminate(&mut self) {
        if let Some(live) = &mut self.live {
            live.child.terminate();
        }
    }

    /// Sends KILL to the group.
    pub(crate) fn kill(&mut self) {
        if let Some(live) = &mut self.live {
            live.child.kill();
        }
    }

    /// Returns whether the leader has ended; the group can still be signalled.
    pub(crate) fn has_exited(&mut self) -> bool {
        self.live.as_mut().is_some_and(LiveProcess::has_exited)
    }

    /// Waits a while for its end, and reads all its output if it comes in time.
    pub(crate) fn wait_first(
        &mut self,
        outputs: [&mut Output; 2],
        limit: Duration,
        is_wanted: impl Fn() -> bool,
    ) {
        if let Some(live) = &mut self.live {
            live.child.wait_first(outputs, limit, is_wanted);
        }
    }

    /// Returns a watch that becomes ready when the leader has ended. `None` once the reaper has
    /// the process.
    pub(crate) fn watch(&self) -> Option<io::Result<os::ExitWatch>> {
        self.live.as_ref().map(|live| live.child.watch())
    }

    /// Marks the process as a long one, so that orphans it leaves meanwhile are reaped.
    pub(crate) fn mark_long(&mut self) {
        if let Some(live) = &mut self.live {
            live.long_run
                .get_or_insert_with(|| self.reaper.count_long_run());
        }
    }

    /// Ends what is left of the run, which for a confined one is every process, and reaps the
    /// leader, which was killed or has ended.
    pub(crate) fn end(&mut self) -> End {
        let Some(mut live) = self.live.take() else {
            return End::Over(Remains::default());
        };
        // In this order: only when the leader has ended do the processes that it leaves become
        // orphans.
        if live.has_exited() && live.child.is_alone().unwrap_or(!live.child.is_confined()) {
            let leftovers = live.child.counts_leftovers().then_some(0);
            return End::Over(live.reap(leftovers));
        }
        self.status = live.child.status();
        let (reply, remains) = oneshot::channel();
        self.reaper.send(ReaperTask::End(Box::new(DyingRun {
            live,
            grace: None,
            reply: Some(reply),
            backoff: PollBackoff::default(),
        })));
        End::Soon(remains)
    }

    /// Sends TERM to the group, and ends what is left when the leader has ended or `grace` is
    /// over. `outputs` stay open until then, or SIGPIPE would kill a process that prints last
    /// words.
    pub(crate) fn end_gently(mut self, grace: Duration, outputs: [Option<Reader>; 2]) {
        self.terminate();
        let Some(live) = self.live.take() else { return };
        let grace = Grace {
            // A time beyond the range of the clock means never.
            end: Instant::now().checked_add(grace),
            _outputs: outputs,
        };
        self.reaper.send(ReaperTask::End(Box::new(DyingRun {
            live,
            grace: Some(grace),
            reply: None,
            backoff: PollBackoff::default(),
        })));
    }
}

impl LiveProcess {
    /// Returns whether the leader has ended; the kernel is not asked again once it has.
    fn has_exited(&mut self) -> bool {
        self.has_exited = self.has_exited || self.child.has_exited();
        self.has_exited
    }

    /// Reaps a leader that has ended.
    fn reap(&mut self, leftovers: Option<u32>) -> Remains {
        // An error means that it was reaped elsewhere, so its number must not be signalled any
        // more.
        let (status, usage) = match self.child.reap() {
            Ok(Some((status, usage))) => (Some(status), usage),
            _ => (None, Usage::default()),
        };
        Remains {
            status,
            usage,
            leftovers,
            out_of_memory: self.child.ran_out_of_memory(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.live.is_some() {
            self.kill();
            drop(self.end());
        }
    }
}

/// Handle of the reaper thread. The thread takes killed processes that no run waits for, and
/// orphans.
#[derive(Debug, Clone)]
pub(crate) struct Reaper {
    tasks: mpsc::Sender<ReaperTask>,
    /// Number of processes that run long.
    long_runs: Arc<AtomicUsize>,
}

#[derive(Debug)]
enum ReaperTask {
    End(Box<DyingRun>),
    /// Looks for orphans.
    ReapOrphans,
    /// Kills at once what has grace left.
    EndGraces,
}

/// Run that is being ended, with the channel for its remains.
#[derive(Debug)]
struct DyingRun {
    live: LiveProcess,
    /// `None` once nothing of it may go on.
    grace: Option<Grace>,
    reply: Option<oneshot::Sender<Remains>>,
    /// Each run has its own: a process that does not die must not be polled more often because of
    /// others that do.
    backoff: PollBackoff,
}

/// Grace of a run that was sent TERM.
#[derive(Debug)]
struct Grace {
    /// `None` means never.
    end: Option<Instant>,
    _outputs: [Option<Reader>; 2],
}

impl DyingRun {
    /// Returns whether it may still go on, and kills it otherwise.
    fn check_grace(&mut self) -> bool {
        let has_grace = self.grace.as_ref().is_some_and(|grace| {
            grace.end.is_none_or(|end| Instant::now() < end) && !self.live.has_exited()
        });
        if !has_grace {
            self.end_grace();
        }
        has_grace
    }

    fn end_grace(&mut self) {
        if self.grace.take().is_some() {
            self.live.child.kill();
            // The back-off starts anew with the kill.
            self.backoff = PollBackoff::default();
        }
    }

    /// Returns the time of the next look.
    fn due(&self) -> Instant {
        match self.grace {
            Some(_) => self.backoff.next_look(PollBackoff::MAX_PAUSE_WHILE_RUNNING),
            None => self.backoff.next_look(PollBackoff::MAX_PAUSE),
        }
    }

    /// Takes a look, if it is due. Returns whether it was the last.
    fn look(&mut self) -> bool {
        if self.due() > Instant::now() {
            return false;
        }
        let progress = self.try_end();
        self.backoff.record_look(progress == Progress::Killing);
        progress == Progress::Over
    }

    fn try_end(&mut self) -> Progress {
        if self.check_grace() {
            return Progress::Waiting;
        }
        let progress = self.live.child.end_round();
        if progress != Progress::Over {
            return progress;
        }
        // Killed processes leave no trace but this count.
        let leftovers = match self.live.child.killed_count() {
            0 => self.live.child.leftover_count(),
            killed => Some(killed),
        };
        let remains = self.live.reap(leftovers);
        if let Some(reply) = self.reply.take() {
            // The receiver is gone if the run was dropped.
            reply.send(remains).ok();
        }
        progress
    }
}

/// Sender that a thread drops to announce its end.
pub(crate) type EndSignal = mpsc::Sender<Infallible>;

/// Counts as one long process while it lives.
#[derive(Debug)]
struct LongRun(Arc<AtomicUsize>);

impl Drop for LongRun {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Reaper {
    /// Starts the thread. It ends, and drops `end`, when the last clone is gone and everything is
    /// reaped.
    pub(crate) fn start(system: Arc<System>, end: EndSignal) -> io::Result<Self> {
        let (tasks, receiver) = mpsc::channel();
        let long_runs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&long_runs);
        thread::Builder::new()
            .name("mcpd-exec-reap".to_owned())
            .spawn(move || {
                reap_all(&receiver, &system, &counted);
                drop(system);
                drop(end);
            })?;
        Ok(Self { tasks, long_runs })
    }

    fn send(&self, task: ReaperTask) {
        // The thread outlives every sender.
        self.tasks.send(task).ok();
    }

    fn wake(&self) {
        self.send(ReaperTask::ReapOrphans);
    }

    /// Kills the processes that still have grace.
    pub(crate) fn end_all_graces(&self) {
        self.send(ReaperTask::EndGraces);
    }

    fn count_long_run(&self) -> LongRun {
        if self.long_runs.fetch_add(1, Ordering::Relaxed) == 0 {
            self.wake();
        }
        LongRun(Arc::clone(&self.long_runs))
    }
}

/// Loop of the reaper thread.
///
/// A killed process takes from microseconds to for ever to die (asleep in a dead file system),
/// and one must not keep the others waiting. So all are polled in turn, each with its own
/// back-off. Orphans are reaped while there are any, or while a long process runs that may leave
/// some.
fn reap_all(receiver: &mpsc::Receiver<ReaperTask>, system: &System, long_runs: &AtomicUsize) {
    let mut dying: Vec<Box<DyingRun>> = Vec::new();
    let mut orphans = 0;
    let mut closed = false;
    loop {
        let due = dying.iter().map(|run| run.due()).min();
        // A dying run sets the pace. Otherwise a closed reaper ends, and an open one wakes up
        // only while orphans exist or may appear.
        let timeout = match (due, long_runs.load(Ordering::Relaxed), orphans) {
            (Some(due), ..) => Some(due.saturating_duration_since(Instant::now())),
            _ if closed => return,
            (None, 1.., _) => Some(PollBackoff::MAX_PAUSE_WHILE_RUNNING),
            (None, 0, 1..) => Some(PollBackoff::MAX_PAUSE),
            (None, 0, 0) => system.reap_interval(),
        };
        match next(receiver, timeout, closed) {
            Ok(ReaperTask::End(run)) => dying.push(run),
            Ok(ReaperTask::EndGraces) => {
                for run in &mut dying {
                    run.end_grace();
                    run.backoff = PollBackoff::default();
                }
            }
            Ok(ReaperTask::ReapOrphans) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => closed = true,
        }
        dying.retain_mut(|run| !run.look());
        orphans = system.reap_orphans();
    }
}

/// Waits for the next task for `timeout` at most. `None` waits without limit.
fn next(
    receiver: &mpsc::Receiver<ReaperTask>,
    timeout: Option<Duration>,
    closed: bool,
) -> Result<ReaperTask, RecvTimeoutError> {
    match timeout {
        None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
        Some(pause) if closed => {
            thread::sleep(pause);
            Err(RecvTimeoutError::Timeout)
        }
        Some(pause) => receiver.recv_timeout(pause),
    }
}

/// Polling back-off for a dying run.
#[derive(Debug)]
struct PollBackoff {
    last: Instant,
    /// Pause between the last look and the next.
    pause: Duration,
    looks: u32,
}

impl Default for PollBackoff {
    /// Due at once.
    fn default() -> Self {
        Self {
            last: Instant::now(),
            pause: Duration::ZERO,
            looks: 0,
        }
    }
}

impl PollBackoff {
    const MIN_PAUSE: Duration = Duration::from_micros(100);
    const MAX_PAUSE: Duration = Duration::from_secs(1);
    /// Short enough for a process that leaves a thousand orphans a second, and to meet the end of
    /// a grace.
    const MAX_PAUSE_WHILE_RUNNING: Duration = Duration::from_millis(100);
    /// Looks without a pause while there is something to kill. Among a hundred processes that
    /// keep forking, a thread that sleeps comes back too late.
    const MAX_EAGER_LOOKS: u32 = 1000;

    /// Returns the time of the next look, after a pause of at most `max_pause`.
    fn next_look(&self, max_pause: Duration) -> Instant {
        self.last + self.pause.min(max_pause)
    }

    fn record_look(&mut self, killing: bool) {
        self.last = Instant::now();
        self.looks += 1;
        self.pause = match (killing, self.looks) {
            (true, ..Self::MAX_EAGER_LOOKS) => Duration::ZERO,
            (_, ..Self::MAX_EAGER_LOOKS) => Self::MIN_PAUSE,
            _ => Self::MAX_PAUSE.min(self.pause.max(Self::MIN_PAUSE) * 5 / 4),
        };
    }
}
