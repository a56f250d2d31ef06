//! Work of a call by thread, beside the floor: system calls, turns of the processor and page
//! faults, counted by `perf`. Counting slows what it counts, so there are no times.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::time::sleep;

use crate::bench::findings::{Findings, Table};
use crate::bench::lab::{CONCURRENCIES, Lab, Way};
use crate::bench::subject::Subject;
use crate::report::line;
use crate::request::Request;

/// Events of `perf` that are counted.
const EVENTS: [&str; 3] = [
    "raw_syscalls:sys_enter",
    "sched:sched_switch",
    "minor-faults",
];
/// Numbers of events by thread.
type Threads = BTreeMap<String, [f64; EVENTS.len()]>;

/// Interval at which `perf` is looked at until it counts.
const ATTACHING: Duration = Duration::from_millis(200);
/// Rarer than this in a call, a thread has no row.
const MIN_COUNT: f64 = 0.1;

pub(crate) async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let mut findings = Findings::default();
    if let Err(error) = try_perf().await {
        line(format_args!("*** STAGES ARE LEFT OUT: {error:#}"));
        return Ok(findings);
    }
    let mut table = Table::new([
        "at a time",
        "server",
        "thread",
        "system calls",
        "turns",
        "page faults",
    ]);
    for at_once in CONCURRENCIES {
        for way in [Way::Http, Way::Stdio] {
            let mcpd = lab.mcpd(way, &["--sandbox", "none"]).await?;
            let floor = lab.floor(way).await?;
            for (name, mut subject) in [("mcpd", mcpd), ("floor", floor)] {
                let mut counted = count(lab, &mut subject, at_once).await;
                if counted.is_err() {
                    // Now and then `perf` ends before it has written what it has counted.
                    counted = count(lab, &mut subject, at_once).await;
                }
                for (thread, counts) in counted.with_context(|| format!("{name} {way}"))? {
                    let counts = counts.map(|count| format!("{count:.1}"));
                    let names = [at_once.to_string(), format!("{name} {way}"), thread];
                    table.row(names.into_iter().chain(counts));
                }
            }
        }
    }
    findings.table("stages", table);
    Ok(findings)
}

/// Checks that `perf` can count the events.
async fn try_perf() -> anyhow::Result<()> {
    let events = EVENTS.join(",");
    let mut perf = Command::new("perf");
    perf.args(["stat", "-e", &events, "true"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let output = perf.output().await.context("start `perf`")?;
    let text = String::from_utf8_lossy(&output.stderr);
    let is_counted = output.status.success() && !text.contains("<not");
    ensure!(is_counted, "`perf` can't count {events} here");
    Ok(())
}

/// Counts the events of greetings by thread, for one call.
async fn count(lab: &Lab, subject: &mut Subject, at_once: usize) -> anyhow::Result<Threads> {
    let greet = Request::greet();
    // Before anything is counted, threads are started and connections made.
    let time = lab.options.time();
    subject.load(&greet, at_once, time).await?;
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("events");
    let process = subject.process().context("a process")?;
    let mut perf = record(process, &file)?;
    // Its file has a beginning once it counts.
    while file.metadata().map_or(0, |file| file.len()) == 0 && perf.try_wait()?.is_none() {
        sleep(ATTACHING).await;
    }
    sleep(ATTACHING).await;
    // The calls that are open at the end are counted by `perf` alone, so they must be few.
    let sample = subject.load(&greet, at_once, 3 * time).await?;
    let id = Pid::from_raw(perf.id().context("perf has ended")?.try_into()?);
    kill_process(id.context("an id")?, Signal::INT)?;
    // It ends by that signal.
    perf.wait().await?;
    let calls = sample.latency.count() as f64;
    let mut threads = events_by_thread(&file).await?;
    for count in threads.values_mut().flatten() {
        *count /= calls;
    }
    threads.retain(|_, counts| counts.iter().any(|count| *count >= MIN_COUNT));
    Ok(threads)
}

/// Records every event of a process and of the processes that it starts from now on.
fn record(process: u32, file: &Path) -> anyhow::Result<Child> {
    let mut perf = Command::new("perf");
    perf.args([
        "record",
        "-q",
        "-c",
        "1",
        "-m",
        "4096",
        "-e",
        &EVENTS.join(","),
    ])
    .args(["-p", &process.to_string(), "-o"])
    .arg(file)
    .stdout(Stdio::null())
    .stderr(Stdio::null())
    .kill_on_drop(true);
    Ok(perf.spawn()?)
}

/// Returns the numbers of recorded events by thread.
async fn events_by_thread(file: &Path) -> anyhow::Result<Threads> {
    let mut perf = Command::new("perf");
    perf.args(["script", "-F", "comm,event", "-i"]).arg(file);
    let output = perf.output().await?;
    let records = String::from_utf8_lossy(&output.stdout);
    let mut threads = Threads::new();
    for record in records.lines() {
        let (thread, event) = record.trim().rsplit_once(' ').unwrap_or_default();
        let event = event.trim_end_matches(':');
        if let Some(column) = EVENTS.iter().position(|known| *known == event) {
            threads.entry(role(thread.trim())).or_default()[column] += 1.0;
        }
    }
    ensure!(!threads.is_empty(), "`perf script`: {}", text(&output));
    Ok(threads)
}

/// Returns how a program ended, and what it complained of.
fn text(output: &Output) -> String {
    let complaint = String::from_utf8_lossy(&output.stderr);
    format!("{}: {}", output.status, complaint.trim_end())
}

/// Returns what a thread does. A child has the name of its parent until it runs its program.
fn role(thread: &str) -> String {
    let role = match thread {
        "greet" => "the script itself",
        "tokio-rt-worker" | "mcpd" => "async worker",
        "mcpd-audit" => "writer of the audit log",
        "mcpd-stdin" => "reader of lines",
        "mcpd-stdout" => "writer of lines",
        "floor-peer" => "starter, and its child",
        thread if thread.starts_with("mcpd-spawn") => "starter, and its child",
        other => other,
    };
    role.to_owned()
}
