//! Licences of dependencies, `THIRD-PARTY-LICENSES.txt`: the texts in the packages of the crates
//! themselves, each different text once.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};

use super::crates::{Crate, Crates};
use super::read;

/// Beginnings of the names of files with a licence, in upper case.
const NAMES: [&str; 6] = [
    "LICENSE",
    "LICENCE",
    "COPYING",
    "COPYRIGHT",
    "NOTICE",
    "UNLICENSE",
];

/// Line between two licences.
const RULE: &str =
    "--------------------------------------------------------------------------------";

/// Renders the list of crates and the texts.
///
/// # Errors
///
/// Fails if the source of a crate can't be read.
pub(crate) fn render(crates: &Crates) -> anyhow::Result<String> {
    let mut list = String::new();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut order = Vec::new();
    for one in crates.all.iter().filter(|one| !one.is_own) {
        let name = format!("{} {}", one.name, one.version);
        let mut found = texts_of(&one.directory)
            .with_context(|| format!("the source of {name} can't be read"))?;
        if found.is_empty() {
            found.push(standard_text(one)?);
        }
        let licence = one.licence.as_deref().unwrap_or("see its text");
        writeln!(list, "  {name}: {licence}")?;
        for text in found {
            if !texts.contains_key(&text) {
                order.push(text.clone());
            }
            texts.entry(text).or_default().push(name.clone());
        }
    }
    let mut page = format!(
        "mcpd contains code of these crates, under these licences:\n\n{list}\n\
         mcpd itself is under MIT or Apache-2.0, at your choice.\n"
    );
    for text in order {
        let names = texts[&text].join(", ");
        write!(page, "\n{RULE}\n{names}\n{RULE}\n\n{text}\n")?;
    }
    Ok(page)
}

/// Returns the licences in a directory, in the order of their files.
fn texts_of(directory: &Path) -> anyhow::Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        let is_licence = NAMES.iter().any(|beginning| name.starts_with(beginning));
        if is_licence && entry.file_type()?.is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    let texts = files.iter().map(|file| {
        let text = String::from_utf8_lossy(&fs::read(file)?).replace('\r', "");
        Ok(text.trim_matches('\n').trim_end().to_owned())
    });
    texts.collect()
}

/// Returns the text of a licence for a crate whose package has none.
///
/// # Errors
///
/// Fails if it is under neither of the licences of mcpd, whose texts are at hand.
fn standard_text(one: &Crate) -> anyhow::Result<String> {
    let licence = one.licence.as_deref().unwrap_or_default();
    if licence.contains("Apache-2.0") {
        return Ok(read("LICENSE-APACHE")?.trim_end().to_owned());
    }
    ensure!(
        licence.contains("MIT"),
        "the package of {} has no text of its licence, `{licence}`: add it here",
        one.name
    );
    let text = read("LICENSE-MIT")?;
    let lines = text
        .lines()
        .map(|line| match line.strip_prefix("Copyright") {
            Some(_) => format!("Copyright (c) {}", one.authors.join(", ")),
            None => line.to_owned(),
        });
    Ok(lines.collect::<Vec<_>>().join("\n"))
}
