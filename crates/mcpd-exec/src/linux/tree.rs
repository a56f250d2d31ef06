//! Search for all processes of a run, and their end.
//!
//! Each process of a run carries a mark that is inherited, and that a confined process can't
//! change: the hard limit `RLIMIT_LOCKS`, which Linux stores and reports and does not use. If
//! this process is also the reaper of its orphans, it can prove that nothing of a run is left. A
//! living process of the run descends through living parents from the leader of the run. Once
//! that has ended, it descends from a child of our main thread, and the kernel lists those.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use std::{io, str, thread};

use rustix::process::{
    Pid, PidfdFlags, Resource, Signal, WaitId, WaitIdOptions, getpid, getrlimit,
    kill_process_group, pidfd_open, pidfd_send_signal, set_child_subreaper, waitid,
};

use super::raw;
use crate::os::{self, Fault};
use crate::process::Progress;

/// Mark of all processes of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(u64);

impl Mark {
    /// Returns the mark of a new run.
    pub(crate) fn next() -> Self {
        static RUNS: AtomicU32 = AtomicU32::new(1);
        Self(u64::from(nonce()) << 32 | u64::from(RUNS.fetch_add(1, Relaxed)))
    }

    /// Returns the mark of all zygotes. It is above every other, so that their forks can take
    /// another one: a hard limit can only be lowered.
    pub(crate) fn of_zygotes() -> Self {
        Self(u64::from(nonce()) << 32 | u64::from(u32::MAX))
    }

    pub(crate) fn value(self) -> u64 {
        self.0
    }

    /// Returns whether it begins with this nonce.
    fn is_of(self, nonce: u32) -> bool {
        self.0 >> 32 == u64::from(nonce)
    }

    /// Reads the mark of a process. `None` if it has ended, or has none.
    ///
    /// # Errors
    ///
    /// A resource is exhausted.
    fn of(pid: Pid) -> io::Result<Option<Self>> {
        match raw::hard_limit_of(pid, libc::RLIMIT_LOCKS as i32) {
            Ok(limit) => Ok(Some(Self(limit))),
            // Even root may lack the right to query limits directly. The file is slower, and
            // readable by all.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Self::read_from_proc(pid)
            }
            Err(_) => Ok(None),
        }
    }

    fn read_from_proc(pid: Pid) -> io::Result<Option<Self>> {
        let limits = format!("/proc/{pid}/limits", pid = pid.as_raw_nonzero());
        let limits = match fs::read_to_string(limits) {
            Err(error) if os::fault(&error) == Fault::Exhausted => return Err(error),
            limits => limits.unwrap_or_default(),
        };
        let locks = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max file locks"));
        let hard = locks.and_then(|locks| locks.split_whitespace().nth(1)?.parse().ok());
        Ok(hard.map(Self))
    }

    /// Returns whether the process certainly has this mark.
    fn is_on(self, pid: Pid) -> bool {
        self.may_be_on(pid).unwrap_or(false)
    }

    fn may_be_on(self, pid: Pid) -> io::Result<bool> {
        Ok(Self::of(pid)? == Some(self))
    }
}

/// Returns the nonce that all marks of this process begin with.
pub(crate) fn nonce() -> u32 {
    static NONCE: OnceLock<u32> = OnceLock::new();
    // Odd and below 2^31, so it never equals the upper half of "no limit".
    *NONCE.get_or_init(|| random() as u32 >> 1 | 1)
}

/// Returns an unpredictable number.
pub(crate) fn random() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    // The keys of a new `RandomState` come from the system's randomness.
    RandomState::new().hash_one(std::process::id())
}

/// Returns whether this process can mark others. It can't if it is marked itself, as it can't
/// raise its own hard limit.
pub(crate) fn can_mark() -> bool {
    getrlimit(Resource::Locks).maximum.is_none()
}

/// Children of the main thread, which adopts orphans.
#[derive(Debug)]
pub(crate) struct Orphans {
    /// The kernel's list of them.
    children: File,
    /// Held while the list is read: a concurrent reaping would make the kernel skip entries.
    reaping: Mutex<()>,
}

impl Orphans {
    /// Makes this process the reaper of its orphans, for as long as it lives.
    ///
    /// # Errors
    ///
    /// The kernel can't do that, or can't list children.
    pub(crate) fn adopt() -> io::Result<&'static Self> {
        static ORPHANS: OnceLock<io::Result<Orphans>> = OnceLock::new();
        let adopted = ORPHANS.get_or_init(|| {
            let pid = getpid();
            let path = format!("/proc/self/task/{pid}/children", pid = pid.as_raw_nonzero());
            let children = File::open(&path).map_err(|error| {
                let told = format!(
                    "open `{path}`, which requires a kernel with CONFIG_PROC_CHILDREN: {error}"
                );
                io::Error::new(error.kind(), told)
            })?;
            set_child_subreaper(Some(pid))?;
            Ok(Self {
                children,
                reaping: Mutex::default(),
            })
        });
        adopted
            .as_ref()
            .map_err(|error| io::Error::new(error.kind(), error.to_string()))
    }

    /// Number of orphans to handle before other threads get the lock.
    const MAX_PER_LOCK: usize = 64;

    /// Returns, without waiting for the lock, whether it is certain that no orphan has this mark,
    /// dead or alive. If so and the leader has ended, the whole run has.
    pub(crate) fn has_none(&self, mark: Mark) -> bool {
        let Ok(held) = self.reaping.try_lock() else {
            return false;
        };
        let children = self.children();
        let is_marked = |pid: &Pid| mark.may_be_on(*pid).unwrap_or(true);
        let none = children.len() <= Self::MAX_PER_LOCK && !children.iter().any(is_marked);
        drop(held);
        none
    }

    /// Number of orphans with this mark that live and go on, at about this moment.
    pub(crate) fn count_alive(&self, mark: Mark) -> u32 {
        let held = self.lock();
        let list = self.list_marked(&held, Some(mark));
        drop(held);
        let goes_on =
            |pid| stat(pid).is_ok_and(|stat| is_alive_in_stat(&stat) && !is_ending_in_stat(&stat));
        let is_left = |pid: &Pid| mark.is_on(*pid) && goes_on(*pid);
        list.into_iter().filter(is_left).count() as u32
    }

    /// Reaps dead orphans with a mark of this process, and returns the number of living ones.
    pub(crate) fn reap(&self) -> usize {
        let held = self.lock();
        let list = self.list_marked(&held, None);
        let alive = list.iter().filter(|pid| !reap_orphan(**pid)).count();
        drop(held);
        alive
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.reaping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the orphans that may have this mark, dead or alive; with `None`, those with any
    /// mark of this process.
    ///
    /// Marks are read under the lock too: otherwise a process that is reaped in between may leave
    /// a child too late for the list.
    fn list_marked(&self, _held: &MutexGuard<'_, ()>, mark: Option<Mark>) -> Vec<Pid> {
        let mut marked = self.children();
        marked.retain(|pid| match mark {
            Some(mark) => mark.may_be_on(*pid).unwrap_or(true),
            None => Mark::of(*pid).is_ok_and(|found| found.is_some_and(|it| it.is_of(nonce()))),
        });
        marked
    }

    fn children(&self) -> Vec<Pid> {
        const READ_SIZE: usize = 4096;
        let mut text = Vec::new();
        let mut chunk = [0; READ_SIZE];
        // The file can't be read backwards, so it is read in one go, from the start.
        while let Ok(read @ 1..) = self.children.read_at(&mut chunk, text.len() as u64) {
            text.extend_from_slice(&chunk[..read]);
            // Entries are never split, so a page may not be quite full.
            if read < READ_SIZE - 16 {
                break;
            }
        }
        let numbers = text.split(|byte| *byte == b' ');
        numbers
            .filter_map(|number| Pid::from_raw(str::from_utf8(number).ok()?.parse().ok()?))
            .collect()
    }
}

/// Dead children that were not waited for: orphans of foreign processes, if this process adopts
/// all.
#[derive(Debug)]
pub(crate) struct ForeignZombies {
    looked: Instant,
    dead: BTreeSet<i32>,
}

impl Default for ForeignZombies {
    fn default() -> Self {
        Self {
            looked: Instant::now(),
            dead: BTreeSet::new(),
        }
    }
}

impl ForeignZombies {
    /// Time that the host has to wait for its own children.
    pub(crate) const FOREIGN_REAP_DELAY: Duration = Duration::from_secs(10);

    /// Reaps those that were dead at the last look already, if that is long enough ago.
    pub(crate) fn reap(&mut self, orphans: &Orphans) {
        if self.looked.elapsed() < Self::FOREIGN_REAP_DELAY {
            return;
        }
        self.looked = Instant::now();
        let held = orphans.lock();
        let mut dead = orphans.children();
        dead.retain(|pid| !is_alive(*pid));
        for pid in &dead {
            if self.dead.contains(&pid.as_raw_nonzero().get()) {
                reap_orphan(*pid);
            }
        }
        drop(held);
        self.dead = dead.iter().map(|pid| pid.as_raw_nonzero().get()).collect();
    }
}

/// Reaps an orphan if it is dead, and returns whether it was.
fn reap_orphan(pid: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    !matches!(waitid(WaitId::Pid(pid), options), Ok(None))
}

/// End of a run, in rounds: the number of tries it takes can't be known.
#[derive(Debug)]
pub(crate) struct RunKiller {
    mark: Mark,
    rounds: u32,
    /// Number of rounds in a row that found nothing, without a proof.
    quiet: u32,
    /// Processes that were killed. A process is found again until it is dead.
    killed: BTreeSet<i32>,
}

impl RunKiller {
    pub(crate) fn new(mark: Mark) -> Self {
        Self {
            mark,
            rounds: 0,
            quiet: 0,
            killed: BTreeSet::new(),
        }
    }

    /// Number of processes that were there to kill in the first round.
    pub(crate) fn killed_count(&self) -> u32 {
        self.killed.len() as u32
    }

    /// Performs one round. The leader must have been killed or have ended, but not be reaped:
    /// until then its number is not reused.
    pub(crate) fn round(
        &mut self,
        leader: Pid,
        leader_ended: bool,
        orphans: Option<&Orphans>,
    ) -> Progress {
        self.rounds += 1;
        let listed = orphans.map(|orphans| self.kill_orphans(orphans));
        // Killing only orphans would take as many rounds as the tree of living parents is deep.
        let found = match listed {
            Some(0) if leader_ended => return Progress::Over,
            _ => self.search(leader, orphans.is_none()),
        };
        if self.rounds == 1 {
            // The fastest way, but it does not count its victims. Fails if the group is empty.
            kill_process_group(leader, Signal::KILL).ok();
        }
        // Without a list of orphans, two quiet rounds in a row are taken for the end: a process
        // that forks may hide from one search.
        self.quiet = if found == 0 { self.quiet + 1 } else { 0 };
        let over_without_proof = orphans.is_none() && leader_ended && self.quiet >= 2;
        match (over_without_proof, found) {
            (true, _) => Progress::Over,
            (false, 0) => Progress::Waiting,
            (false, _) => Progress::Killing,
        }
    }

    /// Kills the orphans with the mark, and returns their number, dead or alive.
    fn kill_orphans(&mut self, orphans: &Orphans) -> usize {
        let held = orphans.lock();
        let list = orphans.list_marked(&held, Some(self.mark));
        drop(held);
        // The newest first: it is most likely the one that forks.
        for pid in list.iter().rev() {
            self.kill(*pid);
        }
        for some in list.chunks(Orphans::MAX_PER_LOCK) {
            let held = orphans.lock();
            for pid in some {
                // The number may have been reused by now.
                if self.mark.is_on(*pid) {
                    reap_orphan(*pid);
                }
            }
            drop(held);
        }
        list.len()
    }

    /// Kills all other processes with the mark that can be found, and returns their number. With
    /// `alive`, the dead do not count: they may stay if their parent does not reap them. Telling
    /// them apart takes time.
    fn search(&mut self, leader: Pid, alive: bool) -> usize {
        let Ok(processes) = processes() else {
            // Assume that there are some.
            return 1;
        };
        let others = processes.filter(|pid| *pid != leader);
        others
            .filter(|pid| match alive {
                true => self.kill_alive(*pid),
                false => self.kill(*pid),
            })
            .count()
    }

    /// Kills a process, and returns true only if it was alive before: a process that is dead
    /// afterwards may have left another.
    fn kill_alive(&mut self, pid: Pid) -> bool {
        self.mark.is_on(pid) && is_alive(pid) & self.kill(pid)
    }

    /// Kills `pid` if that very process has the mark. Returns whether it was there to be killed.
    fn kill(&mut self, pid: Pid) -> bool {
        if !self.mark.is_on(pid) {
            return false;
        }
        let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else {
            return self.mark.is_on(pid);
        };
        // Later rounds find processes that were not there when the run ended. Counting takes time
        // in which a process may fork.
        if self.rounds == 1 && is_alive(pid) {
            self.killed.insert(pid.as_raw_nonzero().get());
        }
        self.mark.is_on(pid) && pidfd_send_signal(pidfd.as_fd(), Signal::KILL).is_ok()
    }
}

/// Sends a signal to the members of a process group, except its leader.
pub(crate) fn signal_followers(leader: Pid, signal: Signal) {
    let others = processes().into_iter().flatten();
    for pid in others.filter(|pid| *pid != leader) {
        let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else {
            continue;
        };
        // The number may have been reused until the descriptor was opened, not since.
        if group(pid) == Some(leader) {
            pidfd_send_signal(pidfd.as_fd(), signal).ok();
        }
    }
}

/// Returns whether `/proc` lists processes.
pub(crate) fn sees_processes() -> bool {
    Path::new("/proc/self/limits").exists()
}

/// Lists all visible processes.
fn processes() -> io::Result<impl Iterator<Item = Pid>> {
    let entries = match fs::read_dir("/proc") {
        Err(error) if os::fault(&error) == Fault::Exhausted => return Err(error),
        entries => entries.into_iter().flatten().flatten(),
    };
    Ok(entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)))
}

/// Returns whether a process is alive. A zombie counts only if other threads of it go on.
fn is_alive(pid: Pid) -> bool {
    stat(pid).is_ok_and(|stat| is_alive_in_stat(&stat))
}

/// Returns the leader of the group of a process. Threads of the kernel have none.
fn group(pid: Pid) -> Option<Pid> {
    /// Index of the group, counted from the state.
    const GROUP_FIELD: usize = 2;
    let stat = stat(pid).ok()?;
    let group = fields_of_stat(&stat).nth(GROUP_FIELD)?;
    Pid::from_raw(str::from_utf8(group).ok()?.parse().ok()?)
}

fn stat(pid: Pid) -> io::Result<Vec<u8>> {
    fs::read(format!("/proc/{pid}/stat", pid = pid.as_raw_nonzero()))
}

/// Parses `/proc/PID/stat`: the number, the name in parentheses, which may contain anything, and
/// the fields that are returned, the first of which is the state.
fn fields_of_stat(stat: &[u8]) -> impl Iterator<Item = &[u8]> {
    let end = memchr::memrchr(b')', stat);
    let fields = end.map(|end| stat[end + 1..].trim_ascii().split(|byte| *byte == b' '));
    fields.into_iter().flatten()
}

fn is_alive_in_stat(stat: &[u8]) -> bool {
    /// Index of the number of threads, counted from the state.
    const THREAD_COUNT_FIELD: usize = 17;
    let mut fields = fields_of_stat(stat);
    match fields.next() {
        Some(b"Z") => !matches!(fields.nth(THREAD_COUNT_FIELD - 1), None | Some(b"0" | b"1")),
        state => !matches!(state, None | Some(b"" | b"X")),
    }
}

/// Returns whether a process exits, or has been sent KILL: on a busy machine it may take a while
/// until it has ended.
fn is_ending_in_stat(stat: &[u8]) -> bool {
    /// Indices of the flags and of the pending signals, counted from the state.
    const FLAGS_FIELD: usize = 6;
    const PENDING_FIELD: usize = 28;
    const EXITING: u64 = 0x4;
    const KILL: u64 = 1 << (libc::SIGKILL - 1);
    let mut fields = fields_of_stat(stat).map(|field| str::from_utf8(field).ok()?.parse().ok());
    let mut has = |index, bit: u64| {
        let field: Option<u64> = fields.nth(index).flatten();
        field.is_some_and(|bits| bits & bit != 0)
    };
    has(FLAGS_FIELD, EXITING) || has(PENDING_FIELD - FLAGS_FIELD - 1, KILL)
}

/// Ends every process whose mark begins with `nonce`, in all runs of the process that has that
/// nonce.
pub(crate) fn end_all(nonce: u32) {
    /// Rounds without a pause: a process that keeps forking must not be given time.
    const MAX_EAGER_ROUNDS: u32 = 1000;
    let (mut quiet, mut rounds) = (0, 0);
    while quiet < 2 {
        rounds += 1;
        if rounds > MAX_EAGER_ROUNDS {
            // A process can't be killed, for now.
            thread::sleep(Duration::from_millis(10));
        }
        let Ok(processes) = processes() else { continue };
        let found = processes.filter(|pid| {
            let mark = Mark::of(*pid).ok().flatten();
            let mark = mark.filter(|mark| mark.is_of(nonce));
            mark.is_some_and(|mark| RunKiller::new(mark).kill_alive(*pid))
        });
        quiet = if found.count() == 0 { quiet + 1 } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_line_tells_whether_a_process_is_ending() {
        let stat = |flags: u32, pending: u32| {
            let zeros = |count| "0 ".repeat(count);
            let (before, between) = (zeros(5), zeros(21));
            format!("7 (a) name) S {before}{flags} {between}{pending} 0 0\n").into_bytes()
        };
        assert!(!is_ending_in_stat(&stat(0x0040_0000, 1 << 14)));
        assert!(is_ending_in_stat(&stat(0x0040_0004, 0)));
        assert!(is_ending_in_stat(&stat(0x0040_0000, 1 << 8)));
        assert!(!is_ending_in_stat(&fs::read("/proc/self/stat").unwrap()));
        assert!(!is_ending_in_stat(b"") && !is_ending_in_stat(b"7 (name) S 0 0"));
    }

    #[test]
    fn stat_line_tells_whether_a_process_is_alive() {
        let threads = |state: &str, threads: u32| {
            let zeros = "0 ".repeat(16);
            format!("7 (a) name) {state} {zeros}{threads} 0 0\n").into_bytes()
        };
        assert!(is_alive_in_stat(&threads("S", 1)));
        assert!(!is_alive_in_stat(&threads("Z", 1)) && !is_alive_in_stat(&threads("X", 1)));
        // The main thread has ended, another goes on.
        assert!(is_alive_in_stat(&threads("Z", 2)));
        assert!(is_alive_in_stat(b"7 (\xd0\xbf\xd1) R 1 7 7 0 -1"));
        assert!(!is_alive_in_stat(b"") && !is_alive_in_stat(b"7 (name)"));
    }
}
