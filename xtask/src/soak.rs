//! Soak test: simulated production in fast motion, after which no resource has grown.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::bench::findings::Growth;
use crate::bench::plot;
use crate::client::Client;
use crate::latency::Latency;
use crate::report::{line, promise};
use crate::server::{Server, Usage, build};

const CONFIGURATION: &str = "[[tool]]\nmatch = \"sleep\"\ntimeout = 1\n";

/// Script that describes itself, with `CASE` as its body.
const SCRIPT: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "CASE"}'
  echo '{"name": {"description": "Whom", "required": true, "value_type": "string"}}' >&2
  exit 0
fi
"#;

/// Maximum growth of memory in a run, in KiB: less than the smallest leak per call would amount
/// to.
const MAX_GROWTH: u64 = 8 * 1024;

/// Interval of checks and reloads.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Cases: the tool, the body of its script, and its share of the calls in percent.
const CASES: [(&str, &str, u64); 6] = [
    ("greet", "printf 'Hello, %s!' \"$MCPD_OPT_name\"", 84),
    ("cancelled", "exec sleep 5", 4),
    ("sleep", "trap '' TERM; sleep 5; sleep 5", 2),
    ("crash", "kill -SEGV $$", 4),
    ("flood", "head -c 2000000 /dev/zero | tr '\\0' 'x'", 3),
    ("orphan", "sleep 3 & echo left", 3),
];

/// Minutes that a picture shows.
const SHOWN_MINUTES: [usize; 7] = [1, 2, 5, 10, 20, 30, 60];

/// Runs for this time, with `rate` calls a second, and draws memory and latency into `picture`.
/// Returns whether every promise was kept.
///
/// # Errors
///
/// Fails if the server can't be built, or ends.
pub(crate) async fn run(
    time: Duration,
    rate: u32,
    picture: Option<PathBuf>,
) -> anyhow::Result<bool> {
    let scripts =
        CASES.map(|(name, text, _)| (name, format!("{}{text}\n", SCRIPT.replace("CASE", name))));
    let scripts = scripts
        .each_ref()
        .map(|(name, text)| (*name, text.as_str()));
    let server = Arc::new(Server::start(&build()?, &scripts, CONFIGURATION).await?);
    let watched = tokio::spawn(watch(Arc::clone(&server), time));
    let mut ticks = interval(Duration::from_secs(1) / rate);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut calls = JoinSet::new();
    let mut wrong = Vec::new();
    let begun = Instant::now();
    let mut minutes = Minutes::default();
    for number in 0_u64.. {
        ticks.tick().await;
        if begun.elapsed() >= time {
            break;
        }
        let minute = minutes.at(begun.elapsed());
        calls.spawn(call(Arc::clone(&server), number));
        while let Some(ended) = calls.try_join_next() {
            note(ended?, minute, &mut wrong);
        }
    }
    let minute = minutes.at(begun.elapsed());
    while let Some(ended) = calls.join_next().await {
        note(ended?, minute, &mut wrong);
    }
    line(format_args!("greet: {}", minutes.sum()));
    let (looks, mut kept) = watched.await??;
    if let Some(picture) = picture {
        fs::write(picture, plot::draw_growth(&curves(&looks, &minutes)))?;
    }
    kept &= promise(
        wrong.is_empty(),
        format_args!("{} answers other than expected", wrong.len()),
    );
    for fault in wrong.iter().take(10) {
        line(format_args!("    {fault}"));
    }
    match Arc::try_unwrap(server) {
        Ok(server) => server.stop().await?,
        Err(_) => anyhow::bail!("a call still has the server"),
    }
    Ok(kept)
}

/// Outcome of a call: the latency of a greeting, or the fault of an answer.
type Ended = Result<Option<Duration>, String>;

fn note(ended: Ended, latency: &mut Latency, wrong: &mut Vec<String>) {
    match ended {
        Ok(Some(took)) => latency.record(took),
        Ok(None) => {}
        Err(fault) => wrong.push(fault),
    }
}

/// Makes one call of one client: its number alone determines the case.
async fn call(server: Arc<Server>, number: u64) -> Ended {
    // 37 is coprime to 100, so that the cases are mixed.
    let mut place = number * 37 % 100;
    let mut cases = CASES.iter();
    let name = loop {
        match cases.next() {
            Some((name, _, share)) if place < *share => break *name,
            Some((_, _, share)) => place -= share,
            None => break "greet",
        }
    };
    let mut client = Client::connect(server.address(), server.token())
        .await
        .map_err(|error| format!("{name}: {error:#}"))?;
    let arguments = json!({"name": format!("n{number}")});
    if name == "cancelled" {
        // Closing the connection cancels the call.
        let given_up = timeout(Duration::from_millis(200), client.call(name, &arguments)).await;
        return given_up.map_or(Ok(None), |answer| Err(format!("{name}: {answer:?}")));
    }
    let answer = client.call(name, &arguments).await;
    let answer = answer.map_err(|error| format!("{name}: {error:#}"))?;
    let exit = &answer.message["result"]["_meta"]["mcpd/exit"]["name"];
    let is_right = match name {
        "greet" => answer.text() == Some(&format!("Hello, n{number}!")),
        "sleep" => exit == "time-limit",
        "crash" => exit == "killed-by-signal",
        "flood" => answer.text().is_some_and(|text| text.starts_with("xxx")),
        _ => answer.text() == Some("left"),
    };
    if is_right {
        Ok((name == "greet").then_some(answer.took))
    } else {
        let answer = answer.message.to_string();
        Err(format!(
            "{name}: {}",
            answer.chars().take(300).collect::<String>()
        ))
    }
}

/// Reloads and changes a script at intervals, and checks the server's usage.
async fn watch(server: Arc<Server>, time: Duration) -> anyhow::Result<(Vec<Usage>, bool)> {
    let start = Instant::now();
    let mut looks: Vec<Usage> = Vec::new();
    let script = server.script("greet");
    let text = fs::read_to_string(&script)?;
    while start.elapsed() < time {
        sleep(CHECK_INTERVAL).await;
        server.signal(Signal::HUP)?;
        // Replaced by a rename: a write in place could be executed half-written, or fail while the
        // script is being started.
        let new = script.with_file_name(".new");
        fs::write(&new, format!("{text}# {}\n", looks.len()))?;
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755))?;
        fs::rename(&new, &script)?;
        let usage = server.usage()?;
        line(format_args!("{:>5} s: {usage}", start.elapsed().as_secs()));
        looks.push(usage);
    }
    // Leaves time for orphans of the last calls, and for idle threads to end.
    sleep(2 * CHECK_INTERVAL).await;
    let last = server.usage()?;
    line(format_args!("  end: {last}"));
    // Half of the first tenth is excluded as warm-up.
    let first = looks.get(looks.len() / 20).copied().unwrap_or(last);
    let growth = last.memory.saturating_sub(first.memory);
    let memory = promise(
        growth <= MAX_GROWTH,
        format_args!("memory grew by {growth} KiB, {MAX_GROWTH} at most"),
    );
    let rest = promise(
        last.descriptors <= first.descriptors && last.threads <= first.threads + 2,
        format_args!(
            "{} descriptors and {} threads are left, of {} and {}",
            last.descriptors, last.threads, first.descriptors, first.threads
        ),
    );
    // The server, and its second process.
    let processes = promise(
        last.processes <= 2 && last.temporaries <= first.temporaries,
        format_args!(
            "{} processes and {} temporary files are left",
            last.processes, last.temporaries
        ),
    );
    Ok((looks, memory & rest & processes))
}

/// Latencies of the greetings of each minute.
#[derive(Debug, Default)]
struct Minutes(Vec<Latency>);

impl Minutes {
    /// Returns those of the minute at this time.
    fn at(&mut self, time: Duration) -> &mut Latency {
        let minute = usize::try_from(time.as_secs() / 60).unwrap_or_default();
        if self.0.len() <= minute {
            self.0.resize_with(minute + 1, Latency::default);
        }
        &mut self.0[minute]
    }

    fn sum(&self) -> Latency {
        let mut sum = Latency::default();
        self.0.iter().for_each(|latency| sum.add(latency));
        sum
    }
}

/// Returns memory and latency by minutes.
fn curves(looks: &[Usage], minutes: &Minutes) -> [Growth; 3] {
    const LOOKS_A_MINUTE: usize = 60 / CHECK_INTERVAL.as_secs() as usize;
    let mut memory = Growth::new("memory, MB, by minutes", "resident");
    let mut median = Growth::new("a greeting, ms, by minutes", "median");
    let mut slow = Growth::new("a greeting, ms, by minutes", "99 %");
    for minute in SHOWN_MINUTES {
        let look = looks.get(minute * LOOKS_A_MINUTE - 1).or(looks.last());
        let (Some(look), Some(latency)) = (look, minutes.0.get(minute - 1)) else {
            continue;
        };
        let place = minute as f64;
        memory
            .points
            .push((place, look.memory as f64 * 1024.0 / 1e6));
        let within = |share| latency.quantile(share).as_secs_f64() * 1e3;
        median.points.push((place, within(0.5)));
        slow.points.push((place, within(0.99)));
    }
    [memory, median, slow]
}
