//! A second process that ends what runs have left behind when this one is killed: nobody can tidy up after a SIGKILL
//! but somebody else. At an orderly end it does nothing.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{env, thread};

use super::{temporary, tree};

/// The first argument of the second process.
const ARGUMENT: &str = "__mcpd-exec-watchdog";
/// Said before an orderly end.
const ALL_IS_WELL: &[u8] = b".";

/// How many watch over this process.
static WATCHING: AtomicUsize = AtomicUsize::new(0);

/// Keeps a second process, as long as it lives.
#[derive(Debug)]
pub(crate) struct Watchdog(Arc<Mutex<Watch>>);

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
    /// Starts the second process, and again should it end: a thread waits for that.
    ///
    /// # Errors
    ///
    /// This program can't be started again, or the thread can't be started. Or this is a second process itself.
    pub(crate) fn start(temporary: &Path) -> io::Result<Self> {
        if env::args_os().nth(1).is_some_and(|first| first == ARGUMENT) {
            // It would start itself without end.
            let reason = "watch over this process: its `main` must begin with `run_watchdog`";
            return Err(io::Error::other(reason));
        }
        let (mut child, lifeline) = second_process(temporary)?;
        let watch = Arc::new(Mutex::new(Watch::Kept(lifeline)));
        let kept = Arc::clone(&watch);
        let temporary = temporary.to_owned();
        thread::Builder::new()
            .name("mcpd-exec-watch".to_owned())
            .spawn(move || while keep(&mut child, &kept, &temporary) {})?;
        WATCHING.fetch_add(1, Relaxed);
        Ok(Self(watch))
    }

    /// Whether there is one, whoever has started it: they all watch over the whole process.
    pub(crate) fn is_there() -> bool {
        WATCHING.load(Relaxed) > 0
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if let Watch::Kept(mut lifeline) = std::mem::replace(&mut *lock(&self.0), Watch::Over) {
            WATCHING.fetch_sub(1, Relaxed);
            // If it is gone already, there is nobody to reassure.
            lifeline.write_all(ALL_IS_WELL).ok();
        }
    }
}

fn lock(watch: &Mutex<Watch>) -> MutexGuard<'_, Watch> {
    watch.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the next second process once this one has ended. False if there shall be none.
fn keep(child: &mut Child, watch: &Mutex<Watch>, temporary: &Path) -> bool {
    /// One that ends as soon as it has started would keep us busy.
    const PAUSE: Duration = Duration::from_secs(1);
    child.wait().ok();
    let mut held = lock(watch);
    if let Watch::Kept(_) = *held {
        *held = Watch::Lost;
        WATCHING.fetch_sub(1, Relaxed);
    }
    loop {
        if let Watch::Over = *held {
            return false;
        }
        // There may be no room for another process just now.
        if let Ok((next, lifeline)) = second_process(temporary) {
            *child = next;
            *held = Watch::Kept(lifeline);
            WATCHING.fetch_add(1, Relaxed);
            drop(held);
            thread::sleep(PAUSE);
            return true;
        }
        drop(held);
        thread::sleep(PAUSE);
        held = lock(watch);
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
