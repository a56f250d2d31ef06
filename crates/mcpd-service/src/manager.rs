//! A program as a systemd service: socket activation, state notifications and the watchdog. Without
//! a manager nothing is sent.

use std::future::pending;
use std::io;
use std::net::TcpListener;
#[cfg(unix)]
use std::os::unix::net::UnixListener;
#[cfg(target_os = "linux")]
use std::sync::{
    LazyLock,
    mpsc::{self, SyncSender},
};
#[cfg(target_os = "linux")]
use std::time::Duration;

use listenfd::ListenFd;

/// State of the service, as reported to its manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServiceState {
    /// Requests are served.
    Ready,
    /// The configuration is being reloaded; [`Ready`](Self::Ready) follows.
    Reloading,
    /// The service shuts down.
    Stopping,
}

/// A socket that a manager listens on for this service.
#[derive(Debug)]
#[non_exhaustive]
pub enum PassedSocket {
    /// A TCP socket.
    Network(TcpListener),
    /// A Unix domain socket.
    #[cfg(unix)]
    File(UnixListener),
}

/// Takes the sockets that a manager listens on for this service, if there are any. They do not
/// block, and a second call finds none.
///
/// # Errors
///
/// A socket is neither TCP nor a Unix domain socket.
pub fn sockets() -> io::Result<Vec<PassedSocket>> {
    let mut passed = ListenFd::from_env();
    (0..passed.len())
        .filter_map(|place| socket(&mut passed, place).transpose())
        .collect()
}

#[cfg(unix)]
fn socket(passed: &mut ListenFd, place: usize) -> io::Result<Option<PassedSocket>> {
    if let Ok(Some(listener)) = passed.take_unix_listener(place) {
        listener.set_nonblocking(true)?;
        return Ok(Some(PassedSocket::File(listener)));
    }
    network_socket(passed, place)
}

#[cfg(not(unix))]
use network_socket as socket;

fn network_socket(passed: &mut ListenFd, place: usize) -> io::Result<Option<PassedSocket>> {
    let listener = passed.take_tcp_listener(place)?;
    if let Some(listener) = &listener {
        listener.set_nonblocking(true)?;
    }
    Ok(listener.map(PassedSocket::Network))
}

/// Reports the state to the manager, if there is one, and waits until it is sent, for a quarter of
/// a second at most.
///
/// # Cancel safety
///
/// The state is sent, or it is dropped with others that the manager does not take.
#[cfg(target_os = "linux")]
pub async fn report_state(state: ServiceState) {
    use sd_notify::NotifyState;

    match state {
        ServiceState::Ready => notify(vec![NotifyState::Ready]).await,
        ServiceState::Reloading => match NotifyState::monotonic_usec_now() {
            Ok(now) => notify(vec![NotifyState::Reloading, now]).await,
            Err(error) => tracing::warn!("failed to notify the service manager: {error}"),
        },
        ServiceState::Stopping => notify(vec![NotifyState::Stopping]).await,
    }
}

/// This system has no service manager.
#[cfg(not(target_os = "linux"))]
pub async fn report_state(_: ServiceState) {}

/// Message for the manager, and a sender that is dropped when it is sent.
#[cfg(target_os = "linux")]
type Message = (
    Vec<sd_notify::NotifyState<'static>>,
    tokio::sync::oneshot::Sender<()>,
);

/// Messages that may wait until the manager takes them.
#[cfg(target_os = "linux")]
const MAX_QUEUED: usize = 16;

/// Time within which a manager takes a message that reads at all.
#[cfg(target_os = "linux")]
const NOTIFY_TIMEOUT: Duration = Duration::from_millis(250);

/// Queue of the thread that sends messages, if there is a manager. Sending blocks while the
/// manager does not read, and must not block anything else.
#[cfg(target_os = "linux")]
static MESSAGES: LazyLock<Option<SyncSender<Message>>> = LazyLock::new(|| {
    std::env::var_os("NOTIFY_SOCKET")?;
    let (queue, messages) = mpsc::sync_channel::<Message>(MAX_QUEUED);
    let send_all = move || {
        for (message, sent) in messages {
            if let Err(error) = sd_notify::notify(&message) {
                tracing::warn!("failed to notify the service manager: {error}");
            }
            drop(sent);
        }
    };
    let thread = std::thread::Builder::new().name("mcpd-notify".to_owned());
    thread.spawn(send_all).ok()?;
    Some(queue)
});

/// Sends `message`, or drops it if the manager has not taken the previous ones.
#[cfg(target_os = "linux")]
async fn notify(message: Vec<sd_notify::NotifyState<'static>>) {
    let Some(queue) = &*MESSAGES else { return };
    let (sent, is_sent) = tokio::sync::oneshot::channel();
    if queue.try_send((message, sent)).is_ok() {
        tokio::time::timeout(NOTIFY_TIMEOUT, is_sent).await.ok();
    }
}

/// Notifies the watchdog of the manager at the interval it requests, for ever.
///
/// # Cancel safety
///
/// Nothing is sent after the future is dropped.
#[cfg(target_os = "linux")]
pub async fn ping_watchdog() {
    let Some(limit) = sd_notify::watchdog_enabled().filter(|limit| !limit.is_zero()) else {
        return pending().await;
    };
    let mut sign = tokio::time::interval(limit / 2);
    loop {
        sign.tick().await;
        notify(vec![sd_notify::NotifyState::Watchdog]).await;
    }
}

/// This system has no watchdog.
#[cfg(not(target_os = "linux"))]
pub async fn ping_watchdog() {
    pending().await
}
