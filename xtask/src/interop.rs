//! `cargo xtask interop`: foreign clients, each in an environment of its own, against the built
//! binary. `xtask/interop/frameworks.toml` lists them with the installed versions; a driver for
//! each makes its framework do what clients do, over stdio and HTTP. The table of the outcomes is
//! a part of `docs/clients.md`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use clap::Args;
use serde::Deserialize;

use crate::report;
use crate::server;

mod environment;
mod server_under_test;
mod table;

use environment::Environment;
use server_under_test::ServerUnderTest;

/// Actions in the order of the columns.
const ACTIONS: [&str; 12] = [
    "list",
    "call",
    "wrong_arguments",
    "failing_script",
    "nested_schema",
    "structured_result",
    "image",
    "progress",
    "prompt",
    "resource",
    "cancel",
    "close",
];

/// Choice of frameworks, and of the server.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Names of frameworks; all by default.
    names: Vec<String>,
    /// The mcpd to try them with; built by default.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Keep their environments, each of up to a gigabyte, for the next run.
    #[arg(long)]
    keep: bool,
}

/// Known frameworks.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Frameworks {
    framework: Vec<Framework>,
}

/// Framework, its installation, and its known failures.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Framework {
    name: String,
    language: Language,
    /// Packages with versions; the version of the first is shown.
    packages: Vec<String>,
    driver: String,
    #[serde(default = "both_transports")]
    transports: Vec<Transport>,
    /// Remark on its installation or its options, shown below the table.
    #[serde(default)]
    note: Option<String>,
    /// Actions that fail because of the framework: the reason, and a workaround.
    #[serde(default)]
    known: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Language {
    Python,
    Node,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Transport {
    Stdio,
    Http,
}

fn both_transports() -> Vec<Transport> {
    vec![Transport::Stdio, Transport::Http]
}

/// Driver's report on one action.
#[derive(Debug, Deserialize)]
struct Line {
    action: String,
    ok: bool,
    #[serde(default)]
    error: String,
}

/// Outcomes of the actions over one transport: missing, success, or the error.
#[derive(Debug, Default)]
struct Outcomes(BTreeMap<String, Result<(), String>>);

impl Framework {
    /// Returns the version of its first package.
    fn version(&self) -> &str {
        let first = self.packages.first().map_or("", String::as_str);
        let version = match self.language {
            Language::Python => first.split_once("=="),
            Language::Node => first.rsplit_once('@'),
        };
        version.map_or("", |(_, version)| version)
    }
}

/// Tries the chosen frameworks, and writes the table. Returns false if an action fails that is not
/// known to fail.
///
/// # Errors
///
/// Fails if mcpd can't be built or started, or the page can't be written.
pub(crate) fn run(options: &Options) -> anyhow::Result<bool> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("interop");
    let text = fs::read_to_string(home.join("frameworks.toml"))?;
    let Frameworks { framework: all } = toml::from_str(&text).context("frameworks.toml")?;
    for name in &options.names {
        let is_known = all.iter().any(|framework| framework.name == *name);
        ensure!(
            is_known,
            "there is no framework `{name}` in frameworks.toml"
        );
    }
    let binary = match &options.binary {
        Some(binary) => fs::canonicalize(binary).context("the binary")?,
        None => server::build()?,
    };
    let mut page = table::Page::read()?;
    let mut is_as_expected = true;
    for framework in &all {
        if !options.names.is_empty() && !options.names.contains(&framework.name) {
            continue;
        }
        report::line(format_args!("{} {}", framework.name, framework.version()));
        let mut tried = BTreeMap::new();
        match try_framework(framework, &home, &binary, options.keep, &mut tried) {
            Ok(()) => {
                is_as_expected &= is_explained(framework, &tried);
                page.set_row(framework, &tried);
                // Saved at once, in case the rest of a long run is interrupted.
                page.write(&all)?;
            }
            Err(error) => {
                is_as_expected = false;
                report::line(format_args!("  not tried: {error:#}"));
            }
        }
    }
    Ok(is_as_expected)
}

/// Installs a framework and runs its driver over each of its transports.
fn try_framework(
    framework: &Framework,
    home: &Path,
    binary: &Path,
    keep: bool,
    tried: &mut BTreeMap<Transport, Outcomes>,
) -> anyhow::Result<()> {
    let environment = Environment::install(framework, home, keep)?;
    for transport in &framework.transports {
        let server = ServerUnderTest::new(binary, &home.join("scripts"))?;
        let printed = environment.drive(&server.target(*transport)?)?;
        let mut outcomes = Outcomes::default();
        for line in printed.lines() {
            // Frameworks print on stdout as well.
            let Ok(line) = serde_json::from_str::<Line>(line) else {
                continue;
            };
            let outcome = if line.ok { Ok(()) } else { Err(line.error) };
            outcomes.0.insert(line.action, outcome);
        }
        tried.insert(*transport, outcomes);
    }
    Ok(())
}

/// Prints the failures; returns whether all are known.
fn is_explained(framework: &Framework, tried: &BTreeMap<Transport, Outcomes>) -> bool {
    let mut is_explained = true;
    for (transport, Outcomes(outcomes)) in tried {
        let failed = outcomes.iter().filter_map(|(action, outcome)| {
            let error = outcome.as_ref().err()?;
            Some((action, error))
        });
        for (action, error) in failed {
            let is_known = framework.known.contains_key(action);
            is_explained &= is_known;
            let mark = if is_known { "known" } else { "FAILED" };
            report::line(format_args!("  {mark} {transport:?} {action}: {error}"));
        }
        if !outcomes.contains_key("close") && !outcomes.contains_key("connect") {
            is_explained = false;
            report::line(format_args!(
                "  FAILED {transport:?}: the driver has not come to its end"
            ));
        }
    }
    for action in framework.known.keys() {
        let fails = |Outcomes(outcomes): &Outcomes| matches!(outcomes.get(action), Some(Err(_)));
        if !tried.values().any(fails) {
            is_explained = false;
            report::line(format_args!(
                "  {action} fails no longer: take it out of frameworks.toml"
            ));
        }
    }
    is_explained
}
