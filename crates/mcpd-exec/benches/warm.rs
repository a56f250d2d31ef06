//! Warm and cold starts of a greeting in Python, and one in Node with and without its cache of
//! compiled code, in turn in one run: `cargo bench -p mcpd-exec --bench warm`.
#![cfg(unix)]
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
#![expect(clippy::unwrap_used, reason = "a benchmark may fail where it stands")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpd_exec::warm::{WarmStart, Warmth};
use mcpd_exec::{Command, Config, Executor, Level, Sandbox, Variables};
use tokio::runtime::{Builder, Runtime};

const PYTHON: &str = "#!/usr/bin/python3
import json
import sys

sys.stdout.write(f\"Hello, {json.load(sys.stdin)['name']}!\")
";
const NODE: &str = "#!/usr/bin/env node
const fs = require('fs');
process.stdout.write(`Hello, ${JSON.parse(fs.readFileSync(0, 'utf8')).name}!`);
";
const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(1500);

fn main() {
    if mcpd_exec::run_watchdog() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.reaper = true;
    let executor = Executor::new(config).unwrap();
    let runtime = Builder::new_multi_thread().enable_all().build().unwrap();
    let python = command(&script(directory.path(), "python", PYTHON));
    let node = command(&script(directory.path(), "node", NODE));
    let cache = directory.path().join("cache");
    let subjects = [
        python.clone(),
        python.clone().warm(WarmStart::default()),
        python.warm(WarmStart::new(["json".to_owned()])),
        node.clone(),
        node.env("NODE_COMPILE_CACHE", cache),
    ];
    println!("at a time   level     python/s   warm   warm, json   node/s   with a cache");
    for level in [Level::None, Level::Guarded] {
        let sandbox = Arc::new(Sandbox::at(level));
        for at_once in [1, 8] {
            let mut rates = subjects.each_ref().map(|_| Vec::new());
            for command in &subjects {
                load(&executor, &runtime, command, at_once, &sandbox);
            }
            for _ in 0..ROUNDS {
                for (command, rates) in subjects.iter().zip(&mut rates) {
                    rates.push(load(&executor, &runtime, command, at_once, &sandbox));
                }
            }
            let ratio = |this: usize, that: usize| {
                median(
                    rates[this]
                        .iter()
                        .zip(&rates[that])
                        .map(|(this, that)| this / that),
                )
            };
            println!(
                "{at_once:9}   {:8} {:8.1} {:6.2} {:12.2} {:8.1} {:14.2}",
                level.as_str(),
                median(rates[0].iter().copied()),
                ratio(1, 0),
                ratio(2, 0),
                median(rates[3].iter().copied()),
                ratio(4, 3),
            );
        }
    }
}

fn script(directory: &Path, name: &str, text: &str) -> PathBuf {
    let file = directory.join(name);
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    file
}

fn command(script: &Path) -> Command {
    let variables = Variables::of_this_process(|name| name == "PATH" || name == "HOME");
    Command::new(script)
        .inherit(&variables)
        .stdin("{\"name\": \"Ada\"}")
}

/// Returns the runs per second. All are warm that are to be, but for the first in a sandbox.
fn load(
    executor: &Executor,
    runtime: &Runtime,
    command: &Command,
    at_once: usize,
    sandbox: &Arc<Sandbox>,
) -> f64 {
    let command = command.clone().sandbox(Arc::clone(sandbox));
    let begun = Instant::now();
    let all = runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..at_once {
            let (executor, command) = (executor.clone(), command.clone());
            tasks.spawn(async move {
                let (mut runs, mut cold, mut why) = (0, 0, String::new());
                while begun.elapsed() < ROUND {
                    let outcome = executor.run(command.clone()).await.unwrap();
                    assert_eq!(outcome.stdout.head, "Hello, Ada!", "{outcome:?}");
                    runs += 1;
                    if let Some(Warmth::Cold(reason)) = outcome.warmth {
                        (cold, why) = (cold + 1, reason);
                    }
                }
                (runs, cold, why)
            });
        }
        tasks.join_all().await
    });
    for (runs, cold, why) in all.iter().filter(|(_, cold, _)| *cold > 0) {
        println!(
            "{cold} of {runs} runs had a cold start, at {}: {why}",
            sandbox.level
        );
    }
    let runs: u32 = all.iter().map(|(runs, ..)| runs).sum();
    f64::from(runs) / begun.elapsed().as_secs_f64()
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<_> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
