//! Faults for editors and for `grep`: one line each, beginning with the place.

use std::fmt::Write as _;

use super::{base_directory, display_path, printable};
use crate::finding::Finding;

/// Renders all faults, one a line: `path:line:column: severity[code]: message`.
#[must_use]
pub fn short(findings: &[Finding<'_>]) -> String {
    let here = base_directory();
    let mut text = String::new();
    for finding in findings {
        let file = finding
            .file
            .map(|file| display_path(file, &here))
            .or_else(|| finding.path.map(printable))
            .unwrap_or_default();
        let place = match &finding.place {
            Some(place) => {
                let start = place.start();
                let origin = place.origin(&file);
                format!("{origin}:{}:{}: ", start.line, start.column)
            }
            None if file.is_empty() => file,
            None => file + ": ",
        };
        writeln!(
            text,
            "{place}{}[{}]: {}",
            finding.severity,
            finding.code,
            printable(&finding.message)
        )
        .expect("a string takes everything");
    }
    text
}
