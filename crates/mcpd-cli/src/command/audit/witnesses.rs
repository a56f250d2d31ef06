//! Verification of several logs: each for itself, and then the runs that a front and a worker must
//! both have recorded.

use std::path::PathBuf;

use mcpd_check::terminal;
use mcpd_server::audit::{self, Verified, Witnesses};
use serde_json::json;

use super::{describe_verification, has_record, read};
use crate::exit_code::ExitCode;
use crate::output;

/// Maximum number of runs that are listed one by one.
const MAX_LISTED: usize = 100;

/// Verifies the logs, and compares their runs.
pub(super) fn verify(logs: &[PathBuf], hash: Option<&str>, json: bool) -> anyhow::Result<ExitCode> {
    let verify = |log: &PathBuf| read(log, audit::verify(log));
    let all = logs
        .iter()
        .map(verify)
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut witnesses = Witnesses::default();
    for log in logs {
        read(log, witnesses.add(log))?;
    }
    let mut is_there = hash.map(|_| false);
    if let Some(hash) = hash {
        for log in logs {
            is_there = Some(is_there == Some(true) || has_record(log, hash)?);
        }
    }
    if json {
        let reports = logs.iter().zip(&all);
        let reports = reports.map(|(log, verified)| json!({"log": log, "verified": verified}));
        let mut report = json!({"logs": reports.collect::<Vec<_>>(), "runs": witnesses.compare()});
        if let Some(is_there) = is_there {
            report["hash_found"] = is_there.into();
        }
        output::write_json(&report)?;
    } else {
        output::write_text(&terminal::printable(&describe(
            logs, &all, &witnesses, is_there,
        )))?;
    }
    let is_sound = all.iter().all(|verified| verified.faults.is_empty())
        && witnesses.compare().has_no_contradiction()
        && is_there != Some(false);
    Ok(match is_sound {
        true => ExitCode::Success,
        false => ExitCode::Failure,
    })
}

fn describe(
    logs: &[PathBuf],
    all: &[Verified],
    witnesses: &Witnesses,
    is_there: Option<bool>,
) -> String {
    let mut text = String::new();
    for (log, verified) in logs.iter().zip(all) {
        text += &format!("{}\n", log.display());
        for line in describe_verification(verified, None).lines() {
            text += &format!("  {line}\n");
        }
    }
    if is_there == Some(false) {
        text += "no record has this hash\n";
    }
    let runs = witnesses.compare();
    text += &format!("runs witnessed by a front and a worker: {}\n", runs.both);
    if runs.elsewhere > 0 {
        text += &format!(
            "runs at workers whose logs are not here: {}\n",
            runs.elsewhere
        );
    }
    let lists = [
        ("recorded by the front only", &runs.front_only),
        ("recorded by a worker only", &runs.worker_only),
        ("recorded differently", &runs.different),
    ];
    for (what, list) in lists {
        if list.is_empty() {
            continue;
        }
        text += &format!("{what}: {}\n", list.len());
        for one in list.iter().take(MAX_LISTED) {
            text += &format!("  {one}\n");
        }
    }
    text
}
