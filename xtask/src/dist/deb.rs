//! Debian package, written without `dpkg-deb`: the format is three members of an `ar` archive, and
//! so the package has the same bytes on every machine.

use std::fmt::Write as _;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use jiff::tz::TimeZone;
use md5::{Digest as _, Md5};

use super::archive::{PackageFile, gzip, parents, tar_gz};
use super::sums::hex;
use super::{Release, read};

/// Scripts that dpkg runs. None of them enables or starts the service.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Unit of `Installed-Size` in bytes.
const BLOCK: usize = 1024;

/// Makes the package.
///
/// # Errors
///
/// Fails if a file of the workspace can't be read.
pub(crate) fn make(release: &Release) -> anyhow::Result<PackageFile> {
    let mut files = installed_files(release)?;
    let sums: String = {
        files.sort_by(|one, other| one.path.cmp(&other.path));
        let contents = files.iter().filter(|file| !file.is_directory());
        contents
            .map(|file| format!("{}  {}\n", hex(&Md5::digest(&file.bytes)), file.path))
            .collect()
    };
    // Every installed directory that the package itself names.
    files.extend(parents(&files));
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files.dedup_by(|one, other| one.path == other.path);
    let mut control = vec![
        PackageFile::data("control", render_control(release, &files)?),
        PackageFile::data("md5sums", sums),
    ];
    for script in SCRIPTS {
        let text = read(&format!("packaging/debian/{script}"))?;
        control.push(PackageFile::program(script, text));
    }
    let version = debian_version(&release.version);
    let architecture = release.platform.debian_architecture().unwrap_or("all");
    let name = format!(
        "{}_{version}_{architecture}.deb",
        release.names.debian.package
    );
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", tar_gz(control, release.time)?),
        ("data.tar.gz", tar_gz(files, release.time)?),
    ];
    let mut package = ar::Builder::new(Vec::new());
    for (member, bytes) in members {
        let size = u64::try_from(bytes.len())?;
        let mut header = ar::Header::new(member.into(), size);
        header.set_mode(0o100_644);
        header.set_mtime(release.time);
        package.append(&header, bytes.as_slice())?;
    }
    Ok(PackageFile::data(name, package.into_inner()?))
}

/// Returns the installed files.
fn installed_files(release: &Release) -> anyhow::Result<Vec<PackageFile>> {
    let package = &release.names.debian.package;
    let manual = format!("usr/share/doc/{package}");
    let mut files = vec![
        PackageFile::program("usr/bin/mcpd", release.binary.bytes.clone()),
        // The unit serves it; empty, it is removed with the package.
        PackageFile::directory("etc/mcpd/scripts"),
        PackageFile::data(format!("{manual}/copyright"), render_copyright(release)?),
        PackageFile::data(
            format!("{manual}/THIRD-PARTY-LICENSES.txt.gz"),
            gzip(release.licences.as_bytes())?,
        ),
        PackageFile::data(
            format!("{manual}/mcpd.cdx.json.gz"),
            gzip(release.sbom.as_bytes())?,
        ),
        PackageFile::data(
            format!("{manual}/CHANGELOG.md.gz"),
            gzip(read("CHANGELOG.md")?.as_bytes())?,
        ),
        PackageFile::data(
            format!("{manual}/changelog.gz"),
            gzip(render_changelog(release)?.as_bytes())?,
        ),
        PackageFile::data(format!("{manual}/README.md"), read("README.md")?),
    ];
    for unit in ["mcpd.service", "mcpd.socket"] {
        let text = read(&format!("packaging/systemd/{unit}"))?;
        let text = text.replace("/usr/local/bin/mcpd", "/usr/bin/mcpd");
        files.push(PackageFile::data(
            format!("usr/lib/systemd/system/{unit}"),
            text,
        ));
    }
    for document in &release.documents {
        let (path, bytes) = if document.is_man_page() {
            (format!("usr/{}.gz", document.path), gzip(&document.text)?)
        } else {
            (format!("usr/{}", document.path), document.text.clone())
        };
        files.push(PackageFile::data(path, bytes));
    }
    Ok(files)
}

fn render_control(release: &Release, files: &[PackageFile]) -> anyhow::Result<String> {
    // As dpkg-gencontrol counts: whole blocks of files, one for each directory.
    let size: usize = files
        .iter()
        .map(|file| file.bytes.len().div_ceil(BLOCK).max(1))
        .sum();
    let names = &release.names;
    let mut control = String::new();
    writeln!(control, "Package: {}", names.debian.package)?;
    writeln!(control, "Version: {}", debian_version(&release.version))?;
    let architecture = release.platform.debian_architecture().unwrap_or("all");
    writeln!(control, "Architecture: {architecture}")?;
    writeln!(control, "Maintainer: {}", names.debian.maintainer)?;
    writeln!(control, "Installed-Size: {size}")?;
    writeln!(control, "Depends: {}", depends(release))?;
    // For servers, issuers and collectors by `https`.
    writeln!(control, "Recommends: ca-certificates")?;
    writeln!(control, "Section: net\nPriority: optional")?;
    writeln!(control, "Homepage: {}", names.repository)?;
    control.push_str(
        "Description: directory of executable scripts as an MCP server\n \
         mcpd serves scripts as tools, prompts and resources to clients that speak\n \
         the Model Context Protocol. It checks the arguments of every call, runs the\n \
         script within limits, confined if wanted, and returns what it printed.\n \
         .\n \
         The package brings a unit for systemd, which is not enabled.\n",
    );
    Ok(control)
}

/// Renders the one entry that tools of Debian read for the version and its time.
fn render_changelog(release: &Release) -> anyhow::Result<String> {
    let debian = &release.names.debian;
    let time = Timestamp::from_second(i64::try_from(release.time)?)?.to_zoned(TimeZone::UTC);
    Ok(format!(
        "{} ({}) unstable; urgency=medium\n\n  * See CHANGELOG.md.gz.\n\n -- {}  {}\n",
        debian.package,
        debian_version(&release.version),
        debian.maintainer,
        rfc2822::to_string(&time)?
    ))
}

/// Returns the libraries of the binary as packages of Debian.
fn depends(release: &Release) -> String {
    let binary = &release.binary;
    let (major, minor) = binary.glibc.unwrap_or_default();
    let mut depends = format!("libc6 (>= {major}.{minor})");
    if binary
        .libraries
        .iter()
        .any(|library| library == "libgcc_s.so.1")
    {
        depends.push_str(", libgcc-s1");
    }
    depends
}

/// Returns a version that sorts before that of the release if it is of a prerelease.
fn debian_version(version: &str) -> String {
    version.replacen('-', "~", 1)
}

/// Renders the copyright in the machine-readable format of Debian.
fn render_copyright(release: &Release) -> anyhow::Result<String> {
    let mit = read("LICENSE-MIT")?;
    let holders: Vec<_> = mit
        .lines()
        .filter_map(|line| line.strip_prefix("Copyright (c) "))
        .collect();
    let text: String = mit
        .lines()
        .map(|line| match line.trim_end() {
            "" => " .\n".to_owned(),
            line => format!(" {line}\n"),
        })
        .collect();
    Ok(format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: mcpd\n\
         Source: {}\n\
         Comment: The binary contains code of others: see THIRD-PARTY-LICENSES.txt.gz.\n\n\
         Files: *\n\
         Copyright: {}\n\
         License: MIT or Apache-2.0\n\n\
         License: MIT\n{text}\n\
         License: Apache-2.0\n \
         On Debian systems the licence is in /usr/share/common-licenses/Apache-2.0.\n",
        release.names.repository,
        holders.join("\n ")
    ))
}
