//! Instruction counts of a message, from its bytes to the bytes of its answer. Unlike times, they
//! do not depend on the load of the machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::report::{line, promise};
use crate::server::or_dev;

/// Kinds of messages that the benchmark `messages` repeats.
const KINDS: [&str; 2] = ["list", "call"];

/// Difference of the repetitions between two runs, which cancels one-time work.
const REPETITIONS: u64 = 1000;

/// Maximum ratio to the recorded count.
const TOLERANCE: f64 = 1.1;

/// Recorded counts: a line for each kind.
const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/instructions.txt");

/// Counts instructions, and compares or records them. Returns whether every count is within the
/// tolerance.
///
/// # Errors
///
/// Fails if the benchmark can't be built or run, or nothing is recorded.
pub(crate) fn run(record: bool) -> anyhow::Result<bool> {
    if valgrind()
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_err()
    {
        line(format_args!("*** NOT COUNTED: there is no valgrind"));
        return Ok(true);
    }
    let program = build()?;
    let counts = KINDS.map(|kind| {
        let [once, twice] =
            [REPETITIONS, 2 * REPETITIONS].map(|times| count(&program, kind, times));
        anyhow::Ok((kind, (twice? - once?) / REPETITIONS))
    });
    let counts = counts.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    if record {
        let lines = counts
            .iter()
            .map(|(kind, count)| format!("{kind} {count}\n"));
        fs::write(RECORD, lines.collect::<String>())?;
    }
    compare(&counts)
}

/// Compares the counts with the recorded ones.
fn compare(counts: &[(&str, u64)]) -> anyhow::Result<bool> {
    let record =
        fs::read_to_string(RECORD).with_context(|| format!("{RECORD}, which `--record` writes"))?;
    let recorded: BTreeMap<&str, &str> = record
        .lines()
        .filter_map(|line| line.split_once(' '))
        .collect();
    let mut kept = true;
    for (kind, count) in counts {
        let before = recorded.get(kind);
        let before: f64 = before
            .with_context(|| format!("no {kind} in {RECORD}"))?
            .parse()?;
        let ratio = *count as f64 / before;
        kept &= promise(
            ratio <= TOLERANCE,
            format_args!(
                "{kind}: {count} instructions, {ratio:.2} of {before}, {TOLERANCE} at most"
            ),
        );
    }
    Ok(kept)
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
            "messages",
        ])
        .args(["--profile", or_dev("bench"), "--message-format", "json"])
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "the benchmark can't be built");
    let lines = output.stdout.split(|byte| *byte == b'\n');
    let mut messages = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let program = messages.find_map(|message| {
        let is_it = message["target"]["name"] == "messages";
        is_it.then(|| message["executable"].as_str().map(PathBuf::from))?
    });
    program.context("cargo doesn't say where the benchmark is")
}

/// Returns the number of instructions for this many messages of a kind.
fn count(program: &Path, kind: &str, times: u64) -> anyhow::Result<u64> {
    let output = valgrind()
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["--repeat", kind, &times.to_string()])
        .output()?;
    let log = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{kind}: {log}");
    let collected = log.lines().find_map(|line| line.split_once("Collected : "));
    let (_, count) = collected.with_context(|| format!("no count in: {log}"))?;
    Ok(count.trim().parse()?)
}

#[expect(clippy::disallowed_methods, reason = "valgrind is no script")]
fn valgrind() -> Command {
    Command::new("valgrind")
}
