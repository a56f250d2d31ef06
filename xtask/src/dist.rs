//! Packages of a release: archive, Debian package, Python wheel and npm packages from one binary,
//! with their sums, the software bill of materials (SBOM) and the licences of dependencies.
//!
//! Packages are reproducible: the same binary and commit give the same bytes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};

mod archive;
mod binary;
mod crates;
mod deb;
mod documents;
mod licences;
mod names;
mod npm;
mod platform;
mod sbom;
mod sums;
mod tarball;
mod wheel;

use crate::report::line;
use archive::PackageFile;
use binary::Binary;
use documents::Document;
use names::Names;
use platform::Platform;

/// Directory of the workspace.
const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Choices of one run.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Target of the binary, by default that of this machine; `x86_64-unknown-linux-gnu.2.17` is
    /// built by `cargo zigbuild` for glibc 2.17 and newer.
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// Package this binary, instead of one built with the profile `dist`.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Formats, separated by commas [default: all that the target has].
    #[arg(long, value_delimiter = ',')]
    format: Vec<Format>,
    /// Directory for the packages [default: target/packages]; its `SHA256SUMS` covers all files.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// `mcpd-VERSION-TARGET.tar.gz`.
    Tar,
    /// Debian package.
    Deb,
    /// Python wheel.
    Wheel,
    /// npm package of the platform, and the one that starts it.
    Npm,
}

/// Content that every package shares.
#[derive(Debug)]
struct Release {
    version: String,
    /// Time of all files, in seconds of the Unix epoch.
    time: u64,
    platform: &'static Platform,
    binary: Binary,
    names: Names,
    /// Man pages and shell completions.
    documents: Vec<Document>,
    /// SBOM in the format of CycloneDX.
    sbom: String,
    /// Licences of all dependencies.
    licences: String,
}

/// Makes the packages, and prints their names and sizes.
///
/// # Errors
///
/// Fails if the binary can't be built or is not of the target, or a file can't be read or written.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let target = options
        .target
        .clone()
        .unwrap_or_else(platform::triple_of_this_machine);
    let platform = Platform::find(binary::without_libc_version(&target))?;
    let bytes = match &options.binary {
        Some(file) => {
            fs::read(file).with_context(|| format!("failed to read `{}`", file.display()))?
        }
        None => fs::read(binary::build(&target)?)?,
    };
    let release = prepare(platform, Binary::inspect(bytes, platform)?)?;
    // Not target/dist, where cargo puts what it builds with the profile of this name.
    let default = || Path::new(WORKSPACE).join("target/packages");
    let out = options.out.clone().unwrap_or_else(default);
    fs::create_dir_all(&out).with_context(|| format!("failed to make `{}`", out.display()))?;
    let formats = if options.format.is_empty() {
        Format::value_variants()
    } else {
        &options.format
    };
    let mut packages = describe(&release);
    for format in formats {
        packages.extend(match format {
            Format::Tar => vec![tarball::make(&release)?],
            Format::Deb if platform.debian_architecture().is_none() => {
                skip_deb(platform, options)?;
                continue;
            }
            Format::Deb => vec![deb::make(&release)?],
            Format::Wheel => vec![wheel::make(&release)?],
            Format::Npm => npm::make(&release)?.into(),
        });
    }
    for package in &packages {
        write(&out, package)?;
    }
    sums::write(&out)
}

/// Passes over the Debian package, unless it was asked for.
///
/// # Errors
///
/// Fails if it was asked for.
fn skip_deb(platform: &Platform, options: &Options) -> anyhow::Result<()> {
    let reason = format!(
        "`{}` has no Debian package: it is no target of Debian with glibc",
        platform.triple
    );
    anyhow::ensure!(options.format.is_empty(), reason);
    line(format_args!("deb: left out, {reason}"));
    Ok(())
}

/// Gathers the content that the packages share.
fn prepare(platform: &'static Platform, binary: Binary) -> anyhow::Result<Release> {
    let time = time_of_release()?;
    let crates = crates::shipped(platform.triple)?;
    Ok(Release {
        version: crates.version.clone(),
        time,
        platform,
        names: Names::read()?,
        documents: documents::print(&binary)?,
        sbom: sbom::render(&crates, platform, time)?,
        licences: licences::render(&crates)?,
        binary,
    })
}

/// Returns the files that describe the release beside its packages.
fn describe(release: &Release) -> Vec<PackageFile> {
    let name = format!("mcpd-{}-{}", release.version, release.platform.triple);
    vec![
        PackageFile::data(format!("{name}.cdx.json"), release.sbom.clone()),
        PackageFile::data(
            format!("{name}.THIRD-PARTY-LICENSES.txt"),
            release.licences.clone(),
        ),
    ]
}

/// Returns the time of the last commit, or that of `SOURCE_DATE_EPOCH`, the variable of
/// reproducible builds.
fn time_of_release() -> anyhow::Result<u64> {
    if let Ok(time) = std::env::var("SOURCE_DATE_EPOCH") {
        return time
            .parse()
            .context("SOURCE_DATE_EPOCH is no number of seconds");
    }
    let time = binary::output("git", &["log", "-1", "--format=%ct"])
        .context("the time of the last commit is unknown; set SOURCE_DATE_EPOCH")?;
    Ok(time.trim().parse()?)
}

/// Reads a file of the workspace.
fn read(path: &str) -> anyhow::Result<String> {
    let file = Path::new(WORKSPACE).join(path);
    fs::read_to_string(&file).with_context(|| format!("failed to read `{}`", file.display()))
}

fn write(directory: &Path, package: &PackageFile) -> anyhow::Result<()> {
    let file = directory.join(&package.path);
    fs::write(&file, &package.bytes)
        .with_context(|| format!("failed to write `{}`", file.display()))?;
    let kilobytes = package.bytes.len().div_ceil(1000);
    line(format_args!("{kilobytes:>8} kB  {}", package.path));
    Ok(())
}
