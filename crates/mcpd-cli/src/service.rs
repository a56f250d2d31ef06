//! mcpd as a service of systemd: the sockets it is given, and what it tells of itself. Without a manager nobody is told.

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

/// Tells the manager, if there is one, and waits until it is told, but not for long.
#[cfg(target_os = "linux")]
pub(crate) async fn tell(state: State) {
    use sd_notify::NotifyState;

    match state {
        State::Ready => notify(vec![NotifyState::Ready]).await,
        State::Reloading => match NotifyState::monotonic_usec_now() {
            Ok(now) => notify(vec![NotifyState::Reloading, now]).await,
            Err(error) => tracing::warn!("failed to tell the service manager: {error}"),
        },
        State::Stopping => notify(vec![NotifyState::Stopping]).await,
    }
}

/// There is no manager that wants to know.
#[cfg(not(target_os = "linux"))]
pub(crate) async fn tell(_: State) {}

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

/// Queue of the thread that sends messages, if there is a manager. Sending blocks while the manager does not read, which
/// must stop nothing else.
#[cfg(target_os = "linux")]
static MESSAGES: LazyLock<Option<SyncSender<Message>>> = LazyLock::new(|| {
    std::env::var_os("NOTIFY_SOCKET")?;
    let (queue, messages) = mpsc::sync_channel::<Message>(MAX_QUEUED);
    let send_all = move || {
        for (message, sent) in messages {
            if let Err(error) = sd_notify::notify(&message) {
                tracing::warn!("failed to tell the service manager: {error}");
            }
            drop(sent);
        }
    };
    let thread = std::thread::Builder::new().name("mcpd-notify".to_owned());
    thread.spawn(send_all).ok()?;
    Some(queue)
});

/// Sends `message`, or drops it if the manager has not taken those before it.
#[cfg(target_os = "linux")]
async fn notify(message: Vec<sd_notify::NotifyState<'static>>) {
    let Some(queue) = &*MESSAGES else { return };
    let (sent, is_sent) = tokio::sync::oneshot::channel();
    if queue.try_send((message, sent)).is_ok() {
        tokio::time::timeout(NOTIFY_TIMEOUT, is_sent).await.ok();
    }
}

/// Shows signs of life, as often as the manager wants to see one, for ever.
#[cfg(target_os = "linux")]
pub(crate) async fn show_life() {
    let Some(limit) = sd_notify::watchdog_enabled().filter(|limit| !limit.is_zero()) else {
        return pending().await;
    };
    let mut sign = tokio::time::interval(limit / 2);
    loop {
        sign.tick().await;
        notify(vec![sd_notify::NotifyState::Watchdog]).await;
    }
}

/// There is no manager that wants to see any.
#[cfg(not(target_os = "linux"))]
pub(crate) async fn show_life() {
    pending().await
}
