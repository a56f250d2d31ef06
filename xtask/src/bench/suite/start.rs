//! Time from the start of a server over stdio to its first answers.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::process::Command;
use tokio::time::timeout;

use crate::bench::bare;
use crate::bench::findings::{Findings, Table};
use crate::bench::lab::{Lab, SCRIPTS, Way, many};
use crate::bench::pipes::Pipes;
use crate::bench::sample::Spread;
use crate::bench::subject::ANSWER_TIMEOUT;
use crate::request::{Checker, Request};
use crate::server::as_user;

/// Maximum time to the list and to the answer of `server/discover`, in ms.
const MAX_LIST_TIME: f64 = 15.0;
const MAX_DISCOVER_TIME: f64 = 5.0;

/// Maximum size of the program, in MB.
const MAX_SIZE: f64 = 18.0;

pub(crate) async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let tools = lab.options.number(1000);
    let home = many(tools)?;
    let (list, discover) = (
        Request::list(tools),
        Request::new("server/discover", json!({})),
    );
    let three = Request::list(SCRIPTS.len());
    // Fills the caches of descriptions.
    first_answer(lab.stdio(lab.home(), &[]), &three).await?;
    first_answer(lab.stdio(&home, &[]), &list).await?;
    let mut figures = [const { Vec::new() }; 7];
    for _ in 0..lab.options.rounds() {
        let asked = milliseconds(bare::ask_all(&home.scripts())?);
        let cold = first_answer(lab.stdio(&home, &["--no-cache"]), &list).await?;
        let rmcp = lab.rmcp_command(Way::Stdio, SCRIPTS.len());
        for (figures, took) in figures.iter_mut().zip([
            cold / asked,
            cold,
            first_answer(lab.stdio(&home, &[]), &list).await?,
            first_answer(lab.stdio(&home, &[]), &discover).await?,
            first_answer(lab.stdio(lab.home(), &[]), &discover).await?,
            first_answer(lab.stdio(lab.home(), &[]), &three).await?,
            first_answer(rmcp, &three).await?,
        ]) {
            figures.push(took);
        }
    }
    let [ratio, cold, warm, discovered, first, few, rmcp] = figures.map(Spread::of);
    let mut table = Table::new(["from the start to", "ms"]);
    for (what, spread) in [
        (format!("the list of {tools}, every script asked"), cold),
        (format!("the list of {tools}, as remembered"), warm),
        (
            format!("the answer to `server/discover`, with {tools}"),
            discovered,
        ),
        ("the answer to `server/discover`, with 3".to_owned(), first),
        ("the list of 3, as remembered".to_owned(), few),
        ("the list of 3 of rmcp".to_owned(), rmcp),
    ] {
        table.row([what, spread.to_string()]);
    }
    table.row([
        "every script asked / the same by bare".to_owned(),
        ratio.to_string(),
    ]);
    let mut findings = Findings::default();
    findings.table("start", table);
    let size = fs::metadata(lab.program())?.len() as f64 / 1e6;
    let size = Spread::of(vec![size]);
    let list = format!("start to the list of {tools}, as remembered");
    findings.at_most(list, MAX_LIST_TIME, "ms", warm);
    let answer = "start to the first answer, to `server/discover`";
    findings.at_most(answer, MAX_DISCOVER_TIME, "ms", first);
    findings.at_most("size of the program", MAX_SIZE, "MB", size);
    Ok(findings)
}

/// Returns the time from the start of a server to the right answer, in ms.
pub(super) async fn first_answer(mut command: Command, request: &Request) -> anyhow::Result<f64> {
    let (begun, mut pipes) = as_user(|| Ok((Instant::now(), Pipes::start(&mut command)?)))?;
    let answered = timeout(ANSWER_TIMEOUT, pipes.exchange(request, Checker::FIRST)).await??;
    let took = begun.elapsed();
    Checker::learn(request, &answered)?;
    timeout(ANSWER_TIMEOUT, pipes.stop()).await??;
    Ok(milliseconds(took))
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
