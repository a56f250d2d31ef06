//! Runs in the record of a request: their endings and amounts, and the machine that ran them if it
//! is another one.

use std::time::Duration;

use mcpd_audit::RunDetails;
use mcpd_exec::Outcome;
use mcpd_exec::warm::Warmth;

use super::{Moment, RequestRecord};
use crate::observe::ending::{Exit, RunError};

impl RequestRecord {
    /// Adds a run that has ended or could not start; `exit` names the endings of its kind.
    pub(crate) fn add_run(&self, ended: &Result<Outcome, RunError>, exit: fn(&Outcome) -> Exit) {
        self.note(|notes| match ended {
            Ok(outcome) => {
                let exit = exit(outcome);
                notes.outcome = Some(exit.name);
                let run = notes.run.get_or_insert_default();
                add_run(run, outcome, exit.code);
            }
            Err(error) => {
                notes.outcome = Some(error.name());
                if let Some(run) = &mut notes.run {
                    run.exit_code = None;
                }
            }
        });
    }

    /// Sets the worker that is asked to run the script, and the id of the run there.
    pub(crate) fn set_worker(&self, worker: &str, run: &str, digest: &str) {
        self.note(|notes| notes.worker = Some(worker.to_owned()));
        self.set_run(run, digest);
    }

    /// Records that the run is lost at its worker and is made again: an end of its own, before the
    /// one of the request.
    pub(crate) fn lose_run(&self) {
        let Some(request) = self.request.as_ref().filter(|request| request.is_wanted()) else {
            return;
        };
        let audit = &request.auditor.audit;
        match audit.reserve() {
            Some(slot) => request.with_record(Moment::RunLost, |record| slot.record(record)),
            None => audit.count_lost(),
        }
    }

    /// Sets the id of the run that a front and a worker know, and the version of the script.
    pub(crate) fn set_run(&self, run: &str, digest: &str) {
        self.note(|notes| {
            notes.run_id = Some(run.to_owned());
            notes.digest = Some(digest.to_owned());
        });
    }

    /// Returns whether lines of a run are passed on.
    pub(crate) fn passes_lines(&self) -> bool {
        self.observed.is_some()
    }

    /// Sets the end of the only run of the request, whose result is made elsewhere; `None` if there
    /// is none.
    pub(crate) fn finish_run(&self, exit: Option<Exit>) {
        if exit.as_ref().is_none_or(|exit| exit.code != 0) {
            self.operation.mark_failed();
            self.span.mark_failed();
        }
        self.note(|notes| {
            notes.answer = Some(match exit {
                Some(exit) if exit.code == 0 => Ok(()),
                _ => Err(notes.outcome.unwrap_or_default().to_owned()),
            });
        });
        self.record_long_params();
    }
}

/// Adds a run that has ended to the details of a request.
fn add_run(details: &mut RunDetails, outcome: &Outcome, exit_code: i32) {
    details.runs += 1;
    details.exit_code = Some(exit_code);
    let leftovers = [details.leftovers, outcome.leftovers].into_iter().flatten();
    details.leftovers = Some(leftovers.sum()).filter(|processes| *processes > 0);
    details.stdout_bytes += outcome.stdout.total_bytes;
    details.stderr_bytes += outcome.stderr.total_bytes;
    details.queued_ms += milliseconds(outcome.timing.queued);
    details.run_ms += milliseconds(outcome.timing.wall);
    details.start = outcome.warmth.as_ref().map(|warmth| match warmth {
        Warmth::Warm => "warm",
        _ => "cold",
    });
    details.sandbox = outcome.enforced.level.to_string();
    let missing = outcome.enforced.missing.iter();
    details.missing = missing.map(|missing| missing.mechanism.clone()).collect();
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
