//! SHA-256 sums of a directory of packages, in the format of `sha256sum --check`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use sha2::{Digest as _, Sha256};

/// Name of the file with the sums.
const FILE: &str = "SHA256SUMS";

/// Writes the sums of all files in the directory, so that packages for several targets may be made
/// one after the other.
///
/// # Errors
///
/// Fails if a file can't be read or written.
pub(crate) fn write(directory: &Path) -> anyhow::Result<()> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != FILE && entry.file_type()?.is_file() {
            let sum = hex(&Sha256::digest(fs::read(entry.path())?));
            lines.push((name, sum));
        }
    }
    lines.sort();
    let lines = lines
        .into_iter()
        .map(|(name, sum)| format!("{sum}  {name}\n"));
    fs::write(directory.join(FILE), lines.collect::<String>())?;
    Ok(())
}

/// Returns bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string never fails.
        write!(text, "{byte:02x}").ok();
        text
    })
}
