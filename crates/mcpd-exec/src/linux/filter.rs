//! Deny-list of system calls (seccomp), compiled for the kernel. It keeps a process from leaving
//! its confinement and closes rarely used parts of the kernel. It does not decide which files may
//! be opened.

use std::collections::BTreeMap;
use std::io;

use libc::{c_int, c_long};
use seccompiler::{
    BackendError, BpfProgram, BpfProgramRef, SeccompAction, SeccompCmpArgLen, SeccompCmpOp,
    SeccompCondition, SeccompFilter, SeccompRule, TargetArch, sock_filter,
};

// The libc crate does not name these for every C library.
const SETRLIMIT: c_long = if cfg!(target_arch = "aarch64") {
    164
} else {
    160
};
const KEXEC_FILE_LOAD: c_long = if cfg!(target_arch = "aarch64") {
    294
} else {
    320
};
const OPEN_TREE_ATTR: c_long = 467;
const FCHMODAT2: c_long = 452;
/// The bit of `O_TMPFILE` that it shares with no other flag.
const TMPFILE: u64 = 0o20_000_000;
const IOPRIO_WHO_PROCESS: u64 = 1;

/// System calls that are refused with any arguments.
const REFUSED: &[&[c_long]] = &[
    // Inspecting and controlling other processes.
    &[
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_process_madvise,
        libc::SYS_pidfd_getfd,
        libc::SYS_kcmp,
        libc::SYS_move_pages,
        libc::SYS_migrate_pages,
    ],
    // Namespaces and mounts, which would change the meaning of paths.
    &[
        libc::SYS_unshare,
        libc::SYS_setns,
        libc::SYS_chroot,
        libc::SYS_pivot_root,
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_open_tree,
        OPEN_TREE_ATTR,
        libc::SYS_move_mount,
        libc::SYS_mount_setattr,
        libc::SYS_fsopen,
        libc::SYS_fsconfig,
        libc::SYS_fsmount,
        libc::SYS_fspick,
    ],
    // Files by handle or by events, bypassing the checks on paths.
    &[
        libc::SYS_open_by_handle_at,
        libc::SYS_name_to_handle_at,
        libc::SYS_fanotify_init,
        libc::SYS_lookup_dcookie,
        libc::SYS_nfsservctl,
    ],
    // System calls that the kernel makes on behalf of a program, unseen by filters.
    &[
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
    ],
    // Large parts of the kernel that exploits use and scripts do not need.
    &[
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_modify_ldt,
    ],
    // Keys and POSIX queues, which all processes of a user share. Landlock does not prevent
    // making and removing queues.
    &[
        libc::SYS_keyctl,
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_mq_open,
        libc::SYS_mq_unlink,
    ],
    // Control of the machine, which root has and must not use here.
    &[
        libc::SYS_reboot,
        libc::SYS_kexec_load,
        KEXEC_FILE_LOAD,
        libc::SYS_init_module,
        libc::SYS_finit_module,
        libc::SYS_delete_module,
        libc::SYS_swapon,
        libc::SYS_swapoff,
        libc::SYS_acct,
        libc::SYS_quotactl,
        libc::SYS_quotactl_fd,
        libc::SYS_syslog,
        libc::SYS_vhangup,
        libc::SYS_settimeofday,
        libc::SYS_clock_settime,
        libc::SYS_adjtimex,
        libc::SYS_clock_adjtime,
        libc::SYS_sethostname,
        libc::SYS_setdomainname,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_iopl,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_ioperm,
    ],
];

/// Flags of `clone` that are refused: all namespaces, and `CLONE_PARENT`, whose child would
/// belong to this process instead of its caller.
const CLONE_REFUSED: [c_int; 8] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_PARENT,
];

/// Bits of a mode that give a program the rights of its owner or group, whichever user starts it.
const SET_ID: [u64; 2] = [libc::S_ISUID as u64, libc::S_ISGID as u64];

/// `TIOCSTI` and `TIOCLINUX`: both put text into a terminal as if it had been typed.
const TYPE_AHEAD: [u64; 2] = [0x5412, 0x541c];

/// Kinds of sockets that can leave their pair for any address: the kernel treats local raw
/// sockets as datagram sockets.
const UNBOUND: [c_int; 2] = [libc::SOCK_DGRAM, libc::SOCK_RAW];
/// Bits of the argument that hold the kind; the others are flags.
const SOCKET_KINDS: u64 = 0xf;

/// Limit that holds the mark of a run: the kernel stores it and enforces nothing by it.
const MARK: u64 = libc::RLIMIT_LOCKS as u64;

/// First number of the x32 calls on x86_64. Other architectures do not use these numbers.
const X32: u32 = 0x4000_0000;

/// Sockets that a filter lets a process make. Connected pairs are always allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// All but those below the network.
    All,
    /// Those of TCP, for a process in a network namespace.
    Tcp,
    /// Those of TCP, to connect with alone.
    TcpClient,
    None,
}

/// Compiled deny-list of system calls.
#[derive(Debug)]
pub(crate) struct Filter {
    program: BpfProgram,
}

impl Filter {
    /// Compiles the list.
    ///
    /// `secret` is the value in the unused third register of `setrlimit(RLIMIT_LOCKS)` with which
    /// a process under this filter may still set its mark. Without one, no process may.
    ///
    /// # Errors
    ///
    /// There are no filters for this processor.
    pub(crate) fn new(sockets: Sockets, secret: Option<u64>) -> io::Result<Self> {
        let program = compile(sockets, secret).map_err(io::Error::other)?;
        Ok(Self { program })
    }

    /// The instructions as the kernel takes them, laid out like the C library's `sock_filter`.
    pub(crate) fn program(&self) -> BpfProgramRef<'_> {
        &self.program
    }

    /// The same instructions as bytes, for a program that installs them.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let instruction = |one: &sock_filter| {
            let [code, rest] = [one.code.to_ne_bytes(), [one.jt, one.jf]];
            [&code[..], &rest, &one.k.to_ne_bytes()].concat()
        };
        self.program.iter().flat_map(instruction).collect()
    }

    /// Puts the calling thread, and everything it starts, under the filter. It also sets
    /// `no_new_privs`.
    ///
    /// # Errors
    ///
    /// The system has no filters, or refuses them.
    pub(crate) fn install(&self) -> io::Result<()> {
        // Before Linux 5.16 a filter also turns on the mitigation of speculative store bypass,
        // unless a flag forbids it. It stays on: it costs speed on old kernels only, and
        // untrusted code is what it is for.
        seccompiler::apply_filter(&self.program).map_err(io::Error::other)
    }
}

fn compile(sockets: Sockets, secret: Option<u64>) -> Result<BpfProgram, BackendError> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    let table: BTreeMap<_, _> = table(sockets, secret)?.into_iter().collect();
    let verdicts = table.iter().map(|(call, rules)| {
        let verdict = match rules.is_empty() {
            true => Verdict::Refuse,
            false => Verdict::Examine,
        };
        (*call as u32, verdict)
    });
    let mut program = absent().to_vec();
    program.extend(shortcut(verdicts)?);
    let mut examined = table;
    examined.retain(|_, rules| !rules.is_empty());
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(examined, SeccompAction::Allow, refuse, architecture)?;
    program.extend(BpfProgram::try_from(filter)?);
    Ok(program)
}

/// Decision by the number of a call alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Allow,
    Refuse,
    /// The arguments decide.
    Examine,
}

/// Compiles a binary search that decides by the number of a call where that is enough. Other
/// calls jump to the code behind it.
///
/// That code compares one number after the other, and the kernel simulates it for every call
/// number whenever a process installs the filter. With all calls in it, that took half a
/// millisecond per run.
fn shortcut(
    listed: impl Iterator<Item = (u32, Verdict)>,
) -> Result<Vec<sock_filter>, BackendError> {
    let mut runs = vec![(0, Verdict::Allow)];
    for (call, verdict) in listed {
        if runs.last().is_some_and(|(first, _)| *first == call) {
            runs.pop();
        }
        if runs.last().is_none_or(|(_, last)| *last != verdict) {
            runs.push((call, verdict));
        }
        runs.push((call + 1, Verdict::Allow));
    }
    let architecture = instruction(LOAD, 0, 0, ARCHITECTURE_AT);
    let other = instruction(JUMP | libc::BPF_JEQ, 1, 0, ARCHITECTURE);
    let number = instruction(LOAD, 0, 0, NUMBER_AT);
    let mut code = vec![architecture, other, go_on(), number];
    code.extend(search(&runs)?);
    let length = code.len();
    for (at, instruction) in code.iter_mut().enumerate() {
        if instruction.code == go_on().code {
            instruction.k = (length - at - 1) as u32;
        }
    }
    Ok(code)
}

/// Compiles the search over runs of numbers, each given by its first number and its verdict.
fn search(runs: &[(u32, Verdict)]) -> Result<Vec<sock_filter>, BackendError> {
    Ok(match runs {
        [] => Vec::new(),
        [(_, Verdict::Examine)] => vec![go_on()],
        [(_, Verdict::Allow)] => vec![instruction(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW)],
        [(_, Verdict::Refuse)] => vec![instruction(RETURN, 0, 0, REFUSAL)],
        _ => {
            let (lower, upper) = runs.split_at(runs.len() / 2);
            let (first, lower, upper) = (upper[0].0, search(lower)?, search(upper)?);
            let length = lower.len();
            let jump = u8::try_from(length).map_err(|_| BackendError::FilterTooLarge(length))?;
            let mut code = vec![instruction(JUMP | libc::BPF_JGE, jump, 0, first)];
            code.extend(lower);
            code.extend(upper);
            code
        }
    })
}

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const JUMP: u32 = libc::BPF_JMP | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
const REFUSAL: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
/// Offsets of the call number and the architecture in the kernel's data.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
/// The kernel's name of the target architecture.
const ARCHITECTURE: u32 = if cfg!(target_arch = "aarch64") {
    0xc000_00b7
} else {
    0xc000_003e
};

fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    }
}

/// Jumps to the code behind the search. The distance is filled in at the end.
fn go_on() -> sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JA, 0, 0, 0)
}

/// Answers ENOSYS to some calls, so that C libraries use others instead.
///
/// The flags of `clone3` and the mode of `openat2` lie behind a pointer, where no filter can read
/// them; libraries fall back to `clone` and `openat`. No architecture uses these numbers for
/// other calls, so the check of the architecture can follow later.
fn absent() -> [sock_filter; 5] {
    let answer = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
    [
        instruction(LOAD, 0, 0, NUMBER_AT),
        instruction(JUMP | libc::BPF_JEQ, 2, 0, libc::SYS_clone3 as u32),
        instruction(JUMP | libc::BPF_JEQ, 1, 0, libc::SYS_openat2 as u32),
        instruction(JUMP | libc::BPF_JGE, 0, 1, X32),
        instruction(RETURN, 0, 0, answer),
    ]
}

/// Refused call with its rules, of which one must match. Without rules it is always refused.
type Refused = (c_long, Vec<SeccompRule>);

fn table(allowed: Sockets, secret: Option<u64>) -> Result<Vec<Refused>, BackendError> {
    let always = REFUSED.concat().into_iter().map(|call| (call, vec![]));
    let mut table: Vec<Refused> = always.collect();
    let flag = |flag| rule([int(0, SeccompCmpOp::MaskedEq(flag), flag)]);
    let flags = CLONE_REFUSED.into_iter().map(|set| flag(set as u64));
    table.push((libc::SYS_clone, flags.collect::<Result<_, _>>()?));
    table.push((libc::SYS_ioctl, any_of(1, TYPE_AHEAD)?));
    table.extend(limits(secret)?);
    table.extend(priorities()?);
    table.extend(sockets(allowed)?);
    table.extend(modes()?);
    Ok(table)
}

/// Refuses to set the set-user-ID and set-group-ID bits of a file. They would outlast the run,
/// for every user who starts the file later.
fn modes() -> Result<Vec<Refused>, BackendError> {
    let has = |argument, bits| int(argument, SeccompCmpOp::MaskedEq(bits), bits);
    let set = |argument| {
        let rules = SET_ID.into_iter().map(|bit| rule([has(argument, bit)]));
        rules.collect::<Result<Vec<_>, _>>()
    };
    // Without one of these flags the mode argument is arbitrary.
    let made = |flags, mode| {
        let makes = [libc::O_CREAT as u64, TMPFILE];
        let pairs = makes
            .into_iter()
            .flat_map(|make| SET_ID.map(|bit| (make, bit)));
        let rules = pairs.map(|(make, bit)| rule([has(flags, make), has(mode, bit)]));
        rules.collect::<Result<Vec<_>, _>>()
    };
    Ok(vec![
        (libc::SYS_fchmod, set(1)?),
        (libc::SYS_fchmodat, set(2)?),
        (FCHMODAT2, set(2)?),
        (libc::SYS_mknodat, set(2)?),
        (libc::SYS_openat, made(2, 3)?),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_chmod, set(1)?),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_creat, set(1)?),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_mknod, set(1)?),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, made(1, 2)?),
    ])
}

/// Refuses to change the mark, which stays readable, and any limit of another process: a limit of
/// no processor time would kill it.
fn limits(secret: Option<u64>) -> Result<[Refused; 2], BackendError> {
    let mark = int(0, SeccompCmpOp::Eq, MARK);
    let set_mark = match secret {
        None => rule([mark]),
        Some(secret) => rule([mark, word(2, SeccompCmpOp::Ne, secret)]),
    };
    let new = || word(2, SeccompCmpOp::Ne, 0);
    let new_mark = rule([int(1, SeccompCmpOp::Eq, MARK), new()]);
    let of_another = rule([int(0, SeccompCmpOp::Ne, 0), new()]);
    Ok([
        (SETRLIMIT, vec![set_mark?]),
        (libc::SYS_prlimit64, vec![new_mark?, of_another?]),
    ])
}

/// Refuses to change the priority of groups and users, and the I/O priority of other processes.
///
/// Other calls on single processes stay allowed: C libraries and runtimes name their own threads
/// by number, and a filter can't tell those from other processes.
fn priorities() -> Result<[Refused; 2], BackendError> {
    let many = [libc::PRIO_PGRP as u64, libc::PRIO_USER as u64];
    let not_one = rule([int(0, SeccompCmpOp::Ne, IOPRIO_WHO_PROCESS)]);
    let of_another = rule([int(1, SeccompCmpOp::Ne, 0)]);
    Ok([
        (libc::SYS_setpriority, any_of(0, many)?),
        (libc::SYS_ioprio_set, vec![not_one?, of_another?]),
    ])
}

fn sockets(allowed: Sockets) -> Result<Vec<Refused>, BackendError> {
    let foreign = rule([int(0, SeccompCmpOp::Ne, libc::AF_UNIX as u64)]);
    let kind = |kind| rule([int(1, SeccompCmpOp::MaskedEq(SOCKET_KINDS), kind)]);
    let unbound = UNBOUND.into_iter().map(|unbound| kind(unbound as u64));
    let pairs = [foreign].into_iter().chain(unbound);
    let pairs = (libc::SYS_socketpair, pairs.collect::<Result<Vec<_>, _>>()?);
    Ok(match allowed {
        // One bypasses the firewall, the other leaves a virtual machine.
        Sockets::All => {
            let past_the_network = [libc::AF_PACKET as u64, libc::AF_VSOCK as u64];
            vec![(libc::SYS_socket, any_of(0, past_the_network)?)]
        }
        Sockets::Tcp => [vec![pairs], tcp_sockets()?].concat(),
        Sockets::TcpClient => {
            let no_server = [(libc::SYS_bind, vec![]), (libc::SYS_listen, vec![])];
            [vec![pairs], tcp_sockets()?, no_server.to_vec()].concat()
        }
        Sockets::None => vec![(libc::SYS_socket, vec![]), pairs],
    })
}

/// Refuses all sockets but those of TCP, and what would take such a socket past Landlock.
fn tcp_sockets() -> Result<Vec<Refused>, BackendError> {
    let is_not = |argument, value: c_int| int(argument, SeccompCmpOp::Ne, value as u64);
    let other_family = rule([is_not(0, libc::AF_INET), is_not(0, libc::AF_INET6)]);
    // Multipath TCP is another protocol to Landlock.
    let other_protocol = rule([is_not(2, 0), is_not(2, libc::IPPROTO_TCP)]);
    let mut other = vec![other_family?, other_protocol?];
    // Every kind but `SOCK_STREAM`, which is 1.
    other.push(rule([int(1, SeccompCmpOp::MaskedEq(1), 0)])?);
    for bit in [2, 4, 8] {
        other.push(rule([int(1, SeccompCmpOp::MaskedEq(bit), bit)])?);
    }
    // A message that opens its connection does so without `connect`.
    let opening = libc::MSG_FASTOPEN as u64;
    let opens = |argument| rule([int(argument, SeccompCmpOp::MaskedEq(opening), opening)]);
    // Another protocol below the socket, of which Landlock sees nothing.
    let below = rule([
        int(1, SeccompCmpOp::Eq, libc::IPPROTO_TCP as u64),
        int(2, SeccompCmpOp::Eq, libc::TCP_ULP as u64),
    ]);
    Ok(vec![
        (libc::SYS_socket, other),
        (libc::SYS_sendto, vec![opens(3)?]),
        (libc::SYS_sendmsg, vec![opens(2)?]),
        (libc::SYS_sendmmsg, vec![opens(3)?]),
        (libc::SYS_setsockopt, vec![below?]),
    ])
}

type Condition = Result<SeccompCondition, BackendError>;

/// Makes a rule that matches if all conditions do.
fn rule<const N: usize>(conditions: [Condition; N]) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions.into_iter().collect::<Result<_, _>>()?)
}

/// Makes rules of which one matches if the argument is one of the values.
fn any_of<const N: usize>(
    argument: u8,
    values: [u64; N],
) -> Result<Vec<SeccompRule>, BackendError> {
    let equal = |value| rule([int(argument, SeccompCmpOp::Eq, value)]);
    values.into_iter().map(equal).collect()
}

/// Makes a condition on an argument of which the kernel uses the lower 32 bits.
fn int(argument: u8, operator: SeccompCmpOp, value: u64) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
}

/// Makes a condition on an argument of which the kernel uses all 64 bits.
fn word(argument: u8, operator: SeccompCmpOp, value: u64) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Qword, operator, value)
}

#[cfg(test)]
mod tests;
