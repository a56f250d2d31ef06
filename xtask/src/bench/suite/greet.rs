//! Script calls at two sandbox levels, beside the least server, the bare start and the peers.

use crate::bench::findings::{Findings, Table};
use crate::bench::lab::{CONCURRENCIES, Lab, Way};
use crate::bench::lineup::{Lineup, Samples};
use crate::bench::sample::Sample;
use crate::bench::subject::Subject;
use crate::request::Request;

use super::rates::Rates;

/// Sandbox levels, each with its required ratios to the least server with 1, 8 and 64 at a time.
const LEVELS: [(&str, [f64; 3]); 2] = [
    ("none", [0.93, 0.95, 0.95]),
    ("guarded", [0.88, 0.92, 0.93]),
];

/// Required ratios to rmcp without a sandbox, with 8 and 64 at a time.
const MIN_RATIOS_TO_RMCP: [(usize, f64); 2] = [(8, 1.1), (64, 1.2)];

pub(crate) async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let mut lineup = Lineup::new(&lab.options);
    lineup.add("bare", Subject::Bare(lab.home().scripts().join("greet")));
    for way in [Way::Http, Way::Stdio] {
        for (level, _) in LEVELS {
            let subject = lab.mcpd(way, &["--sandbox", level]).await?;
            lineup.add(format!("mcpd {way} {level}"), subject);
        }
        lineup.add(format!("floor {way}"), lab.floor(way).await?);
        lineup.add(format!("rmcp {way}"), lab.rmcp(way, 3).await?);
        lab.add_others(&mut lineup, way).await?;
    }
    let mut findings = Findings::default();
    let mut table = Table::new([
        "at a time",
        "level",
        "HTTP / floor",
        "stdio / floor",
        "HTTP / bare",
        "stdio / bare",
        "HTTP / rmcp",
        "stdio / rmcp",
    ]);
    let mut rates = Rates::new("greet");
    for at_once in CONCURRENCIES {
        let samples = lineup.load(&Request::greet(), at_once).await?;
        for (level, _) in LEVELS {
            let cells = compare(&mut findings, &samples, level, at_once)?;
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
) -> anyhow::Result<Vec<String>> {
    let mut cells = Vec::new();
    for peer in ["floor", "bare", "rmcp"] {
        for way in [Way::Http, Way::Stdio] {
            let that = match peer {
                "bare" => peer.to_owned(),
                _ => format!("{peer} {way}"),
            };
            let ratio = samples.ratio(&format!("mcpd {way} {level}"), &that, Sample::rate)?;
            cells.push(ratio.to_string());
            if let Some(bar) = bar_beside(peer, level, at_once) {
                let what = format!("greet / {peer}, {way}, {level}, {at_once} at a time");
                findings.at_least(what, bar, ratio);
            }
        }
    }
    Ok(cells)
}

/// Required ratio of a level to a peer, if there is one.
fn bar_beside(peer: &str, level: &str, at_once: usize) -> Option<f64> {
    let is_required = |(required, _): &(usize, f64)| *required == at_once;
    match peer {
        "floor" => {
            let (_, bars) = LEVELS.into_iter().find(|(name, _)| *name == level)?;
            let mut bars = CONCURRENCIES.into_iter().zip(bars);
            bars.find(is_required).map(|(_, bar)| bar)
        }
        "rmcp" if level == "none" => {
            let mut bars = MIN_RATIOS_TO_RMCP.into_iter();
            bars.find(is_required).map(|(_, bar)| bar)
        }
        _ => None,
    }
}
