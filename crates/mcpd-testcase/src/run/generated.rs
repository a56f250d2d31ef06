//! Generated calls of the tools of one script, and the search for the smallest arguments of each
//! fault.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use mcpd_server::Server;
use serde_json::{Map, Value};

use super::{Servers, SuiteRun};
use crate::call::Call;
use crate::compare::quote;
use crate::ending::{Ending, Observed};
use crate::generate::{Generator, smaller_arguments};
use crate::report::{GeneratedFault, GeneratedReport};
use crate::subject::Subject;

/// Limits of the search for smaller arguments.
const MAX_SEARCH_CALLS: usize = 400;
const MAX_SEARCH_TIME: Duration = Duration::from_secs(60);

/// Time limit of one call of the search after a hang, so that it need not wait for each.
const SEARCH_CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// Exit codes by which a script refuses arguments, or succeeds. The code 1 is an internal error.
const REGULAR_EXITS: [i32; 9] = [0, 2, 3, 4, 5, 6, 7, 8, 9];

/// Fault of a call; faults of one kind are reported once.
struct CallFault {
    kind: String,
    message: String,
}

impl<S: Servers> SuiteRun<'_, S> {
    /// Calls each tool with generated arguments.
    pub(super) async fn run_generated(&mut self) -> GeneratedReport {
        let mut report = GeneratedReport::default();
        for (tool, subject) in &self.suite.subjects {
            match self.server(tool, &BTreeMap::new()).await {
                Ok(server) => self.generate(&server, tool, subject, &mut report).await,
                Err(message) => report.faults.push(GeneratedFault {
                    tool: tool.clone(),
                    message,
                    arguments: Map::new(),
                    seed: self.options.seed,
                }),
            }
        }
        report
    }

    async fn generate(
        &self,
        server: &Server,
        tool: &str,
        subject: &Subject,
        report: &mut GeneratedReport,
    ) {
        let seed = self.options.seed;
        let limit = self.options.generated_timeout;
        let mut kinds: BTreeSet<String> = BTreeSet::new();
        for arguments in Generator::new(tool, &subject.schema, seed).take(self.options.generate) {
            report.calls += 1;
            // A second hang would tell nothing new.
            let limit = match kinds.contains(HANG) {
                true => limit.min(SEARCH_CALL_TIMEOUT),
                false => limit,
            };
            let (observed, fault) = self.call(server, tool, &arguments, limit).await;
            if matches!(observed.ending, Ending::Refused(_)) {
                report.refused += 1;
            }
            let Some(fault) = fault.filter(|fault| !kinds.contains(&fault.kind)) else {
                continue;
            };
            let (arguments, fault) = self.shrink(server, tool, arguments, fault).await;
            kinds.insert(fault.kind);
            report.faults.push(GeneratedFault {
                tool: tool.to_owned(),
                message: fault.message,
                arguments,
                seed,
            });
        }
    }

    async fn call(
        &self,
        server: &Server,
        tool: &str,
        arguments: &Map<String, Value>,
        limit: Duration,
    ) -> (Observed, Option<CallFault>) {
        let call = Call {
            tool,
            subject: &self.suite.subjects[tool],
            arguments,
            answers: &Map::new(),
            timeout: Some(limit),
        };
        let observed = call.send(server).await;
        let files = self.remove_temporary_files();
        let fault = self.fault_of(&observed, &files);
        (observed, fault)
    }

    /// Finds smaller arguments with a fault of the same kind.
    async fn shrink(
        &self,
        server: &Server,
        tool: &str,
        found: Map<String, Value>,
        fault: CallFault,
    ) -> (Map<String, Value>, CallFault) {
        let started = Instant::now();
        let limit = self.options.generated_timeout;
        let search_limit = match fault.kind.as_str() {
            HANG => limit.min(SEARCH_CALL_TIMEOUT),
            _ => limit,
        };
        let (mut smallest, mut calls) = (found.clone(), 0);
        'search: loop {
            for smaller in smaller_arguments(&smallest) {
                if calls == MAX_SEARCH_CALLS || started.elapsed() > MAX_SEARCH_TIME {
                    break 'search;
                }
                calls += 1;
                let (_, found) = self.call(server, tool, &smaller, search_limit).await;
                if found.is_some_and(|found| found.kind == fault.kind) {
                    smallest = smaller;
                    continue 'search;
                }
            }
            break;
        }
        if smallest == found {
            return (found, fault);
        }
        // A fault that comes and goes, or a call that is merely slow, is reported as found.
        match self.call(server, tool, &smallest, limit).await {
            (_, Some(again)) if again.kind == fault.kind => (smallest, again),
            _ => (found, fault),
        }
    }

    /// Fault of a call, if it has one. A script may refuse arguments with an exit code of its
    /// contract, and ask questions.
    fn fault_of(&self, observed: &Observed, temporary_files: &[String]) -> Option<CallFault> {
        let allowed = &self.suite.cases.generation.exits;
        let with_notes = |message: String| match observed.notes.as_str() {
            "" => message,
            notes => format!("{message}\n{}", quote(notes)),
        };
        let (kind, message) = match &observed.ending {
            Ending::Exited(code) if !REGULAR_EXITS.contains(code) && !allowed.contains(code) => {
                let meaning = match code {
                    1 => "which is an internal error",
                    _ => "which the contract of scripts does not have",
                };
                let message = format!("the script crashed: exit code {code}, {meaning}");
                (format!("exit {code}"), with_notes(message))
            }
            Ending::Stopped(name) if name == "time-limit" => {
                let message = "the script hangs: it ran into the time limit of the server";
                (HANG.to_owned(), message.to_owned())
            }
            Ending::TimedOut(limit) => {
                let message = format!("the script hangs: longer than {} s", limit.as_secs_f64());
                (HANG.to_owned(), message)
            }
            Ending::Stopped(name) => {
                let message = format!("the script was stopped: {name}");
                (name.clone(), with_notes(message))
            }
            Ending::InvalidOutput(why) => ("output".to_owned(), quote(why)),
            Ending::Failed(why) => ("failed".to_owned(), format!("the call failed: {why}")),
            _ if observed.leftovers > 0 => {
                let message = format!("processes left behind: {}", observed.leftovers);
                ("processes".to_owned(), message)
            }
            _ if !temporary_files.is_empty() => {
                let names = temporary_files.join("`, `");
                let message = format!("temporary files left behind: `{names}`");
                ("files".to_owned(), message)
            }
            _ => return None,
        };
        Some(CallFault { kind, message })
    }
}

/// Kind of a call that does not end.
const HANG: &str = "hang";
