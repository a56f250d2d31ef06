//! Built-in tool of the server: alone, and while scripts run.

use serde_json::json;
use tokio::time::timeout;
use tokio::try_join;

use crate::bench::findings::{Findings, Table};
use crate::bench::lab::{Lab, SCRIPTS, Way};
use crate::bench::lineup::Lineup;
use crate::bench::sample::{Sample, Spread};
use crate::bench::subject::{ANSWER_TIMEOUT, Subject};
use crate::request::Request;

const CONCURRENCY: usize = 64;

/// Maximum processor time of a call, in µs.
const MAX_CPU: [(Way, f64); 2] = [(Way::Http, 22.0), (Way::Stdio, 8.0)];

/// Maximum median and 99th percentile of the latency while scripts run, in µs.
const MAX_MEDIAN: f64 = 100.0;
const MAX_P99: f64 = 3000.0;

pub(crate) async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let mut findings = Findings::default();
    let mut lineup = Lineup::new(&lab.options);
    for (way, _) in MAX_CPU {
        lineup.add(format!("mcpd {way}"), lab.mcpd(way, &["--kit"]).await?);
    }
    let samples = lineup.load(&kit_state(), CONCURRENCY).await?;
    let mut table = Table::new(["", "calls a second", "server's CPU, µs"]);
    for (way, bar) in MAX_CPU {
        let name = format!("mcpd {way}");
        let cpu = samples.figure(&name, Sample::cpu)?;
        table.row([
            name.clone(),
            samples.figure(&name, Sample::rate)?.to_string(),
            cpu.to_string(),
        ]);
        let what = format!("CPU of a call of a function, {way}, {CONCURRENCY} at a time");
        findings.at_most(what, bar, "µs", cpu);
    }
    findings.table("native", table);
    meanwhile(lab, &mut findings).await?;
    Ok(findings)
}

/// Returns a call of a built-in tool that does next to nothing.
fn kit_state() -> Request {
    Request::call("kit/state", &json!({}), None)
}

/// Measures single calls during many greetings.
async fn meanwhile(lab: &Lab, findings: &mut Findings) -> anyhow::Result<()> {
    let echo = Request::call("echo", &json!({"text": "Hello"}), Some("Hello".to_owned()));
    let mut subjects = [
        (
            "mcpd",
            lab.mcpd(Way::Http, &["--kit"]).await?,
            kit_state(),
            Vec::new(),
        ),
        (
            "rmcp",
            lab.rmcp(Way::Http, SCRIPTS.len()).await?,
            echo,
            Vec::new(),
        ),
    ];
    for _ in 0..lab.options.rounds() {
        for (_, subject, request, samples) in &mut subjects {
            samples.push(both(lab, subject, request).await?);
        }
        subjects.reverse();
    }
    subjects.sort_by_key(|(name, ..)| *name);
    let mut table = Table::new([
        "",
        "median, µs",
        "99 %, µs",
        "calls a second",
        "greetings a second",
    ]);
    for (name, _, _, samples) in subjects {
        let figure =
            |figure: &dyn Fn(&(Sample, Sample)) -> f64| Spread::of(samples.iter().map(figure));
        let median = figure(&|(call, _)| call.within(0.5));
        let most = figure(&|(call, _)| call.within(0.99));
        table.row([
            name.to_owned(),
            median.to_string(),
            most.to_string(),
            figure(&|(call, _)| call.rate()).to_string(),
            figure(&|(_, greeting)| greeting.rate()).to_string(),
        ]);
        if name == "mcpd" {
            let what = "call of a function while 64 scripts run";
            findings.at_most(format!("{what}: median"), MAX_MEDIAN, "µs", median);
            findings.at_most(format!("{what}: 99 %"), MAX_P99, "µs", most);
        }
    }
    findings.table("meanwhile", table);
    Ok(())
}

async fn both(lab: &Lab, subject: &Subject, request: &Request) -> anyhow::Result<(Sample, Sample)> {
    let (greet, time) = (Request::greet(), lab.options.time());
    let calls = subject.load_http(request, 1, time);
    let greetings = subject.load_http(&greet, CONCURRENCY, time);
    let both = timeout(ANSWER_TIMEOUT, async { try_join!(calls, greetings) });
    both.await?
}
