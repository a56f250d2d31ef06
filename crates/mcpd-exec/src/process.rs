//! A live process and what it has started. Dropping it ends it; whoever owns it, nothing stays behind that should not.

use std::convert::Infallible;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{io, thread};

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::command::Held;
use crate::enforced::Enforced;
use crate::os::{self, Child, Output, Reader, System};
use crate::outcome::Usage;

/// A turn to run something. It is given back when the last clone is gone: the run's and the process's.
pub(crate) type Turn = Arc<OwnedSemaphorePermit>;

/// A process that was started and has not been reaped.
#[derive(Debug)]
pub(crate) struct Process {
    /// `None` once it was reaped, or handed to the reaper.
    live: Option<Live>,
    /// What the leader had ended with when it was handed to the reaper.
    status: Option<ExitStatus>,
    enforced: Enforced,
    reaper: Reaper,
}

#[derive(Debug)]
struct Live {
    child: Child,
    /// Given back when the process is reaped, not when it is killed.
    _turn: Turn,
    /// Likewise, for whoever wanted the run.
    _held: Option<Held>,
    /// Held by a process that runs for long.
    lasting: Option<Lasting>,
}

/// What is left of a run that has ended.
#[derive(Debug, Default)]
pub(crate) struct Remains {
    /// `None` if somebody else took it.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) usage: Usage,
    pub(crate) leftovers: Option<u32>,
    pub(crate) out_of_memory: bool,
}

/// How far the ending of a run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing but the leader's remains is left.
    Over,
    /// There were some to kill. What they may have started meanwhile must not be given time.
    Killing,
    /// Those that were killed have to die.
    Waiting,
}

impl Progress {
    pub(crate) fn until(over: bool) -> Self {
        if over { Self::Over } else { Self::Waiting }
    }
}

/// How the end of a run goes.
#[derive(Debug)]
pub(crate) enum End {
    /// It is over.
    Over(Remains),
    /// Something is being ended.
    Soon(oneshot::Receiver<Remains>),
}

impl Process {
    pub(crate) fn new(child: Child, turn: Turn, held: Option<Held>, reaper: Reaper) -> Self {
        Self {
            enforced: child.enforced().clone(),
            live: Some(Live {
                child,
                _turn: turn,
                _held: held,
                lasting: None,
            }),
            status: None,
            reaper,
        }
    }

    /// Nothing may be left of its run.
    pub(crate) fn is_confined(&self) -> bool {
        self.live
            .as_ref()
            .is_some_and(|live| live.child.is_confined())
    }

    pub(crate) fn enforced(&self) -> &Enforced {
        &self.enforced
    }

    /// What there is of a run that is still being ended.
    pub(crate) fn remains(&self) -> Remains {
        Remains {
            status: self.status,
            ..Remains::default()
        }
    }

    /// Asks the group to end.
    pub(crate) fn terminate(&mut self) {
        if let Some(live) = &mut self.live {
            live.child.terminate();
        }
    }

    /// Kills the group.
    pub(crate) fn kill(&mut self) {
        if let Some(live) = &mut self.live {
            live.child.kill();
        }
    }

    /// Whether the leader has ended; the group can still be signalled.
    pub(crate) fn has_exited(&mut self) -> bool {
        self.live
            .as_mut()
            .is_some_and(|live| live.child.has_exited())
    }

    /// Waits a while for its end, and reads all its output if it comes.
    pub(crate) fn attend(
        &mut self,
        outputs: [&mut Output; 2],
        most: Duration,
        is_wanted: impl Fn() -> bool,
    ) {
        if let Some(live) = &mut self.live {
            live.child.attend(outputs, most, is_wanted);
        }
    }

    /// Becomes ready when the leader has ended. `None` if that is somebody else's matter by now.
    pub(crate) fn watch(&self) -> Option<io::Result<os::ExitWatch>> {
        self.live.as_ref().map(|live| live.child.watch())
    }

    /// It runs for long, so that what it leaves behind meanwhile has to be looked after.
    pub(crate) fn lasts(&mut self) {
        if let Some(live) = &mut self.live {
            live.lasting.get_or_insert_with(|| self.reaper.lasting());
        }
    }

    /// Ends what is left, of a run that is confined all of it, and reaps the leader, which was killed or has ended.
    pub(crate) fn end(&mut self) -> End {
        let Some(mut live) = self.live.take() else {
            return End::Over(Remains::default());
        };
        // In this order: until the leader has ended, what it leaves behind is nobody's orphan.
        if live.child.has_exited() && live.child.was_alone().unwrap_or(!live.child.is_confined()) {
            let leftovers = live.child.counts_leftovers().then_some(0);
            return End::Over(live.reap(leftovers));
        }
        self.status = live.child.status();
        let (reply, remains) = oneshot::channel();
        self.reaper.send(Task::End(Box::new(Dying {
            live,
            farewell: None,
            reply: Some(reply),
            pace: Pace::default(),
        })));
        End::Soon(remains)
    }

    /// Asks the group to end, and ends what is left of it when its leader has ended, or `grace` is over. `outputs` are closed
    /// no sooner, or it would die of its last words.
    pub(crate) fn leave(mut self, grace: Duration, outputs: [Option<Reader>; 2]) {
        self.terminate();
        let Some(live) = self.live.take() else { return };
        let farewell = Farewell {
            // What is further away than any clock goes is never.
            until: Instant::now().checked_add(grace),
            _outputs: outputs,
        };
        self.reaper.send(Task::End(Box::new(Dying {
            live,
            farewell: Some(farewell),
            reply: None,
            pace: Pace::default(),
        })));
    }
}

impl Live {
    /// Of a leader that has ended.
    fn reap(&mut self, leftovers: Option<u32>) -> Remains {
        // An error means that somebody else reaped it, so we must not signal it any more either.
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

/// Where killed processes go whose owner does not wait for their end, and orphans.
#[derive(Debug, Clone)]
pub(crate) struct Reaper {
    tasks: mpsc::Sender<Task>,
    /// Processes that run for long.
    lasting: Arc<AtomicUsize>,
}

#[derive(Debug)]
enum Task {
    End(Box<Dying>),
    /// There may be orphans.
    Look,
    /// There is no time left for farewells.
    Hurry,
}

/// A run that is being ended, and who wants to know.
#[derive(Debug)]
struct Dying {
    live: Live,
    /// `None` once nothing of it may go on.
    farewell: Option<Farewell>,
    reply: Option<oneshot::Sender<Remains>>,
    /// Its own: what does not die must not be looked at more often for others that do.
    pace: Pace,
}

/// What a run that was asked to end is given.
#[derive(Debug)]
struct Farewell {
    /// `None` is never.
    until: Option<Instant>,
    _outputs: [Option<Reader>; 2],
}

impl Dying {
    /// Whether it may still go on.
    fn lingers(&mut self) -> bool {
        let lingers = self.farewell.as_ref().is_some_and(|farewell| {
            let has_time = farewell.until.is_none_or(|until| Instant::now() < until);
            has_time && !self.live.child.has_exited()
        });
        if !lingers {
            self.hurry();
        }
        lingers
    }

    fn hurry(&mut self) {
        if self.farewell.take().is_some() {
            self.live.child.kill();
            // Only now is there anything to be eager for.
            self.pace = Pace::default();
        }
    }

    /// When it has to be looked at next.
    fn due(&self) -> Instant {
        match self.farewell {
            Some(_) => self.pace.due(Pace::LASTING),
            None => self.pace.due(Pace::LAST),
        }
    }

    /// One look, if it is time for one. True if it was the last.
    fn is_over(&mut self) -> bool {
        if self.due() > Instant::now() {
            return false;
        }
        let progress = self.attempt();
        self.pace.go_on(progress == Progress::Killing);
        progress == Progress::Over
    }

    fn attempt(&mut self) -> Progress {
        if self.lingers() {
            return Progress::Waiting;
        }
        let progress = self.live.child.end_round();
        if progress != Progress::Over {
            return progress;
        }
        // Of those who were killed there is no other trace.
        let leftovers = match self.live.child.killed() {
            0 => self.live.child.left(),
            killed => Some(killed),
        };
        let remains = self.live.reap(leftovers);
        if let Some(reply) = self.reply.take() {
            // Nobody listens any more when the run was dropped.
            reply.send(remains).ok();
        }
        progress
    }
}

/// The end of a thread is known when it drops this.
pub(crate) type Announced = mpsc::Sender<Infallible>;

/// Counted while it lives.
#[derive(Debug)]
struct Lasting(Arc<AtomicUsize>);

impl Drop for Lasting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Reaper {
    /// Starts the thread; it ends when the last clone is gone and everything is reaped, and says so.
    pub(crate) fn start(system: Arc<System>, end: Announced) -> io::Result<Self> {
        let (tasks, receiver) = mpsc::channel();
        let lasting = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&lasting);
        thread::Builder::new()
            .name("mcpd-exec-reap".to_owned())
            .spawn(move || {
                reap_all(&receiver, &system, &counted);
                drop(system);
                drop(end);
            })?;
        Ok(Self { tasks, lasting })
    }

    fn send(&self, task: Task) {
        // The thread outlives every sender.
        self.tasks.send(task).ok();
    }

    fn nudge(&self) {
        self.send(Task::Look);
    }

    /// Kills what was left to end by itself.
    pub(crate) fn hurry(&self) {
        self.send(Task::Hurry);
    }

    fn lasting(&self) -> Lasting {
        if self.lasting.fetch_add(1, Ordering::Relaxed) == 0 {
            self.nudge();
        }
        Lasting(Arc::clone(&self.lasting))
    }
}

/// A killed process takes anything from microseconds to for ever (asleep in a dead file system), and one must not
/// keep the others waiting: so they are all asked in turn, each less and less often in the end. And orphans are reaped while
/// there are any, or while something runs that may leave some.
fn reap_all(receiver: &mpsc::Receiver<Task>, system: &System, lasting: &AtomicUsize) {
    let mut dying: Vec<Box<Dying>> = Vec::new();
    let mut orphans = 0;
    let mut closed = false;
    loop {
        let due = dying.iter().map(|run| run.due()).min();
        let patience = match (due, lasting.load(Ordering::Relaxed), orphans) {
            (Some(due), ..) => Some(due.saturating_duration_since(Instant::now())),
            _ if closed => return,
            (None, 1.., _) => Some(Pace::LASTING),
            (None, 0, 1..) => Some(Pace::LAST),
            (None, 0, 0) => system.reaping(),
        };
        match next(receiver, patience, closed) {
            Ok(Task::End(run)) => dying.push(run),
            Ok(Task::Hurry) => {
                for run in &mut dying {
                    run.hurry();
                    run.pace = Pace::default();
                }
            }
            Ok(Task::Look) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => closed = true,
        }
        dying.retain_mut(|run| !run.is_over());
        orphans = system.reap_orphans();
    }
}

/// The next task, as long as there may be some; `None` has all the time in the world.
fn next(
    receiver: &mpsc::Receiver<Task>,
    patience: Option<Duration>,
    closed: bool,
) -> Result<Task, RecvTimeoutError> {
    match patience {
        None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
        Some(pause) if closed => {
            thread::sleep(pause);
            Err(RecvTimeoutError::Timeout)
        }
        Some(pause) => receiver.recv_timeout(pause),
    }
}

/// How often one looks at a run that is dying.
#[derive(Debug)]
struct Pace {
    last: Instant,
    /// Between that look and the next.
    pause: Duration,
    looks: u32,
}

impl Default for Pace {
    /// At once.
    fn default() -> Self {
        Self {
            last: Instant::now(),
            pause: Duration::ZERO,
            looks: 0,
        }
    }
}

impl Pace {
    const FIRST: Duration = Duration::from_micros(100);
    const LAST: Duration = Duration::from_secs(1);
    /// Often enough for a process that leaves a thousand orphans a second, and for one whose time will be up.
    const LASTING: Duration = Duration::from_millis(100);
    /// So many looks without a pause, while there is something to kill: whoever sleeps among a hundred that keep forking
    /// comes back when it is too late.
    const EAGER: u32 = 1000;

    /// When it is time for the next look, after a pause of so long at most.
    fn due(&self, most: Duration) -> Instant {
        self.last + self.pause.min(most)
    }

    fn go_on(&mut self, killing: bool) {
        self.last = Instant::now();
        self.looks += 1;
        self.pause = match (killing, self.looks) {
            (true, ..Self::EAGER) => Duration::ZERO,
            (_, ..Self::EAGER) => Self::FIRST,
            _ => Self::LAST.min(self.pause.max(Self::FIRST) * 5 / 4),
        };
    }
}
