//! Built-in tool of the server: alone, and while scripts run.

use serde_json::json;
use tokio::time::timeout;
use tokio::try_join;

use crate::bench::findings::{Findings, Table};
use crate::bench::lab::{Lab, SCRIPTS, Way};
use crate::bench::sample::{Sample, Spread};
use crate::bench::subject::{ANSWER_TIMEOUT, Subject};
use crate::request::Request;

const CONCURRENCY: usize = 64;

/// Maximum ratio of the processor time of a call over HTTP to that of a list of bare hyper.
const MAX_CPU_RATIO: f64 = 1.5;

/// Maximum ratio of the latency while scripts run to that of the least server.
const MAX_LATENCY_RATIO: f64 = 1.2;

pub(crate) async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let mut findings = Findings::default();
    alone(lab, &mut findings).await?;
    meanwhile(lab, &mut findings).await?;
    Ok(findings)
}

/// Measures calls without another load, beside lists of bare hyper.
async fn alone(lab: &Lab, findings: &mut Findings) -> anyhow::Result<()> {
    let list = Request::list(SCRIPTS.len());
    let http = lab.mcpd(Way::Http, &["--kit"]).await?;
    let hyper = lab
        .hyper(&mut lab.mcpd(Way::Http, &[]).await?, &list)
        .await?;
    let stdio = lab.mcpd(Way::Stdio, &["--kit"]).await?;
    let mut subjects = [
        ("mcpd HTTP", http, kit_state(), Vec::new()),
        ("a list of hyper", hyper, list, Vec::new()),
        ("mcpd stdio", stdio, kit_state(), Vec::new()),
    ];
    for _ in 0..lab.options.rounds() {
        for (_, subject, request, samples) in &mut subjects {
            let load = subject.load(request, CONCURRENCY, lab.options.time());
            samples.push(load.await?);
        }
    }
    let mut table = Table::new(["", "calls a second", "server's CPU, µs"]);
    for (name, _, _, samples) in &subjects {
        table.row([
            (*name).to_owned(),
            Spread::over(samples, Sample::rate).to_string(),
            Spread::over(samples, Sample::cpu).to_string(),
        ]);
    }
    findings.table("native", table);
    let [(.., call), (.., list), _] = &subjects;
    let ratio = Spread::ratio(call, list, Sample::cpu);
    let what = format!("CPU of a call of a function / a list of hyper, {CONCURRENCY} at a time");
    findings.at_most(what, MAX_CPU_RATIO, "", ratio);
    Ok(())
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
            "floor",
            lab.floor(Way::Http).await?,
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
    }
    let mut table = Table::new([
        "",
        "median, µs",
        "99 %, µs",
        "calls a second",
        "greetings a second",
    ]);
    for (name, _, _, samples) in &subjects {
        let figure =
            |figure: &dyn Fn(&(Sample, Sample)) -> f64| Spread::of(samples.iter().map(figure));
        table.row([
            (*name).to_owned(),
            figure(&|(call, _)| call.within(0.5)).to_string(),
            figure(&|(call, _)| call.within(0.99)).to_string(),
            figure(&|(call, _)| call.rate()).to_string(),
            figure(&|(_, greeting)| greeting.rate()).to_string(),
        ]);
    }
    findings.table("meanwhile", table);
    let calls = subjects.map(|(.., samples)| {
        let calls = samples.into_iter().map(|(call, _)| call);
        calls.collect::<Vec<_>>()
    });
    let [mcpd, floor, _] = &calls;
    for (share, name) in [(0.5, "median"), (0.99, "99 %")] {
        let ratio = Spread::ratio(mcpd, floor, |call| call.within(share));
        let what = format!("call of a function while 64 scripts run / floor: {name}");
        findings.at_most(what, MAX_LATENCY_RATIO, "", ratio);
    }
    Ok(())
}

async fn both(lab: &Lab, subject: &Subject, request: &Request) -> anyhow::Result<(Sample, Sample)> {
    let (greet, time) = (Request::greet(), lab.options.time());
    let calls = subject.load_http(request, 1, time);
    let greetings = subject.load_http(&greet, CONCURRENCY, time);
    let both = timeout(ANSWER_TIMEOUT, async { try_join!(calls, greetings) });
    both.await?
}
