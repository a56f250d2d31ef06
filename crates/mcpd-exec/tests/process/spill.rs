//! Spill files: output that is too long for memory is kept on disk from its start, up to a limit,
//! in a file without a name.

use std::fs;
use std::ops::RangeInclusive;
use std::sync::mpsc;

use mcpd_exec::{Captured, Command, Config, Ending};
use tempfile::TempDir;

use crate::support::{World, limits, ms, within};

/// Runs a script with room for 8 bytes in memory and for 1000 on disk.
async fn capture(script: &str) -> Captured {
    let world = World::new();
    let script = world.sh(script).limits(limits(|limits| {
        (limits.capture_head, limits.capture_tail, limits.keep) = (4, 4, 1000);
    }));
    let outcome = within(world.executor.run(script)).await.unwrap();
    outcome.stdout
}

/// Checks that all of the output is in its file.
#[track_caller]
fn check(output: &Captured, expected: &str) {
    let kept = output.file.as_ref().unwrap();
    assert!(kept.read().unwrap() == expected.as_bytes());
    assert_eq!((kept.size(), kept.omitted_bytes()), (output.total_bytes, 0));
}

/// Returns the output of `seq`.
fn lines(numbers: RangeInclusive<u32>) -> String {
    numbers.map(|number| format!("{number}\n")).collect()
}

#[tokio::test]
async fn output_that_fits_into_memory_is_not_spilled() {
    let stdout = capture("printf 1234; printf 5678").await;
    assert_eq!(stdout.file, None);
    assert_eq!(stdout.whole().unwrap(), "12345678");
}

#[tokio::test]
async fn output_one_byte_over_memory_is_spilled() {
    check(&capture("printf 1234; printf 56789").await, "123456789");
}

#[tokio::test]
async fn spilled_output_is_in_order() {
    let stdout = capture("for i in $(seq 1 200); do echo $i; done").await;
    check(&stdout, &lines(1..=200));
}

#[tokio::test]
async fn output_beyond_the_spill_limit_is_only_counted() {
    let stdout = capture("head -c 1000000 /dev/zero | tr '\\0' x").await;
    let kept = stdout.file.unwrap();
    assert_eq!(kept.read().unwrap(), "x".repeat(1000).as_bytes());
    assert_eq!((kept.size(), kept.omitted_bytes()), (1000, 999_000));
}

#[tokio::test]
async fn spill_limit_cuts_no_character() {
    let stdout = capture("printf x; for i in $(seq 1 1000); do printf é; done").await;
    let kept = stdout.file.unwrap();
    let text = format!("x{}", "é".repeat(499));
    assert_eq!(kept.read().unwrap(), text.as_bytes());
    assert_eq!(kept.size(), 1000);
}

#[tokio::test]
async fn streams_have_their_own_spill_files() {
    let world = World::new();
    let script = world
        .sh("seq 1 100000 & seq 100001 200000 >&2; wait")
        .limits(limits(|limits| limits.keep = 1 << 20));
    let outcome = within(world.executor.run(script)).await.unwrap();
    check(&outcome.stdout, &lines(1..=100_000));
    check(&outcome.stderr, &lines(100_001..=200_000));
}

#[tokio::test]
async fn stopped_run_keeps_its_spill_file() {
    let world = World::new();
    let script = world
        .sh("seq 1 100000; exec sleep 300")
        .limits(limits(|limits| {
            (limits.keep, limits.wall) = (1 << 20, ms(2000));
        }));
    let outcome = within(world.executor.run(script)).await.unwrap();
    assert!(matches!(outcome.ending, Ending::TimedOut { .. }));
    check(&outcome.stdout, &lines(1..=100_000));
    world.nothing_left();
}

#[tokio::test]
async fn spill_file_has_no_name() {
    let directory = TempDir::new().unwrap();
    let world = in_directory(&directory);
    let outcome = within(world.executor.run(flood(&world))).await.unwrap();
    assert_eq!(outcome.stdout.file.unwrap().size(), 1 << 20);
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
}

#[tokio::test]
async fn missing_disk_does_not_stop_the_run() {
    let directory = TempDir::new().unwrap();
    let world = in_directory(&directory);
    directory.close().unwrap();
    let outcome = within(world.executor.run(flood(&world))).await.unwrap();
    assert_eq!(outcome.stdout.total_bytes, 3_000_000);
    assert_eq!(outcome.stdout.file, None);
}

fn in_directory(directory: &TempDir) -> World {
    let mut config = Config::default();
    config.temporary = Some(directory.path().to_owned());
    World::with(config)
}

fn flood(world: &World) -> Command {
    world
        .sh("head -c 3000000 /dev/zero")
        .limits(limits(|limits| limits.keep = 1 << 20))
}

/// The disk is the cause then, and not the process. The last output is still shown.
#[test]
fn stalled_disk_is_no_leftover_process() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()
        .unwrap();
    let (go_on, stalled) = mpsc::channel::<()>();
    runtime.spawn_blocking(move || stalled.recv());
    let world = World::new();
    let body = "echo first; sleep 0.1; echo second >&2; head -c 50000 /dev/zero; echo last";
    let script = world.sh(body).limits(limits(|limits| {
        (limits.capture_head, limits.capture_tail, limits.keep) = (0, 5, 100_000);
        limits.drain = ms(200);
    }));
    let run = async { within(world.executor.run(script)).await };
    let outcome = runtime.block_on(run).unwrap();
    drop(go_on);
    assert_eq!(outcome.ending, Ending::Exited(0));
    assert!(!outcome.pipes_held);
    assert_eq!(outcome.stdout.total_bytes, 50_011);
    assert_eq!(
        (&outcome.stdout.tail[..], outcome.stdout.file),
        (&b"last\n"[..], None)
    );
}
