//! Report of a test run, as data.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::fault::Fault;

/// Results of all scripts.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Scripts in the order of their paths.
    pub suites: Vec<SuiteReport>,
    /// Faults of files without a script.
    pub faults: Vec<Fault>,
}

/// Results of one script.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct SuiteReport {
    /// File of the script.
    pub script: PathBuf,
    /// File with its cases, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Results of the cases, in their order.
    pub cases: Vec<CaseReport>,
    /// Faults of the file.
    pub faults: Vec<Fault>,
    /// Options that no case gives, as `option`, or `tool: option` if there are several tools.
    pub uncovered: Vec<String>,
    /// Results of generated calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generated: Option<GeneratedReport>,
}

/// Result of one case.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct CaseReport {
    /// Name of the case.
    pub name: String,
    /// Path of the tool, prompt or resource that was called.
    pub tool: String,
    /// Line of the case.
    pub line: usize,
    /// Duration of the call, in seconds in JSON.
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub elapsed: Duration,
    /// Differences from the expected result; empty if the case passed.
    pub differences: Vec<String>,
    /// The result was written into the file as the expected one.
    pub is_accepted: bool,
}

/// Results of the generated calls of one script.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct GeneratedReport {
    /// Number of calls, without those of the search for smaller arguments.
    pub calls: usize,
    /// Number of calls that mcpd refused before the script ran.
    pub refused: usize,
    /// One fault of each kind.
    pub faults: Vec<GeneratedFault>,
}

/// Fault that a generated call has found.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct GeneratedFault {
    /// Path of the tool, prompt or resource that was called.
    pub tool: String,
    /// Description of the fault.
    pub message: String,
    /// Smallest arguments with that fault that were found.
    pub arguments: Map<String, Value>,
    /// Seed with which the arguments are found again.
    pub seed: u64,
}

impl Report {
    /// Number of cases that passed, were accepted, and failed.
    #[must_use]
    pub fn counts(&self) -> (usize, usize, usize) {
        let cases = self.suites.iter().flat_map(|suite| &suite.cases);
        cases.fold((0, 0, 0), |(passed, accepted, failed), case| {
            match (case.differences.is_empty(), case.is_accepted) {
                (_, true) => (passed, accepted + 1, failed),
                (true, _) => (passed + 1, accepted, failed),
                (false, _) => (passed, accepted, failed + 1),
            }
        })
    }

    /// Returns whether nothing is wrong.
    #[must_use]
    pub fn is_success(&self) -> bool {
        let generated = |suite: &SuiteReport| {
            let report = suite.generated.as_ref();
            report.is_none_or(|report| report.faults.is_empty())
        };
        let suites = &self.suites;
        self.counts().2 == 0
            && self.faults.is_empty()
            && suites
                .iter()
                .all(|suite| suite.faults.is_empty() && generated(suite))
    }
}

fn seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}
