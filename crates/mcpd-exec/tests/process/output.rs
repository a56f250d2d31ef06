//! Output is counted exactly and kept in bounded memory, and lines arrive as they are written.

use std::thread;
use std::time::Duration;

use mcpd_exec::{Ending, Limits, Line, Outcome, Sandbox, Stream};
use tokio::sync::{Notify, mpsc};

use crate::support::{World, at_each_level, levels, limits, signal, within};

const MIB: u64 = 1024 * 1024;

/// Runs a script at each level, and inspects the outcome.
async fn check(body: &str, limits: Limits, look: impl Fn(&Outcome)) {
    let script = |world: &World| world.sh(body).limits(limits.clone());
    at_each_level(script, |_, outcome| look(outcome)).await;
}

#[tokio::test]
async fn both_pipes_are_drained_at_once() {
    // Both exceed the size of a pipe, one after the other: reading only one first would deadlock.
    let body = "head -c 70000 /dev/zero >&2; head -c 70000 /dev/zero";
    check(body, Limits::default(), |outcome| {
        assert_eq!(outcome.ending, Ending::Exited(0));
        assert_eq!(
            (outcome.stdout.total_bytes, outcome.stderr.total_bytes),
            (70_000, 70_000)
        );
    })
    .await;
}

#[tokio::test]
async fn large_output_on_both_pipes_is_counted_exactly() {
    let body = "head -c 20000001 /dev/zero & head -c 20000003 /dev/zero >&2; wait";
    check(body, Limits::default(), |outcome| {
        assert_eq!(outcome.stdout.total_bytes, 20_000_001);
        assert_eq!(outcome.stderr.total_bytes, 20_000_003);
        assert_eq!(outcome.stdout.omitted_bytes, 20_000_001 - 128 * 1024);
    })
    .await;
}

#[tokio::test]
async fn head_and_tail_are_the_first_and_last_bytes() {
    check("seq 1 100000", Limits::default(), |outcome| {
        assert!(outcome.stdout.head.starts_with(b"1\n2\n3\n"));
        assert!(outcome.stdout.tail.ends_with(b"99999\n100000\n"));
        assert_eq!(outcome.stdout.total_bytes, 588_895);
    })
    .await;
}

#[tokio::test]
async fn endless_output_is_stopped() {
    let limits = limits(|limits| limits.output_hard = 8 * MIB);
    check("exec yes", limits, |outcome| {
        assert!(matches!(outcome.ending, Ending::OutputLimit { limit, .. } if limit == 8 * MIB));
        assert_eq!(signal(outcome), Some(9));
        assert!((8 * MIB..9 * MIB).contains(&outcome.stdout.total_bytes));
    })
    .await;
}

#[tokio::test]
async fn bytes_that_are_not_text_are_kept_as_they_are() {
    let body = r"printf 'a\377\000b\033[31m'";
    check(body, Limits::default(), |outcome| {
        assert_eq!(&outcome.stdout.head[..], b"a\xff\0b\x1b[31m");
        assert!(!outcome.stdout.is_utf8());
        assert_eq!(outcome.stdout.to_text_lossy(), "a\u{fffd}\0b\u{1b}[31m");
    })
    .await;
}

#[tokio::test]
async fn lines_arrive_while_the_process_runs() {
    let world = World::new();
    // The second line is only written when the first one has arrived.
    let go = world.directory().join("go");
    let script = world
        .sh("echo one >&2; until test -e \"$1\"; do sleep 0.01; done; printf two")
        .arg(&go);
    let mut seen = Vec::new();
    let on_line = |line: Line<'_>| {
        seen.push((
            line.stream,
            String::from_utf8_lossy(line.bytes).into_owned(),
        ));
        std::fs::write(&go, "").unwrap();
    };
    let outcome = within(world.executor.run_with(script, on_line))
        .await
        .unwrap();
    assert!(outcome.success());
    assert_eq!(
        seen,
        [
            (Stream::Stderr, "one".to_owned()),
            (Stream::Stdout, "two".to_owned())
        ]
    );
}

#[tokio::test]
async fn line_without_end_comes_in_pieces() {
    let world = World::new();
    let (mut pieces, mut bytes) = (0, 0);
    let on_line = |line: Line<'_>| {
        assert!(line.bytes.len() <= 1000);
        assert_eq!(line.continues, line.bytes.len() == 1000);
        (pieces, bytes) = (pieces + 1, bytes + line.bytes.len());
    };
    let script = world
        .sh("head -c 100500 /dev/zero; echo")
        .limits(limits(|limits| limits.line = 1000));
    within(world.executor.run_with(script, on_line))
        .await
        .unwrap();
    assert_eq!((pieces, bytes), (101, 100_500));
}

/// The line callback is slower than the drain limit.
#[tokio::test]
async fn slow_consumer_misses_no_output_in_the_pipe() {
    let world = World::new();
    let mut lines = 0;
    let on_line = |_: Line<'_>| {
        thread::sleep(Duration::from_micros(100));
        lines += 1;
    };
    let limits = limits(|limits| {
        limits.drain = Duration::from_millis(1);
        (limits.capture_head, limits.capture_tail) = (1000, 1000);
        limits.keep = 100_000;
    });
    let script = world.sh("seq -w 10001 20000").limits(limits);
    let outcome = within(world.executor.run_with(script, on_line))
        .await
        .unwrap();
    assert_eq!((outcome.stdout.total_bytes, lines), (60_000, 10_000));
    assert!(outcome.success() && !outcome.pipes_held, "{outcome:?}");
    assert_eq!(outcome.stdout.file.unwrap().size(), 60_000);
}

#[tokio::test]
async fn range_of_a_long_output_is_read() {
    let world = World::new();
    let limits = limits(|limits| {
        (limits.capture_head, limits.capture_tail) = (1000, 1000);
        limits.keep = 50_000;
    });
    // The limit is within a character.
    let script = world.sh("printf x; seq -f 'é%.0f' 30000").limits(limits);
    let outcome = within(world.executor.run(script)).await.unwrap();
    let file = outcome.stdout.file.unwrap();
    let whole = file.read().unwrap();
    assert!(str::from_utf8(&whole).is_ok());
    let end = whole.len() as u64;
    for range in [
        0..10,
        20_000..20_001,
        end - 5..end,
        end - 5..end + 99,
        end..end + 9,
        7..7,
    ] {
        let [from, to] = [range.start, range.end.min(end)].map(|at| at as usize);
        assert_eq!(
            file.read_range(range.clone()).unwrap(),
            whole[from..to],
            "{range:?}"
        );
    }
}

#[tokio::test]
async fn consumer_that_stalls_does_not_stop_the_process() {
    for level in levels().await {
        let world = World::new();
        let (lines, mut consumer) = mpsc::channel(4);
        let mut dropped = 0;
        let on_line = |line: Line<'_>| {
            if lines.try_send(line.bytes.to_vec()).is_err() {
                dropped += 1;
            }
        };
        let script = world.sh("seq 1 50000").sandbox(Sandbox::at(level));
        let run = world.executor.run_with(script, on_line);
        let outcome = within(run).await.unwrap();
        assert!(outcome.success(), "at {level}: {outcome:?}");
        assert_eq!(dropped, 49_996, "at {level}");
        assert_eq!(consumer.recv().await.unwrap(), b"1");
    }
}

#[tokio::test]
async fn flood_does_not_starve_the_runtime() {
    let world = World::new();
    let flooded = Notify::new();
    let neighbour = async {
        flooded.notified().await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        outcome = world.executor.run_with(world.command("yes"), |_| flooded.notify_one()) => {
            panic!("the neighbour had no turn: {:?}", outcome.map(|outcome| outcome.ending))
        }
        () = within(neighbour) => {}
    }
    world.nothing_left();
}
