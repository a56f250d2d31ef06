//! Problems of an open document: faults of the descriptions in it, or of the configuration.

use std::ops::Range;
use std::path::Path;

use mcpd_check::ignore::IgnoreComments;
use mcpd_check::{Finding, Fix, Selection, fix, rules};
use mcpd_config::{Fault, File};
use mcpd_scriptspec::{Dialect, Edit, Severity, apply_edits};
use tokio::runtime::Runtime;

use crate::document::Kind;

/// Maximum number of fixes that are made at once.
const MAX_FIXES: usize = 200;

/// A fault of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) span: Range<usize>,
    pub(crate) severity: Severity,
    /// Code of the broken rule; none in a configuration.
    pub(crate) code: Option<String>,
    pub(crate) message: String,
    /// Page about the rule.
    pub(crate) url: Option<String>,
    /// Edits that fix it, if no decision is necessary.
    pub(crate) edits: Vec<Edit>,
}

/// Finder of problems, which runs no script.
#[derive(Debug)]
pub(crate) struct Checker {
    selection: Selection,
    runtime: Runtime,
}

impl Checker {
    pub(crate) fn new(selection: Selection, runtime: Runtime) -> Self {
        Self { selection, runtime }
    }

    /// Returns the problems of a text, in its order.
    pub(crate) fn problems(&self, kind: Kind, path: &Path, text: &str) -> Vec<Problem> {
        let mut problems = match kind {
            Kind::Configuration => self.of_configuration(path, text),
            Kind::Sidecar(_) | Kind::Script => self.of_descriptions(path, text),
        };
        problems.sort_by_key(|problem| (problem.span.start, problem.span.end));
        problems
    }

    fn of_descriptions(&self, path: &Path, text: &str) -> Vec<Problem> {
        let name = path.to_string_lossy();
        let Some(dialect) = Dialect::of(&name, text.as_bytes()) else {
            return Vec::new();
        };
        let tools = dialect.read(&name, text.as_bytes());
        let faults = tools.iter().flat_map(|tool| &tool.parsed.diagnostics);
        let findings = faults.map(|fault| Finding::in_file(path, text.as_bytes(), fault));
        let comments = IgnoreComments::of_text(path, text.as_bytes());
        // Other faults, such as a missing interpreter, show only in the catalog.
        let findings = comments.apply(findings.collect(), false);
        let selected = findings
            .into_iter()
            .filter(|finding| self.selection.includes(finding.code));
        selected.map(Problem::from).collect()
    }

    fn of_configuration(&self, path: &Path, text: &str) -> Vec<Problem> {
        let faults = match File::of_text(path, text.to_owned()) {
            Ok(file) => self.runtime.block_on(mcpd_config::faults(&file)),
            Err(error) => vec![error],
        };
        let problem = |fault: Fault| match fault {
            Fault::At(fault) => Problem {
                span: fault.span().clone(),
                severity: Severity::Error,
                code: None,
                message: fault.message().to_owned(),
                url: None,
                edits: fault
                    .intended_name()
                    .map(|meant| respelling(text, fault.span(), meant))
                    .into_iter()
                    .collect(),
            },
            fault => Problem {
                span: 0..0,
                severity: Severity::Error,
                code: None,
                message: fault.to_string(),
                url: None,
                edits: Vec::new(),
            },
        };
        faults.into_iter().map(Fault::from).map(problem).collect()
    }

    /// Returns the text with all fixes, one after the other.
    pub(crate) fn fix_all(&self, kind: Kind, path: &Path, text: &str) -> String {
        let mut text = text.to_owned();
        for _ in 0..MAX_FIXES {
            let problems = self.problems(kind, path, &text);
            let fixed = problems.iter().find_map(|problem| problem.fix(path, &text));
            let Some(fixed) = fixed else { break };
            text = fixed;
        }
        text
    }
}

/// Replaces the word at `span`, within its quotes.
fn respelling(text: &str, span: &Range<usize>, meant: &str) -> Edit {
    let is_quoted = text[span.clone()].starts_with(['"', '\'']);
    let quote = usize::from(is_quoted && span.len() > 1);
    Edit {
        span: span.start + quote..span.end - quote,
        replacement: meant.to_owned(),
    }
}

impl Problem {
    /// Returns the text with the fix, if there is one that makes it better; that of a
    /// configuration is known to.
    fn fix(&self, path: &Path, text: &str) -> Option<String> {
        match &self.code {
            _ if self.edits.is_empty() => None,
            Some(code) => fix::apply(path, text, code, &self.edits),
            None => apply_edits(text, &self.edits),
        }
    }

    /// Returns whether a text has a fix.
    pub(crate) fn is_fixable(&self, path: &Path, text: &str) -> bool {
        self.fix(path, text).is_some()
    }
}

impl From<Finding<'_>> for Problem {
    fn from(finding: Finding<'_>) -> Self {
        let message = match finding.help {
            Some(help) => format!("{}; {help}", finding.message),
            None => finding.message.into_owned(),
        };
        Self {
            span: finding.place.map(|place| place.span).unwrap_or_default(),
            severity: finding.severity,
            code: Some(finding.code.to_owned()),
            message,
            url: rules::find(finding.code).ok().map(|rule| rule.url()),
            edits: match finding.fix {
                Some(Fix::Edits(edits)) => edits,
                _ => Vec::new(),
            },
        }
    }
}
