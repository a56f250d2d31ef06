//! Discovery and probes of scripts, from `[probe]`, `[[root]]` and `[[tool]]`.

use std::path::PathBuf;

use mcpd_exec::{Level, Network};
use mcpd_server::policy::{PatternError, Probing, Root};

use crate::file::File;
use crate::tables::{self, ProbeTable, RootTable};
use crate::value::Spanned;

/// Settings of one table.
pub(crate) fn probe_settings(table: &ProbeTable) -> Probing {
    let mut probing = Probing::default();
    if let Some(level) = table.sandbox {
        probing = probing.level(match level {
            tables::Level::None => Level::None,
            tables::Level::Guarded => Level::Guarded,
            tables::Level::Strict => Level::Strict,
        });
    }
    if let Some(network) = table.network {
        probing = probing.network(match network {
            tables::Network::Host => Network::Host,
            tables::Network::Off => Network::Off,
        });
    }
    if let Some(timeout) = table.timeout {
        probing = probing.timeout(timeout.0);
    }
    if let Some(require) = table.require {
        probing = probing.require(require);
    }
    probing
}

/// Roots of the file that have rules of their own.
///
/// # Errors
///
/// A faulty table, with its place.
pub(crate) fn roots(file: &File) -> anyhow::Result<Vec<Root>> {
    let tables = file.tables.root.iter();
    let served = tables.filter_map(|table| Some((file.root(table.path.get_ref())?, table)));
    served
        .map(|(path, table)| root(file, path, table))
        .collect()
}

fn root(file: &File, path: PathBuf, table: &RootTable) -> anyhow::Result<Root> {
    let root = Root::new(path).probing(probe_settings(&table.probe));
    let root = patterns(file, "include", &table.include, |texts| {
        root.clone().include(texts)
    })?;
    patterns(file, "exclude", &table.exclude, |texts| {
        root.clone().exclude(texts)
    })
}

/// Adds patterns with `add`; an error points at the first one that can't be read.
fn patterns(
    file: &File,
    key: &str,
    patterns: &[Spanned<String>],
    add: impl Fn(Vec<String>) -> Result<Root, PatternError>,
) -> anyhow::Result<Root> {
    for pattern in patterns {
        add(vec![pattern.get_ref().clone()])
            .map_err(|error| file.failure(key, pattern.span(), &error))?;
    }
    let texts = patterns.iter().map(|pattern| pattern.get_ref().clone());
    Ok(add(texts.collect())?)
}
