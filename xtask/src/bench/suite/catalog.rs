//! Lists of a thousand tools.

use crate::bench::findings::{Findings, Table};
use crate::bench::lab::{Lab, Way, many};
use crate::bench::lineup::Lineup;
use crate::bench::sample::Sample;
use crate::request::Request;

const CONCURRENCY: usize = 8;

/// Required ratios to rmcp: for lists, and for processor time.
const MIN_LIST_RATIO: f64 = 2.0;
const MAX_CPU_RATIO: f64 = 1.0 / 8.0;

pub(crate) async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let tools = lab.options.number(1000);
    let list = Request::list(tools);
    let mut lineup = Lineup::new(&lab.options);
    let mut sizes = Vec::new();
    for (name, mut subject) in [
        ("mcpd", lab.http(many(tools)?, &[]).await?),
        ("rmcp", lab.rmcp(Way::Http, tools).await?),
    ] {
        sizes.push((name, subject.exchange(&list).await?.len()));
        lineup.add(name, subject);
    }
    let samples = lineup.load(&list, CONCURRENCY).await?;
    let mut table = Table::new(["", "lists a second", "server's CPU, µs", "bytes"]);
    for (name, size) in sizes {
        table.row([
            name.to_owned(),
            samples.figure(name, Sample::rate)?.to_string(),
            samples.figure(name, Sample::cpu)?.to_string(),
            size.to_string(),
        ]);
    }
    let lists = samples.ratio("mcpd", "rmcp", Sample::rate)?;
    let cpu = samples.ratio("mcpd", "rmcp", Sample::cpu)?;
    table.row([
        "mcpd / rmcp".to_owned(),
        lists.to_string(),
        cpu.to_string(),
        String::new(),
    ]);
    let mut findings = Findings::default();
    findings.table("catalog", table);
    let what = format!("{tools} tools listed, HTTP / rmcp, {CONCURRENCY} at a time");
    findings.at_least(what.clone(), MIN_LIST_RATIO, lists);
    findings.at_most(format!("{what}: CPU"), MAX_CPU_RATIO, "", cpu);
    Ok(findings)
}
