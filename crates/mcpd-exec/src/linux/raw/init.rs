//! The first process of a process namespace: a program of its own, without libc, that starts the real one and reaps.
//!
//! The real one can't be the first itself: the kernel keeps signals from the first process that it has no handler for,
//! so that `kill $$` and `abort` would do something else than elsewhere. When the first process ends, the kernel kills
//! all others in the namespace, and that is how nothing of a run survives it.

use std::arch::global_asm;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::mem::offset_of;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::OnceLock;

use libc::c_int;
use rustix::fs::{MemfdFlags, OFlags, SealFlags, fcntl_add_seals, fcntl_setfl, memfd_create};
use rustix::io::Errno;

use super::{Plan, used};
use crate::linux::pipe;
use crate::os;
use crate::outcome::Usage;

/// What the first process says when the program has ended, as it lies on its stack.
#[repr(C)]
struct Ended {
    /// Before: 0 as long as all is well, or the number of the error that kept the program from starting.
    status: c_int,
    usage: libc::rusage,
}

const FRAME: usize = size_of::<Ended>().next_multiple_of(16);

/// Assembles an ELF file of one segment around the code of a machine.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! program {
    (machine $machine:literal, $($code:literal),+ $(,)?) => {
        global_asm!(
            ".pushsection .rodata.mcpd_exec_init, \"a\"",
            ".balign 8",
            ".globl MCPDEXEC_INIT",
            ".hidden MCPDEXEC_INIT",
            ".globl MCPDEXEC_INIT_END",
            ".hidden MCPDEXEC_INIT_END",
            ".set .Lmcpd_base, 0x400000",
            "MCPDEXEC_INIT:",
            // 64 bits, little-endian, version 1; padding.
            ".byte 0x7f, 0x45, 0x4c, 0x46, 2, 1, 1",
            ".zero 9",
            // An executable, for this machine, version 1.
            ".short 2, {machine}",
            ".long 1",
            // Where it begins; program headers follow this one; no section headers.
            ".quad .Lmcpd_base + .Lmcpd_entry - MCPDEXEC_INIT, 64, 0",
            // No flags; the sizes of the headers, and how many there are.
            ".long 0",
            ".short 64, 56, 1, 0, 0, 0",
            // To load, for reading and executing: all of the file, in pages of up to 64 KiB.
            ".long 1, 5",
            ".quad 0, .Lmcpd_base, .Lmcpd_base",
            ".quad MCPDEXEC_INIT_END - MCPDEXEC_INIT, MCPDEXEC_INIT_END - MCPDEXEC_INIT",
            ".quad 0x10000",
            ".Lmcpd_entry:",
            $($code,)+
            "MCPDEXEC_INIT_END:",
            ".popsection",
            machine = const $machine,
            frame = const FRAME,
            usage = const offset_of!(Ended, usage),
            size = const size_of::<Ended>(),
            report = const Plan::RESERVED,
            vfork = const libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
            set_dumpable = const libc::PR_SET_DUMPABLE,
            setfd = const libc::F_SETFD,
            cloexec = const libc::FD_CLOEXEC,
            echild = const libc::ECHILD,
            clone = const libc::SYS_clone,
            close_range = const libc::SYS_close_range,
            execve = const libc::SYS_execve,
            exit_group = const libc::SYS_exit_group,
            fcntl = const libc::SYS_fcntl,
            prctl = const libc::SYS_prctl,
            wait4 = const libc::SYS_wait4,
            write = const libc::SYS_write,
        );
    };
}

#[cfg(target_arch = "x86_64")]
program!(
    machine 62,
    // r13: the arguments; r14: the environment, behind them. An `Ended` on the stack.
    "mov rax, [rsp]",
    "lea r13, [rsp + 8]",
    "lea r14, [r13 + rax * 8 + 8]",
    "sub rsp, {frame}",
    "mov dword ptr [rsp], 0",
    // No process of the run may open our memory or our descriptors.
    "mov eax, {prctl}",
    "mov edi, {set_dumpable}",
    "xor esi, esi",
    "syscall",
    // The child goes on here, on the same stack, while we sleep. ebx: its number.
    "mov eax, {clone}",
    "mov edi, {vfork}",
    "xor esi, esi",
    "xor edx, edx",
    "xor r10d, r10d",
    "xor r8d, r8d",
    "syscall",
    "test eax, eax",
    "jz .Lmcpd_child",
    "mov ebx, eax",
    "jns .Lmcpd_started",
    "neg eax",
    "mov [rsp], eax",
    // Says whether it has started, and lets go of its pipes.
    ".Lmcpd_started:",
    "mov eax, {write}",
    "mov edi, {report}",
    "mov rsi, rsp",
    "mov edx, 4",
    "syscall",
    "mov eax, {close_range}",
    "xor edi, edi",
    "mov esi, 2",
    "xor edx, edx",
    "syscall",
    // Reaps whoever ends, until that is the child.
    ".Lmcpd_wait:",
    "mov eax, {wait4}",
    "mov rdi, -1",
    "mov rsi, rsp",
    "xor edx, edx",
    "lea r10, [rsp + {usage}]",
    "syscall",
    "cmp eax, ebx",
    "je .Lmcpd_ended",
    "cmp eax, -{echild}",
    "jne .Lmcpd_wait",
    ".Lmcpd_ended:",
    "mov eax, {write}",
    "mov edi, {report}",
    "mov rsi, rsp",
    "mov edx, {size}",
    "syscall",
    "xor edi, edi",
    "jmp .Lmcpd_exit",
    // Keeps the report from the program, and becomes it.
    ".Lmcpd_child:",
    "mov eax, {fcntl}",
    "mov edi, {report}",
    "mov esi, {setfd}",
    "mov edx, {cloexec}",
    "syscall",
    "mov eax, {execve}",
    "mov rdi, [r13]",
    "mov rsi, r13",
    "mov rdx, r14",
    "syscall",
    "neg eax",
    "mov [rsp], eax",
    "mov edi, 127",
    ".Lmcpd_exit:",
    "mov eax, {exit_group}",
    "syscall",
);

// The same in the same order.
#[cfg(target_arch = "aarch64")]
program!(
    machine 183,
    "ldr x19, [sp]",
    "add x20, sp, #8",
    "add x21, x20, x19, lsl #3",
    "add x21, x21, #8",
    "sub sp, sp, #{frame}",
    "str wzr, [sp]",
    "mov x8, #{prctl}",
    "mov x0, #{set_dumpable}",
    "mov x1, #0",
    "svc #0",
    "mov x8, #{clone}",
    "mov x0, #{vfork}",
    "mov x1, #0",
    "mov x2, #0",
    "mov x3, #0",
    "mov x4, #0",
    "svc #0",
    "cbz w0, .Lmcpd_child",
    "mov w22, w0",
    "tbz w0, #31, .Lmcpd_started",
    "neg w0, w0",
    "str w0, [sp]",
    ".Lmcpd_started:",
    "mov x8, #{write}",
    "mov x0, #{report}",
    "mov x1, sp",
    "mov x2, #4",
    "svc #0",
    "mov x8, #{close_range}",
    "mov x0, #0",
    "mov x1, #2",
    "mov x2, #0",
    "svc #0",
    ".Lmcpd_wait:",
    "mov x8, #{wait4}",
    "mov x0, #-1",
    "mov x1, sp",
    "mov x2, #0",
    "add x3, sp, #{usage}",
    "svc #0",
    "cmp w0, w22",
    "b.eq .Lmcpd_ended",
    "cmn w0, #{echild}",
    "b.ne .Lmcpd_wait",
    ".Lmcpd_ended:",
    "mov x8, #{write}",
    "mov x0, #{report}",
    "mov x1, sp",
    "mov x2, #{size}",
    "svc #0",
    "mov x0, #0",
    "b .Lmcpd_exit",
    ".Lmcpd_child:",
    "mov x8, #{fcntl}",
    "mov x0, #{report}",
    "mov x1, #{setfd}",
    "mov x2, #{cloexec}",
    "svc #0",
    "mov x8, #{execve}",
    "ldr x0, [x20]",
    "mov x1, x20",
    "mov x2, x21",
    "svc #0",
    "neg w0, w0",
    "str w0, [sp]",
    "mov x0, #127",
    ".Lmcpd_exit:",
    "mov x8, #{exit_group}",
    "svc #0",
);

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn program() -> io::Result<&'static [u8]> {
    unsafe extern "C" {
        static MCPDEXEC_INIT: u8;
        static MCPDEXEC_INIT_END: u8;
    }
    let (start, end) = (&raw const MCPDEXEC_INIT, &raw const MCPDEXEC_INIT_END);
    // SAFETY: both are labels around the bytes assembled above, which nothing can write.
    Ok(unsafe { std::slice::from_raw_parts(start, end.addr() - start.addr()) })
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn program() -> io::Result<&'static [u8]> {
    let reason = "there is no first process for this processor";
    Err(io::Error::new(io::ErrorKind::Unsupported, reason))
}

/// The program, as a file that can be executed and never changed. Made once.
///
/// # Errors
///
/// There is none for this processor, or the system allows no such file.
pub(crate) fn image() -> io::Result<BorrowedFd<'static>> {
    static IMAGE: OnceLock<OwnedFd> = OnceLock::new();
    if IMAGE.get().is_none() {
        let made = make(program()?)?;
        // Another thread's may have been faster, and is as good.
        IMAGE.set(made).ok();
    }
    IMAGE
        .get()
        .map(|image| image.as_fd())
        .ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn make(program: &[u8]) -> io::Result<OwnedFd> {
    if (program.len() as u64) > os::file_size_limit() {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let made = match memfd_create("mcpd-exec-init", flags | MemfdFlags::EXEC) {
        // Before Linux 6.3 all can be executed, and the flag is unknown.
        Err(Errno::INVAL) => memfd_create("mcpd-exec-init", flags),
        other => other,
    };
    let mut file = File::from(pipe::above_reserved(made?)?);
    file.write_all(program)?;
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    fcntl_add_seals(&file, seals)?;
    Ok(file.into())
}

/// Where the first process tells how the program fares.
#[derive(Debug)]
pub(crate) struct Report(File);

impl Report {
    /// A report, and the end of it that the first process gets.
    ///
    /// # Errors
    ///
    /// No descriptor is to be had.
    pub(crate) fn new() -> io::Result<(Self, OwnedFd)> {
        let (read, write) = pipe::pipe()?;
        Ok((Self(read.into()), write))
    }

    /// Waits until the program has started. Closes our copy of `theirs`, or we would not notice if nobody else had one.
    ///
    /// # Errors
    ///
    /// Why the program can't be executed, or that the first process was killed before it could.
    pub(crate) fn started(&mut self, theirs: OwnedFd) -> io::Result<()> {
        drop(theirs);
        let mut error = [0; size_of::<c_int>()];
        self.0
            .read_exact(&mut error)
            .map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => {
                    io::Error::new(error.kind(), "its first process ended before it started")
                }
                _ => error,
            })?;
        match c_int::from_ne_bytes(error) {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// What the program ended with and what it used, with those of its descendants that it waited for.
    ///
    /// To be asked when the first process has ended. `None` if that was killed before the program had ended.
    pub(crate) fn ended(mut self) -> Option<(ExitStatus, Usage)> {
        // Somebody who is being started in another thread may hold the other end for a moment.
        fcntl_setfl(&self.0, OFlags::NONBLOCK).ok()?;
        let mut bytes = [0; size_of::<Ended>()];
        self.0.read_exact(&mut bytes).ok()?;
        // SAFETY: it is made of integers, so any bytes are one.
        let ended = unsafe { bytes.as_ptr().cast::<Ended>().read_unaligned() };
        Some((ExitStatus::from_raw(ended.status), used(&ended.usage)))
    }
}
