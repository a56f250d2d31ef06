//! Life of one process from its start to its outcome: a state machine that writes its input,
//! reads its output, and ends it in time.
//!
//! ```text
//! Running ──exit──► Leaving ──pipes closed, or drain limit──► over
//!    └────────────────┤
//!                     ├──time-out, cancel, shutdown──► Asked (TERM) ──grace──► Killed (KILL)
//!                     └──output limit, second shutdown──────────────────────────►┘──► over
//! ```
//!
//! A run is over when the process has ended and both pipes are closed. Once TERM was sent, the
//! whole group is killed at the end, so no member outlives a run that was cut short. The
//! [reaper](crate::process) takes over a run that is dropped, with the same steps.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Fuse, FusedFuture as _};
use scopeguard::ScopeGuard;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::enforcement::{Containment, Enforcement};
use crate::executor::ShutdownStage;
use crate::limits::Limits;
use crate::line::{OnLine, Stream};
use crate::os::{self, ExitWatch};
use crate::outcome::{Ending, Outcome, StdinReport, Timing, Usage};
use crate::pipes::{InputWriter, OutputReader};
use crate::process::{End, Process, Remains};
use crate::spawner::Started;
use crate::warm::Warmth;

/// Stage of a run, by what it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Waits for the process, until the wall limit.
    Running,
    /// Waits for the pipes, until the drain limit: the process has ended on its own.
    Leaving,
    /// Waits for the group after TERM, until the grace is over.
    Asked,
    /// Waits for the group after KILL, until the drain limit.
    Killed,
    /// Waits for the reaper to end what is left. Its output is no longer read.
    Ending,
}

/// Time to wait for the end of killed processes. Only a process that the kernel can't end takes
/// so long.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// End of the present stage. The timer is made when it is first waited for: most runs end before.
struct Deadline {
    at: Instant,
    timer: Option<Pin<Box<Sleep>>>,
}

/// Process that runs, with what is written to it and read from it. It is boxed: it is large, and
/// would move with every future that holds it.
struct Run<'a> {
    process: Process,
    warmth: Option<Warmth>,
    limits: &'a Limits,
    stage: Stage,
    watch: Option<ExitWatch>,
    exited: bool,
    /// The leader's status and usage, once nothing has to be ended any more.
    remains: Option<Remains>,
    /// Resolves to the remains while the reaper ends something.
    ending: Option<oneshot::Receiver<Remains>>,
    /// The reason that the executor ended the run, if it did.
    cut_short: Option<Ending>,
    deadline: Deadline,
    stdin: InputWriter,
    stdout: OutputReader,
    stderr: OutputReader,
}

/// Runs a started process to its end.
///
/// # Errors
///
/// The system has no resources to watch the process; it is killed.
pub(crate) async fn run(
    started: Box<Started>,
    limits: &Limits,
    temporary: &Arc<Path>,
    mut on_line: Option<&mut OnLine<'_>>,
    mut cancel: Pin<&mut Fuse<impl Future<Output = ()> + Send>>,
    mut stop: watch::Receiver<ShutdownStage>,
    queued: Duration,
) -> io::Result<Outcome> {
    let Started {
        process,
        warmth,
        stdin,
        stdout,
        stderr,
        at,
        spawn,
        ..
    } = *started;
    let mut run = Box::new(Run {
        stdin: InputWriter::new(stdin)?,
        stdout: OutputReader::new(Stream::Stdout, stdout, limits, temporary)?,
        stderr: OutputReader::new(Stream::Stderr, stderr, limits, temporary)?,
        deadline: Deadline::after(limits.wall.saturating_sub(at.elapsed())),
        process,
        warmth,
        limits,
        stage: Stage::Running,
        watch: None,
        exited: false,
        remains: None,
        ending: None,
        cut_short: None,
    });
    let mut level = ShutdownStage::No;
    run.take_over(on_line.as_deref_mut())?;
    let mut guarded = scopeguard::guard(run, Run::leave_to_reaper);
    let run = &mut *guarded;
    if cancel.is_terminated() {
        run.ask(Ending::Cancelled);
    }
    while !run.is_over() {
        tokio::select! {
            // In this order: deadlines and requests to stop must not wait behind pipes, which may
            // be ready all the time.
            biased;
            () = run.deadline.wait() => if run.leave_stage(on_line.as_deref_mut()) { break },
            () = &mut cancel, if !cancel.is_terminated() => run.ask(Ending::Cancelled),
            Ok(next) = stop.wait_for(|next| *next > level) => {
                level = *next;
                run.stop(level);
            }
            () = wait_for_exit(&mut run.watch), if !run.exited => run.check_exit(),
            remains = wait_for_remains(&mut run.ending), if run.ending.is_some() => {
                run.set_remains(remains);
            }
            () = run.stdin.write(), if run.stdin.is_open() => {}
            () = run.stdout.read(), if run.stdout.is_open() => run.stdout.take(on_line.as_deref_mut()),
            () = run.stderr.read(), if run.stderr.is_open() => run.stderr.take(on_line.as_deref_mut()),
        }
        run.check_output();
        run.end_if_over();
    }
    let timing = Timing {
        queued,
        spawn,
        wall: at.elapsed(),
    };
    Ok(ScopeGuard::into_inner(guarded).finish(on_line, timing))
}

impl Deadline {
    fn after(timeout: Duration) -> Self {
        let now = Instant::now();
        let distant = || now + Duration::from_secs(365 * 24 * 3600);
        Self {
            at: now.checked_add(timeout).unwrap_or_else(distant),
            timer: None,
        }
    }

    /// Waits for it. If the wait is dropped, the next one goes on.
    async fn wait(&mut self) {
        let timer = || Box::pin(sleep_until(self.at));
        self.timer.get_or_insert_with(timer).await;
    }
}

impl Run<'_> {
    /// Takes over from the spawner thread that started the process.
    fn take_over(&mut self, mut on_line: Option<&mut OnLine<'_>>) -> io::Result<()> {
        self.stdout.take(on_line.as_deref_mut());
        self.stderr.take(on_line);
        self.check_output();
        self.check_exit();
        if !self.exited {
            self.process.mark_long();
            self.watch = self.process.watch().transpose()?;
        }
        self.end_if_over();
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.remains.is_some() && self.is_silent()
    }

    /// Returns whether both pipes are closed or no longer read, and everything read is stored.
    fn is_silent(&self) -> bool {
        let is_spilling = self.stdout.is_spilling() || self.stderr.is_spilling();
        self.stage == Stage::Ending && !is_spilling || !self.holds_pipes()
    }

    fn holds_pipes(&self) -> bool {
        self.stdout.is_open() || self.stderr.is_open()
    }

    /// Moves on from a stage whose time is up. Returns whether there is no further stage.
    fn leave_stage(&mut self, mut on_line: Option<&mut OnLine<'_>>) -> bool {
        match self.stage {
            Stage::Running => {
                // On an overloaded machine the timer may fire before the notice of an exit that
                // came in time.
                self.check_exit();
                if !self.exited {
                    let limit = self.limits.wall;
                    self.ask(Ending::TimedOut { limit });
                }
            }
            Stage::Asked => self.kill(),
            Stage::Leaving | Stage::Killed => {
                // A disk that hangs blocks reading through its backpressure. Give up the spill
                // file and drain once more.
                let outputs = [&mut self.stdout, &mut self.stderr];
                if outputs.map(OutputReader::abandon_spill).contains(&true) {
                    self.enter(self.stage, self.limits.drain);
                } else {
                    // The line callback or the machine may have been too slow to read what was
                    // written in time.
                    self.stdout.take_rest(on_line.as_deref_mut());
                    self.stderr.take_rest(on_line);
                    self.enter(Stage::Ending, KILL_TIMEOUT);
                }
            }
            Stage::Ending => return true,
        }
        false
    }

    /// Ends what is left of a run that is over. Of a confined run it does so even before, as no
    /// leftover process may hold the pipes.
    fn end_if_over(&mut self) {
        let is_over = self.exited && self.is_silent();
        let is_left = self.exited && self.stage == Stage::Leaving;
        let is_ripe =
            is_over || self.process.is_confined() && (is_left || self.stage >= Stage::Killed);
        if !is_ripe || self.remains.is_some() || self.ending.is_some() {
            return;
        }
        self.watch = None;
        if self.cut_short.is_some() {
            // Before reaping: afterwards the group's number may belong to another process.
            self.process.kill();
        }
        match self.process.end() {
            End::Over(remains) => self.set_remains(remains),
            End::Soon(ending) => self.ending = Some(ending),
        }
    }

    fn set_remains(&mut self, remains: Remains) {
        self.ending = None;
        self.exited = true;
        self.remains = Some(remains);
    }

    fn check_exit(&mut self) {
        self.exited = self.process.has_exited();
        if self.exited && self.stage <= Stage::Running {
            self.enter(Stage::Leaving, self.limits.drain);
        }
    }

    fn ask(&mut self, why: Ending) {
        if self.stage < Stage::Asked {
            self.cut_short = Some(why);
            self.process.terminate();
            self.enter(Stage::Asked, self.limits.grace);
        }
    }

    fn kill(&mut self) {
        if self.stage < Stage::Killed {
            self.process.kill();
            self.enter(Stage::Killed, self.limits.drain);
        }
    }

    fn stop(&mut self, level: ShutdownStage) {
        self.ask(Ending::Cancelled);
        if level == ShutdownStage::Kill {
            self.kill();
        }
    }

    fn check_output(&mut self) {
        let limit = self.limits.output_hard;
        if self.stdout.total_bytes() + self.stderr.total_bytes() > limit {
            self.cut_short.get_or_insert(Ending::OutputLimit { limit });
            self.kill();
        }
    }

    fn enter(&mut self, stage: Stage, timeout: Duration) {
        self.stage = stage;
        self.deadline = Deadline::after(timeout);
    }

    /// Leaves a run that was dropped to the reaper.
    fn leave_to_reaper(self: Box<Self>) {
        let grace = match self.stage {
            Stage::Running | Stage::Leaving | Stage::Asked => self.limits.grace,
            Stage::Killed | Stage::Ending => Duration::ZERO,
        };
        let outputs = [self.stdout, self.stderr].map(OutputReader::into_pipe);
        self.process.end_gently(grace, outputs);
    }

    fn finish(
        mut self: Box<Self>,
        mut on_line: Option<&mut OnLine<'_>>,
        timing: Timing,
    ) -> Outcome {
        let mut enforced = self.process.enforcement().clone();
        let remains = self.remains.take().unwrap_or_else(|| {
            // The reaper is still ending it, in the background.
            enforced.containment = enforced.containment.min(Containment::Search);
            self.process.remains()
        });
        let pipes_held = self.holds_pipes();
        Outcome {
            ending: self.cut_short.unwrap_or_else(|| natural_ending(&remains)),
            status: remains.status,
            stdout: self.stdout.finish(on_line.as_deref_mut()),
            stderr: self.stderr.finish(on_line),
            stdin: self.stdin.report(),
            pipes_held,
            leftovers: remains.leftovers,
            usage: remains.usage,
            enforced,
            hidden: Vec::new(),
            warmth: self.warmth.take(),
            timing,
        }
    }
}

async fn wait_for_remains(ending: &mut Option<oneshot::Receiver<Remains>>) -> Remains {
    match ending {
        // The reaper's thread lives as long as anything is being ended.
        Some(ending) => ending.await.unwrap_or_default(),
        None => std::future::pending().await,
    }
}

async fn wait_for_exit(watch: &mut Option<ExitWatch>) {
    match watch {
        Some(watch) => watch.wait().await,
        None => std::future::pending().await,
    }
}

fn natural_ending(remains: &Remains) -> Ending {
    let Some(status) = remains.status else {
        return Ending::Lost;
    };
    match (status.code(), os::signal(status)) {
        (Some(code), _) => Ending::Exited(code),
        (None, Some(os::KILL)) if remains.out_of_memory => Ending::OutOfMemory,
        (None, signal) => Ending::Signaled {
            signal: signal.unwrap_or_default(),
            core_dumped: os::core_dumped(status),
        },
    }
}

/// Returns the outcome of a run that was cancelled in the queue.
pub(crate) fn cancelled_before_start(queued: Duration) -> Outcome {
    Outcome {
        ending: Ending::Cancelled,
        status: None,
        stdout: Default::default(),
        stderr: Default::default(),
        stdin: StdinReport::default(),
        pipes_held: false,
        leftovers: None,
        usage: Usage::default(),
        enforced: Enforcement::default(),
        hidden: Vec::new(),
        warmth: None,
        timing: Timing {
            queued,
            ..Timing::default()
        },
    }
}
