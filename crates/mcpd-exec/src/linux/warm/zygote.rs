//! Zygote: an interpreter that has started and waits for requests to fork. It is confined as the
//! runs that it forks, holds no secrets, and never runs a script itself.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};
use rustix::process::{Pid, Signal, getpid, pidfd_send_signal};

use super::super::file_version::FileVersion;
use super::super::filter::{Filter, Sockets};
use super::super::landlock::Ruleset;
use super::super::pipe::{above_reserved, pipe};
use super::super::raw::{self, Image, Privileges, SpawnPlan};
use super::super::temporary::DirectoryPool;
use super::super::tree::Mark;
use crate::sandbox::{Level, Network, Sandbox};
use crate::variables::Variables;
use crate::warm::WarmStart;

/// Program of the zygote, which its interpreter reads from the socket.
const BOOTSTRAP: &[u8] = include_bytes!("bootstrap.py");

/// Program on its command line. The comment names it in lists of processes.
const LOADER: &str = "import posix;exec(posix.read(3,65536))#mcpd-warm";

/// Time for the interpreter to start and to import its modules.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Interval at which a start looks whether it is still wanted.
const START_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Most memory that a zygote may hold, in bytes.
const MAX_RESIDENT: u64 = 256 << 20;

/// Longest message of a zygote: the paths of its files.
const MAX_MESSAGE: usize = 128 * 1024;

/// File that a zygote has loaded. A later version of it would not be used.
#[derive(Debug)]
struct LoadedFile {
    path: PathBuf,
    version: Option<FileVersion>,
}

impl LoadedFile {
    fn find(path: &[u8]) -> Self {
        let path = PathBuf::from(OsStr::from_bytes(path));
        let version = Self::version(&path);
        Self { path, version }
    }

    fn version(path: &Path) -> Option<FileVersion> {
        rustix::fs::stat(path).ok().map(FileVersion::from)
    }

    fn is_settled(&self, now: SystemTime) -> bool {
        self.version.is_some_and(|version| version.is_settled(now))
    }

    fn is_same(&self) -> bool {
        Self::version(&self.path) == self.version
    }
}

/// Everything that a zygote depends on. Runs with the same one share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ZygoteKey {
    /// Interpreter and its first arguments.
    pub(super) words: Vec<OsString>,
    pub(super) modules: WarmStart,
    pub(super) sandbox: Arc<Sandbox>,
    /// Paths that can be read although a home is hidden.
    pub(super) needed: Vec<PathBuf>,
    pub(super) variables: Vec<(OsString, OsString)>,
}

/// Properties of the system that a start needs.
#[derive(Debug)]
pub(super) struct Surroundings {
    pub(super) directories: Arc<DirectoryPool>,
    pub(super) session: bool,
    pub(super) marks: bool,
}

/// Zygote, which is killed on drop.
#[derive(Debug)]
pub(super) struct Zygote {
    socket: OwnedFd,
    pid: Pid,
    pidfd: OwnedFd,
    ruleset: Option<Ruleset>,
    /// The interpreter, and the modules that were imported ahead.
    files: Vec<LoadedFile>,
    /// Set when it must not be used any more.
    is_over: AtomicBool,
    /// Our ends of its streams. Without them, a module that prints would end it.
    _streams: [OwnedFd; 3],
}

impl Zygote {
    /// Starts a zygote and waits until it is ready.
    ///
    /// # Errors
    ///
    /// The reason that there is none.
    pub(super) fn start(
        key: &ZygoteKey,
        surroundings: &Surroundings,
        is_wanted: impl Fn() -> bool,
    ) -> Result<Self, String> {
        let failed = |error: io::Error| format!("the interpreter can't be started ahead: {error}");
        let settings = settings(key).map_err(failed)?;
        let begun = SystemTime::now();
        let (mut zygote, stderr) = Self::spawn(key, surroundings).map_err(failed)?;
        for packet in [BOOTSTRAP, &settings] {
            send(&zygote.socket, packet, SendFlags::NOSIGNAL)
                .map_err(|error| failed(error.into()))?;
        }
        // It shows that forks will be children of this process.
        let [own, ours] = [zygote.pid, getpid()].map(Pid::as_raw_pid);
        let ready = format!("ready {own} {ours}").into_bytes();
        let first = zygote.receive(&is_wanted);
        let files = zygote.receive(&is_wanted);
        let (true, Some(files)) = (first == Some(ready), files) else {
            let words = last_line(&stderr);
            return Err(match words.is_empty() {
                true => "the interpreter can't be started ahead: it does not report".to_owned(),
                false => format!("the interpreter can't be started ahead: {words}"),
            });
        };
        let files = files.split(|byte| *byte == 0);
        zygote.files = files.map(LoadedFile::find).collect();
        if !zygote.files.iter().all(|file| file.is_settled(begun)) {
            return Err("a file of the interpreter has just changed".to_owned());
        }
        match zygote.resident() {
            Some(..=MAX_RESIDENT) => Ok(zygote),
            _ => Err("the interpreter needs too much memory to be kept".to_owned()),
        }
    }

    fn spawn(key: &ZygoteKey, surroundings: &Surroundings) -> io::Result<(Self, OwnedFd)> {
        let ruleset = ruleset(key, surroundings)?;
        let flags = SocketFlags::CLOEXEC;
        let (socket, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        let (socket, theirs) = (above_reserved(socket)?, above_reserved(theirs)?);
        let (stdin, our_stdin) = pipe()?;
        let (our_stdout, stdout) = pipe()?;
        let (our_stderr, stderr) = pipe()?;
        let plan = SpawnPlan {
            namespaces: None,
            network: None,
            stdio: [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()],
            handed: &[theirs.as_fd()],
            limits: &[],
            cgroup: None,
            mark: surroundings.marks.then(|| (Mark::of_zygotes().value(), 0)),
            run_as: None,
            directory: Some(c"/"),
            fixed: None,
            session: surroundings.session,
            privileges: match key.sandbox.level {
                Level::None => Privileges::Kept,
                _ => Privileges::Dropped,
            },
            rulesets: [ruleset.as_ref().map(std::os::fd::AsFd::as_fd), None],
            filter: None,
            image: &image(key)?,
        };
        let spawned = raw::spawn(&plan).map_err(|failure| failure.error)?;
        let last_words = our_stderr.try_clone()?;
        let zygote = Self {
            socket,
            pid: spawned.pid,
            pidfd: spawned.pidfd,
            ruleset,
            files: Vec::new(),
            is_over: AtomicBool::new(false),
            _streams: [our_stdin, our_stdout, our_stderr],
        };
        Ok((zygote, last_words))
    }

    /// Waits for its next message. `None` after its end, or if it takes too long.
    fn receive(&self, is_wanted: impl Fn() -> bool) -> Option<Vec<u8>> {
        let pause = Timespec::try_from(START_POLL_INTERVAL).ok();
        let start = Instant::now();
        while is_wanted() && start.elapsed() < START_TIMEOUT {
            let mut polled = [PollFd::new(&self.socket, PollFlags::IN)];
            if !matches!(poll(&mut polled, pause.as_ref()), Ok(1..)) {
                continue;
            }
            let mut message = vec![0; MAX_MESSAGE];
            let read = recv(&self.socket, &mut message[..], RecvFlags::DONTWAIT);
            let (length, _) = read.ok()?;
            message.truncate(length);
            return (length > 0).then_some(message);
        }
        None
    }

    /// Socket for requests.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Returns whether it can serve a run now.
    pub(super) fn is_usable(&self) -> bool {
        let is_current = self.ruleset.as_ref().is_none_or(Ruleset::is_current);
        let is_same = || self.files.iter().all(LoadedFile::is_same);
        is_current && !self.is_over.load(Relaxed) && !self.has_ended() && is_same()
    }

    fn has_ended(&self) -> bool {
        let now = Timespec::default();
        let mut polled = [PollFd::new(&self.pidfd, PollFlags::IN)];
        !matches!(poll(&mut polled, Some(&now)), Ok(0))
    }

    /// Kills it, as it does not do what it should.
    pub(super) fn give_up(&self) {
        self.is_over.store(true, Relaxed);
        pidfd_send_signal(self.pidfd.as_fd(), Signal::KILL).ok();
    }

    /// Resident memory in bytes.
    fn resident(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid.as_raw_pid())).ok()?;
        let resident = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kilobytes: u64 = resident.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kilobytes * 1024)
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        self.give_up();
        // It has no children: its forks are those of this process.
        raw::reap(self.pid, true).ok();
    }
}

/// Sockets that the filter of a run permits; `None` for a run without a filter.
pub(super) fn filter(sandbox: &Sandbox) -> Option<Sockets> {
    match (sandbox.level, sandbox.network) {
        (Level::None, _) => None,
        (_, Network::Off) => Some(Sockets::None),
        _ => Some(Sockets::All),
    }
}

/// Returns the rules of a zygote: those of its runs, but for all temporary directories. Each run
/// enters rules of its own besides.
fn ruleset(key: &ZygoteKey, surroundings: &Surroundings) -> io::Result<Option<Ruleset>> {
    if key.sandbox.level == Level::None {
        return Ok(None);
    }
    let needed: Vec<_> = key.needed.iter().map(PathBuf::as_path).collect();
    let directories = surroundings.directories.root()?;
    match Ruleset::new(&key.sandbox, &needed, Some(directories)) {
        Ok(ruleset) => Ok(Some(ruleset)),
        Err(super::super::landlock::Refusal::Missing(_)) => Ok(None),
        Err(super::super::landlock::Refusal::Fault(error)) => Err(error),
    }
}

/// Returns what a zygote is told first: modules, the filter of its runs, and its variables, by
/// which it notices a launcher that changes them.
fn settings(key: &ZygoteKey) -> io::Result<Vec<u8>> {
    let filter = filter(&key.sandbox).map(|sockets| Filter::new(sockets, None));
    let code = filter.transpose()?.map(|filter| filter.to_bytes());
    let code = code.unwrap_or_default();
    let hex: String = code.iter().map(|byte| format!("{byte:02x}")).collect();
    let modules: Vec<_> = key.modules.modules().collect();
    let image = image(key)?;
    let head = [modules.join(",").into_bytes(), hex.into_bytes()];
    let variables = image.variables().map(|entry| entry.to_bytes().to_vec());
    Ok(head
        .into_iter()
        .chain(variables)
        .collect::<Vec<_>>()
        .join(&0))
}

fn image(key: &ZygoteKey) -> io::Result<Image> {
    let loader = ["-c", LOADER].map(OsStr::new);
    let words = key.words.iter().map(OsString::as_os_str).chain(loader);
    let words: Vec<_> = words.collect();
    let variables = key.variables.iter();
    let variables = variables.map(|(name, value)| (name.as_os_str(), Some(value.as_os_str())));
    let variables: Vec<_> = variables.collect();
    Image::new(&words, Variables::default(), &variables)
}

/// Last line that was written to a pipe.
fn last_line(pipe: &OwnedFd) -> String {
    let mut text = vec![0; 16 * 1024];
    rustix::io::ioctl_fionbio(pipe, true).ok();
    let length = rustix::io::read(pipe, &mut text).unwrap_or(0);
    let text = String::from_utf8_lossy(&text[..length]);
    text.lines()
        .last()
        .unwrap_or_default()
        .chars()
        .take(200)
        .collect()
}
