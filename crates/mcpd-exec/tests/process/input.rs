//! Input of any size is written while both outputs are read; a process need not read it.

use bytes::Bytes;
use mcpd_exec::Ending;

use crate::support::{World, limits, within};

const MIB: usize = 1024 * 1024;

#[tokio::test]
async fn a_large_input_comes_back_through_cat() {
    let world = World::new();
    let input: Bytes = (0..32 * MIB)
        .map(|index| (index * 31 % 251) as u8)
        .collect();
    let keep_all = limits(|limits| limits.capture_head = 64 * MIB);
    let cat = world.command("cat").stdin(input.clone()).limits(keep_all);
    let outcome = within(world.executor.run(cat)).await.unwrap();
    assert_eq!(outcome.ending, Ending::Exited(0));
    assert_eq!(
        (outcome.stdin.written, outcome.stdin.closed_early),
        (32 * MIB as u64, false)
    );
    assert!(
        outcome.stdout.whole().unwrap() == input,
        "every byte in order"
    );
    world.nothing_left();
}

#[tokio::test]
async fn input_around_the_size_of_a_pipe_is_complete() {
    let world = World::new();
    for size in [0, 1, 65_535, 65_536, 65_537, 200_000] {
        let count = world.command("wc").arg("-c").stdin(vec![b'x'; size]);
        let outcome = within(world.executor.run(count)).await.unwrap();
        assert_eq!(outcome.stdout.to_text_lossy().trim(), size.to_string());
        assert_eq!(outcome.stdin.written, size as u64);
    }
}

#[tokio::test]
async fn input_that_is_never_read_is_no_fault() {
    let world = World::new();
    let script = world.sh("echo done").stdin(vec![b'x'; 8 * MIB]);
    let outcome = within(world.executor.run(script)).await.unwrap();
    assert_eq!(
        (outcome.ending, &outcome.stdout.head[..]),
        (Ending::Exited(0), &b"done\n"[..])
    );
    assert!(outcome.stdin.closed_early);
    assert!(outcome.stdin.written < 8 * MIB as u64);
    world.nothing_left();
}

#[tokio::test]
async fn input_closed_at_once_is_no_fault() {
    let world = World::new();
    let script = world
        .sh("exec <&-; sleep 0.1; echo done")
        .stdin(vec![b'x'; 8 * MIB]);
    let outcome = within(world.executor.run(script)).await.unwrap();
    assert_eq!(
        (outcome.ending, &outcome.stdout.head[..]),
        (Ending::Exited(0), &b"done\n"[..])
    );
    assert!(outcome.stdin.closed_early);
}

#[tokio::test]
async fn without_input_a_reader_sees_the_end_at_once() {
    let world = World::new();
    assert_eq!(world.run("exec cat").await.ending, Ending::Exited(0));
    let outcome = world.run("readlink /proc/$$/fd/0").await;
    assert_eq!(outcome.stdout.head, "/dev/null\n");
    let empty = world.command("cat").stdin("");
    assert!(within(world.executor.run(empty)).await.unwrap().success());
}

#[tokio::test]
async fn input_can_be_opened_by_name() {
    let world = World::new();
    let script = world.sh("cat /dev/stdin").stdin("hello");
    let outcome = within(world.executor.run(script)).await.unwrap();
    assert_eq!(outcome.stdout.head, "hello");
}
