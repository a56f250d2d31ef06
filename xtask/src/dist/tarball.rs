//! Archive for every other way of installing: `mcpd-VERSION-TARGET.tar.gz`, with one directory of
//! the same name.

use super::archive::{PackageFile, parents, tar_gz};
use super::platform::System;
use super::{Release, read};

/// Makes the archive.
///
/// # Errors
///
/// Fails if a file of the workspace can't be read.
pub(crate) fn make(release: &Release) -> anyhow::Result<PackageFile> {
    let name = format!("mcpd-{}-{}", release.version, release.platform.triple);
    let mut files = vec![PackageFile::program("mcpd", release.binary.bytes.clone())];
    for file in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        files.push(PackageFile::data(file, read(file)?));
    }
    files.push(PackageFile::data(
        "THIRD-PARTY-LICENSES.txt",
        release.licences.clone(),
    ));
    files.push(PackageFile::data("mcpd.cdx.json", release.sbom.clone()));
    for document in &release.documents {
        files.push(PackageFile::data(
            document.path.clone(),
            document.text.clone(),
        ));
    }
    if release.platform.system != System::MacOs {
        for unit in ["systemd/mcpd.service", "systemd/mcpd.socket"] {
            files.push(PackageFile::data(unit, read(&format!("packaging/{unit}"))?));
        }
    }
    for file in &mut files {
        file.path = format!("{name}/{}", file.path);
    }
    files.extend(parents(&files));
    let archive = tar_gz(files, release.time)?;
    Ok(PackageFile::data(format!("{name}.tar.gz"), archive))
}
