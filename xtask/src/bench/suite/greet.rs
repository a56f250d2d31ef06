//! Script calls at two sandbox levels, beside the bare start and the peers.

use crate::bench::findings::{Findings, Table};
use crate::bench::lab::{CONCURRENCIES, Lab, Way};
use crate::bench::lineup::{Lineup, Samples};
use crate::bench::sample::Sample;
use crate::bench::subject::Subject;
use crate::request::Request;

use super::rates::Rates;

/// Sandbox levels, each with its required ratios to the bare start with 1, 8 and 64 at a time.
const LEVELS: [(&str, [f64; 3]); 2] =
    [("none", [0.80, 0.97, 1.0]), ("guarded", [0.75, 0.92, 0.97])];

/// Required ratio of every level to rmcp with 8 and 64 at a time.
const MIN_RATIO_TO_RMCP: f64 = 1.15;

pub(crate) async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let mut lineup = Lineup::new(&lab.options);
    lineup.add("bare", Subject::Bare(lab.home().scripts().join("greet")));
    for way in [Way::Http, Way::Stdio] {
        for (level, _) in LEVELS {
            let subject = lab.mcpd(way, &["--sandbox", level]).await?;
            lineup.add(format!("mcpd {way} {level}"), subject);
        }
        lineup.add(format!("rmcp {way}"), lab.rmcp(way, 3).await?);
        lab.add_others(&mut lineup, way).await?;
    }
    let mut findings = Findings::default();
    let mut table = Table::new([
        "at a time",
        "level",
        "HTTP / bare",
        "stdio / bare",
        "HTTP / rmcp",
        "stdio / rmcp",
    ]);
    let mut rates = Rates::new("greet");
    for (place, at_once) in CONCURRENCIES.into_iter().enumerate() {
        let samples = lineup.load(&Request::greet(), at_once).await?;
        for (level, bars) in LEVELS {
            let cells = compare(&mut findings, &samples, level, at_once, bars[place])?;
            table.row([vec![at_once.to_string(), level.to_owned()], cells].concat());
        }
        rates.add(at_once, &samples);
    }
    findings.table("greet", table);
    rates.report("greet-rates", &mut findings);
    Ok(findings)
}

/// Adds the ratios of a level.
fn compare(
    findings: &mut Findings,
    samples: &Samples,
    level: &str,
    at_once: usize,
    bar: f64,
) -> anyhow::Result<Vec<String>> {
    let mut cells = Vec::new();
    for way in [Way::Http, Way::Stdio] {
        let ratio = samples.ratio(&format!("mcpd {way} {level}"), "bare", Sample::rate)?;
        let what = format!("greet / bare, {way}, {level}, {at_once} at a time");
        findings.at_least(what, bar, ratio);
        cells.push(ratio.to_string());
    }
    for way in [Way::Http, Way::Stdio] {
        let [this, that] = [format!("mcpd {way} {level}"), format!("rmcp {way}")];
        let ratio = samples.ratio(&this, &that, Sample::rate)?;
        if at_once > 1 {
            let what = format!("greet / rmcp, {way}, {level}, {at_once} at a time");
            findings.at_least(what, MIN_RATIO_TO_RMCP, ratio);
        }
        cells.push(ratio.to_string());
    }
    Ok(cells)
}
