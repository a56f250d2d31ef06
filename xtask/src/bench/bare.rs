//! Bare start of scripts: the standard library, and one thread for each concurrent script.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use super::sample::{Meter, Sample};
use crate::latency::Latency;

/// Greets for `time`, with `at_once` scripts at a time.
///
/// # Errors
///
/// Fails if a script doesn't run.
pub(crate) fn load(script: &Path, at_once: usize, time: Duration) -> anyhow::Result<Sample> {
    let meter = Meter::start(Vec::new())?;
    let end = Instant::now() + time;
    let latency = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..at_once)
            .map(|thread| scope.spawn(move || greet_until(end, script, thread)))
            .collect();
        let mut sum = Latency::default();
        for thread in threads {
            let ended = thread.join();
            sum.add(&ended.map_err(|_| anyhow::anyhow!("a thread panicked"))??);
        }
        anyhow::Ok(sum)
    })?;
    meter.stop(latency)
}

fn greet_until(end: Instant, script: &Path, thread: usize) -> anyhow::Result<Latency> {
    let mut latency = Latency::default();
    let name = format!("n{thread}");
    while Instant::now() < end {
        let begun = Instant::now();
        greet(script, &name)?;
        latency.record(begun.elapsed());
    }
    Ok(latency)
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is what the executor is compared with"
)]
fn greet(script: &Path, name: &str) -> anyhow::Result<()> {
    let mut child = std::process::Command::new(script)
        .env("MCPD_OPT_name", name)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let input = format!(r#"{{"name":"{name}"}}"#);
    // A script need not read its input.
    let mut stdin = child.stdin.take().context("a pipe")?;
    stdin.write_all(input.as_bytes()).ok();
    drop(stdin);
    let output = child.wait_with_output()?;
    ensure!(
        output.stdout == format!("Hello, {name}!").as_bytes(),
        "{output:?}"
    );
    Ok(())
}

/// Runs every script of a directory with `--help`, one for each core at a time, and returns the
/// duration.
///
/// # Errors
///
/// Fails if a script doesn't run.
pub(crate) fn ask_all(scripts: &Path) -> anyhow::Result<Duration> {
    let entries = fs::read_dir(scripts)?.map(|entry| Ok(entry?.path()));
    let files = entries.collect::<anyhow::Result<Vec<_>>>()?;
    let each = files
        .len()
        .div_ceil(std::thread::available_parallelism()?.get());
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let shares = files.chunks(each);
        let threads: Vec<_> = shares.map(|share| scope.spawn(|| ask(share))).collect();
        for thread in threads {
            let ended = thread.join();
            ended.map_err(|_| anyhow::anyhow!("a thread panicked"))??;
        }
        Ok(begun.elapsed())
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is what the executor is compared with"
)]
fn ask(scripts: &[PathBuf]) -> anyhow::Result<()> {
    for script in scripts {
        let mut command = std::process::Command::new(script);
        let output = command.arg("--help").stdin(Stdio::null()).output()?;
        ensure!(output.status.success(), "{output:?}");
    }
    Ok(())
}
