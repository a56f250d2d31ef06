//! What the executor costs: a greeting script through it, against bare spawning, interleaved in one run.
//!
//! `cargo bench -p mcpd-exec --profile bench` prints, for each number of runs at a time, the medians and the ratio.
//! A ratio of 1 means the executor is free. Only ratios out of one run mean anything.
#![cfg(unix)]
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
#![expect(clippy::unwrap_used, reason = "a benchmark may fail where it stands")]

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use mcpd_exec::{Command, Config, Executor};
use tokio::runtime::{Builder, Runtime};

const GREET: &str = "#!/bin/sh\nprintf 'Hello, %s!\\n' \"$MCPD_OPT_name\"\n";
const INPUT: &str = r#"{"name":"Ada"}"#;
const ROUNDS: usize = 9;
const ROUND: Duration = Duration::from_millis(500);

fn main() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("greet");
    fs::write(&script, GREET).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();

    let executor = Executor::new(Config::default()).unwrap();
    let many = Builder::new_multi_thread().enable_all().build().unwrap();
    let one = Builder::new_current_thread().enable_all().build().unwrap();

    println!("at a time   bare/s   multi_thread/s   ratio   current_thread/s   ratio");
    for concurrency in [1, 8, 64] {
        let mut rates = [const { Vec::new() }; 3];
        let mut ratios = [const { Vec::new() }; 2];
        for _ in 0..ROUNDS {
            let bare = bare(&script, concurrency);
            let multi = through(&executor, &many, &script, concurrency);
            let single = through(&executor, &one, &script, concurrency);
            for (rates, rate) in rates.iter_mut().zip([bare, multi, single]) {
                rates.push(rate);
            }
            ratios[0].push(multi / bare);
            ratios[1].push(single / bare);
        }
        let [bare, multi, single] = rates.map(median);
        let [multi_ratio, single_ratio] = ratios.map(median);
        println!(
            "{concurrency:9} {bare:8.0} {multi:16.0} {multi_ratio:7.2} {single:18.0} {single_ratio:7.2}"
        );
    }
}

/// Runs per second through the executor.
fn through(executor: &Executor, runtime: &Runtime, script: &Path, concurrency: usize) -> f64 {
    let command = Command::new(script)
        .env("MCPD_OPT_name", "Ada")
        .stdin(INPUT);
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

/// Runs per second with the standard library and a thread for each run at a time.
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
    // A script that has ended before it is fed is no fault here either.
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
