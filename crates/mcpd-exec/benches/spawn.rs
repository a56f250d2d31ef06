//! Cost of the executor, as ratios within one run: only those are comparable.
//!
//! `cargo bench -p mcpd-exec` runs a greeting script bare and through the executor at each level,
//! interleaved, on a runtime of one thread and of several, also with a large host. It measures
//! the delay of a timer while scripts run, and floods a pipe beside `cat | wc -c`.
#![cfg(unix)]
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
#![expect(clippy::unwrap_used, reason = "a benchmark may fail where it stands")]

use std::fs;
use std::hint::black_box;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use mcpd_exec::{Command, Config, Ending, Executor, Level, Sandbox, Variables};
use tokio::runtime::{Builder, Runtime};

const GREET: &str = "#!/bin/sh\nprintf 'Hello, %s!\\n' \"$MCPD_OPT_name\"\n";
const INPUT: &str = r#"{"name":"Ada"}"#;
const ROUNDS: usize = 9;
const ROUND: Duration = Duration::from_millis(400);
const LEVELS: [Level; 3] = [Level::None, Level::Guarded, Level::Strict];
/// Resident memory of the large host, in bytes.
const BALLAST: usize = 1 << 30;
/// Bytes through the pipe, and number of repetitions.
const FLOOD: u64 = 10 << 30;
const FLOODS: usize = 3;

fn main() {
    if mcpd_exec::run_watchdog() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("greet");
    fs::write(&script, GREET).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let mut config = Config::default();
    config.reaper = true;
    config.watchdog = true;
    let executor = Executor::new(config).unwrap();
    // Callers that start many processes read their environment once.
    let command = Command::new(&script)
        .inherit(&Variables::of_this_process(|_| true))
        .env("MCPD_OPT_name", "Ada")
        .stdin(INPUT);
    let one = Builder::new_current_thread().enable_all().build().unwrap();
    let several = Builder::new_multi_thread().enable_all().build().unwrap();

    for (runtime, threads) in [(&one, "one thread"), (&several, "several threads")] {
        println!(
            "at a time   bare/s   none   guarded   strict   (ratios to bare; a runtime of {threads})"
        );
        for concurrency in [1, 8, 64] {
            compare(&executor, runtime, &command, concurrency);
        }
    }
    tick(&executor, &several, &command);
    flood(&executor, &several);
    println!("at a time   bare/s   none   guarded   strict   (with 1 GiB resident)");
    let ballast = vec![1_u8; BALLAST];
    compare(&executor, &several, &command, 8);
    drop(black_box(ballast));
}

/// Compares bare runs with each level in turn, `concurrency` at a time.
fn compare(executor: &Executor, runtime: &Runtime, command: &Command, concurrency: usize) {
    let mut rates = Vec::new();
    let mut ratios = LEVELS.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        let bare = bare(command.program(), concurrency);
        for (level, ratios) in LEVELS.into_iter().zip(&mut ratios) {
            ratios.push(through(executor, runtime, command, concurrency, level) / bare);
        }
        rates.push(bare);
    }
    let [none, guarded, strict] = ratios.map(median);
    println!(
        "{concurrency:9} {:8.0} {none:6.2} {guarded:9.2} {strict:8.2}",
        median(rates)
    );
}

/// Returns the runs per second through the executor.
fn through(
    executor: &Executor,
    runtime: &Runtime,
    command: &Command,
    concurrency: usize,
    level: Level,
) -> f64 {
    let command = command.clone().sandbox(Sandbox::at(level));
    let begun = Instant::now();
    let runs = runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..concurrency {
            let (executor, command) = (executor.clone(), command.clone());
            tasks.spawn(async move {
                let mut runs = 0;
                while begun.elapsed() < ROUND {
                    let outcome = executor.run(command.clone()).await.unwrap();
                    assert_eq!(outcome.stdout.head, "Hello, Ada!\n");
                    runs += 1;
                }
                runs
            });
        }
        tasks.join_all().await.iter().sum()
    });
    rate(runs, begun)
}

/// Measures the delay of a timer of the runtime while 64 scripts run.
fn tick(executor: &Executor, runtime: &Runtime, command: &Command) {
    const PERIOD: Duration = Duration::from_millis(5);
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let ticking = runtime.spawn(async move {
        let mut late = Vec::new();
        let mut interval = tokio::time::interval(PERIOD);
        loop {
            let due = interval.tick().await;
            late.push(due.elapsed().as_secs_f64() * 1e3);
            if !matches!(
                stopped.try_recv(),
                Err(tokio::sync::oneshot::error::TryRecvError::Empty)
            ) {
                return late;
            }
        }
    });
    for _ in 0..ROUNDS {
        through(executor, runtime, command, 64, Level::None);
    }
    stop.send(()).unwrap();
    let mut late = runtime.block_on(ticking).unwrap();
    late.sort_by(f64::total_cmp);
    let at = |share: usize| late[late.len() * share / 100];
    println!(
        "a timer while 64 scripts run is late by {:.2} ms (median), {:.2} ms (99 of 100)",
        at(50),
        at(99)
    );
}

/// Floods a bounded buffer, beside `cat | wc -c`.
fn flood(executor: &Executor, runtime: &Runtime) {
    let source = format!("head -c {FLOOD} /dev/zero");
    let mut limits = mcpd_exec::Limits::default();
    limits.output_hard = u64::MAX;
    let command = Command::new("sh").args(["-c", &source]).limits(limits);
    let pipeline = format!("{source} | cat | wc -c");
    let before = peak_memory();
    let ratios = (0..FLOODS).map(|_| {
        let (executor, command) = (executor.clone(), command.clone());
        let begun = Instant::now();
        // In a task, as servers do: blocking on a runtime of several threads would add a wake-up.
        let run = runtime.spawn(async move { executor.run(command).await });
        let outcome = runtime.block_on(run).unwrap().unwrap();
        let ours = begun.elapsed();
        assert_eq!(outcome.ending, Ending::Exited(0));
        assert_eq!(outcome.stdout.total_bytes, FLOOD);
        ours.as_secs_f64() / time_pipeline(&pipeline).as_secs_f64()
    });
    let ratios: Vec<f64> = ratios.collect();
    println!(
        "{} GiB through a pipe take {:.2} of the time of `cat | wc -c` (median of {FLOODS}); memory grows by {} KiB",
        FLOOD >> 30,
        median(ratios),
        peak_memory().saturating_sub(before) / 1024
    );
}

/// Measures the time to count the bytes of the flood.
#[expect(
    clippy::disallowed_methods,
    reason = "this is what the executor is compared with"
)]
fn time_pipeline(pipeline: &str) -> Duration {
    let begun = Instant::now();
    let output = std::process::Command::new("sh")
        .args(["-c", pipeline])
        .output()
        .unwrap();
    assert_eq!(output.stdout.trim_ascii(), FLOOD.to_string().as_bytes());
    begun.elapsed()
}

/// Returns the peak memory of this process, in bytes.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = peak.and_then(|peak| peak.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() * 1024
}

/// Returns the runs per second with the standard library, with one thread per concurrent run.
fn bare(script: &Path, concurrency: usize) -> f64 {
    let begun = Instant::now();
    let runs = std::thread::scope(|scope| {
        let repeat = || {
            let mut runs = 0;
            while begun.elapsed() < ROUND {
                bare_run(script);
                runs += 1;
            }
            runs
        };
        let threads: Vec<_> = (0..concurrency).map(|_| scope.spawn(repeat)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    rate(runs, begun)
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is what the executor is compared with"
)]
fn bare_run(script: &Path) {
    let mut child = std::process::Command::new(script)
        .env("MCPD_OPT_name", "Ada")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Here too, a script that ends before it reads its input is no failure.
    child.stdin.take().unwrap().write_all(INPUT.as_bytes()).ok();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"Hello, Ada!\n");
}

fn rate(runs: u32, begun: Instant) -> f64 {
    f64::from(runs) / begun.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
