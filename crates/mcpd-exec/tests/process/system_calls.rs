//! System calls: a confined process can make none that leads out of its confinement or deep into
//! the kernel. Each is also made unconfined, where the kernel answers otherwise.
//! `src/linux/filter/tests.rs` checks the whole list.

use libc::{ENOSYS, EPERM, c_long};
use mcpd_exec::{Ending, Level, Sandbox};

use crate::support::{World, levels, skip};

/// Returns the kernel's answer to a call at a level: an error number, or 0.
async fn answer(level: Level, call: c_long, arguments: &str) -> i32 {
    // A process made by `clone` ends at once.
    let script = format!(
        "$SIG{{CHLD}} = 'IGNORE'; my $me = $$; my $path = '/nonexistent';
        my $answer = syscall({call}, {arguments});
        exit 0 if $answer == 0 and syscall({}) != $me;
        print $answer == -1 ? $! + 0 : 0",
        libc::SYS_getpid
    );
    let world = World::new();
    let outcome = world.run_in(Sandbox::at(level), world.perl(&script)).await;
    let text = outcome.stdout.to_text_lossy();
    text.parse()
        .unwrap_or_else(|_| panic!("at {level}: {call}: {outcome:?}"))
}

/// Checks a call that fails with `refusal` when it is confined, and only then.
async fn check(call: c_long, arguments: &str, refusal: i32) {
    let mut levels = levels().await;
    let free = answer(levels.next().unwrap(), call, arguments).await;
    if free == EPERM || free == ENOSYS {
        return skip(&format!("call {call} fails with error {free} anyway"));
    }
    for level in levels {
        let found = answer(level, call, arguments).await;
        assert_eq!(
            found, refusal,
            "at {level}: {call} with {arguments}; error {free} at none"
        );
    }
}

const CHILD: i32 = libc::SIGCHLD;

#[tokio::test]
async fn namespaces_are_refused() {
    for flag in [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWPID,
    ] {
        check(libc::SYS_unshare, &flag.to_string(), EPERM).await;
        check(
            libc::SYS_clone,
            &format!("{}, 0, 0, 0, 0", flag | CHILD),
            EPERM,
        )
        .await;
    }
    check(libc::SYS_setns, "0, 0", EPERM).await;
    // A filter can't read its flags, so the call looks unknown.
    let arguments = format!(
        "my $new = pack('Q11', {}, 0, 0, 0, {CHILD}, (0) x 6), 88",
        libc::CLONE_NEWUSER
    );
    check(libc::SYS_clone3, &arguments, ENOSYS).await;
}

#[tokio::test]
async fn mount_calls_are_refused() {
    check(libc::SYS_chroot, "$path", EPERM).await;
    check(libc::SYS_mount, "$path, $path, $path, 0, 0", EPERM).await;
    check(libc::SYS_umount2, "$path, 0", EPERM).await;
    check(libc::SYS_fsopen, "$path, 0", EPERM).await;
    check(libc::SYS_open_tree, "-100, $path, 1", EPERM).await;
    check(libc::SYS_pivot_root, "$path, $path", EPERM).await;
}

#[tokio::test]
async fn rare_kernel_interfaces_are_refused() {
    check(libc::SYS_ptrace, "0, 0, 0, 0", EPERM).await;
    check(libc::SYS_bpf, "-1, 0, 0", EPERM).await;
    check(libc::SYS_keyctl, "0, -3, 0, 0, 0", EPERM).await;
    check(libc::SYS_io_uring_setup, "0, 0", EPERM).await;
    check(libc::SYS_userfaultfd, "-1", EPERM).await;
    check(libc::SYS_perf_event_open, "0, 0, -1, -1, 0", EPERM).await;
    check(libc::SYS_open_by_handle_at, "-100, 0, 0", EPERM).await;
    check(libc::SYS_process_vm_readv, "1, 0, 0, 0, 0, -1", EPERM).await;
}

#[tokio::test]
async fn message_queues_are_refused() {
    let queue = "my $name = 'mcpd-exec-test'";
    check(libc::SYS_mq_open, &format!("{queue}, 0, 0, 0"), EPERM).await;
    check(libc::SYS_mq_unlink, queue, EPERM).await;
}

/// Programs of 32 bits call the kernel by other numbers, outside any list.
#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn other_system_call_entries_are_closed() {
    // `getpid` by the 32-bit entry, then `exit(0)` by the regular one, after the headers of a
    // minimal program.
    const CODE: [u8; 16] = *b"\xb8\x14\0\0\0\xcd\x80\xb8\x3c\0\0\0\x31\xff\x0f\x05";
    let words = |words: &[u64]| {
        words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect::<Vec<_>>()
    };
    let base = 0x40_0000;
    let header = [
        0x0001_0102_464c_457f,
        0,
        0x1_003e_0002,
        base + 120,
        64,
        0,
        0x38_0040_0000_0000,
        1,
    ];
    let segment = [0x5_0000_0001, 0, base, base, 136, 136, 0x1000];
    let program = [words(&header), words(&segment), CODE.to_vec()].concat();
    for level in levels().await {
        let world = World::new();
        let command = world.command(world.file(&program, 0o755));
        let ending = world.run_in(Sandbox::at(level), command).await.ending;
        match (level, ending) {
            (Level::None, Ending::Exited(0)) => {}
            (Level::None, other) => return skip(&format!("calls of 32 bits: {other:?}")),
            (_, other) => assert!(
                matches!(
                    other,
                    Ending::Signaled {
                        signal: libc::SIGSYS,
                        ..
                    }
                ),
                "at {level}: {other:?}"
            ),
        }
    }
}

/// The other half of the list: calls that every program needs.
#[tokio::test]
async fn ordinary_processes_and_threads_start() {
    for level in levels().await {
        let arguments = format!("{CHILD}, 0, 0, 0, 0");
        assert_eq!(
            answer(level, libc::SYS_clone, &arguments).await,
            0,
            "at {level}"
        );
    }
}
