//! Table of `docs/clients.md`: a row for each framework, and below it the known failures with
//! their reasons. Rows of frameworks that are not tried this time stay as they are.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::{ACTIONS, Framework, Outcomes, Transport};

/// Marks around the generated part of the page.
const BEGIN: &str = "<!-- interop: written by `cargo xtask interop` -->\n";
const END: &str = "<!-- interop: end -->\n";

/// Page, and the rows of its table by the names of frameworks.
#[derive(Debug)]
pub(super) struct Page {
    file: PathBuf,
    before: String,
    after: String,
    rows: BTreeMap<String, String>,
}

impl Page {
    /// Reads the page.
    ///
    /// # Errors
    ///
    /// Fails if it has no place for the table.
    pub(super) fn read() -> anyhow::Result<Self> {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/clients.md");
        let text = fs::read_to_string(&file)?;
        let (before, rest) = text.split_once(BEGIN).context("the page has no table")?;
        let (table, after) = rest.split_once(END).context("the table has no end")?;
        let rows = table.lines().filter_map(|line| {
            let name = line.strip_prefix("| ")?.split(" | ").next()?;
            (name != "client").then(|| (name.to_owned(), line.to_owned()))
        });
        Ok(Self {
            before: before.to_owned(),
            after: after.to_owned(),
            rows: rows.collect(),
            file,
        })
    }

    /// Replaces the row of a framework.
    pub(super) fn set_row(&mut self, framework: &Framework, tried: &BTreeMap<Transport, Outcomes>) {
        let cells = ACTIONS.map(|action| cell(action, tried));
        let name = &framework.name;
        let row = format!(
            "| {name} | {} | {} |",
            framework.version(),
            cells.join(" | ")
        );
        self.rows.insert(name.clone(), row);
    }

    /// Writes the page, with the rows in the order of the frameworks.
    ///
    /// # Errors
    ///
    /// Fails if the page can't be written.
    pub(super) fn write(&self, frameworks: &[Framework]) -> anyhow::Result<()> {
        let columns = ACTIONS.map(|action| action.replace('_', " "));
        let mut table = format!("| client | version | {} |\n", columns.join(" | "));
        table += &format!("|---|---|{}\n", ":-:|".repeat(ACTIONS.len()));
        let rows = frameworks
            .iter()
            .filter_map(|framework| self.rows.get(&framework.name));
        for row in rows {
            table += row;
            table.push('\n');
        }
        table.push('\n');
        for framework in frameworks {
            if let Some(note) = &framework.note {
                table += &format!("- {}: {note}\n", framework.name);
            }
            for (action, why) in &framework.known {
                let action = action.replace('_', " ");
                table += &format!("- {}, {action}: {why}\n", framework.name);
            }
        }
        let Self { before, after, .. } = self;
        fs::write(&self.file, format!("{before}{BEGIN}{table}{END}{after}"))?;
        Ok(())
    }
}

/// Returns the outcome of an action: `✓`, `✗`, or `–` if the framework does not support it; by
/// transport if they differ.
fn cell(action: &str, tried: &BTreeMap<Transport, Outcomes>) -> String {
    let mark = |Outcomes(outcomes): &Outcomes| match outcomes.get(action) {
        Some(Ok(())) => "✓",
        Some(Err(_)) => "✗",
        None if outcomes.contains_key("connect") => "✗",
        None => "–",
    };
    let marks: Vec<_> = tried
        .iter()
        .map(|(transport, outcomes)| (transport, mark(outcomes)))
        .collect();
    match &marks[..] {
        [] => "–".to_owned(),
        [(_, one)] => (*one).to_owned(),
        [(_, one), (_, other)] if one == other => (*one).to_owned(),
        marks => {
            let each = marks.iter().map(|(transport, mark)| match transport {
                Transport::Stdio => format!("{mark} stdio"),
                Transport::Http => format!("{mark} HTTP"),
            });
            each.collect::<Vec<_>>().join(", ")
        }
    }
}
