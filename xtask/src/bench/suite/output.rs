//! Script that prints 100 MB, of which the result has the first part.

use std::fs;
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use serde_json::json;
use tokio::process::Command;
use tokio::time::timeout;

use crate::bench::findings::{Findings, Table};
use crate::bench::lab::{Lab, SCRIPTS, Way};
use crate::bench::sample::Spread;
use crate::bench::subject::{ANSWER_TIMEOUT, Subject};
use crate::process;
use crate::request::Request;
use crate::server::Home;

/// Size of the output, in bytes.
const OUTPUT: usize = 100_000_000;

/// Maximum duration relative to `cat` into `wc -c`.
const MAX_RATIO: f64 = 1.5;

/// Maximum growth of memory, in MB.
const MAX_GROWTH: f64 = 4.0;

pub(crate) async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let home = Home::new(&SCRIPTS, "")?;
    for home in [&home, lab.home()] {
        fs::write(home.path().join("blob"), "x".repeat(OUTPUT))?;
    }
    let file = lab.home().path().join("blob");
    let pipeline = format!("cat '{}' | wc -c", file.display());
    let mcpd = lab.http(home, &["--sandbox", "none"]).await?;
    let rmcp = lab.rmcp(Way::Http, SCRIPTS.len()).await?;
    let mut subjects = [("mcpd", mcpd, Vec::new()), ("rmcp", rmcp, Vec::new())];
    let mut counts = Vec::new();
    for _ in 0..lab.options.rounds() {
        let counted = count(&pipeline).await?;
        counts.push(counted);
        for (_, subject, figures) in &mut subjects {
            let (took, growth) = call(subject).await?;
            figures.push((took, took / counted, growth));
        }
        subjects.reverse();
    }
    subjects.sort_by_key(|(name, ..)| *name);
    fs::remove_file(file)?;
    let mut findings = Findings::default();
    let mut table = Table::new(["", "seconds", "/ `cat` into `wc -c`", "memory grows by, MB"]);
    for (name, _, figures) in subjects {
        let took = Spread::of(figures.iter().map(|(took, ..)| *took));
        let ratio = Spread::of(figures.iter().map(|(_, ratio, _)| *ratio));
        let growth = Spread::of(figures.iter().map(|(.., growth)| *growth));
        table.row([
            name.to_owned(),
            took.to_string(),
            ratio.to_string(),
            growth.to_string(),
        ]);
        if name == "mcpd" {
            findings.at_most(
                "100 MB of output / `cat` into `wc -c`",
                MAX_RATIO,
                "",
                ratio,
            );
            findings.at_most(
                "100 MB of output: growth of memory",
                MAX_GROWTH,
                "MB",
                growth,
            );
        }
    }
    table.row([
        "`cat` into `wc -c`".to_owned(),
        Spread::of(counts).to_string(),
        String::new(),
        String::new(),
    ]);
    findings.table("output", table);
    Ok(findings)
}

/// Returns the duration of a call in seconds, and the growth of its server's memory in MB.
async fn call(subject: &mut Subject) -> anyhow::Result<(f64, f64)> {
    let process = subject.process().context("a process")?;
    process::forget_peak(process)?;
    let before = process::status(process, "VmRSS")?;
    let begun = Instant::now();
    let answer = subject
        .exchange(&Request::call("blob", &json!({}), None))
        .await?;
    let took = begun.elapsed().as_secs_f64();
    let growth = process::status(process, "VmHWM")?.saturating_sub(before);
    let text = memchr::memmem::find(&answer, &[b'x'; 1000]);
    text.context("the answer is another")?;
    Ok((took, growth as f64 * 1024.0 / 1e6))
}

/// Returns the time to count the bytes, in seconds.
async fn count(pipeline: &str) -> anyhow::Result<f64> {
    let begun = Instant::now();
    let mut command = Command::new("sh");
    command
        .args(["-c", pipeline])
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = timeout(ANSWER_TIMEOUT, command.output()).await??;
    let took = begun.elapsed().as_secs_f64();
    ensure!(
        output.stdout.trim_ascii() == OUTPUT.to_string().as_bytes(),
        "{output:?}"
    );
    Ok(took)
}
