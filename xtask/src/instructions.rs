//! Instructions and allocations of paths through the server, counted by valgrind. Unlike times,
//! they do not depend on the load of the machine.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::report::promise;
use crate::server::or_dev;

/// Paths of the benchmark `paths`, each with the repetitions that two runs differ by. That
/// difference cancels one-time work.
const PATHS: [(&str, u64); 6] = [
    // From the bytes of a request to those of its answer: a list, and a call of a function.
    ("list", 1000),
    ("function", 1000),
    // A call of a script, without what the script itself does. One that takes longer than usual is
    // waited for in another way, which costs more.
    ("script", 100),
    // A list over HTTP, from socket to socket.
    ("http", 1000),
    // Arguments of a call to stdin and environment of the script.
    ("arguments", 1000),
    // Start of a server that remembers 100 scripts, to the first list.
    ("start", 10),
];

/// Runs of each count, of which the least counts: the others waited longer for something.
const RUNS: usize = 3;

/// Maximum ratio to the recorded count.
const TOLERANCE: f64 = 1.05;

/// Recorded counts: a line for each path, with its instructions and its allocations.
const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/instructions.txt");

/// Counts of one path taken once.
#[derive(Debug, Clone, Copy)]
struct Cost {
    instructions: u64,
    allocations: u64,
}

/// Counts the cost of each path, and compares or records it. Returns whether all counts are within
/// the tolerance.
///
/// # Errors
///
/// Fails if there is no valgrind, the benchmark can't be built or run, or nothing is recorded.
pub(crate) fn run(record: bool) -> anyhow::Result<bool> {
    let version = valgrind()
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .context("valgrind counts: install it, for example with `apt-get install valgrind`")?;
    ensure!(version.success(), "`valgrind --version` fails");
    let program = build()?;
    let costs = PATHS.map(|(path, times)| anyhow::Ok((path, measure(&program, path, times)?)));
    let costs = costs.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    if record {
        let mut lines = String::new();
        for (path, cost) in &costs {
            let (instructions, allocations) = (cost.instructions, cost.allocations);
            writeln!(lines, "{path} {instructions} {allocations}")?;
        }
        fs::write(RECORD, lines)?;
    }
    compare(&costs)
}

/// Compares the counts with the recorded ones.
fn compare(costs: &[(&str, Cost)]) -> anyhow::Result<bool> {
    let record =
        fs::read_to_string(RECORD).with_context(|| format!("{RECORD}, which `--record` writes"))?;
    let recorded = parse_record(&record).with_context(|| RECORD.to_owned())?;
    let mut is_kept = true;
    for (path, cost) in costs {
        let before = recorded.get(path);
        let before = before.with_context(|| format!("no `{path}` in {RECORD}"))?;
        let counts = [
            ("instructions", cost.instructions, before.instructions),
            ("allocations", cost.allocations, before.allocations),
        ];
        for (unit, count, before) in counts {
            let ratio = count as f64 / before as f64;
            is_kept &= promise(
                ratio <= TOLERANCE,
                format_args!("{path}: {count} {unit}, {ratio:.3} of {before}, {TOLERANCE} at most"),
            );
        }
    }
    Ok(is_kept)
}

fn parse_record(record: &str) -> anyhow::Result<BTreeMap<&str, Cost>> {
    let costs = record.lines().map(|line| {
        let mut words = line.split(' ');
        let mut next = || {
            words
                .next()
                .with_context(|| format!("`{line}` is too short"))
        };
        let path = next()?;
        let (instructions, allocations) = (next()?.parse()?, next()?.parse()?);
        let cost = Cost {
            instructions,
            allocations,
        };
        Ok((path, cost))
    });
    costs.collect()
}

/// Returns the cost of a path, from the difference of two numbers of repetitions.
fn measure(program: &Path, path: &str, times: u64) -> anyhow::Result<Cost> {
    let once = |count: fn(&Path, &str, u64) -> anyhow::Result<u64>| {
        let count = |program, path, times| least((0..RUNS).map(|_| count(program, path, times)));
        let (few, many) = (
            count(program, path, times)?,
            count(program, path, 2 * times)?,
        );
        anyhow::Ok(many.saturating_sub(few) / times)
    };
    Ok(Cost {
        instructions: once(count_instructions)?,
        allocations: once(count_allocations)?,
    })
}

/// Builds the benchmark, and returns its path.
#[expect(clippy::disallowed_methods, reason = "cargo is no script")]
fn build() -> anyhow::Result<PathBuf> {
    let output = Command::new(env!("CARGO"))
        .args([
            "build",
            "--quiet",
            "--package",
            "mcpd-server",
            "--bench",
            "paths",
        ])
        .args(["--profile", or_dev("bench"), "--message-format", "json"])
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "the benchmark can't be built");
    let lines = output.stdout.split(|byte| *byte == b'\n');
    let mut messages = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let program = messages.find_map(|message| {
        let is_it = message["target"]["name"] == "paths";
        is_it.then(|| message["executable"].as_str().map(PathBuf::from))?
    });
    program.context("cargo doesn't say where the benchmark is")
}

/// Returns the least of these counts.
fn least(counts: impl Iterator<Item = anyhow::Result<u64>>) -> anyhow::Result<u64> {
    let counts = counts.collect::<anyhow::Result<Vec<_>>>()?;
    counts.into_iter().min().context("there is no count")
}

/// Returns the number of instructions of a run that takes a path this many times.
fn count_instructions(program: &Path, path: &str, times: u64) -> anyhow::Result<u64> {
    let tool = ["--tool=callgrind", "--callgrind-out-file=/dev/null"];
    count(program, path, times, tool, "Collected : ")
}

/// Returns the number of allocations of a run that takes a path this many times.
fn count_allocations(program: &Path, path: &str, times: u64) -> anyhow::Result<u64> {
    let tool = ["--tool=dhat", "--dhat-out-file=/dev/null"];
    count(program, path, times, tool, "bytes in ")
}

/// Runs a path below a tool of valgrind, and returns the number behind `label` in its report.
fn count(
    program: &Path,
    path: &str,
    times: u64,
    tool: [&str; 2],
    label: &str,
) -> anyhow::Result<u64> {
    let output = valgrind()
        .args(tool)
        .arg(program)
        .args([path, &times.to_string()])
        .output()?;
    let log = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{path}: {log}");
    let number = log.lines().find_map(|line| {
        let (_, number) = line.split_once(label)?;
        let digits = number.split_whitespace().next()?;
        digits.replace(',', "").parse().ok()
    });
    number.with_context(|| format!("no count in: {log}"))
}

#[expect(clippy::disallowed_methods, reason = "valgrind is no script")]
fn valgrind() -> Command {
    Command::new("valgrind")
}
