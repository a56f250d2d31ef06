//! Binary of a release: its build, and facts that its packages state about it, read from its ELF
//! header rather than assumed: processor, C library and the versions of its symbols.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use elf::ElfBytes;
use elf::endian::AnyEndian;

use super::WORKSPACE;
use super::platform::{Platform, Processor, System, triple_of_this_machine};
use crate::layout;

/// Magic number of an ELF file.
const ELF_MAGIC: &[u8] = b"\x7fELF";

/// Magic number of a 64-bit Mach-O file.
const MACH_O_MAGIC: &[u8] = &[0xcf, 0xfa, 0xed, 0xfe];

/// Shared libraries that every Linux with glibc has. A package that needs another one would have
/// to bring it along.
const SYSTEM_LIBRARIES: [&str; 8] = [
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libgcc_s.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
];

/// The binary, and what it needs.
#[derive(Debug)]
pub(crate) struct Binary {
    pub(crate) bytes: Vec<u8>,
    /// Newest version of a symbol of glibc, and with that the oldest glibc that it starts with.
    pub(crate) glibc: Option<(u32, u32)>,
    /// Shared libraries.
    pub(crate) libraries: Vec<String>,
}

impl Binary {
    /// Reads what the binary needs.
    ///
    /// # Errors
    ///
    /// Fails if it is not of the platform, or needs a library that not every system has.
    pub(crate) fn inspect(bytes: Vec<u8>, platform: &Platform) -> anyhow::Result<Self> {
        let wrong = || format!("the binary is not of the target `{}`", platform.triple);
        if platform.system == System::MacOs {
            ensure!(bytes.starts_with(MACH_O_MAGIC), wrong());
            return Ok(Self {
                bytes,
                glibc: None,
                libraries: Vec::new(),
            });
        }
        ensure!(bytes.starts_with(ELF_MAGIC), wrong());
        let file = ElfBytes::<AnyEndian>::minimal_parse(&bytes)?;
        let machine = match platform.processor {
            Processor::X64 => elf::abi::EM_X86_64,
            Processor::Arm64 => elf::abi::EM_AARCH64,
        };
        let glibc = newest_glibc_symbol(&file)?;
        let uses_glibc = glibc.is_some();
        let is_right = uses_glibc == (platform.system == System::Glibc);
        ensure!(file.ehdr.e_machine == machine && is_right, wrong());
        let libraries = needed_libraries(&file)?;
        for library in &libraries {
            let is_known = SYSTEM_LIBRARIES.contains(&library.as_str());
            ensure!(
                is_known || !uses_glibc,
                "the binary needs `{library}`, which not every Linux has"
            );
        }
        Ok(Self {
            bytes,
            glibc,
            libraries,
        })
    }

    /// Returns whether the binary can run on this machine.
    pub(crate) fn is_native(&self) -> bool {
        let Ok(file) = ElfBytes::<AnyEndian>::minimal_parse(&self.bytes) else {
            return false;
        };
        let machine = if cfg!(target_arch = "aarch64") {
            elf::abi::EM_AARCH64
        } else {
            elf::abi::EM_X86_64
        };
        // A static binary for musl runs with any C library.
        file.ehdr.e_machine == machine
            && (self.libraries.is_empty() || self.glibc.is_some() == cfg!(target_env = "gnu"))
    }
}

/// Returns the newest version of glibc that a symbol is bound to.
fn newest_glibc_symbol(file: &ElfBytes<'_, AnyEndian>) -> anyhow::Result<Option<(u32, u32)>> {
    let (Some(versions), Some((symbols, _))) =
        (file.symbol_version_table()?, file.dynamic_symbol_table()?)
    else {
        return Ok(None);
    };
    let mut newest = None;
    for index in 0..symbols.len() {
        let version = versions.get_requirement(index)?;
        newest = newest.max(version.and_then(|version| parse_glibc(version.name)));
    }
    Ok(newest)
}

/// Parses the version of a symbol: `GLIBC_2.34`, or `GLIBC_2.2.5`.
fn parse_glibc(name: &str) -> Option<(u32, u32)> {
    let mut numbers = name.strip_prefix("GLIBC_")?.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn needed_libraries(file: &ElfBytes<'_, AnyEndian>) -> anyhow::Result<Vec<String>> {
    let common = file.find_common_data()?;
    let (Some(dynamic), Some(names)) = (common.dynamic, common.dynsyms_strs) else {
        return Ok(Vec::new());
    };
    let needed = dynamic
        .iter()
        .filter(|entry| entry.d_tag == elf::abi::DT_NEEDED);
    needed
        .map(|entry| Ok(names.get(usize::try_from(entry.d_val())?)?.to_owned()))
        .collect()
}

/// Returns the target without the version of glibc that `cargo zigbuild` takes behind it.
pub(crate) fn without_libc_version(target: &str) -> &str {
    target.split_once('.').map_or(target, |(triple, _)| triple)
}

/// Builds the binary with the profile `dist`, and returns its path.
///
/// # Errors
///
/// Fails if the build fails, or `cargo zigbuild` is needed and not installed.
pub(crate) fn build(target: &str) -> anyhow::Result<PathBuf> {
    let arguments = ["--profile", "dist", "--locked", "--target", target];
    if target.contains('.') {
        ensure!(
            output("cargo", &["zigbuild", "--help"]).is_ok(),
            "`{target}` needs `cargo zigbuild`, which is not installed: \
             `pip install ziglang cargo-zigbuild`, or leave out the version of glibc"
        );
        return layout::build_with("zigbuild", &arguments, &[]);
    }
    match target == triple_of_this_machine() {
        true => layout::build(&arguments),
        false => layout::build_with("build", &arguments, &[]),
    }
}

/// Runs a program in the workspace, and returns its output.
///
/// # Errors
///
/// Fails if it can't be started or fails.
#[expect(clippy::disallowed_methods, reason = "git and cargo are no scripts")]
pub(crate) fn output(program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(WORKSPACE)
        .output()
        .with_context(|| format!("failed to start `{program}`"))?;
    if !output.status.success() {
        let log = String::from_utf8_lossy(&output.stderr);
        bail!("`{program} {}` failed: {}", arguments.join(" "), log.trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}
