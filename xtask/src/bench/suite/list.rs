//! Lists of three tools.

use super::rates::Rates;
use crate::bench::findings::{Findings, Table};
use crate::bench::lab::{CONCURRENCIES, Lab, SCRIPTS, Way};
use crate::bench::lineup::Lineup;
use crate::bench::sample::Sample;
use crate::request::Request;

/// Required ratios to a peer.
const MIN_HTTP_RATIO_TO_RMCP: f64 = 2.2;
const MIN_HTTP_RATIO_TO_HYPER: f64 = 0.88;
const MIN_STDIO_RATIO_TO_RMCP: f64 = 2.0;

pub(crate) async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let list = Request::list(SCRIPTS.len());
    let mut lineup = Lineup::new(&lab.options);
    for way in [Way::Http, Way::Stdio] {
        let mut mcpd = lab.mcpd(way, &[]).await?;
        if way == Way::Http {
            lineup.add("hyper HTTP", lab.hyper(&mut mcpd, &list).await?);
        }
        lineup.add(format!("mcpd {way}"), mcpd);
        lineup.add(format!("rmcp {way}"), lab.rmcp(way, SCRIPTS.len()).await?);
        lab.add_others(&mut lineup, way).await?;
    }
    let mut findings = Findings::default();
    let mut table = Table::new(["at a time", "HTTP / rmcp", "HTTP / hyper", "stdio / rmcp"]);
    let mut rates = Rates::new("tools/list");
    for at_once in CONCURRENCIES {
        let samples = lineup.load(&list, at_once).await?;
        let mut cells = vec![at_once.to_string()];
        for (this, that, bar, from) in [
            ("mcpd HTTP", "rmcp HTTP", MIN_HTTP_RATIO_TO_RMCP, 8),
            ("mcpd HTTP", "hyper HTTP", MIN_HTTP_RATIO_TO_HYPER, 8),
            ("mcpd stdio", "rmcp stdio", MIN_STDIO_RATIO_TO_RMCP, 64),
        ] {
            let ratio = samples.ratio(this, that, Sample::rate)?;
            if at_once >= from {
                let what = format!("3 tools listed, {this} / {that}, {at_once} at a time");
                findings.at_least(what, bar, ratio);
            }
            cells.push(ratio.to_string());
        }
        table.row(cells);
        rates.add(at_once, &samples);
    }
    findings.table("list", table);
    rates.report("list-rates", &mut findings);
    Ok(findings)
}
