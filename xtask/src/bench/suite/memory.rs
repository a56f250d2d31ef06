//! Memory: idle, busy, and with many connections.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::bench::findings::{Findings, Table};
use crate::bench::lab::{Lab, SCRIPTS, Way};
use crate::bench::sample::Spread;
use crate::process;
use crate::report::line;
use crate::request::{Checker, Request};

const CONNECTIONS: usize = 10_000;

/// Time after which a server has returned the memory that only its start needs.
const START_TIME: Duration = Duration::from_secs(1);

/// Memory limits: idle and busy in MB, and per connection in kB.
const MAX_IDLE: f64 = 8.0;
const MAX_BUSY: f64 = 16.0;
const MAX_CONNECTION: f64 = 20.0;

pub(crate) async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let connections = raise_limit(lab.options.number(CONNECTIONS))?;
    let mut figures = [const { Vec::new() }; 6];
    for _ in 0..lab.options.rounds() {
        let [http, stdio] = [
            of_a_server(lab, Way::Http).await?,
            of_a_server(lab, Way::Stdio).await?,
        ];
        let each = of_a_connection(lab, connections).await?;
        let measured = [http.0, stdio.0, http.1, http.2, stdio.2, each];
        for (figures, measured) in figures.iter_mut().zip(measured) {
            figures.push(measured);
        }
    }
    let [idle, idle_stdio, second, busy, busy_stdio, each] = figures.map(Spread::of);
    let mut table = Table::new(["", "HTTP", "stdio"]);
    table.row([
        "idle, MB".to_owned(),
        idle.to_string(),
        idle_stdio.to_string(),
    ]);
    table.row([
        "its second process, MB".to_owned(),
        second.to_string(),
        String::new(),
    ]);
    table.row([
        "the peak with 64 greetings at a time, MB".to_owned(),
        busy.to_string(),
        busy_stdio.to_string(),
    ]);
    table.row([
        format!("each of {connections} idle connections, kB"),
        each.to_string(),
        String::new(),
    ]);
    let mut findings = Findings::default();
    findings.table("memory", table);
    for (way, idle, busy) in [
        (Way::Http, idle, busy),
        (Way::Stdio, idle_stdio, busy_stdio),
    ] {
        findings.at_most(format!("memory, idle, {way}"), MAX_IDLE, "MB", idle);
        findings.at_most(
            format!("memory, 64 greetings at a time, {way}"),
            MAX_BUSY,
            "MB",
            busy,
        );
    }
    let what = format!("memory, each of {connections} idle connections");
    findings.at_most(what, MAX_CONNECTION, "kB", each);
    Ok(findings)
}

/// Returns the memory of a server that has answered once, that of its second process, and its peak
/// when busy, in MB.
async fn of_a_server(lab: &Lab, way: Way) -> anyhow::Result<(f64, f64, f64)> {
    let mut subject = lab.mcpd(way, &[]).await?;
    subject.exchange(&Request::list(SCRIPTS.len())).await?;
    let process = subject.process().context("a process")?;
    tokio::time::sleep(START_TIME).await;
    let idle = process::status(process, "VmRSS")?;
    let second = match process::children(process)?.first() {
        Some(child) => process::status(*child, "VmRSS")?,
        None => 0,
    };
    subject
        .load(&Request::greet(), 64, lab.options.time())
        .await?;
    let busy = process::status(process, "VmHWM")?;
    Ok((megabytes(idle), megabytes(second), megabytes(busy)))
}

/// Returns the memory of a connection that was used once, in kB.
async fn of_a_connection(lab: &Lab, connections: usize) -> anyhow::Result<f64> {
    let subject = lab.mcpd(Way::Http, &[]).await?;
    let process = subject.process().context("a process")?;
    let list = Request::list(SCRIPTS.len());
    let mut first = subject.connect().await?;
    let checker = Checker::learn(&list, &first.exchange(&list, Checker::FIRST).await?)?;
    let before = process::status(process, "VmRSS")?;
    let mut clients = Vec::new();
    for number in 0..connections as u64 {
        let mut client = subject.connect().await?;
        checker.check(number, &client.exchange(&list, number).await?)?;
        clients.push(client);
    }
    let open = fs::read_dir(format!("/proc/{process}/fd"))?.count();
    ensure!(open > connections, "the server has only {open} descriptors");
    let after = process::status(process, "VmRSS")?;
    Ok(after.saturating_sub(before) as f64 * 1.024 / connections as f64)
}

/// Raises the limit of open files, also for servers started from here on. Returns the number of
/// connections that it permits.
fn raise_limit(connections: usize) -> anyhow::Result<usize> {
    const OTHERS: usize = 200;
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, raised)?;
    let most = limit.maximum.map_or(Ok(usize::MAX), usize::try_from)?;
    let possible = connections.min(most.saturating_sub(OTHERS));
    if possible < connections {
        line(format_args!(
            "*** ONLY {possible} CONNECTIONS: the limit of open files is {most}"
        ));
    }
    Ok(possible)
}

/// Converts KiB to MB.
fn megabytes(memory: u64) -> f64 {
    memory as f64 * 1024.0 / 1e6
}
