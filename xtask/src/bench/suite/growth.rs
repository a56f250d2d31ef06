//! Cost of a call with an increasing number of tools, and with increasing arguments.

use serde_json::json;

use crate::bench::findings::{Findings, Table};
use crate::bench::lab::{Lab, many};
use crate::bench::lineup::Lineup;
use crate::bench::sample::{Sample, Spread, number};
use crate::request::Request;
use crate::server::Home;

const CONCURRENCY: usize = 8;

/// Script that prints the length of its text.
const MEASURE: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Says how long its input is."}'
  echo '{"text": {"description": "What is measured.", "required": true, "value_type": "string"}}' >&2
  exit 0
fi
wc -c
"#;

/// Lengths of arguments, in bytes.
const LENGTHS: [usize; 3] = [1_000, 100_000, 10_000_000];

/// Maximum ratio of the cost with the most tools to that with the fewest.
const MAX_RATIO: f64 = 1.1;

pub(crate) async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let mut findings = Findings::default();
    tools(lab, &mut findings).await?;
    arguments(lab, &mut findings).await?;
    Ok(findings)
}

async fn tools(lab: &Lab, findings: &mut Findings) -> anyhow::Result<()> {
    let numbers = [10, 1_000, 10_000].map(|tools| lab.options.number(tools));
    let mut lineup = Lineup::new(&lab.options);
    for number in numbers {
        let subject = lab.http(many(number)?, &["--enable", "runs"]).await?;
        lineup.add(format!("mcpd {number}"), subject);
    }
    let function = Request::call("runs_list", &json!({}), None);
    let mut table = Table::new([
        "server's CPU for a call, µs",
        "10 tools",
        "1 000",
        "10 000",
        "1 000 / 10",
        "10 000 / 10",
    ]);
    for (name, request) in [
        ("of a function", function),
        ("of a script", Request::greet()),
    ] {
        let samples = lineup.load(&request, CONCURRENCY).await?;
        let mut cells = vec![name.to_owned()];
        for number in numbers {
            let cpu = samples.figure(&format!("mcpd {number}"), Sample::cpu)?;
            cells.push(cpu.to_string());
        }
        for (label, number) in [("1 000", numbers[1]), ("10 000", numbers[2])] {
            let [more, fewest] = [number, numbers[0]].map(|number| format!("mcpd {number}"));
            let ratio = samples.ratio(&more, &fewest, Sample::cpu)?;
            cells.push(ratio.to_string());
            let what = format!("CPU for a call {name}, {label} tools / 10");
            findings.at_most(what, MAX_RATIO, "", ratio);
        }
        table.row(cells);
    }
    findings.table("growth-tools", table);
    Ok(())
}

async fn arguments(lab: &Lab, findings: &mut Findings) -> anyhow::Result<()> {
    let mut subject = lab
        .http(Home::new(&[("measure", MEASURE)], "")?, &[])
        .await?;
    let mut samples = LENGTHS.map(|length| (length, Vec::new()));
    for _ in 0..lab.options.rounds() {
        for (length, samples) in &mut samples {
            let arguments = json!({"text": "x".repeat(*length)});
            let text = arguments.to_string().len().to_string();
            let request = Request::call("measure", &arguments, Some(text));
            samples.push(subject.load(&request, 1, lab.options.time()).await?);
        }
        samples.reverse();
    }
    samples.sort_by_key(|(length, _)| *length);
    let mut table = Table::new(["arguments", "median, ms", "MB a second"]);
    let median = |sample: &Sample| sample.within(0.5) / 1e3;
    for (length, samples) in &samples {
        let length = *length as f64;
        table.row([
            format!("{} kB", number(length / 1e3)),
            Spread::over(samples, median).to_string(),
            Spread::over(samples, |sample| length / 1e3 / median(sample)).to_string(),
        ]);
    }
    for (what, longer, shorter) in [("100 kB / 1 kB", 1, 0), ("10 MB / 100 kB", 2, 1)] {
        let ratio = Spread::ratio(&samples[longer].1, &samples[shorter].1, median);
        findings.at_most(format!("time for arguments of {what}"), 100.0, "", ratio);
    }
    findings.table("growth-arguments", table);
    Ok(())
}
