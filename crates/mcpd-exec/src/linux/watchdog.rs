//! A second process that ends what runs have left behind when this one is killed: nobody can tidy up after a SIGKILL
//! but somebody else. At an orderly end it does nothing.

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

/// The first argument of the second process.
const ARGUMENT: &str = "__mcpd-exec-watchdog";
/// Said before an orderly end.
const ALL_IS_WELL: &[u8] = b".";

/// How many watch over this process.
static WATCHING: AtomicUsize = AtomicUsize::new(0);
/// The last one that was made here.
static SHARED: Mutex<Weak<Watchdog>> = Mutex::new(Weak::new());

/// Keeps a second process from the first run on, as long as it lives.
#[derive(Debug)]
pub(crate) struct Watchdog {
    temporary: PathBuf,
    watch: Arc<Mutex<Watch>>,
    /// Has the thread start the second process, and tell when it has tried to.
    wake: mpsc::Sender<mpsc::Sender<()>>,
    is_awake: OnceLock<()>,
    /// The end of that thread. The lock makes it fit to be shared.
    ended: Mutex<mpsc::Receiver<Infallible>>,
}

#[derive(Debug)]
enum Watch {
    /// The lifeline to the second process: it tears when this one dies, whatever kills it.
    Kept(ChildStdin),
    /// There is none at present.
    Lost,
    /// There shall be none any more.
    Over,
}

impl Watchdog {
    /// One for runs whose directories are in `temporary`: all executors of this process have the same. It starts no second
    /// process before it is woken.
    ///
    /// # Errors
    ///
    /// The thread that waits for the second process can't be started. Or this is a second process itself.
    pub(crate) fn shared(temporary: &Path) -> io::Result<Arc<Self>> {
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
            // It would start itself without end.
            let reason = "watch over this process: its `main` must begin with `run_watchdog`";
            return Err(io::Error::other(reason));
        }
        let watch = Arc::new(Mutex::new(Watch::Lost));
        let (wake, woken) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let (kept, directory) = (Arc::clone(&watch), temporary.to_owned());
        thread::Builder::new()
            .name("mcpd-exec-watch".to_owned())
            .spawn(move || {
                // It is over if nobody ever runs anything.
                if let Ok(trying) = woken.recv() {
                    keep(&kept, &directory, trying);
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

    /// Starts the second process before anything runs. If it can't be started that is tried again, and there is none
    /// meanwhile. Blocks the first time.
    pub(crate) fn wake(&self) {
        self.is_awake.get_or_init(|| {
            let (trying, tried) = mpsc::channel();
            self.wake.send(trying).ok();
            // An error says the same as an answer: the attempt is over.
            tried.recv().ok();
        });
    }

    /// Whether there is one, whoever has started it: they all watch over the whole process.
    pub(crate) fn is_there() -> bool {
        WATCHING.load(Relaxed) > 0
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        /// Far more than it takes.
        const PATIENCE: Duration = Duration::from_millis(100);
        let watch = std::mem::replace(&mut *lock(&self.watch), Watch::Over);
        if let Watch::Kept(mut lifeline) = watch {
            WATCHING.fetch_sub(1, Relaxed);
            // If it is gone already, there is nobody to reassure.
            lifeline.write_all(ALL_IS_WELL).ok();
            drop(lifeline);
            // If this process ends next, whoever has started it finds nobody left behind.
            lock(&self.ended).recv_timeout(PATIENCE).ok();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the second process, and the next whenever one has ended, until there shall be none any more. What comes of the
/// first attempt is known when `trying` is gone.
fn keep(watch: &Mutex<Watch>, temporary: &Path, trying: mpsc::Sender<()>) {
    /// One that ends as soon as it has started would keep us busy, and there may be no room for another just now.
    const PAUSE: Duration = Duration::from_secs(1);
    let mut trying = Some(trying);
    loop {
        let started = {
            let mut held = lock(watch);
            if let Watch::Over = *held {
                return;
            }
            second_process(temporary).map(|(child, lifeline)| {
                *held = Watch::Kept(lifeline);
                WATCHING.fetch_add(1, Relaxed);
                child
            })
        };
        let is_first = trying.take().is_some();
        if !is_first || started.is_err() {
            thread::sleep(PAUSE);
        }
        if let Ok(mut child) = started {
            child.wait().ok();
            let mut held = lock(watch);
            if let Watch::Kept(_) = *held {
                *held = Watch::Lost;
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
        // What a terminal or a supervisor sends to the host's group is not meant for it.
        .process_group(0)
        .spawn()?;
    let lifeline = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    Ok((child, lifeline))
}

/// Does the work of the second process, if this is to be it.
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
    if last_words != ALL_IS_WELL {
        tree::end_all(nonce);
        temporary::remove_all(Path::new(directory), nonce);
    }
    true
}
