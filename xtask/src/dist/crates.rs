//! Crates whose code is in the binary, from cargo's own resolution for the target: neither
//! dependencies of tests nor those of other platforms.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::Context as _;
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};
use serde::Deserialize;

use super::{WORKSPACE, binary, read};

/// Crates of the binary, sorted by name and version.
#[derive(Debug)]
pub(crate) struct Crates {
    /// Version of mcpd.
    pub(crate) version: String,
    pub(crate) all: Vec<Crate>,
}

/// One crate.
#[derive(Debug)]
pub(crate) struct Crate {
    pub(crate) name: String,
    pub(crate) version: String,
    /// True for a crate of this workspace.
    pub(crate) is_own: bool,
    /// Licence expression of SPDX.
    pub(crate) licence: Option<String>,
    pub(crate) authors: Vec<String>,
    pub(crate) description: Option<String>,
    pub(crate) repository: Option<String>,
    /// SHA-256 sum of the package in the registry.
    pub(crate) sum: Option<String>,
    /// Directory of the source.
    pub(crate) directory: PathBuf,
    /// Indices of the crates that it depends on.
    pub(crate) dependencies: Vec<usize>,
}

/// `Cargo.lock`, as far as the sums need it.
#[derive(Debug, Deserialize)]
struct Lock {
    package: Vec<LockedPackage>,
}

#[derive(Debug, Deserialize)]
struct LockedPackage {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// Returns the crates in the binary for this target.
///
/// # Errors
///
/// Fails if `Cargo.lock` is not up to date, or cargo can't fetch a crate.
pub(crate) fn shipped(triple: &str) -> anyhow::Result<Crates> {
    let metadata = MetadataCommand::new()
        .current_dir(WORKSPACE)
        .other_options(["--locked", "--filter-platform", triple].map(str::to_owned))
        .exec()?;
    let shipped = names_in_binary(triple)?;
    let packages: Vec<&Package> = {
        let all = metadata.packages.iter();
        let mut packages: Vec<_> = all
            .filter(|package| shipped.contains(&key(package)))
            .collect();
        packages.sort_by_key(|package| key(package));
        packages
    };
    let sums = sums()?;
    let edges = edges(&metadata, &packages)?;
    let all = packages.iter().zip(edges);
    let all = all.map(|(package, dependencies)| describe(package, dependencies, &sums));
    let version = packages.iter().find(|package| package.name == "mcpd-cli");
    Ok(Crates {
        version: version.context("there is no mcpd-cli")?.version.to_string(),
        all: all.collect(),
    })
}

/// Name and version, which are unique in one binary.
type Key = (String, String);

fn key(package: &Package) -> Key {
    (package.name.to_string(), package.version.to_string())
}

/// Asks `cargo tree`, because `cargo metadata` unifies the features of the whole workspace and
/// would name crates that the binary does not have. Procedural macros run in the compiler only.
fn names_in_binary(triple: &str) -> anyhow::Result<BTreeSet<Key>> {
    let arguments =
        "tree --locked --package mcpd-cli --edges normal,no-proc-macro --prefix none --format {p}";
    let arguments = arguments.split(' ').chain(["--target", triple]);
    let tree = binary::output("cargo", &arguments.collect::<Vec<_>>())?;
    let names = tree.lines().filter_map(|line| {
        let (name, rest) = line.split_once(" v")?;
        let version = rest.split(' ').next()?;
        Some((name.to_owned(), version.to_owned()))
    });
    Ok(names.collect())
}

/// Returns the indices of the dependencies of each package.
fn edges(metadata: &Metadata, packages: &[&Package]) -> anyhow::Result<Vec<Vec<usize>>> {
    let indices: BTreeMap<_, _> = (0..)
        .zip(packages)
        .map(|(index, package): (usize, _)| (&package.id, index))
        .collect();
    let resolve = metadata.resolve.as_ref();
    let nodes = &resolve.context("cargo resolved nothing")?.nodes;
    let nodes: BTreeMap<_, _> = nodes.iter().map(|node| (&node.id, node)).collect();
    let edges = packages.iter().map(|package| {
        let node = nodes.get(&package.id);
        let node = node.with_context(|| format!("cargo did not resolve {}", package.name))?;
        let normal = node.deps.iter().filter(|dependency| {
            let mut kinds = dependency.dep_kinds.iter();
            kinds.any(|kind| kind.kind == DependencyKind::Normal)
        });
        let mut targets: Vec<_> = normal
            .filter_map(|dependency| indices.get(&dependency.pkg).copied())
            .collect();
        targets.sort_unstable();
        Ok(targets)
    });
    edges.collect()
}

/// Returns the sums of `Cargo.lock`.
fn sums() -> anyhow::Result<BTreeMap<Key, String>> {
    let lock: Lock = toml::from_str(&read("Cargo.lock")?)?;
    let packages = lock.package.into_iter();
    let sums =
        packages.filter_map(|package| Some(((package.name, package.version), package.checksum?)));
    Ok(sums.collect())
}

fn describe(package: &Package, dependencies: Vec<usize>, sums: &BTreeMap<Key, String>) -> Crate {
    let directory = package.manifest_path.parent();
    Crate {
        name: package.name.to_string(),
        version: package.version.to_string(),
        is_own: package.source.is_none(),
        licence: package.license.as_deref().map(modern_expression),
        authors: package.authors.clone(),
        description: package.description.as_deref().map(|text| {
            let words: Vec<_> = text.split_whitespace().collect();
            words.join(" ")
        }),
        repository: package.repository.clone(),
        sum: sums.get(&key(package)).cloned(),
        directory: directory
            .map(|directory| directory.as_std_path().to_owned())
            .unwrap_or_default(),
        dependencies,
    }
}

/// Returns an expression of SPDX for what older crates write: `MIT/Apache-2.0`.
fn modern_expression(licence: &str) -> String {
    let parts: Vec<_> = licence.split('/').map(str::trim).collect();
    parts.join(" OR ")
}
