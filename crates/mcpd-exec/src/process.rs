//! A live process and its group. Dropping it kills the group; whoever owns it, nothing stays behind.

use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use std::{io, thread};

use tokio::sync::OwnedSemaphorePermit;

use crate::os;

/// A turn to run something. It is given back when the last clone is gone: the run's and the process's.
pub(crate) type Turn = Arc<OwnedSemaphorePermit>;

/// A process that was started and has not been reaped.
#[derive(Debug)]
pub(crate) struct Process {
    /// `None` once it was reaped: from then on its number may be somebody else's.
    live: Option<Live>,
    reaper: Reaper,
}

#[derive(Debug)]
struct Live {
    child: Child,
    /// Given back when the process is reaped, not when it is killed.
    _turn: Turn,
}

impl Process {
    pub(crate) fn new(child: Child, turn: Turn, reaper: Reaper) -> Self {
        Self {
            live: Some(Live { child, _turn: turn }),
            reaper,
        }
    }

    /// Asks the group to end.
    pub(crate) fn terminate(&mut self) {
        if let Some(live) = &mut self.live {
            os::terminate(&mut live.child);
        }
    }

    /// Kills the group.
    pub(crate) fn kill(&mut self) {
        if let Some(live) = &mut self.live {
            os::kill(&mut live.child);
        }
    }

    /// Whether the leader has ended; the group can still be signalled.
    pub(crate) fn has_exited(&mut self) -> bool {
        self.live
            .as_mut()
            .is_none_or(|live| os::has_exited(&mut live.child))
    }

    pub(crate) fn watch(&self) -> io::Result<os::ExitWatch> {
        match &self.live {
            Some(live) => os::ExitWatch::new(&live.child),
            None => Err(io::Error::other("the process was reaped")),
        }
    }

    /// Takes the status of a leader that has ended.
    pub(crate) fn reap(&mut self) -> Option<ExitStatus> {
        // An error means that somebody else reaped it, so we must not signal it any more either.
        let status = self.live.as_mut()?.child.try_wait().transpose()?;
        self.live = None;
        status.ok()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.live.is_some() {
            self.kill();
            if self.reap().is_none()
                && let Some(live) = self.live.take()
            {
                self.reaper.bury(live);
            }
        }
    }
}

/// Where killed processes go whose owner does not wait for their end.
#[derive(Debug, Clone)]
pub(crate) struct Reaper(mpsc::Sender<Live>);

impl Reaper {
    /// Starts the thread; it ends when the last clone is gone and everything is reaped.
    pub(crate) fn start() -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        thread::Builder::new()
            .name("mcpd-exec-reap".to_owned())
            .spawn(move || reap_all(&receiver))?;
        Ok(Self(sender))
    }

    fn bury(&self, live: Live) {
        // The thread outlives every sender.
        self.0.send(live).ok();
    }
}

/// A killed process takes anything from microseconds to for ever (asleep in a dead file system), and one must not
/// keep the others waiting: so they are all asked in turn, less and less often.
fn reap_all(receiver: &mpsc::Receiver<Live>) {
    const FIRST_PAUSE: Duration = Duration::from_millis(1);
    const LAST_PAUSE: Duration = Duration::from_secs(1);
    let mut dying: Vec<Live> = Vec::new();
    let mut pause = FIRST_PAUSE;
    loop {
        let next = if dying.is_empty() {
            receiver.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            receiver.recv_timeout(pause)
        };
        match next {
            Ok(live) => {
                dying.push(live);
                pause = FIRST_PAUSE;
            }
            Err(RecvTimeoutError::Timeout) => pause = LAST_PAUSE.min(pause * 2),
            Err(RecvTimeoutError::Disconnected) if dying.is_empty() => return,
            Err(RecvTimeoutError::Disconnected) => {
                thread::sleep(pause);
                pause = LAST_PAUSE.min(pause * 2);
            }
        }
        dying.retain_mut(|live| matches!(live.child.try_wait(), Ok(None)));
    }
}
