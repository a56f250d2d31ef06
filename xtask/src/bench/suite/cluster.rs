//! Script calls through a front and a worker of a cluster, beside those of one server: what the way
//! over NATS adds. Also what a cluster costs while it is idle, and mcpd without any.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use elf::ElfBytes;
use elf::abi::PT_LOAD;
use elf::endian::AnyEndian;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::bench::findings::{Findings, Table};
use crate::bench::lab::{CONCURRENCIES, Lab, SCRIPTS, Way};
use crate::bench::lineup::{Lineup, Samples};
use crate::bench::sample::{Sample, Spread};
use crate::bench::subject::Subject;
use crate::process;
use crate::request::Request;
use crate::server::Home;

use super::rates::Rates;

const LOCAL: &str = "mcpd HTTP";
const CLUSTER: &str = "mcpd cluster";
const WITHOUT: &str = "mcpd HTTP, built without the feature";
const NATS: &str = "NATS round trip";

/// Required rates relative to one server, by the number at a time.
const MIN_RATES: [(usize, f64); 2] = [(8, 0.75), (64, 0.85)];
/// Maximum time added to the median, in round trips of NATS.
const MAX_ADDED_MEDIAN: f64 = 3.0;
/// Maximum processor time added, relative to that of the greeting.
const MAX_ADDED_CPU: f64 = 0.35;
/// Size of the output that is fetched, in bytes, and the maximum duration relative to its run.
const OUTPUT: usize = 10_000_000;
const MAX_FETCH: f64 = 2.0;
/// Maximum size that the feature adds to the program, in MB.
const MAX_ADDED_SIZE: f64 = 4.0;
/// Required rate without a cluster, relative to a program without the feature.
const MIN_RATE_WITHOUT: f64 = 0.95;
/// Time for which idle processes are watched.
const IDLE_TIME: Duration = Duration::from_secs(5);

pub(crate) async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    // Before anything runs, as it replaces the program for a while.
    let without = lab.build_without_cluster()?;
    let home = Home::new(&SCRIPTS, "")?;
    fs::write(home.path().join("blob"), "x".repeat(OUTPUT))?;
    let cluster = lab.cluster(home, SCRIPTS.len()).await?;
    let round_trips = cluster.round_trips().await?;
    let processes = cluster.processes();
    let mut cluster = Subject::Cluster(Box::new(cluster));
    let mut findings = Findings::default();
    let mut costs = Table::new(["", "measured"]);
    fetch_output(lab, &mut cluster, &mut findings, &mut costs).await?;
    weigh(lab, &without, &mut findings, &mut costs)?;
    let mut lineup = Lineup::new(&lab.options);
    lineup.add(LOCAL, lab.mcpd(Way::Http, &[]).await?);
    lineup.add(CLUSTER, cluster);
    lineup.add(WITHOUT, lab.start_other(&without).await?);
    lineup.add(NATS, Subject::RoundTrips(round_trips));
    let mut table = Table::new([
        "at a time",
        "rate / one server",
        "median added, µs",
        "in round trips of NATS",
        "processor time added, µs",
        "/ that of a greeting",
        "rate of one server / without the feature",
    ]);
    let mut rates = Rates::new("cluster");
    for at_once in CONCURRENCIES {
        let samples = lineup.load(&Request::greet(), at_once).await?;
        table.row(compare(&mut findings, &samples, at_once)?);
        rates.add(at_once, &samples);
    }
    findings.table("cluster", table);
    rates.report("cluster-rates", &mut findings);
    watch_idle(lab, &processes, &mut costs).await?;
    findings.table("cluster-costs", costs);
    // A run of this suite alone does not write the table of all bars.
    findings.table("cluster-bars", findings.bars());
    Ok(findings)
}

/// Compares the subjects at a concurrency. Returns the cells of its row.
fn compare(
    findings: &mut Findings,
    samples: &Samples,
    at_once: usize,
) -> anyhow::Result<Vec<String>> {
    let rate = samples.ratio(CLUSTER, LOCAL, Sample::rate)?;
    let median = |sample: &Sample| sample.within(0.5);
    let added = samples.compare([CLUSTER, LOCAL], |[there, here]| {
        median(there) - median(here)
    })?;
    let round_trips = samples.compare([CLUSTER, LOCAL, NATS], |[there, here, nats]| {
        (median(there) - median(here)) / median(nats)
    })?;
    let cpu = samples.compare([CLUSTER, LOCAL], |[there, here]| there.cpu() - here.cpu())?;
    let share = samples.compare([CLUSTER, LOCAL], |[there, here]| {
        (there.cpu() - here.cpu()) / here.cpu_with_scripts()
    })?;
    let alone = samples.ratio(LOCAL, WITHOUT, Sample::rate)?;
    if let Some((_, bar)) = MIN_RATES.iter().find(|(required, _)| *required == at_once) {
        let what = format!("cluster, greet / one server, {at_once} at a time");
        findings.at_least(what, *bar, rate);
        let what = format!("cluster, processor time added / greet, {at_once} at a time");
        findings.at_most(what, MAX_ADDED_CPU, "", share);
        let what = format!("no cluster, greet / without the feature, {at_once} at a time");
        findings.at_least(what, MIN_RATE_WITHOUT, alone);
    } else {
        let what = "cluster, median added / round trip of NATS, 1 at a time";
        findings.at_most(what, MAX_ADDED_MEDIAN, "", round_trips);
    }
    let figures = [rate, added, round_trips, cpu, share, alone];
    let cells = figures.iter().map(ToString::to_string);
    Ok([at_once.to_string()].into_iter().chain(cells).collect())
}

/// Measures how long an output that its worker has kept takes to fetch, beside its run.
async fn fetch_output(
    lab: &Lab,
    cluster: &mut Subject,
    findings: &mut Findings,
    costs: &mut Table,
) -> anyhow::Result<()> {
    let mut figures = Vec::new();
    for _ in 0..lab.options.rounds() {
        let begun = Instant::now();
        let answer = cluster
            .exchange(&Request::call("blob", &json!({}), None))
            .await?;
        let run = begun.elapsed();
        let answer: Value = serde_json::from_slice(&answer)?;
        let content = answer["result"]["content"].as_array();
        let mut links = content.into_iter().flatten();
        let uri = links.find_map(|block| block["uri"].as_str());
        let uri = uri.context("the result has no link to its output")?;
        let begun = Instant::now();
        let answer = cluster.exchange(&Request::read(uri)).await?;
        let fetch = begun.elapsed();
        let answer: Value = serde_json::from_slice(&answer)?;
        let text = answer["result"]["contents"][0]["text"].as_str();
        ensure!(
            text.is_some_and(|text| text.len() == OUTPUT && text.bytes().all(|byte| byte == b'x')),
            "the output is another"
        );
        figures.push([run, fetch].map(|time| time.as_secs_f64() * 1e3));
    }
    let run = Spread::of(figures.iter().map(|[run, _]| *run));
    let fetch = Spread::of(figures.iter().map(|[_, fetch]| *fetch));
    costs.row(["run with 10 MB of output, ms".to_owned(), run.to_string()]);
    costs.row(["fetch of the 10 MB, ms".to_owned(), fetch.to_string()]);
    let ratio = Spread::of(figures.iter().map(|[run, fetch]| fetch / run));
    findings.at_most("cluster, fetch of 10 MB / its run", MAX_FETCH, "", ratio);
    Ok(())
}

/// Measures the processor time of idle processes.
async fn watch_idle(lab: &Lab, processes: &[u32], costs: &mut Table) -> anyhow::Result<()> {
    let time = IDLE_TIME.min(10 * lab.options.time());
    let local = lab.mcpd(Way::Http, &[]).await?;
    let local = local.process().context("a process")?;
    let names = ["front", "worker", "NATS server", "one server"];
    let mut watched = Vec::new();
    for (name, process) in names.iter().zip(processes.iter().chain([&local])) {
        watched.push((name, *process, process::cpu(*process)?));
    }
    sleep(time).await;
    for (name, process, before) in watched {
        let spent = process::cpu(process)?.saturating_sub(before);
        let share = spent.as_secs_f64() / time.as_secs_f64() * 100.0;
        costs.row([format!("idle {name}, % of a core"), format!("{share:.2}")]);
    }
    Ok(())
}

/// Compares the sizes of the program with and without the feature.
fn weigh(
    lab: &Lab,
    without: &Path,
    findings: &mut Findings,
    costs: &mut Table,
) -> anyhow::Result<()> {
    let [with, without] = [loaded_size(&lab.program())?, loaded_size(without)?];
    costs.row(["program, MB".to_owned(), format!("{with:.1}")]);
    let text = format!("{without:.1}");
    costs.row(["program without the feature, MB".to_owned(), text]);
    let added = Spread::of([with - without]);
    findings.at_most("cluster, added to the program", MAX_ADDED_SIZE, "MB", added);
    Ok(())
}

/// Returns the size of the loaded part of a program in MB: not all profiles strip symbols.
fn loaded_size(program: &Path) -> anyhow::Result<f64> {
    let bytes = fs::read(program)?;
    let elf = ElfBytes::<AnyEndian>::minimal_parse(&bytes)?;
    let segments = elf.segments().context("no segments")?;
    let loaded = segments.iter().filter(|segment| segment.p_type == PT_LOAD);
    Ok(loaded.map(|segment| segment.p_filesz).sum::<u64>() as f64 / 1e6)
}
