//! Sessions of an older revision, more and more of them open.

use std::time::Instant;

use anyhow::Context as _;

use crate::bench::findings::{Findings, Growth, Table};
use crate::bench::lab::{Lab, SCRIPTS, Way};
use crate::bench::sample::{Sample, Spread};
use crate::process;
use crate::request::Request;

const NUMBERS: [usize; 4] = [10, 100, 1_000, 10_000];

/// Maximum ratio of the cost of a list with the most sessions to that with the fewest.
const MAX_RATIO: f64 = 1.1;

pub(super) async fn run(lab: &Lab, findings: &mut Findings) -> anyhow::Result<()> {
    let mut subject = lab.mcpd(Way::Http, &[]).await?;
    let process = subject.process().context("a process")?;
    let list = Request::list(SCRIPTS.len());
    let mut client = subject.connect().await?;
    client.open_session().await?;
    let before = process::status(process, "VmRSS")?;
    let mut table = Table::new([
        "sessions",
        "opening one, µs",
        "server's CPU for a list, µs",
        "memory of each, kB",
    ]);
    const PANEL: &str = "µs, by sessions";
    let mut opening = Growth::new(PANEL, "opening one");
    let mut listing = Growth::new(PANEL, "CPU for a list");
    let mut all = Vec::new();
    let mut open = 1;
    for number in NUMBERS.map(|number| lab.options.number(number)) {
        let mut took = Vec::new();
        while open < number {
            let begun = Instant::now();
            client.open_session().await?;
            took.push(begun.elapsed().as_secs_f64() * 1e6);
            open += 1;
        }
        let memory = process::status(process, "VmRSS")?.saturating_sub(before);
        let mut samples = Vec::new();
        for _ in 0..lab.options.rounds() {
            samples.push(subject.load(&list, 8, lab.options.time()).await?);
        }
        let took = Spread::of(took);
        let cpu = Spread::over(&samples, Sample::cpu);
        opening.add(number, took);
        listing.add(number, cpu);
        table.row([
            number.to_string(),
            took.to_string(),
            cpu.to_string(),
            format!("{:.1}", memory as f64 * 1.024 / number as f64),
        ]);
        all.push(samples);
    }
    if let [fewest, .., most] = all.as_slice() {
        let ratio = Spread::ratio(most, fewest, Sample::cpu);
        findings.at_most("CPU for a list, 10 000 sessions / 10", MAX_RATIO, "", ratio);
    }
    findings.growths.extend([opening, listing]);
    findings.table("growth-sessions", table);
    Ok(())
}
