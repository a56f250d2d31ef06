//! Standard input: any amount is written while both outputs are read, and a process need not read
//! it.

use bytes::Bytes;
use mcpd_exec::{Command, Ending, Outcome};

use crate::support::{World, at_each_level, limits};

const MIB: usize = 1024 * 1024;

/// Runs a command at each level, expects success, and inspects the outcome.
async fn check(command: impl Fn(&World) -> Command, look: impl Fn(&Outcome)) {
    let look = |level, outcome: &Outcome| {
        assert_eq!(outcome.ending, Ending::Exited(0), "at {level}");
        look(outcome);
    };
    at_each_level(command, look).await;
}

#[tokio::test]
async fn large_input_comes_back_through_cat() {
    let input: Bytes = (0..32 * MIB)
        .map(|index| (index * 31 % 251) as u8)
        .collect();
    let keep_all = limits(|limits| limits.capture_head = 64 * MIB);
    let cat = |world: &World| {
        let cat = world.command("cat").stdin(input.clone());
        cat.limits(keep_all.clone())
    };
    check(cat, |outcome| {
        assert_eq!(
            (outcome.stdin.written, outcome.stdin.closed_early),
            (32 * MIB as u64, false)
        );
        assert!(
            outcome.stdout.whole().unwrap() == input,
            "every byte in order"
        );
    })
    .await;
}

#[tokio::test]
async fn input_around_the_size_of_a_pipe_is_complete() {
    for size in [0, 1, 65_535, 65_536, 65_537, 200_000] {
        let count = |world: &World| world.command("wc").arg("-c").stdin(vec![b'x'; size]);
        check(count, |outcome| {
            assert_eq!(outcome.stdout.to_text_lossy().trim(), size.to_string());
            assert_eq!(outcome.stdin.written, size as u64);
        })
        .await;
    }
}

/// Checks a script that does not read its input of 8 MiB.
async fn check_unread(body: &str) {
    let script = |world: &World| world.sh(body).stdin(vec![b'x'; 8 * MIB]);
    check(script, |outcome| {
        assert_eq!(outcome.stdout.head, "done\n");
        assert!(outcome.stdin.closed_early);
        assert!(outcome.stdin.written < 8 * MIB as u64);
    })
    .await;
}

#[tokio::test]
async fn unread_input_is_no_failure() {
    check_unread("echo done").await;
}

#[tokio::test]
async fn closed_input_is_no_failure() {
    check_unread("exec <&-; sleep 0.1; echo done").await;
}

#[tokio::test]
async fn missing_input_ends_at_once() {
    check(|world| world.sh("exec cat"), |_| {}).await;
    check(|world| world.command("cat").stdin(""), |_| {}).await;
    let name = |world: &World| world.sh("readlink /proc/$$/fd/0");
    check(name, |outcome| {
        assert_eq!(outcome.stdout.head, "/dev/null\n");
    })
    .await;
}

#[tokio::test]
async fn input_can_be_opened_by_name() {
    let cat = |world: &World| world.sh("cat /dev/stdin").stdin("hello");
    check(cat, |outcome| assert_eq!(outcome.stdout.head, "hello")).await;
}
