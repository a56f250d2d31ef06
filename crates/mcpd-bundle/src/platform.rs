//! Operating systems as clients of bundles name them. A bundle can't tell processors apart.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::BundleError;

/// Operating system that a program of a bundle is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Platform {
    /// macOS.
    Darwin,
    /// Linux.
    Linux,
    /// Windows.
    Windows,
}

impl Platform {
    /// Platform that this program was built for.
    #[must_use]
    pub const fn current() -> Self {
        if cfg!(windows) {
            Self::Windows
        } else if cfg!(target_os = "macos") {
            Self::Darwin
        } else {
            Self::Linux
        }
    }

    /// Platform of a program, by its first bytes; `None` for scripts and other files.
    #[must_use]
    pub fn of_program(beginning: &[u8]) -> Option<Self> {
        match beginning {
            [0x7f, b'E', b'L', b'F', ..] => Some(Self::Linux),
            [b'M', b'Z', ..] => Some(Self::Windows),
            // Mach-O of 64 bits, and a universal binary.
            [0xcf, 0xfa, 0xed, 0xfe, ..] | [0xca, 0xfe, 0xba, 0xbe, ..] => Some(Self::Darwin),
            _ => None,
        }
    }

    /// Platform of the program in a file.
    ///
    /// # Errors
    ///
    /// The file can't be read.
    pub fn of_file(file: &Path) -> Result<Option<Self>, BundleError> {
        let failed = |error| BundleError::of_file("read", file)(error);
        let mut beginning = Vec::new();
        let content = File::open(file).map_err(failed)?;
        content
            .take(4)
            .read_to_end(&mut beginning)
            .map_err(failed)?;
        Ok(Self::of_program(&beginning))
    }

    /// Programs by their platforms. Scripts are for the current one, and without any for it `own`
    /// is.
    ///
    /// # Errors
    ///
    /// Two are for one platform, or a file can't be read.
    pub fn of_files(
        files: &[PathBuf],
        own: PathBuf,
    ) -> Result<BTreeMap<Self, PathBuf>, BundleError> {
        let mut programs = BTreeMap::new();
        for file in files {
            let platform = Self::of_file(file)?.unwrap_or(Self::current());
            if let Some(first) = programs.insert(platform, file.clone()) {
                let second = file.clone();
                return Err(BundleError::SamePlatform {
                    platform,
                    first,
                    second,
                });
            }
        }
        programs.entry(Self::current()).or_insert(own);
        Ok(programs)
    }

    /// Name in a manifest, which is that of Node.js.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Darwin => "darwin",
            Self::Linux => "linux",
            Self::Windows => "win32",
        }
    }

    /// Path of the program in a bundle, which may have programs of several platforms.
    #[must_use]
    pub fn program_path(self, is_only_one: bool) -> String {
        let extension = if self == Self::Windows { ".exe" } else { "" };
        match is_only_one {
            true => format!("server/mcpd{extension}"),
            false => format!("server/{}/mcpd{extension}", self.name()),
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn platform_of_a_program_is_in_its_first_bytes() {
        let own = std::env::current_exe().unwrap();
        let platform = Platform::of_file(&own).unwrap();
        assert_eq!(platform, Some(Platform::current()));
        let programs = Platform::of_files(&[], own.clone()).unwrap();
        assert!(programs.into_keys().eq([Platform::current()]));
        assert!(Platform::of_files(&[own.clone(), own.clone()], own).is_err());
        assert_eq!(Platform::of_program(b"MZ\x90"), Some(Platform::Windows));
        assert_eq!(Platform::of_program(b"#!/bin/sh\n"), None);
        assert_eq!(Platform::of_program(b""), None);
    }
}
