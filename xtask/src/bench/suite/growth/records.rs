//! Audit logs with an increasing number of records, of calls of a function.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::json;
use tokio::process::Command;

use crate::bench::findings::{Findings, Growth, Table};
use crate::bench::lab::{Lab, SCRIPTS};
use crate::bench::pipes::Pipes;
use crate::bench::sample::Spread;
use crate::request::Request;
use crate::server::{Home, as_user};

const NUMBERS: [usize; 3] = [10_000, 100_000, 1_000_000];

/// Required rate at which the longest is read, in MB a second.
const MIN_RATE: f64 = 500.0;

/// Commands that read all of a log, or its end.
const COMMANDS: [(&str, &[&str]); 3] = [
    ("verify", &["verify"]),
    ("grep", &["grep", "a text in no record"]),
    ("tail", &["tail"]),
];

pub(super) async fn run(lab: &Lab, findings: &mut Findings) -> anyhow::Result<()> {
    let configuration = "[audit]\npath = \"state/audit.jsonl\"\nmax_size = \"2 GiB\"\n";
    let home = Home::new(&SCRIPTS, configuration)?;
    let log = home.path().join("state/audit.jsonl");
    let call = Request::call("kit/state", &json!({}), None);
    let mut command = lab.stdio(&home, &["--kit"]);
    let mut server = as_user(|| Pipes::start(&mut command))?;
    let mut table = Table::new([
        "records",
        "MB",
        "`audit verify`, MB a second",
        "`audit grep`, MB a second",
        "`audit tail`, ms",
    ]);
    let mut growths = COMMANDS.map(|(name, _)| Growth::new("audit log, ms, by records", name));
    let mut records = 0;
    for number in NUMBERS.map(|number| lab.options.number(number)) {
        while records < number {
            server.load(&call, 64, Duration::from_millis(500)).await?;
            records = count(&log)?;
        }
        let size = fs::metadata(&log)?.len() as f64 / 1e6;
        let mut cells = vec![records.to_string(), format!("{size:.0}")];
        for ((name, arguments), growth) in COMMANDS.iter().zip(&mut growths) {
            let mut took = Vec::new();
            for _ in 0..lab.options.rounds() {
                took.push(read(lab, &home, arguments).await?);
            }
            let rate = Spread::of(took.iter().map(|took| size / took * 1e3));
            let took = Spread::of(took);
            growth.add(records, took);
            cells.push(match *name {
                "tail" => took.to_string(),
                _ => rate.to_string(),
            });
            if *name != "tail" && number == NUMBERS[NUMBERS.len() - 1] {
                let what = format!("`audit {name}` of a million records, MB a second");
                findings.at_least(what, MIN_RATE, rate);
            }
        }
        table.row(cells);
    }
    server.stop().await?;
    findings.growths.extend(growths);
    findings.table("growth-records", table);
    Ok(())
}

/// Returns the number of records in a log.
fn count(log: &Path) -> anyhow::Result<usize> {
    let text = fs::read(log)?;
    Ok(memchr::memchr_iter(b'\n', &text).count())
}

/// Returns the time that `mcpd audit` takes, in ms.
async fn read(lab: &Lab, home: &Home, arguments: &[&str]) -> anyhow::Result<f64> {
    let mut command = Command::new(lab.program());
    command
        .arg("audit")
        .args(arguments)
        .args(["--config", "mcpd.toml"])
        .current_dir(home.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let begun = Instant::now();
    let status = command.status().await?;
    // `grep` fails if it finds nothing.
    ensure!(status.code().is_some_and(|code| code < 2), "{status}");
    Ok(begun.elapsed().as_secs_f64() * 1e3)
}
