//! Watchdog: a second process that ends what runs have left behind when this one is killed, since
//! no process can clean up after its own SIGKILL. At an orderly end it does nothing.
//!
//! ```text
//!              wake             spawned
//!   asleep ───────────► starting ──────► Kept ──watchdog ends, pause──► Lost ──► starting
//!                                         └──── last executor dropped ──► Over
//! ```

use std::convert::Infallible;
use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak, mpsc};
use std::time::Duration;
use std::{env, thread};

use super::{temporary, tree};

/// First argument of the watchdog process.
const ARGUMENT: &str = "__mcpd-exec-watchdog";
/// Message that announces an orderly end.
const ORDERLY_END: &[u8] = b".";

/// Number of watchdogs that watch over this process.
static WATCHING: AtomicUsize = AtomicUsize::new(0);
/// The last one that was made here.
static SHARED: Mutex<Weak<Watchdog>> = Mutex::new(Weak::new());

/// Keeper of a watchdog process, from the first run on as long as this lives.
#[derive(Debug)]
pub(crate) struct Watchdog {
    temporary: PathBuf,
    watch: Arc<Mutex<WatchdogState>>,
    /// Asks the thread to start the watchdog, and to drop the sender after the attempt.
    wake: mpsc::Sender<mpsc::Sender<()>>,
    is_awake: OnceLock<()>,
    /// End of that thread. The lock makes it `Sync`.
    ended: Mutex<mpsc::Receiver<Infallible>>,
}

#[derive(Debug)]
enum WatchdogState {
    /// The pipe to the watchdog. It closes when this process dies, of any cause.
    Kept(ChildStdin),
    /// No watchdog at present.
    Lost,
    /// No watchdog any more.
    Over,
}

impl Watchdog {
    /// Returns the watchdog for runs whose directories are in `temporary`; all executors of this
    /// process share it. The process starts when it is first woken.
    ///
    /// # Errors
    ///
    /// The thread can't be started, or this is a watchdog process itself.
    pub(crate) fn for_process(temporary: &Path) -> io::Result<Arc<Self>> {
        let mut shared = lock(&SHARED);
        let known = shared.upgrade();
        if let Some(known) = known.filter(|known| known.temporary == temporary) {
            return Ok(known);
        }
        let made = Arc::new(Self::new(temporary)?);
        *shared = Arc::downgrade(&made);
        Ok(made)
    }

    fn new(temporary: &Path) -> io::Result<Self> {
        if env::args_os().nth(1).is_some_and(|first| first == ARGUMENT) {
            // Otherwise it would start itself without end.
            let reason = "watch over this process: its `main` must begin with `run_watchdog`";
            return Err(io::Error::other(reason));
        }
        let watch = Arc::new(Mutex::new(WatchdogState::Lost));
        let (wake, woken) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let (state, directory) = (Arc::clone(&watch), temporary.to_owned());
        thread::Builder::new()
            .name("mcpd-exec-watch".to_owned())
            .spawn(move || {
                // `recv` fails if no run ever starts.
                if let Ok(trying) = woken.recv() {
                    keep_running(&state, &directory, trying);
                }
                drop(end);
            })?;
        Ok(Self {
            temporary: temporary.to_owned(),
            watch,
            wake,
            is_awake: OnceLock::new(),
            ended: Mutex::new(ended),
        })
    }

    /// Starts the watchdog before the first run. If that fails, it is tried again later, without
    /// a watchdog meanwhile. Blocks the first time.
    pub(crate) fn wake(&self) {
        self.is_awake.get_or_init(|| {
            let (trying, tried) = mpsc::channel();
            self.wake.send(trying).ok();
            // An error means the same as an answer: the attempt is over.
            tried.recv().ok();
        });
    }

    /// Returns whether there is a watchdog, of any executor: each watches over the whole process.
    pub(crate) fn is_there() -> bool {
        WATCHING.load(Relaxed) > 0
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        /// Far more than it takes.
        const WATCHDOG_END_TIMEOUT: Duration = Duration::from_millis(100);
        let watch = std::mem::replace(&mut *lock(&self.watch), WatchdogState::Over);
        if let WatchdogState::Kept(mut lifeline) = watch {
            WATCHING.fetch_sub(1, Relaxed);
            // The write fails if the watchdog has ended already.
            lifeline.write_all(ORDERLY_END).ok();
            drop(lifeline);
            // If this process ends next, its parent must find no child left behind.
            lock(&self.ended).recv_timeout(WATCHDOG_END_TIMEOUT).ok();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the watchdog, and another one whenever it ends, until none is wanted. `trying` is
/// dropped after the first attempt.
fn keep_running(watch: &Mutex<WatchdogState>, temporary: &Path, trying: mpsc::Sender<()>) {
    /// Pause between attempts: a watchdog that ends at once would keep this thread busy, and a
    /// lack of resources may pass.
    const RESTART_PAUSE: Duration = Duration::from_secs(1);
    let mut trying = Some(trying);
    loop {
        let started = {
            let mut held = lock(watch);
            if let WatchdogState::Over = *held {
                return;
            }
            second_process(temporary).map(|(child, lifeline)| {
                *held = WatchdogState::Kept(lifeline);
                WATCHING.fetch_add(1, Relaxed);
                child
            })
        };
        let is_first = trying.take().is_some();
        if !is_first || started.is_err() {
            thread::sleep(RESTART_PAUSE);
        }
        if let Ok(mut child) = started {
            child.wait().ok();
            let mut held = lock(watch);
            if let WatchdogState::Kept(_) = *held {
                *held = WatchdogState::Lost;
                WATCHING.fetch_sub(1, Relaxed);
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "it has to outlive every executor"
)]
fn second_process(temporary: &Path) -> io::Result<(Child, ChildStdin)> {
    let mut child = Command::new("/proc/self/exe")
        .args([ARGUMENT, &tree::nonce().to_string()])
        .arg(temporary)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Signals to the group of the host, from a terminal or supervisor, must not reach it.
        .process_group(0)
        .spawn()?;
    let lifeline = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    Ok((child, lifeline))
}

/// Does the work of the watchdog, if this process was started as one.
pub(crate) fn run() -> bool {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let [first, nonce, directory] = arguments.as_slice() else {
        return false;
    };
    let Some(nonce) = nonce.to_str().and_then(|nonce| nonce.parse().ok()) else {
        return false;
    };
    if first != ARGUMENT {
        return false;
    }
    let mut last_words = Vec::new();
    io::stdin().read_to_end(&mut last_words).ok();
    if last_words != ORDERLY_END {
        tree::end_all(nonce);
        temporary::remove_all(Path::new(directory), nonce);
    }
    true
}
