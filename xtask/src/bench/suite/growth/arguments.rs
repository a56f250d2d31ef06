//! Calls with increasing arguments.

use serde_json::json;

use crate::bench::findings::{Findings, Growth, Table};
use crate::bench::lab::Lab;
use crate::bench::sample::{Sample, Spread, number};
use crate::request::Request;
use crate::server::Home;

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

/// Required rate of the longest, in MB a second.
const MIN_RATE: f64 = 500.0;

pub(super) async fn run(lab: &Lab, findings: &mut Findings) -> anyhow::Result<()> {
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
    let mut growth = Growth::new("a call, ms, by bytes of arguments", "over HTTP");
    let median = |sample: &Sample| sample.within(0.5) / 1e3;
    for (length, samples) in &samples {
        let took = Spread::over(samples, median);
        growth.add(*length, took);
        let length = *length as f64;
        let rate = Spread::over(samples, |sample| length / 1e3 / median(sample));
        table.row([
            format!("{} kB", number(length / 1e3)),
            took.to_string(),
            rate.to_string(),
        ]);
        if length >= 1e7 {
            findings.at_least("arguments of 10 MB, MB a second", MIN_RATE, rate);
        }
    }
    findings.growths.push(growth);
    for (what, longer, shorter) in [("100 kB / 1 kB", 1, 0), ("10 MB / 100 kB", 2, 1)] {
        let ratio = Spread::ratio(&samples[longer].1, &samples[shorter].1, median);
        findings.at_most(format!("time for arguments of {what}"), 100.0, "", ratio);
    }
    findings.table("growth-arguments", table);
    Ok(())
}
