//! Plan of a start: what a child does on the way to its program.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::ptr::null;

use libc::{c_char, c_int};
use memchr::{memchr, memchr_iter};
use seccompiler::BpfProgramRef;

use crate::sandbox::RunAs;
use crate::variables::Variables;

/// Program with its arguments and environment, as the kernel takes them.
#[derive(Debug)]
pub(crate) struct Image {
    /// Arguments and own variables, each with a NUL at its end, to which the pointers refer.
    _text: Vec<u8>,
    /// Variables to which the other pointers refer.
    _inherited: Variables,
    pub(super) argv: Vec<*const c_char>,
    pub(super) envp: Vec<*const c_char>,
}

impl Image {
    /// The first argument is the path of the program. A change takes the place of the inherited
    /// variable of its name, and removes it without a value; names differ.
    ///
    /// # Errors
    ///
    /// An argument, a name or a value contains a NUL byte.
    pub(crate) fn new(
        arguments: &[&OsStr],
        inherited: Variables,
        changes: &[(&OsStr, Option<&OsStr>)],
    ) -> io::Result<Self> {
        let set = || {
            changes
                .iter()
                .filter_map(|(name, value)| Some((*name, (*value)?)))
        };
        let argument_bytes = arguments.iter().map(|argument| argument.len() + 1);
        let variable_bytes = set().map(|(name, value)| name.len() + value.len() + 2);
        let mut text = Vec::with_capacity(argument_bytes.chain(variable_bytes).sum());
        for argument in arguments {
            push(&mut text, &[argument])?;
        }
        for (name, value) in set() {
            push(&mut text, &[name, OsStr::new("="), value])?;
        }
        let mut start = 0;
        let mut strings = memchr_iter(0, &text).map(|end| {
            let string: *const c_char = text[start..=end].as_ptr().cast();
            start = end + 1;
            string
        });
        let mut argv = Vec::with_capacity(arguments.len() + 1);
        argv.extend(strings.by_ref().take(arguments.len()));
        argv.push(null());
        let replaced = changes.iter().filter_map(|(name, _)| inherited.entry(name));
        let replaced: Vec<_> = replaced.map(CStr::as_ptr).collect();
        let kept = inherited.entries().map(CStr::as_ptr);
        let mut envp = Vec::with_capacity(inherited.len() + changes.len() + 1);
        envp.extend(kept.filter(|entry| !replaced.contains(entry)));
        envp.extend(strings);
        envp.push(null());
        Ok(Self {
            argv,
            envp,
            _text: text,
            _inherited: inherited,
        })
    }

    /// Variables as `NAME=VALUE`.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &CStr> {
        let entries = self.envp.iter().take_while(|entry| !entry.is_null());
        // SAFETY: each points to a string of this image, which it keeps.
        entries.map(|entry| unsafe { CStr::from_ptr(*entry) })
    }
}

/// Appends a string of these parts, with a NUL at its end.
///
/// # Errors
///
/// A part contains a NUL byte.
fn push(text: &mut Vec<u8>, parts: &[&OsStr]) -> io::Result<()> {
    for part in parts {
        let part = part.as_bytes();
        if memchr(0, part).is_some() {
            let reason = "an argument or a variable contains a NUL byte";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        text.extend_from_slice(part);
    }
    text.push(0);
    Ok(())
}

/// Steps of the child on its way to the program, in the order of the fields.
#[derive(Debug)]
pub(crate) struct SpawnPlan<'a> {
    /// Own namespaces, and the steps to set them up.
    pub(crate) namespaces: Option<&'a Namespaces<'a>>,
    /// Own network namespace with a socket in it.
    pub(crate) network: Option<NetworkPlan<'a>>,
    /// Standard input, output and error. Their numbers are above [`SpawnPlan::LAST_RESERVED_FD`].
    pub(crate) stdio: [BorrowedFd<'a>; 3],
    /// Descriptors from [`SpawnPlan::STATUS_FD`] on.
    pub(crate) handed: &'a [BorrowedFd<'a>],
    /// `RLIMIT_*`, soft and hard.
    pub(crate) limits: &'a [(c_int, u64, u64)],
    /// The `cgroup.procs` of the group to join, open for writing.
    pub(crate) cgroup: Option<BorrowedFd<'a>>,
    /// The mark that identifies it and all its descendants, and the secret word that the filter
    /// demands for setting it.
    pub(crate) mark: Option<(u64, u64)>,
    pub(crate) run_as: Option<RunAs>,
    pub(crate) directory: Option<&'a CStr>,
    /// Directory that this must be, whatever its path leads to by now.
    pub(crate) fixed: Option<FixedPlace<'a>>,
    /// Starts a session, which detaches it from the terminal of this process. Otherwise it only
    /// starts a group.
    pub(crate) session: bool,
    pub(crate) privileges: Privileges,
    /// Landlock rulesets to enter.
    pub(crate) rulesets: [Option<BorrowedFd<'a>>; 2],
    /// Filter to add to that of the calling thread.
    pub(crate) filter: Option<BpfProgramRef<'a>>,
    pub(crate) image: &'a Image,
}

impl SpawnPlan<'_> {
    /// Pipe to which the first process of a run reports.
    pub(crate) const STATUS_FD: RawFd = 3;
    /// Program of the first process, for a backend that starts it.
    pub(crate) const INIT_FD: RawFd = 4;
    /// Filter of the run, for a backend that installs it.
    pub(crate) const FILTER_FD: RawFd = 5;
    /// Last descriptor that the child gives a new meaning on the way.
    pub(crate) const LAST_RESERVED_FD: RawFd = Self::FILTER_FD;
}

/// Privileges of a process and all programs it executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Privileges {
    /// Those of this process, and what programs gain.
    Kept,
    /// Those of this process. Programs gain none, but root has its own.
    NotGained,
    /// None, not even root's.
    Dropped,
}

/// Directory whose path other processes may have lead elsewhere at any time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FixedPlace<'a> {
    pub(crate) path: &'a CStr,
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// Namespaces for one process, and the steps of their mount plan.
#[derive(Debug)]
pub(crate) struct Namespaces<'a> {
    /// `CLONE_NEW*`.
    pub(crate) flags: c_int,
    pub(crate) steps: &'a [Step],
    /// The program that runs as the first process of the namespace, and starts the real one.
    pub(crate) init: BorrowedFd<'a>,
}

/// Network namespace for one process, in which nothing but a proxy can be reached.
#[derive(Debug)]
pub(crate) struct NetworkPlan<'a> {
    /// `CLONE_NEW*`.
    pub(crate) flags: c_int,
    pub(crate) steps: &'a [Step],
    /// Port of the proxy on the loopback interface.
    pub(crate) port: u16,
    /// Socket on which the child sends that of the proxy.
    pub(crate) channel: BorrowedFd<'a>,
}

/// One step of a mount plan.
#[derive(Debug)]
pub(crate) enum Step {
    /// Writes text to a file.
    Write { path: CString, text: CString },
    /// Mounts a file system, or changes the propagation of mounts.
    Mount {
        source: CString,
        target: CString,
        kind: CString,
        flags: u64,
        data: CString,
    },
    /// Takes a copy of the mount tree at a path, to be attached later.
    Take { path: CString, slot: usize },
    /// Makes a directory. An existing one is fine.
    Directory { path: CString },
    /// Makes an empty file. An existing one is fine.
    File { path: CString },
    /// Makes a symbolic link, unless the name exists.
    Link { path: CString, target: CString },
    /// Attaches the tree of a slot.
    Attach { slot: usize, path: CString },
    /// Sets attributes of the mount at a path, and of all mounts below if asked to.
    Attributes {
        path: CString,
        set: u64,
        below: bool,
    },
}

/// Number of trees that one plan may take.
pub(crate) const MAX_TREES: usize = 32;

/// Defines the stages, each with the text that completes "failed to".
macro_rules! setup_stages {
    ($($stage:ident = $text:literal,)*) => {
        /// Activity of the child when it failed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u32)]
        pub(crate) enum SetupStage {
            $($stage,)*
        }

        /// All stages, in the order of their numbers.
        pub(super) const SETUP_STAGES: &[SetupStage] = &[$(SetupStage::$stage,)*];

        impl SetupStage {
            /// Returns the text that completes "failed to".
            pub(crate) fn describe(self) -> &'static str {
                match self {
                    $(Self::$stage => $text,)*
                }
            }
        }
    };
}

setup_stages! {
    Clone = "create a process",
    Namespaces = "set up namespaces",
    Network = "set up its network namespace",
    Session = "start a session or a group",
    Stdio = "connect its pipes",
    Descriptors = "keep descriptors from it",
    Limits = "set its limits",
    Cgroup = "put it into its control group",
    Mark = "mark it",
    User = "change its user",
    Directory = "enter its directory",
    Privileges = "drop its privileges",
    Lifeline = "tie it to this process",
    Landlock = "enter its Landlock ruleset",
    Signals = "reset its signals",
    Seccomp = "install its system call filter",
    Exec = "execute it",
}
