//! Warm starts: a run is forked from a zygote, an interpreter that has started already.
//!
//! The fork is a child of this process (`CLONE_PARENT`), and confines itself by the same steps as a
//! process on its way to its program: session, streams, limits, control group, mark, directory,
//! Landlock, seccomp. From there on it is a run as any other: pipes, limits, signals, the search
//! for what it leaves. Zygotes are started in the background after the first run that could have
//! used one, shared by runs that agree in all that the start of the interpreter depends on, and
//! ended when none has used them for a while. A run never waits for one: without it, it starts as
//! any other.
//!
//! ```text
//! first run ──► Starting ──ready──► Ready ──idle timeout, too many, died, rules changed──► gone
//!                  └──failed──► Unusable ──retry pause──► gone
//! ```

mod interpreter;
mod request;
mod zygote;

use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{io, mem};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use self::interpreter::{InterpretedScript, start_variables};
use self::request::{Request, wait_for_fork};
use self::zygote::{Surroundings, Zygote, ZygoteKey};
use super::cgroup::Group;
use super::child::Child;
use super::confinement::Confinement;
use super::gateway::Way;
use super::image::{image, resources, text};
use super::pipe::{Pipes, pipe};
use super::spawner_class::InstalledClass;
use super::temporary::DirectoryPool;
use super::view::Proc;
use super::{System, raw};
use crate::command::Command;
use crate::os::{self, SpawnedChild};
use crate::sandbox::{Level, Network};
use crate::warm::{WarmStart, Warmth};

/// Most zygotes of one executor. The one that was used least recently makes room (LRU).
const MAX_ZYGOTES: usize = 8;

/// Idle timeout of a zygote.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);

/// Pause before an interpreter that can't be started ahead is tried again.
const RETRY_PAUSE: Duration = Duration::from_secs(60);

/// Interval at which idle zygotes are looked for.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(30);

/// Zygotes of one executor, with the thread that starts and ends them.
#[derive(Debug)]
pub(super) struct WarmPool {
    zygotes: Arc<Zygotes>,
    /// Started with the first zygote. It is the parent of all zygotes and their forks, so it lives
    /// as long as the pool.
    starter: OnceLock<Starter>,
}

#[derive(Debug)]
struct Starter {
    keys: mpsc::Sender<Arc<ZygoteKey>>,
    thread: JoinHandle<()>,
}

#[derive(Debug)]
struct Zygotes {
    surroundings: Surroundings,
    entries: Mutex<Vec<Entry>>,
    is_closed: AtomicBool,
}

#[derive(Debug)]
struct Entry {
    key: Arc<ZygoteKey>,
    used: Instant,
    state: State,
}

#[derive(Debug)]
enum State {
    Starting,
    Ready(Arc<Zygote>),
    Unusable(String),
}

impl WarmPool {
    /// Prepares a pool. Nothing is started yet.
    pub(super) fn new(directories: &Arc<DirectoryPool>, session: bool, marks: bool) -> Self {
        Self {
            zygotes: Arc::new(Zygotes {
                surroundings: Surroundings {
                    directories: Arc::clone(directories),
                    session,
                    marks,
                },
                entries: Mutex::default(),
                is_closed: AtomicBool::new(false),
            }),
            starter: OnceLock::new(),
        }
    }

    /// Returns the zygote for this key, or has one started for later runs.
    fn zygote(&self, key: ZygoteKey) -> Result<Arc<Zygote>, String> {
        let mut entries = self.zygotes.entries();
        if let Some(at) = entries.iter().position(|entry| *entry.key == key) {
            let entry = &mut entries[at];
            match &entry.state {
                State::Starting => return Err("the interpreter is being started ahead".to_owned()),
                State::Unusable(reason) if entry.used.elapsed() < RETRY_PAUSE => {
                    return Err(reason.clone());
                }
                State::Ready(zygote) if zygote.is_usable() => {
                    entry.used = Instant::now();
                    return Ok(Arc::clone(zygote));
                }
                State::Ready(_) | State::Unusable(_) => {}
            }
            let stale = entries.remove(at);
            drop(entries);
            drop(stale);
            entries = self.zygotes.entries();
        }
        let evicted = make_room(&mut entries);
        let key = Arc::new(key);
        let starter = self.starter.get();
        let queued = starter.map(|starter| starter.keys.send(Arc::clone(&key)));
        if matches!(queued, Some(Ok(()))) {
            entries.push(Entry {
                key,
                used: Instant::now(),
                state: State::Starting,
            });
        }
        drop(entries);
        // Killing it takes a moment.
        drop(evicted);
        Err("the interpreter was not started ahead yet".to_owned())
    }

    /// Starts the thread, unless it runs. It must not be called on a spawner thread: the new one
    /// would inherit its filter.
    fn prepare(&self) -> io::Result<()> {
        if self.starter.get().is_none() {
            let (keys, receiver) = mpsc::channel();
            let zygotes = Arc::clone(&self.zygotes);
            let thread = thread::Builder::new().name("mcpd-exec-warm".to_owned());
            let thread = thread.spawn(move || zygotes.serve(&receiver))?;
            // Another thread may have been faster. Without its sender, this one ends.
            self.starter.set(Starter { keys, thread }).ok();
        }
        Ok(())
    }
}

/// Removes the entry that was used least recently if there is no room for another.
fn make_room(entries: &mut Vec<Entry>) -> Option<Entry> {
    if entries.len() < MAX_ZYGOTES {
        return None;
    }
    let oldest = entries
        .iter()
        .enumerate()
        .min_by_key(|(_, entry)| entry.used);
    let (oldest, _) = oldest?;
    Some(entries.remove(oldest))
}

impl Drop for WarmPool {
    fn drop(&mut self) {
        self.zygotes.is_closed.store(true, Relaxed);
        if let Some(starter) = self.starter.take() {
            drop(starter.keys);
            starter.thread.join().ok();
        }
        drop(mem::take(&mut *self.zygotes.entries()));
    }
}

impl Zygotes {
    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loop of the starter thread.
    fn serve(&self, keys: &mpsc::Receiver<Arc<ZygoteKey>>) {
        loop {
            match keys.recv_timeout(IDLE_CHECK_INTERVAL) {
                Ok(key) => self.start(&key),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.end_idle();
        }
    }

    fn start(&self, key: &Arc<ZygoteKey>) {
        let is_wanted = || !self.is_closed.load(Relaxed);
        let started = Zygote::start(key, &self.surroundings, is_wanted);
        let mut entries = self.entries();
        // It may have made room for another one meanwhile.
        let Some(entry) = entries
            .iter_mut()
            .find(|entry| Arc::ptr_eq(&entry.key, key))
        else {
            drop(entries);
            drop(started);
            return;
        };
        entry.used = Instant::now();
        entry.state = match started {
            Ok(zygote) => State::Ready(Arc::new(zygote)),
            Err(reason) => State::Unusable(reason),
        };
    }

    fn end_idle(&self) {
        let mut entries = self.entries();
        let is_idle = |entry: &mut Entry| match entry.state {
            State::Starting => false,
            State::Ready(_) | State::Unusable(_) => entry.used.elapsed() > IDLE_TIMEOUT,
        };
        let idle: Vec<_> = entries.extract_if(.., is_idle).collect();
        drop(entries);
        drop(idle);
    }
}

impl System {
    /// Prepares the start of zygotes, for a command that asks for a warm start.
    pub(crate) fn prepare_warm_starts(&self) {
        // Without the thread, every start is cold.
        self.warm.prepare().ok();
    }

    /// Starts `command`, whose program is at `program`, as a fork of a zygote.
    ///
    /// # Errors
    ///
    /// The reason that it has to be started as any other. Nothing of the script has run.
    pub(super) fn start_warm(
        &self,
        command: &Command,
        program: &Path,
        warm: &WarmStart,
    ) -> Result<SpawnedChild, String> {
        check(command)?;
        let found = InterpretedScript::of(command, program)?;
        if os::is_open_for_writing(&found.script) {
            return Err("the script is open for writing".to_owned());
        }
        let needed = command
            .needed_paths(program)
            .map_err(|error| error.to_string())?;
        let sandbox = &command.parts.sandbox;
        let zygote = self.warm.zygote(ZygoteKey {
            words: found.words.clone(),
            modules: warm.clone(),
            sandbox: Arc::clone(sandbox),
            needed: needed
                .into_iter()
                .filter(|path| sandbox.keeps(path))
                .collect::<Vec<PathBuf>>(),
            variables: start_variables(command),
        })?;
        let class = InstalledClass::without_filter();
        let confined = self.confine(command, program, &class, Proc::Own, Way::Namespace);
        let confinement = confined.map_err(|error| error.to_string())?;
        if confinement.late_sockets.is_some() && !confinement.enforced.seccomp {
            return Err("system calls can't be filtered".to_owned());
        }
        self.fork(command, &found, &zygote, confinement)
    }

    /// Has the zygote fork, and waits until the fork is about to run the script.
    fn fork(
        &self,
        command: &Command,
        found: &InterpretedScript,
        zygote: &Zygote,
        mut confinement: Confinement,
    ) -> Result<SpawnedChild, String> {
        let failed = |error: io::Error| error.to_string();
        let pipes = Pipes::new(command).map_err(failed)?;
        let image = image(command, &[], confinement.temporary(), None).map_err(failed)?;
        let directory = match confinement.directory(command) {
            Some(directory) => text(std::path::absolute(directory).map_err(failed)?),
            None => text(std::env::current_dir().map_err(failed)?),
        };
        let directory = directory.map_err(failed)?;
        let (report, their_report) = pipe().map_err(failed)?;
        let group = confinement.group.as_ref().map(Group::members);
        let request = Request {
            script: &found.script,
            line: &found.line,
            directory: Some(&directory),
            limits: &resources(&confinement.limits(command), command.parts.sandbox.level),
            mark: confinement.mark.map(|mark| mark.value()),
            session: self.capabilities.has_terminal,
            has_group: group.is_some(),
            has_filter: confinement.late_sockets.is_some(),
            arguments: &found.arguments,
            variables: image.variables().collect(),
        };
        let streams = pipes.ends(self.null.as_fd());
        let mut descriptors = [&streams[..], &[their_report.as_fd()]].concat();
        descriptors.extend(group);
        descriptors.extend(confinement.rulesets().into_iter().flatten());
        confinement.verify_directory().map_err(failed)?;
        request.send(zygote, &descriptors)?;
        drop(descriptors);
        drop(their_report);
        let (pid, forked) = wait_for_fork(&report, zygote);
        let pidfd = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty()));
        let (Some(pid), Some(Ok(pidfd)), Ok(())) = (pid, pidfd, &forked) else {
            return Err(abandon(pid, forked.err()));
        };
        confinement.ruleset = None;
        let (stdin, stdout, stderr) = pipes.ours();
        Ok(SpawnedChild {
            proxy: None,
            warmth: Some(Warmth::Warm),
            child: Child {
                pid,
                pidfd: Arc::new(pidfd),
                killer: confinement.killer(),
                orphans: self.orphans,
                confinement,
            },
            stdin,
            stdout,
            stderr,
        })
    }
}

/// Reaps a fork that did not get to its script.
fn abandon(pid: Option<Pid>, reason: Option<String>) -> String {
    if let Some(pid) = pid {
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
        raw::reap(pid, true).ok();
    }
    reason.unwrap_or_else(|| "the fork can't be watched".to_owned())
}

/// Checks that the confinement of a run can be that of a fork.
fn check(command: &Command) -> Result<(), String> {
    let sandbox = &command.parts.sandbox;
    let reason = match (sandbox.level, sandbox.network) {
        _ if sandbox.run_as.is_some() => "it runs as another user",
        _ if sandbox.backend.is_some() => "a backend confines it",
        (Level::Strict, _) => "at the level `strict`, each run has namespaces of its own",
        (Level::Guarded, Network::Listed) => "its network is limited to destinations",
        _ if command.parts.has_fixed_directory => "it starts in the directory of its client",
        _ if command.parts.stdin.is_none() => "it has no standard input",
        _ => return Ok(()),
    };
    Err(reason.to_owned())
}
