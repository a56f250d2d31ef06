//! mcpd as a service of systemd: the socket it is given, and what it tells of itself. Without a manager nobody is told.

use std::future::pending;
use std::io;

use tokio::net::TcpListener;

/// What a service manager is told.
#[derive(Debug, Clone, Copy)]
pub(crate) enum State {
    /// Requests are answered.
    Ready,
    /// The configuration is read again; [`Ready`](Self::Ready) follows.
    Reloading,
    /// The service ends.
    Stopping,
}

/// The socket that a manager listens on for this service, if there is one.
///
/// # Errors
///
/// It is not one of TCP.
pub(crate) fn listener() -> io::Result<Option<TcpListener>> {
    let listener = listenfd::ListenFd::from_env().take_tcp_listener(0)?;
    let tokio = |listener: std::net::TcpListener| {
        listener.set_nonblocking(true)?;
        TcpListener::from_std(listener)
    };
    listener.map(tokio).transpose()
}

/// Tells the manager, if there is one.
#[cfg(target_os = "linux")]
pub(crate) fn tell(state: State) {
    use sd_notify::{NotifyState, notify};
    let told = match state {
        State::Ready => notify(&[NotifyState::Ready]),
        State::Reloading => {
            NotifyState::monotonic_usec_now().and_then(|now| notify(&[NotifyState::Reloading, now]))
        }
        State::Stopping => notify(&[NotifyState::Stopping]),
    };
    if let Err(error) = told {
        tracing::warn!("failed to tell the service manager: {error}");
    }
}

/// There is no manager that wants to know.
#[cfg(not(target_os = "linux"))]
pub(crate) fn tell(_: State) {}

/// Shows signs of life, as often as the manager wants to see one, for ever.
#[cfg(target_os = "linux")]
pub(crate) async fn show_life() {
    use sd_notify::{NotifyState, notify};
    let Some(limit) = sd_notify::watchdog_enabled().filter(|limit| !limit.is_zero()) else {
        return pending().await;
    };
    let mut sign = tokio::time::interval(limit / 2);
    loop {
        sign.tick().await;
        if let Err(error) = notify(&[NotifyState::Watchdog]) {
            tracing::warn!("failed to tell the service manager: {error}");
        }
    }
}

/// There is no manager that wants to see any.
#[cfg(not(target_os = "linux"))]
pub(crate) async fn show_life() {
    pending().await
}
