//! Calls with an increasing number of tools.

use serde_json::json;

use crate::bench::findings::{Findings, Growth, Table};
use crate::bench::lab::{Lab, many};
use crate::bench::lineup::Lineup;
use crate::bench::sample::Sample;
use crate::request::Request;

const CONCURRENCY: usize = 8;

/// Maximum ratio of the cost with the most tools to that with the fewest.
const MAX_RATIO: f64 = 1.1;

pub(super) async fn run(lab: &Lab, findings: &mut Findings) -> anyhow::Result<()> {
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
        let mut growth = Growth::new("CPU for a call, µs, by tools", name);
        for number in numbers {
            let cpu = samples.figure(&format!("mcpd {number}"), Sample::cpu)?;
            cells.push(cpu.to_string());
            growth.add(number, cpu);
        }
        findings.growths.push(growth);
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
