//! Python wheel with the binary as its only script, for `pip install` and `uvx`: it has no Python
//! code, and one wheel serves every version of Python.

use std::fmt::Write as _;
use std::io::{Cursor, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use sha2::{Digest as _, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::archive::PackageFile;
use super::platform::{Processor, System};
use super::{Release, read};
use crate::report::line;

/// Oldest glibc that installers of Python know as `manylinux2014`.
const MANYLINUX_2014: (u32, u32) = (2, 17);

/// Makes the wheel.
///
/// # Errors
///
/// Fails if a file of the workspace can't be read.
pub(crate) fn make(release: &Release) -> anyhow::Result<PackageFile> {
    let distribution = &release.names.python.distribution;
    let version = python_version(&release.version);
    let tag = format!("py3-none-{}", platform_tag(release));
    let name = format!("{}-{version}", distribution.replace('-', "_"));
    let information = format!("{name}.dist-info");
    let mut files = vec![
        PackageFile::program(
            format!("{name}.data/scripts/mcpd"),
            release.binary.bytes.clone(),
        ),
        PackageFile::data(
            format!("{information}/METADATA"),
            render_metadata(release, &version)?,
        ),
        PackageFile::data(
            format!("{information}/WHEEL"),
            format!(
                "Wheel-Version: 1.0\nGenerator: mcpd xtask\nRoot-Is-Purelib: false\n{}",
                expand_tag(&tag)
            ),
        ),
        PackageFile::data(
            format!("{information}/sboms/mcpd.cdx.json"),
            release.sbom.clone(),
        ),
        PackageFile::data(
            format!("{information}/licenses/THIRD-PARTY-LICENSES.txt"),
            release.licences.clone(),
        ),
    ];
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        let path = format!("{information}/licenses/{licence}");
        files.push(PackageFile::data(path, read(licence)?));
    }
    let path = format!("{information}/RECORD");
    let record = render_record(&files, &path)?;
    // Last, as installers expect the directory with the metadata at the end.
    files.push(PackageFile::data(path, record));
    Ok(PackageFile::data(
        format!("{name}-{tag}.whl"),
        zip(&files, release.time)?,
    ))
}

/// Returns the platform that installers compare with theirs.
fn platform_tag(release: &Release) -> String {
    let platform = release.platform;
    let machine = match (platform.system, platform.processor) {
        (_, Processor::X64) => "x86_64",
        (System::MacOs, Processor::Arm64) => "arm64",
        (_, Processor::Arm64) => "aarch64",
    };
    match (platform.system, platform.processor) {
        // Static: every musl will do.
        (System::Musl, _) => format!("musllinux_1_1_{machine}"),
        // The oldest systems that Rust builds for.
        (System::MacOs, Processor::X64) => format!("macosx_10_12_{machine}"),
        (System::MacOs, Processor::Arm64) => format!("macosx_11_0_{machine}"),
        (System::Glibc, _) => manylinux_tag(release.binary.glibc.unwrap_or_default(), machine),
    }
}

fn manylinux_tag(glibc: (u32, u32), machine: &str) -> String {
    if glibc <= MANYLINUX_2014 {
        return format!("manylinux_2_17_{machine}.manylinux2014_{machine}");
    }
    let (major, minor) = glibc;
    line(format_args!(
        "wheel: the binary needs glibc {major}.{minor}, and pip refuses it on older systems; \
         a target with `.2.17` at its end is built for glibc of 2014"
    ));
    format!("manylinux_{major}_{minor}_{machine}")
}

/// Returns a line for each platform of a tag that names several.
fn expand_tag(tag: &str) -> String {
    let (python, platforms) = tag.rsplit_once('-').unwrap_or_default();
    let lines = platforms
        .split('.')
        .map(|platform| format!("Tag: {python}-{platform}\n"));
    lines.collect()
}

/// Returns the version as Python spells prereleases: `1.0.0rc1` for `1.0.0-rc.1`.
fn python_version(version: &str) -> String {
    let spellings = [("-alpha.", "a"), ("-beta.", "b"), ("-rc.", "rc")];
    spellings
        .iter()
        .fold(version.to_owned(), |version, (semantic, python)| {
            version.replacen(semantic, python, 1)
        })
}

fn render_metadata(release: &Release, version: &str) -> anyhow::Result<String> {
    let names = &release.names;
    let mut metadata = String::from("Metadata-Version: 2.4\n");
    writeln!(metadata, "Name: {}", names.python.distribution)?;
    writeln!(metadata, "Version: {version}")?;
    metadata.push_str(
        "Summary: A directory of executable scripts as an MCP server\n\
         License-Expression: MIT OR Apache-2.0\n\
         License-File: LICENSE-APACHE\n\
         License-File: LICENSE-MIT\n\
         License-File: THIRD-PARTY-LICENSES.txt\n\
         Keywords: mcp,model-context-protocol,scripts\n",
    );
    writeln!(metadata, "Project-URL: Repository, {}", names.repository)?;
    metadata.push_str("Requires-Python: >=3.7\nDescription-Content-Type: text/markdown\n\n");
    metadata.push_str(&read("README.md")?);
    Ok(metadata)
}

/// Renders the sums and sizes of all files, and itself without.
fn render_record(files: &[PackageFile], path: &str) -> anyhow::Result<String> {
    let mut record = String::new();
    for file in files {
        let sum = URL_SAFE_NO_PAD.encode(Sha256::digest(&file.bytes));
        writeln!(record, "{},sha256={sum},{}", file.path, file.bytes.len())?;
    }
    writeln!(record, "{path},,")?;
    Ok(record)
}

fn zip(files: &[PackageFile], time: u64) -> anyhow::Result<Vec<u8>> {
    let time = Timestamp::from_second(i64::try_from(time)?)?.to_zoned(TimeZone::UTC);
    let (date, clock) = (time.date(), time.time());
    let time = DateTime::from_date_and_time(
        date.year().try_into()?,
        date.month().try_into()?,
        date.day().try_into()?,
        clock.hour().try_into()?,
        clock.minute().try_into()?,
        clock.second().try_into()?,
    )?;
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for file in files {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(6))
            .last_modified_time(time)
            .unix_permissions(file.mode);
        archive.start_file(&file.path, options)?;
        archive.write_all(&file.bytes)?;
    }
    Ok(archive.finish()?.into_inner())
}
