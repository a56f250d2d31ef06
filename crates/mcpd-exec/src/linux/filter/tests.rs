//! System calls that the filter refuses and allows, made by programs that call the kernel by
//! number.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::TcpListener;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Output};
use std::thread;

use super::*;
use crate::linux::skip::skip;

const SECRET: u64 = 0xfeed_5eed_0bad_cafe;

/// Number of a call and its arguments.
type Call<'a> = (c_long, &'a [i64]);

/// Returns one call with several sets of arguments.
fn calls<const N: usize>(number: c_long, arguments: &[[i64; N]]) -> Vec<Call<'_>> {
    arguments
        .iter()
        .map(|arguments| (number, &arguments[..]))
        .collect()
}

/// Runs `work` on a thread of its own, under the filter if there is one.
fn on_thread<T: Send>(filter: Option<&Filter>, work: impl FnOnce() -> T + Send) -> T {
    let run = || {
        if let Some(filter) = filter {
            filter.install().unwrap();
        }
        work()
    };
    thread::scope(|scope| scope.spawn(run).join().unwrap())
}

#[expect(
    clippy::disallowed_methods,
    reason = "what starts processes properly is built on this"
)]
fn perl(script: &str, arguments: &[String]) -> Option<Output> {
    let output = Command::new("perl")
        .args(["-e", script])
        .args(arguments)
        .output();
    if output.is_err() {
        skip("there is no perl to call the kernel with");
    }
    output.ok()
}

/// Returns the kernel's answers to calls: error numbers, or 0.
fn answers(filter: Option<&Filter>, calls: &[Call<'_>]) -> Option<Vec<i32>> {
    // In its own session, so that no call can affect our terminal.
    const SCRIPT: &str = r#"
        use POSIX ();
        POSIX::setsid();
        for (@ARGV) {
            my ($number, @arguments) = map { $_ + 0 } split;
            print syscall($number, @arguments) == -1 ? $! + 0 : 0, "\n";
        }
    "#;
    let mut arguments = Vec::new();
    for (number, values) in calls {
        let mut call = number.to_string();
        for value in *values {
            write!(call, " {value}").unwrap();
        }
        arguments.push(call);
    }
    let output = on_thread(filter, || perl(SCRIPT, &arguments))?;
    let answers = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{output:?}",
        output = output.stderr
    );
    Some(answers.lines().map(|line| line.parse().unwrap()).collect())
}

const ALL: [Sockets; 4] = [
    Sockets::All,
    Sockets::Tcp,
    Sockets::TcpClient,
    Sockets::None,
];

fn filter(sockets: Sockets, secret: Option<u64>) -> Filter {
    Filter::new(sockets, secret).unwrap()
}

/// Checks that the calls fail with this error under the filter, and otherwise without: only root
/// may make some of them at all.
#[track_caller]
fn check(filter: &Filter, calls: &[Call<'_>], expected: i32) {
    let (Some(free), Some(held)) = (answers(None, calls), answers(Some(filter), calls)) else {
        return;
    };
    assert_eq!(held, vec![expected; calls.len()]);
    let refused = free.iter().filter(|answer| **answer == expected).count();
    if refused > 0 {
        skip(&format!(
            "{refused} of {} calls end so without the filter too",
            calls.len()
        ));
    }
    assert!(refused < calls.len(), "the filter makes no difference");
}

/// Checks that the filter does not affect the results of the calls.
#[track_caller]
fn check_unchanged(filter: &Filter, calls: &[Call<'_>]) {
    let free = answers(None, calls);
    assert_eq!(answers(Some(filter), calls), free);
    assert!(
        !free.unwrap_or_default().contains(&libc::EPERM),
        "allowed without the filter"
    );
}

#[test]
fn filter_table_has_every_call_once() {
    for sockets in ALL {
        let calls: Vec<_> = table(sockets, None)
            .unwrap()
            .into_iter()
            .map(|(call, _)| call)
            .collect();
        let distinct: BTreeSet<_> = calls.iter().collect();
        assert_eq!(distinct.len(), calls.len());
    }
}

#[test]
fn listed_calls_are_refused_with_any_arguments() {
    let list = REFUSED.concat();
    let calls: Vec<Call<'_>> = list.iter().map(|call| (*call, &[-1; 6][..])).collect();
    check(&filter(Sockets::All, None), &calls, libc::EPERM);
}

#[test]
fn clone_of_namespaces_and_siblings_is_refused() {
    // Such a thread can't be created, which is noticed after the filter.
    let impossible = i64::from(libc::CLONE_THREAD);
    let flags = CLONE_REFUSED.map(|flag| [i64::from(flag) | impossible, 0, 0, 0, 0]);
    let filter = filter(Sockets::All, None);
    check(&filter, &calls(libc::SYS_clone, &flags), libc::EPERM);
    check_unchanged(&filter, &[(libc::SYS_clone, &[impossible, 0, 0, 0, 0])]);
}

#[test]
fn clone3_looks_absent() {
    check(
        &filter(Sockets::All, None),
        &[(libc::SYS_clone3, &[0, 0])],
        libc::ENOSYS,
    );
}

#[test]
fn terminal_input_can_not_be_faked() {
    let filter = filter(Sockets::All, None);
    for request in TYPE_AHEAD.map(|request| request as i64) {
        // The kernel ignores the upper half of a request.
        let calls: [Call<'_>; 2] = [
            (libc::SYS_ioctl, &[0, request]),
            (libc::SYS_ioctl, &[0, request | 1 << 32]),
        ];
        check(&filter, &calls, libc::EPERM);
    }
    check_unchanged(
        &filter,
        &[(libc::SYS_ioctl, &[0, libc::TIOCGWINSZ as i64, 0])],
    );
}

#[test]
fn mark_can_be_set_with_the_secret() {
    let (mark, secret) = (MARK as i64, SECRET as i64);
    let filter = filter(Sockets::All, Some(SECRET));
    let calls: [Call<'_>; 7] = [
        (SETRLIMIT, &[mark, -1, 0]),
        (SETRLIMIT, &[mark, -1, secret ^ 1]),
        (SETRLIMIT, &[mark, -1, secret ^ (1 << 31)]),
        (SETRLIMIT, &[mark, -1, secret ^ (1 << 32)]),
        (SETRLIMIT, &[mark, -1, secret ^ (1 << 63)]),
        (libc::SYS_prlimit64, &[0, mark, -1, 0]),
        (libc::SYS_prlimit64, &[0, mark, 1 << 32, secret]),
    ];
    check(&filter, &calls, libc::EPERM);
    check_unchanged(&filter, &[(SETRLIMIT, &[mark, -1, secret])]);
}

#[test]
fn mark_can_not_be_set_without_a_secret() {
    let mark = MARK as i64;
    let calls: [Call<'_>; 3] = [
        (SETRLIMIT, &[mark, -1, 0]),
        (SETRLIMIT, &[mark, -1, SECRET as i64]),
        (libc::SYS_prlimit64, &[0, mark, -1, 0]),
    ];
    check(&filter(Sockets::All, None), &calls, libc::EPERM);
}

#[test]
fn limits_of_other_processes_are_read_only() {
    let filter = filter(Sockets::All, None);
    let (set, cpu) = (libc::SYS_prlimit64, i64::from(libc::RLIMIT_CPU));
    let parent = i64::from(std::process::id());
    check(&filter, &[(set, &[parent, cpu, -1, 0])], libc::EPERM);
    check_unchanged(&filter, &[(set, &[parent, cpu, 0, -1])]);
}

#[test]
fn priorities_of_groups_and_users_can_not_be_changed() {
    let filter = filter(Sockets::All, None);
    // No process has this number, which is noticed after the filter.
    let nobody = i64::from(i32::MAX);
    let (cpu, io) = (libc::SYS_setpriority, libc::SYS_ioprio_set);
    for (call, which) in [(cpu, 1), (cpu, 2), (io, 1), (io, 2), (io, 3)] {
        check(&filter, &[(call, &[which, nobody, 0])], libc::EPERM);
    }
    check(&filter, &[(io, &[2, 0, 0])], libc::EPERM);
    let calls: [Call<'_>; 3] = [(cpu, &[0, 0, 0]), (cpu, &[0, nobody, 0]), (io, &[1, 0, 0])];
    check_unchanged(&filter, &calls);
}

#[test]
fn mark_can_be_read_and_other_limits_set() {
    let core = i64::from(libc::RLIMIT_CORE);
    let calls: [Call<'_>; 3] = [
        (libc::SYS_prlimit64, &[0, MARK as i64, 0, -1]),
        (libc::SYS_prlimit64, &[0, core, -1, 0]),
        (SETRLIMIT, &[core, -1, 0]),
    ];
    check_unchanged(&filter(Sockets::None, None), &calls);
}

#[test]
fn sockets_below_the_firewall_and_out_of_the_machine_are_refused() {
    let filter = filter(Sockets::All, None);
    let socket = |family: i32| [i64::from(family), i64::from(libc::SOCK_STREAM), 0];
    let refused = [libc::AF_PACKET, libc::AF_VSOCK].map(socket);
    check(&filter, &calls(libc::SYS_socket, &refused), libc::EPERM);
    let allowed = [
        libc::AF_INET,
        libc::AF_INET6,
        libc::AF_UNIX,
        libc::AF_NETLINK,
    ]
    .map(socket);
    check_unchanged(&filter, &calls(libc::SYS_socket, &allowed));
}

#[test]
fn sockets_without_network_are_refused_except_connected_pairs() {
    let filter = filter(Sockets::None, None);
    let socket = |family: i32| [i64::from(family), i64::from(libc::SOCK_STREAM), 0, -1];
    let families = [
        libc::AF_UNIX,
        libc::AF_INET,
        libc::AF_INET6,
        libc::AF_NETLINK,
    ]
    .map(socket);
    check(&filter, &calls(libc::SYS_socket, &families), libc::EPERM);
    check(
        &filter,
        &calls(libc::SYS_socketpair, &families[1..]),
        libc::EPERM,
    );
    let refused = on_thread(Some(&filter), UnixDatagram::pair).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EPERM));
    on_thread(Some(&filter), || UnixStream::pair().unwrap());
}

#[test]
fn sockets_with_destinations_are_those_of_tcp() {
    let (stream, datagram) = (libc::SOCK_STREAM, libc::SOCK_DGRAM);
    let (inet, inet6) = (libc::AF_INET, libc::AF_INET6);
    let socket =
        |(family, kind, protocol): (i32, i32, i32)| [family, kind, protocol].map(i64::from);
    let allowed = [
        (inet, stream, 0),
        (
            inet6,
            stream | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
            libc::IPPROTO_TCP,
        ),
    ];
    let refused = [
        (inet, datagram, 0),
        (inet6, datagram | libc::SOCK_CLOEXEC, 0),
        (inet, libc::SOCK_RAW, libc::IPPROTO_ICMP),
        (inet, stream, libc::IPPROTO_SCTP),
        (inet, stream, libc::IPPROTO_MPTCP),
        (libc::AF_UNIX, stream, 0),
        (libc::AF_NETLINK, libc::SOCK_RAW, 0),
        (libc::AF_VSOCK, stream, 0),
    ];
    for sockets in [Sockets::Tcp, Sockets::TcpClient] {
        let filter = filter(sockets, None);
        check(
            &filter,
            &calls(libc::SYS_socket, &refused.map(socket)),
            libc::EPERM,
        );
        check_unchanged(&filter, &calls(libc::SYS_socket, &allowed.map(socket)));
        on_thread(Some(&filter), || UnixStream::pair().unwrap());
        on_thread(Some(&filter), UnixDatagram::pair).unwrap_err();
    }
}

/// With these, a process would connect, or be connected to, unseen by Landlock.
#[test]
fn connections_past_landlock_are_refused() {
    let filter = filter(Sockets::TcpClient, None);
    let opening = i64::from(libc::MSG_FASTOPEN | libc::MSG_NOSIGNAL);
    let tcp = i64::from(libc::IPPROTO_TCP);
    let refused: [Call<'_>; 6] = [
        (libc::SYS_sendto, &[-1, 0, 0, opening, 0, 0]),
        (libc::SYS_sendmsg, &[-1, 0, opening]),
        (libc::SYS_sendmmsg, &[-1, 0, 0, opening]),
        (
            libc::SYS_setsockopt,
            &[-1, tcp, i64::from(libc::TCP_ULP), 0, 0],
        ),
        (libc::SYS_listen, &[-1, 1]),
        (libc::SYS_bind, &[-1, 0, 0]),
    ];
    check(&filter, &refused, libc::EPERM);
    let allowed: [Call<'_>; 3] = [
        (
            libc::SYS_sendto,
            &[-1, 0, 0, i64::from(libc::MSG_NOSIGNAL), 0, 0],
        ),
        (
            libc::SYS_setsockopt,
            &[-1, tcp, i64::from(libc::TCP_NODELAY), 0, 0],
        ),
        (libc::SYS_connect, &[-1, 0, 0]),
    ];
    check_unchanged(&filter, &allowed);
}

#[test]
fn sockets_are_made_with_network() {
    let filter = filter(Sockets::All, None);
    let directory = tempfile::tempdir().unwrap();
    on_thread(Some(&filter), || {
        TcpListener::bind("127.0.0.1:0").unwrap();
        UnixListener::bind(directory.path().join("socket")).unwrap();
    });
}

#[test]
fn threads_sessions_groups_and_pipelines_go_on() {
    let filter = filter(Sockets::None, Some(SECRET));
    let script = r#"
        use POSIX ();
        pipe(my $in, my $out);
        if (!fork) { POSIX::setsid() > 0 or die; POSIX::setpgid(0, 0); print $out `echo a | tr a b`; exit }
        close $out;
        print <$in>;
    "#;
    on_thread(Some(&filter), || {
        let sum = thread::spawn(|| 1 + 1).join().unwrap();
        assert_eq!(sum, 2);
        let Some(output) = perl(script, &[]) else {
            return;
        };
        assert_eq!(String::from_utf8_lossy(&output.stdout), "b\n");
    });
}

/// A program that makes x86 calls of 32 bits is killed, even for a harmless call.
#[cfg(target_arch = "x86_64")]
#[test]
fn calls_of_another_architecture_kill_the_process() {
    // `getpid` by the 32-bit entry, then `exit(0)` by the regular one.
    const PROGRAM: &str = "\
        7f454c4602010100000000000000000002003e00010000007800400000000000400000000000000000000000\
        0000000000000000400038000100000000000000010000000500000000000000000000000000400000000000\
        0000400000000000880000000000000088000000000000000010000000000000b814000000cd80b83c000000\
        31ff0f05";
    // Perl writes and runs it, so that no other process of this test can hold it open for
    // writing.
    const SCRIPT: &str = r#"
        open my $file, ">", $ARGV[0]; print $file pack("H*", $ARGV[1]); close $file;
        chmod 0700, $ARGV[0]; exec $ARGV[0];
    "#;
    let directory = tempfile::tempdir().unwrap();
    let path = directory
        .path()
        .join("program")
        .to_str()
        .unwrap()
        .to_owned();
    let arguments = [path, PROGRAM.to_owned()];
    let Some(free) = perl(SCRIPT, &arguments) else {
        return;
    };
    if !free.status.success() {
        skip(&format!(
            "this system runs no calls of 32 bits: {}",
            free.status
        ));
        return;
    }
    let filter = filter(Sockets::All, None);
    let held = on_thread(Some(&filter), || perl(SCRIPT, &arguments)).unwrap();
    assert_eq!(held.status.signal(), Some(libc::SIGSYS));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn calls_of_x32_look_absent() {
    let call = c_long::from(X32) | libc::SYS_getpid;
    if answers(None, &[(call, &[])]) == Some(vec![libc::ENOSYS]) {
        skip("this kernel has no x32");
        return;
    }
    check(&filter(Sockets::All, None), &[(call, &[])], libc::ENOSYS);
}
