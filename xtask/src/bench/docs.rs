//! Output into the documentation: tables between their marks, and the plot.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::Options;
use super::findings::{Findings, Table};
use super::plot;

/// Links to the plots, relative to the page.
const PLOT: &str = "![Throughput and latency of mcpd and its peers](performance.svg)\n";
const GROWTH_PLOT: &str = "![Cost as work grows](growth.svg)\n";

/// Writes the findings. The rest of the page stays as it is.
///
/// # Errors
///
/// Fails if a table has no place in docs/performance.md, or a file can't be written.
pub(crate) fn write(findings: &Findings) -> anyhow::Result<()> {
    let page = directory()?.join("performance.md");
    let mut text = fs::read_to_string(&page)?;
    for (name, table) in &findings.tables {
        text = replace(&text, name, table)?;
    }
    // A plot of one suite alone would be half empty.
    if plot::PANELS
        .iter()
        .all(|panel| findings.curves.iter().any(|curve| curve.panel == *panel))
    {
        fs::write(page.with_extension("svg"), plot::draw(&findings.curves))?;
        text = replace(&text, "plot", PLOT)?;
    }
    if !findings.growths.is_empty() {
        fs::write(
            page.with_file_name("growth.svg"),
            plot::draw_growth(&findings.growths),
        )?;
        text = replace(&text, "growth-plot", GROWTH_PLOT)?;
    }
    fs::write(page, text)?;
    Ok(())
}

fn directory() -> anyhow::Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    Ok(root
        .context("xtask is a package of the workspace")?
        .join("docs"))
}

/// Replaces the text between the marks of this name.
fn replace(text: &str, name: &str, new: impl fmt::Display) -> anyhow::Result<String> {
    let begin = format!("<!-- bench: {name} -->\n");
    let parts = text.split_once(&begin).and_then(|(before, rest)| {
        let end = rest.find("<!-- end -->")?;
        Some((before, &rest[end..]))
    });
    let (before, after) = parts.with_context(|| format!("the page has no place for `{name}`"))?;
    Ok(format!("{before}{begin}\n{new}\n{after}"))
}

/// Describes the machine and the options.
///
/// # Errors
///
/// Fails if the system does not report them.
#[expect(clippy::disallowed_methods, reason = "a compiler is no script")]
pub(crate) fn machine(options: &Options) -> anyhow::Result<Table> {
    let system = rustix::system::uname();
    let release = system.release().to_string_lossy();
    // The rest of the version identifies a single build.
    let version: Vec<_> = release.splitn(3, '.').take(2).collect();
    let processors = fs::read_to_string("/proc/cpuinfo")?;
    let model = processors
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown", |(_, model)| model);
    let compiler = std::process::Command::new("rustc")
        .arg("--version")
        .output()?;
    let mut table = Table::new(["measured on", ""]);
    for (what, value) in [
        ("processor", model.to_owned()),
        ("cores", std::thread::available_parallelism()?.to_string()),
        (
            "system",
            format!(
                "{} {}",
                system.sysname().to_string_lossy(),
                version.join(".")
            ),
        ),
        (
            "compiler",
            String::from_utf8(compiler.stdout)?.trim().to_owned(),
        ),
        (
            "rounds",
            format!("{} of {} s", options.rounds(), options.time().as_secs_f64()),
        ),
    ] {
        table.row([what, &value]);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_replaces_what_is_between_its_marks() {
        let mut table = Table::new(["new"]);
        table.row(["1"]);
        let text = "Before\n<!-- bench: a -->\nold\n<!-- end -->\nafter\n<!-- bench: b -->\n<!-- end -->\n";
        let replaced = replace(text, "a", &table).unwrap();
        let expected = "Before\n<!-- bench: a -->\n\n| new |\n|---|\n| 1 |\n\n<!-- end -->\nafter\n<!-- bench: b -->\n<!-- end -->\n";
        assert_eq!(replaced, expected);
        assert_eq!(replace(&replaced, "a", &table).unwrap(), replaced);
        assert!(replace(text, "c", &table).is_err());
    }
}
