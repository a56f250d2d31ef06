//! Signals: requests to end (SIGTERM of a service manager, SIGINT of Ctrl-C, SIGHUP of a closing
//! terminal), and the hot reload of a daemon's configuration at SIGHUP.

use std::io;

#[cfg(unix)]
use crate::stderr;

/// Listener for requests to end, from its creation on, so that no request is lost.
#[derive(Debug)]
pub struct Termination {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    /// A daemon has none: `nohup` starts it to go on.
    #[cfg(unix)]
    hangup: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Termination {
    /// Replaces the default action of the signals, which would end the process at once, and leave
    /// its children.
    ///
    /// # Errors
    ///
    /// The system refuses a handler.
    pub fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: None,
        })
    }

    /// Listens for a command at a terminal, which also ends with it. A request to end also
    /// releases a command that waits for standard error to be read.
    ///
    /// # Errors
    ///
    /// The system refuses a handler.
    pub fn listen_at_terminal() -> io::Result<Self> {
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
    ///
    /// # Cancel safety
    ///
    /// No request is lost.
    pub async fn wait(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            Some(_) = async { self.hangup.as_mut()?.recv().await } => {}
        }
    }
}

/// Listener for reload requests: SIGHUP, which a daemon has no terminal to send.
#[derive(Debug)]
pub struct Reload {
    #[cfg(unix)]
    hangup: tokio::signal::unix::Signal,
}

impl Reload {
    /// Replaces the default action of the signal, which would end the process.
    ///
    /// # Errors
    ///
    /// The system refuses a handler.
    #[cfg(unix)]
    pub fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let hangup = signal(SignalKind::hangup())?;
        Ok(Self { hangup })
    }

    /// Waits for the next request.
    ///
    /// # Cancel safety
    ///
    /// No request is lost.
    #[cfg(unix)]
    pub async fn wait(&mut self) {
        self.hangup.recv().await;
    }

    /// This system has no such signal.
    ///
    /// # Errors
    ///
    /// None on this system.
    #[cfg(not(unix))]
    pub fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for ever.
    #[cfg(not(unix))]
    pub async fn wait(&mut self) {
        std::future::pending().await
    }
}

#[cfg(not(unix))]
impl Termination {
    /// Ctrl-C needs no preparation.
    ///
    /// # Errors
    ///
    /// None on this system.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Ctrl-C needs no preparation.
    ///
    /// # Errors
    ///
    /// None on this system.
    pub fn listen_at_terminal() -> io::Result<Self> {
        Self::listen()
    }

    /// Waits for Ctrl-C.
    pub async fn wait(&mut self) {
        tokio::signal::ctrl_c().await.ok();
    }
}
