//! Runs that two machines have recorded: the front that a client has asked, and the worker that has
//! run the script. Each keeps a chain of its own, and the identifier of the run is in both.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::reader::Records;

/// Outcomes of a front for which a worker need not have recorded anything.
const WITHOUT_WORKER: [&str; 5] = ["lost", "unreachable", "cancelled", "busy", "denied"];
/// Maximum number of runs of a kind that are shown one by one.
const MAX_LISTED: usize = 100;
/// Transport of the requests that a worker records.
const CLUSTER: &str = "cluster";

/// One record of a run.
#[derive(Debug, Clone)]
struct Side {
    text: String,
    /// Identifier of the run, with the number of the attempt.
    attempt: String,
    tool: String,
    digest: String,
    outcome: String,
    /// Worker that a front has asked.
    worker: Option<String>,
}

/// Records of runs in several logs.
#[derive(Debug, Clone, Default)]
pub struct Witnesses {
    /// Machines whose logs are here.
    nodes: BTreeSet<String>,
    runs: BTreeMap<String, Vec<Side>>,
}

/// Comparison of the records of two sides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WitnessedRuns {
    /// Number of runs that a front and a worker have recorded.
    pub both: usize,
    /// Number of runs at workers whose logs were not given.
    pub elsewhere: usize,
    /// Runs that only their front has recorded, although the log of the worker is here.
    pub front_only: Vec<Run>,
    /// Runs that only a worker has recorded: of a front whose log is not here, or one that was
    /// killed.
    pub worker_only: Vec<Run>,
    /// Runs of which the two sides have recorded another script, or another version of it.
    pub different: Vec<Run>,
}

/// One run in a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Run {
    /// Identifier, without the number of the attempt.
    pub run: String,
    /// Machine, script and outcome of each record.
    pub records: Vec<String>,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.run, self.records.join("; "))
    }
}

/// A line for each count, and then the runs that not both sides have recorded alike, 100 of a kind
/// at most.
impl fmt::Display for WitnessedRuns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            both, elsewhere, ..
        } = self;
        writeln!(f, "runs witnessed by a front and a worker: {both}")?;
        if *elsewhere > 0 {
            writeln!(f, "runs at workers whose logs are not here: {elsewhere}")?;
        }
        let lists = [
            ("recorded by the front only", &self.front_only),
            ("recorded by a worker only", &self.worker_only),
            ("recorded differently", &self.different),
        ];
        for (what, list) in lists.iter().filter(|(_, list)| !list.is_empty()) {
            writeln!(f, "{what}: {}", list.len())?;
            for run in list.iter().take(MAX_LISTED) {
                writeln!(f, "  {run}")?;
            }
        }
        Ok(())
    }
}

impl Witnesses {
    /// Adds the records of the log in `file`.
    ///
    /// # Errors
    ///
    /// The log does not exist, or cannot be read.
    pub fn add(&mut self, file: &Path) -> io::Result<()> {
        for line in Records::open(file)? {
            let record = line?.record();
            if let Some(node) = record["node"].as_str() {
                self.nodes.insert(node.to_owned());
            }
            if record["event"] != "end" {
                continue;
            }
            let Some(run) = record["run"].as_str() else {
                continue;
            };
            // Every attempt at a run has a number of its own behind the identifier.
            let id = run.split('.').next().unwrap_or_default();
            let sides = self.runs.entry(id.to_owned()).or_default();
            sides.push(Side::new(run, &record));
        }
        Ok(())
    }

    /// Compares the two sides of every run.
    #[must_use]
    pub fn compare(&self) -> WitnessedRuns {
        let mut runs = WitnessedRuns::default();
        for (run, sides) in &self.runs {
            let listed = || Run {
                run: run.clone(),
                records: sides.iter().map(|side| side.text.clone()).collect(),
            };
            // The last attempt, before which others may have been lost.
            let fronts = sides.iter().filter(|side| side.worker.is_some());
            let front = fronts.max_by_key(|side| (side.attempt.len(), &side.attempt));
            let has_worker = sides.iter().any(|side| {
                let is_it = front.is_none_or(|front| front.attempt == side.attempt);
                side.worker.is_none() && is_it
            });
            match front {
                Some(front) if has_worker => {
                    let is_same =
                        |side: &Side| side.tool == front.tool && side.digest == front.digest;
                    match sides.iter().all(is_same) {
                        true => runs.both += 1,
                        false => runs.different.push(listed()),
                    }
                }
                Some(front) => {
                    let worker = front.worker.as_deref().unwrap_or_default();
                    if !self.nodes.contains(worker) {
                        runs.elsewhere += 1;
                    } else if !WITHOUT_WORKER.contains(&front.outcome.as_str()) {
                        runs.front_only.push(listed());
                    }
                }
                None => runs.worker_only.push(listed()),
            }
        }
        runs
    }
}

impl WitnessedRuns {
    /// Returns whether no side contradicts another: what a front was told has an end at its
    /// worker, of the same script.
    #[must_use]
    pub fn has_no_contradiction(&self) -> bool {
        self.front_only.is_empty() && self.different.is_empty()
    }
}

impl Side {
    fn new(attempt: &str, record: &Value) -> Self {
        let text = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
        let (tool, outcome, node) = (text("tool"), text("outcome"), text("node"));
        let is_worker = record["transport"] == CLUSTER;
        let worker = record["worker"].as_str().map(str::to_owned);
        Self {
            text: format!("{} at {node}: {tool}, {outcome}", text("timestamp")),
            attempt: attempt.to_owned(),
            digest: text("digest"),
            worker: worker.filter(|_| !is_worker),
            tool,
            outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn log(directory: &Path, name: &str, records: &[Value]) -> Witnesses {
        let path = directory.join(name);
        let lines = records.iter().map(|record| format!("{record}\n"));
        std::fs::write(&path, lines.collect::<String>()).unwrap();
        let mut witnesses = Witnesses::default();
        witnesses.add(&path).unwrap();
        witnesses
    }

    fn end(node: &str, worker: Option<&str>, run: &str, rest: (&str, &str)) -> Value {
        let transport = if worker.is_some() { "http" } else { "cluster" };
        json!({
            "timestamp": "2026-11-22T10:00:00Z", "event": "end", "tool": "t", "node": node,
            "worker": worker, "run": run, "digest": rest.0, "outcome": rest.1,
            "transport": transport,
        })
    }

    #[test]
    fn runs_are_compared_by_their_ids() {
        let directory = tempfile::tempdir().unwrap();
        let front = |run, worker, rest| end("f1", Some(worker), run, rest);
        let records = [
            front("a.0", "w1", ("sha256:1", "success")),
            // Made again on another worker.
            front("b.0", "w1", ("sha256:1", "lost")),
            front("b.1", "w1", ("sha256:1", "success")),
            front("c.0", "w2", ("sha256:1", "success")),
            front("d.0", "w1", ("sha256:1", "lost")),
            front("e.0", "w1", ("sha256:1", "success")),
            front("f.0", "w1", ("sha256:1", "success")),
            json!({"event": "begin", "run": "g.0", "worker": "w1"}),
            // The worker that was lost has a record, and the one that succeeded has none.
            front("i.0", "w1", ("sha256:1", "lost")),
            front("i.1", "w1", ("sha256:1", "success")),
        ];
        let mut witnesses = log(directory.path(), "front", &records);
        let worker = |run, digest| end("w1", None, run, (digest, "success"));
        let records = [
            worker("a.0", "sha256:1"),
            worker("b.0", "sha256:1"),
            worker("b.1", "sha256:1"),
            worker("e.0", "sha256:2"),
            worker("h.0", "sha256:1"),
            worker("i.0", "sha256:1"),
        ];
        log(directory.path(), "worker", &records);
        witnesses.add(&directory.path().join("worker")).unwrap();
        let runs = witnesses.compare();
        let ids = |runs: &[Run]| runs.iter().map(|run| run.run.clone()).collect::<Vec<_>>();
        assert_eq!((runs.both, runs.elsewhere), (2, 1));
        assert_eq!(ids(&runs.front_only), ["f", "i"]);
        assert_eq!(ids(&runs.worker_only), ["h"]);
        assert_eq!(ids(&runs.different), ["e"]);
        assert!(!runs.has_no_contradiction());
        let text = runs.front_only[0].to_string();
        assert_eq!(text, "f: 2026-11-22T10:00:00Z at f1: t, success");
    }
}
