//! Starts with an increasing number of scripts.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::bench::findings::{Findings, Growth, Table};
use crate::bench::lab::{Lab, many};
use crate::bench::sample::Spread;
use crate::bench::suite::start::first_answer;
use crate::request::Request;
use crate::server::GREET;

const NUMBERS: [usize; 4] = [10, 100, 1_000, 10_000];

/// Rounds, of which the longest asks every script once.
const MAX_ROUNDS: usize = 3;

pub(super) async fn run(lab: &Lab, findings: &mut Findings) -> anyhow::Result<()> {
    const KINDS: [&str; 3] = ["every script asked", "one script changed", "as remembered"];
    let mut table = Table::new(["from the start to the list, ms"].into_iter().chain(KINDS));
    let mut growths = KINDS.map(|kind| Growth::new("start, ms, by scripts", kind));
    for tools in NUMBERS.map(|tools| lab.options.number(tools)) {
        let home = many(tools)?;
        let list = Request::list(tools);
        let mut figures = [const { Vec::new() }; KINDS.len()];
        // Fills the cache of descriptions.
        first_answer(lab.stdio(&home, &[]), &list).await?;
        for round in 0..lab.options.rounds().min(MAX_ROUNDS) {
            let asked = first_answer(lab.stdio(&home, &["--no-cache"]), &list).await?;
            change(&home.scripts().join("greet"), round)?;
            let changed = first_answer(lab.stdio(&home, &[]), &list).await?;
            let remembered = first_answer(lab.stdio(&home, &[]), &list).await?;
            for (figures, took) in figures.iter_mut().zip([asked, changed, remembered]) {
                figures.push(took);
            }
        }
        let mut cells = vec![tools.to_string()];
        for (growth, figures) in growths.iter_mut().zip(figures) {
            let took = Spread::of(figures);
            growth.add(tools, took);
            cells.push(took.to_string());
        }
        table.row(cells);
    }
    findings.growths.extend(growths);
    findings.table("growth-starts", table);
    Ok(())
}

/// Changes a script, as if that were a while ago: of one that has just changed, a server waits for
/// further changes.
fn change(script: &Path, round: usize) -> anyhow::Result<()> {
    fs::write(script, format!("{GREET}# Change {round}\n"))?;
    let file = fs::File::options().write(true).open(script)?;
    file.set_modified(SystemTime::now() - Duration::from_secs(60))?;
    Ok(())
}
