//! Finding and ending every process of a run.
//!
//! Every process of a run carries a mark that is inherited and that a confined process can't change: the hard limit
//! `RLIMIT_LOCKS`, which Linux stores and reports and does nothing with. If this process is also the reaper of its
//! orphans, it can prove that nothing of a run is left: a living process of the run hangs on a chain of living parents
//! that ends at the run's leader or, once that has ended, at a child of our main thread, and those the kernel lists.

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

/// What all processes of one run carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(u64);

impl Mark {
    /// The mark of another run.
    pub(crate) fn next() -> Self {
        static RUNS: AtomicU32 = AtomicU32::new(1);
        Self(u64::from(nonce()) << 32 | u64::from(RUNS.fetch_add(1, Relaxed)))
    }

    pub(crate) fn value(self) -> u64 {
        self.0
    }

    /// Whether it begins so.
    fn is_of(self, nonce: u32) -> bool {
        self.0 >> 32 == u64::from(nonce)
    }

    /// `None` if the process has ended, or has none.
    ///
    /// # Errors
    ///
    /// This process lacks the means to find out, for now.
    fn of(pid: Pid) -> io::Result<Option<Self>> {
        match raw::hard_limit_of(pid, libc::RLIMIT_LOCKS as i32) {
            Ok(limit) => Ok(Some(Self(limit))),
            // Even root may lack the right to look at others that way. The file is slower, and readable to all.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Self::in_proc(pid),
            Err(_) => Ok(None),
        }
    }

    fn in_proc(pid: Pid) -> io::Result<Option<Self>> {
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

    /// Whether it certainly is.
    fn is_on(self, pid: Pid) -> bool {
        self.may_be_on(pid).unwrap_or(false)
    }

    fn may_be_on(self, pid: Pid) -> io::Result<bool> {
        Ok(Self::of(pid)? == Some(self))
    }
}

/// What all marks of this process begin with.
pub(crate) fn nonce() -> u32 {
    static NONCE: OnceLock<u32> = OnceLock::new();
    // Never the half of "no limit".
    *NONCE.get_or_init(|| random() as u32 >> 1 | 1)
}

/// A number nobody can guess.
pub(crate) fn random() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    // Its keys come from the system, and are others each time.
    RandomState::new().hash_one(std::process::id())
}

/// Whether processes can be marked: not by one that is marked itself, as it can't change its own mark.
pub(crate) fn can_mark() -> bool {
    getrlimit(Resource::Locks).maximum.is_none()
}

/// The children of the main thread, to which orphans fall.
#[derive(Debug)]
pub(crate) struct Orphans {
    /// The kernel's list of them.
    children: File,
    /// While one reads the list nobody reaps, or some who are not reaped would be missing from it.
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
                    "open `{path}`, which takes a kernel with CONFIG_PROC_CHILDREN: {error}"
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

    /// So many orphans are looked at before others get their turn.
    const AT_A_TIME: usize = 64;

    /// Whether it is certain, without waiting for anybody, that there is no orphan with this mark, dead or alive. If there
    /// is none and the leader has ended, its whole run has.
    pub(crate) fn has_none(&self, mark: Mark) -> bool {
        let Ok(held) = self.reaping.try_lock() else {
            return false;
        };
        let children = self.children();
        let is_marked = |pid: &Pid| mark.may_be_on(*pid).unwrap_or(true);
        let none = children.len() <= Self::AT_A_TIME && !children.iter().any(is_marked);
        drop(held);
        none
    }

    /// How many orphans with this mark are alive, about now.
    pub(crate) fn alive(&self, mark: Mark) -> u32 {
        let held = self.hold();
        let list = self.list(&held, Some(mark));
        drop(held);
        let is_left = |pid: &Pid| mark.is_on(*pid) && is_alive(*pid);
        list.into_iter().filter(is_left).count() as u32
    }

    /// Reaps the dead among the orphans with a mark of this process, and says how many are alive.
    pub(crate) fn reap(&self) -> usize {
        let held = self.hold();
        let list = self.list(&held, None);
        let alive = list.iter().filter(|pid| !reap_orphan(**pid)).count();
        drop(held);
        alive
    }

    fn hold(&self) -> MutexGuard<'_, ()> {
        self.reaping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The orphans that may have this mark, dead or alive; with `None`, those with any mark of this process.
    ///
    /// Marks are read under the lock too: whoever is reaped in between may have left a child that came too late for the list.
    fn list(&self, _held: &MutexGuard<'_, ()>, mark: Option<Mark>) -> Vec<Pid> {
        let mut marked = self.children();
        marked.retain(|pid| match mark {
            Some(mark) => mark.may_be_on(*pid).unwrap_or(true),
            None => Mark::of(*pid).is_ok_and(|found| found.is_some_and(|it| it.is_of(nonce()))),
        });
        marked
    }

    fn children(&self) -> Vec<Pid> {
        const CHUNK: usize = 4096;
        let mut text = Vec::new();
        let mut chunk = [0; CHUNK];
        // It takes no seeking backwards, so it is read in one go, from the start.
        while let Ok(read @ 1..) = self.children.read_at(&mut chunk, text.len() as u64) {
            text.extend_from_slice(&chunk[..read]);
            // An entry is never cut in two, so a page may not be quite full.
            if read < CHUNK - 16 {
                break;
            }
        }
        let numbers = text.split(|byte| *byte == b' ');
        numbers
            .filter_map(|number| Pid::from_raw(str::from_utf8(number).ok()?.parse().ok()?))
            .collect()
    }
}

/// The dead for whom nobody has waited: orphans of strangers, if all orphans fall to this process.
#[derive(Debug)]
pub(crate) struct Forgotten {
    looked: Instant,
    dead: BTreeSet<i32>,
}

impl Default for Forgotten {
    fn default() -> Self {
        Self {
            looked: Instant::now(),
            dead: BTreeSet::new(),
        }
    }
}

impl Forgotten {
    /// So much time others have to wait for children of their own.
    pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

    /// Reaps those who were dead so long ago, if that is how long ago one has looked.
    pub(crate) fn reap(&mut self, orphans: &Orphans) {
        if self.looked.elapsed() < Self::PATIENCE {
            return;
        }
        self.looked = Instant::now();
        let held = orphans.hold();
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

/// True if it was dead.
fn reap_orphan(pid: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    !matches!(waitid(WaitId::Pid(pid), options), Ok(None))
}

/// Ends what is left of a run, a bit at a time: nobody knows how often it has to be tried.
#[derive(Debug)]
pub(crate) struct Ending {
    mark: Mark,
    rounds: u32,
    /// How often nothing was found in a row, without a proof.
    quiet: u32,
    /// A process is found again until it is dead.
    killed: BTreeSet<i32>,
}

impl Ending {
    pub(crate) fn new(mark: Mark) -> Self {
        Self {
            mark,
            rounds: 0,
            quiet: 0,
            killed: BTreeSet::new(),
        }
    }

    /// How many processes there were to kill at first.
    pub(crate) fn killed(&self) -> u32 {
        self.killed.len() as u32
    }

    /// One round. The leader must have been killed or have ended, but not have been reaped: until then its number is
    /// nobody else's.
    pub(crate) fn round(
        &mut self,
        leader: Pid,
        leader_ended: bool,
        orphans: Option<&Orphans>,
    ) -> Progress {
        self.rounds += 1;
        let listed = orphans.map(|orphans| self.kill_orphans(orphans));
        // A deep tree of living parents would take as many rounds as it is deep, if only orphans were killed.
        let found = match listed {
            Some(0) if leader_ended => return Progress::Over,
            _ => self.search(leader, orphans.is_none()),
        };
        if self.rounds == 1 {
            // The fastest way, but what it has killed can't be counted. Fails if nobody is left in it.
            kill_process_group(leader, Signal::KILL).ok();
        }
        self.quiet = if found == 0 { self.quiet + 1 } else { 0 };
        let over_without_proof = orphans.is_none() && leader_ended && self.quiet >= 2;
        match (over_without_proof, found) {
            (true, _) => Progress::Over,
            (false, 0) => Progress::Waiting,
            (false, _) => Progress::Killing,
        }
    }

    /// Says how many there may have been, dead or alive.
    fn kill_orphans(&mut self, orphans: &Orphans) -> usize {
        let held = orphans.hold();
        let list = orphans.list(&held, Some(self.mark));
        drop(held);
        // The newest first: it is the one that runs.
        for pid in list.iter().rev() {
            self.kill(*pid);
        }
        for some in list.chunks(Orphans::AT_A_TIME) {
            let held = orphans.hold();
            for pid in some {
                // By now it may be somebody else's number.
                if self.mark.is_on(*pid) {
                    reap_orphan(*pid);
                }
            }
            drop(held);
        }
        list.len()
    }

    /// Kills all others with the mark that can be found, and says how many those were; `alive` if the dead shall not
    /// count, who may stay if nobody reaps them. To tell them apart takes time.
    fn search(&mut self, leader: Pid, alive: bool) -> usize {
        let Ok(processes) = processes() else {
            // There may be some.
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

    /// The same, and true only if it was alive before: afterwards it may be dead, and have left another.
    fn kill_alive(&mut self, pid: Pid) -> bool {
        self.mark.is_on(pid) && is_alive(pid) & self.kill(pid)
    }

    /// Kills `pid` if it is the very process that has the mark. True if it was there to be killed.
    fn kill(&mut self, pid: Pid) -> bool {
        if !self.mark.is_on(pid) {
            return false;
        }
        let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else {
            return self.mark.is_on(pid);
        };
        // What comes later was not there when the run ended, and counting takes time in which it may go on.
        if self.rounds == 1 && is_alive(pid) {
            self.killed.insert(pid.as_raw_nonzero().get());
        }
        self.mark.is_on(pid) && pidfd_send_signal(pidfd.as_fd(), Signal::KILL).is_ok()
    }
}

/// Whether there is a list of them.
pub(crate) fn sees_processes() -> bool {
    Path::new("/proc/self/limits").exists()
}

/// All processes that can be seen.
fn processes() -> io::Result<impl Iterator<Item = Pid>> {
    let entries = match fs::read_dir("/proc") {
        Err(error) if os::fault(&error) == Fault::Exhausted => return Err(error),
        entries => entries.into_iter().flatten().flatten(),
    };
    Ok(entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)))
}

/// Neither dead nor a zombie, unless that has threads which go on.
fn is_alive(pid: Pid) -> bool {
    let stat = fs::read(format!("/proc/{pid}/stat", pid = pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| tells_of_life(&stat))
}

/// What the kernel says of a process: its number, its name in parentheses, which may hold anything, its state, and so on.
fn tells_of_life(stat: &[u8]) -> bool {
    /// Counted from the state on.
    const THREADS: usize = 17;
    let Some(end) = memchr::memrchr(b')', stat) else {
        return false;
    };
    let mut fields = stat[end + 1..].trim_ascii().split(|byte| *byte == b' ');
    match fields.next() {
        Some(b"Z") => !matches!(fields.nth(THREADS - 1), None | Some(b"0" | b"1")),
        state => !matches!(state, None | Some(b"" | b"X")),
    }
}

/// Ends every process whose mark begins with `nonce`, in whatever run of whatever process.
pub(crate) fn end_all(nonce: u32) {
    /// So many rounds without a pause: what forks on and on must not be given time.
    const EAGER: u32 = 1000;
    let (mut quiet, mut rounds) = (0, 0);
    while quiet < 2 {
        rounds += 1;
        if rounds > EAGER {
            // Something can't be killed, for now.
            thread::sleep(Duration::from_millis(10));
        }
        let Ok(processes) = processes() else { continue };
        let found = processes.filter(|pid| {
            let mark = Mark::of(*pid).ok().flatten();
            let mark = mark.filter(|mark| mark.is_of(nonce));
            mark.is_some_and(|mark| Ending::new(mark).kill_alive(*pid))
        });
        quiet = if found.count() == 0 { quiet + 1 } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn life_is_told_from_what_the_kernel_says_of_a_process() {
        let threads = |state: &str, threads: u32| {
            let zeros = "0 ".repeat(16);
            format!("7 (a) name) {state} {zeros}{threads} 0 0\n").into_bytes()
        };
        assert!(tells_of_life(&threads("S", 1)));
        assert!(!tells_of_life(&threads("Z", 1)) && !tells_of_life(&threads("X", 1)));
        // Its main thread has ended.
        assert!(tells_of_life(&threads("Z", 2)));
        assert!(tells_of_life(b"7 (\xd0\xbf\xd1) R 1 7 7 0 -1"));
        assert!(!tells_of_life(b"") && !tells_of_life(b"7 (name)"));
    }
}
