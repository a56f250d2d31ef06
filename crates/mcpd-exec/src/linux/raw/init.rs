//! First process (init) of a process namespace: a program without libc that starts the real one
//! and reaps.
//!
//! The real program can't be the first itself. The kernel keeps signals from the first process
//! that it has no handler for, so that `kill $$` and `abort` would behave differently. When the
//! first process ends, the kernel kills all others in the namespace. That is why nothing of a run
//! survives it.
//!
//! ```text
//! start ──vfork, exec──► report errno or 0, close pipes ──► reap ──program ends──► report it
//! ```

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

use super::{SpawnPlan, usage_from};
use crate::linux::pipe;
use crate::os;
use crate::outcome::Usage;

/// Report of the first process at the end of the program, as it lies on its stack.
#[repr(C)]
struct FinalReport {
    /// First 0, or the error that kept the program from starting. At the end its status.
    status: c_int,
    usage: libc::rusage,
}

const FRAME: usize = size_of::<FinalReport>().next_multiple_of(16);

/// Assembles an ELF file with one segment around the machine code.
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
            // ELF identification: 64 bits, little-endian, version 1; padding.
            ".byte 0x7f, 0x45, 0x4c, 0x46, 2, 1, 1",
            ".zero 9",
            // Executable, for this machine, version 1.
            ".short 2, {machine}",
            ".long 1",
            // Entry point; offset of the program headers; no section headers.
            ".quad .Lmcpd_base + .Lmcpd_entry - MCPDEXEC_INIT, 64, 0",
            // No flags; sizes and numbers of the headers.
            ".long 0",
            ".short 64, 56, 1, 0, 0, 0",
            // Load the whole file, readable and executable, in pages of up to 64 KiB.
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
            usage = const offset_of!(FinalReport, usage),
            size = const size_of::<FinalReport>(),
            report = const SpawnPlan::STATUS_FD,
            image = const SpawnPlan::INIT_FD,
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
    // r13: argv without our own name; r14: envp, which follows it. A `FinalReport` on the stack.
    "mov rax, [rsp]",
    "lea r13, [rsp + 16]",
    "lea r14, [r13 + rax * 8]",
    "sub rsp, {frame}",
    "mov dword ptr [rsp], 0",
    // Not dumpable: no process of the run may open our memory or our descriptors.
    "mov eax, {prctl}",
    "mov edi, {set_dumpable}",
    "xor esi, esi",
    "syscall",
    // vfork: the child continues here, on the same stack, while we sleep. ebx: its number.
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
    // Reports whether the program has started, and closes its pipes.
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
    // Reaps every child, until the program itself has ended.
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
    // Child: keeps the report and our image from the program, and executes it.
    ".Lmcpd_child:",
    "mov eax, {fcntl}",
    "mov edi, {report}",
    "mov esi, {setfd}",
    "mov edx, {cloexec}",
    "syscall",
    "mov eax, {fcntl}",
    "mov edi, {image}",
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

// As on x86_64, step by step.
#[cfg(target_arch = "aarch64")]
program!(
    machine 183,
    "ldr x19, [sp]",
    "add x20, sp, #16",
    "add x21, x20, x19, lsl #3",
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
    "mov x8, #{fcntl}",
    "mov x0, #{image}",
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
    let reason = "this processor is not supported";
    Err(io::Error::new(io::ErrorKind::Unsupported, reason))
}

/// Returns the program as a sealed file in memory. It is made once.
///
/// # Errors
///
/// There is none for this processor, or the system allows no such file.
pub(crate) fn image() -> io::Result<BorrowedFd<'static>> {
    static IMAGE: OnceLock<OwnedFd> = OnceLock::new();
    if IMAGE.get().is_none() {
        let made = make(program()?)?;
        // Another thread may have been faster; its file is as good.
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
        // Before Linux 6.3 the flag is unknown, and every such file can be executed.
        Err(Errno::INVAL) => memfd_create("mcpd-exec-init", flags),
        other => other,
    };
    let mut file = File::from(pipe::above_reserved(made?)?);
    file.write_all(program)?;
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    fcntl_add_seals(&file, seals)?;
    Ok(file.into())
}

/// Pipe on which the first process reports.
#[derive(Debug)]
pub(crate) struct StatusPipe(File);

impl StatusPipe {
    /// Makes the pipe, and returns it with the end for the first process.
    ///
    /// # Errors
    ///
    /// No descriptor can be had.
    pub(crate) fn new() -> io::Result<(Self, OwnedFd)> {
        let (read, write) = pipe::pipe()?;
        Ok((Self(read.into()), write))
    }

    /// Waits until the program has started. It closes our copy of `theirs`, so that an early end
    /// of the first process is noticed.
    ///
    /// # Errors
    ///
    /// The program can't be executed, or the first process was killed before.
    pub(crate) fn wait_for_start(&mut self, theirs: OwnedFd) -> io::Result<()> {
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

    /// Returns the exit status of the program and the resources that it and its awaited
    /// descendants used.
    ///
    /// Call it when the first process has ended. `None` if that was killed before the program had
    /// ended.
    pub(crate) fn read_ending(mut self) -> Option<(ExitStatus, Usage)> {
        // A child that another thread is starting may hold the other end for a moment.
        fcntl_setfl(&self.0, OFlags::NONBLOCK).ok()?;
        let mut bytes = [0; size_of::<FinalReport>()];
        self.0.read_exact(&mut bytes).ok()?;
        // SAFETY: it consists of integers, so any bytes are valid.
        let ended = unsafe { bytes.as_ptr().cast::<FinalReport>().read_unaligned() };
        Some((ExitStatus::from_raw(ended.status), usage_from(&ended.usage)))
    }
}
