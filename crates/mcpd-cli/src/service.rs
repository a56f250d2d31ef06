//! mcpd as a service of systemd: the sockets it is given, and what it tells of itself. Without a manager nobody is told.

use std::future::pending;
use std::io;
use std::net::TcpListener;
#[cfg(unix)]
use std::os::unix::net::UnixListener;

use listenfd::ListenFd;

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

/// A socket that a manager listens on for this service.
#[derive(Debug)]
pub(crate) enum Passed {
    /// One of TCP.
    Network(TcpListener),
    /// One in the file system.
    #[cfg(unix)]
    File(UnixListener),
}

/// The sockets that a manager listens on for this service, if there are any.
///
/// # Errors
///
/// One of them is neither of TCP nor in the file system.
pub(crate) fn sockets() -> io::Result<Vec<Passed>> {
    let mut passed = ListenFd::from_env();
    (0..passed.len())
        .filter_map(|place| socket(&mut passed, place).transpose())
        .collect()
}

#[cfg(unix)]
fn socket(passed: &mut ListenFd, place: usize) -> io::Result<Option<Passed>> {
    if let Ok(Some(listener)) = passed.take_unix_listener(place) {
        listener.set_nonblocking(true)?;
        return Ok(Some(Passed::File(listener)));
    }
    network_socket(passed, place)
}

#[cfg(not(unix))]
use network_socket as socket;

fn network_socket(passed: &mut ListenFd, place: usize) -> io::Result<Option<Passed>> {
    let listener = passed.take_tcp_listener(place)?;
    if let Some(listener) = &listener {
        listener.set_nonblocking(true)?;
    }
    Ok(listener.map(Passed::Network))
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
