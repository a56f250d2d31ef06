//! Being asked to end: SIGTERM by a service manager, SIGINT by Ctrl-C, SIGHUP by a terminal that closes. A daemon reads
//! its configuration again at SIGHUP.

use std::io;

#[cfg(unix)]
use crate::stderr;

/// Listens from its making on, so that no request to end is lost.
#[derive(Debug)]
pub(crate) struct Termination {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    /// Not for a daemon: whoever starts one with `nohup` wants it to go on.
    #[cfg(unix)]
    hangup: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Termination {
    /// Takes the signals over from the system, which would end the process and leave its scripts.
    pub(crate) fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: None,
        })
    }

    /// The same for a command of a terminal, which ends with it. A request to end also reaches a command whose thread
    /// waits for standard error to be read.
    pub(crate) fn listen_at_terminal() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        for kind in [
            SignalKind::terminate(),
            SignalKind::interrupt(),
            SignalKind::hangup(),
        ] {
            signal_hook::flag::register(kind.as_raw_value(), stderr::give_up_flag())?;
        }
        let hangup = Some(signal(SignalKind::hangup())?);
        Ok(Self {
            hangup,
            ..Self::listen()?
        })
    }

    /// Waits for the next request to end.
    pub(crate) async fn requested(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            Some(_) = async { self.hangup.as_mut()?.recv().await } => {}
        }
    }
}

/// Being asked to read the configuration again: SIGHUP, which a daemon has no terminal for.
#[derive(Debug)]
pub(crate) struct Reload {
    #[cfg(unix)]
    hangup: tokio::signal::unix::Signal,
}

impl Reload {
    /// Takes the signal over from the system, which would end the process.
    #[cfg(unix)]
    pub(crate) fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let hangup = signal(SignalKind::hangup())?;
        Ok(Self { hangup })
    }

    /// Waits for the next request.
    #[cfg(unix)]
    pub(crate) async fn requested(&mut self) {
        self.hangup.recv().await;
    }

    /// There is nothing to take over.
    #[cfg(not(unix))]
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for ever.
    #[cfg(not(unix))]
    pub(crate) async fn requested(&mut self) {
        std::future::pending().await
    }
}

#[cfg(not(unix))]
impl Termination {
    /// There is nothing to take over.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    /// There is nothing to take over.
    pub(crate) fn listen_at_terminal() -> io::Result<Self> {
        Self::listen()
    }

    /// Waits for Ctrl-C.
    pub(crate) async fn requested(&mut self) {
        tokio::signal::ctrl_c().await.ok();
    }
}
