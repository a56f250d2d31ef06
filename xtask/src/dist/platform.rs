//! Platforms that mcpd is packaged for, with their names in each kind of package.

use anyhow::Context as _;

/// Platforms with packages.
pub(crate) const PLATFORMS: [Platform; 6] = [
    Platform::new("x86_64-unknown-linux-gnu", System::Glibc, Processor::X64),
    Platform::new("aarch64-unknown-linux-gnu", System::Glibc, Processor::Arm64),
    Platform::new("x86_64-unknown-linux-musl", System::Musl, Processor::X64),
    Platform::new("aarch64-unknown-linux-musl", System::Musl, Processor::Arm64),
    Platform::new("x86_64-apple-darwin", System::MacOs, Processor::X64),
    Platform::new("aarch64-apple-darwin", System::MacOs, Processor::Arm64),
];

/// One platform.
#[derive(Debug)]
pub(crate) struct Platform {
    /// Name of the target in Rust.
    pub(crate) triple: &'static str,
    pub(crate) system: System,
    pub(crate) processor: Processor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum System {
    /// Linux with the GNU C library.
    Glibc,
    /// Linux with musl, or a static binary for any Linux.
    Musl,
    MacOs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Processor {
    X64,
    Arm64,
}

impl Platform {
    const fn new(triple: &'static str, system: System, processor: Processor) -> Self {
        Self {
            triple,
            system,
            processor,
        }
    }

    /// Returns the platform of a target.
    ///
    /// # Errors
    ///
    /// Fails if mcpd has no packages for it.
    pub(crate) fn find(triple: &str) -> anyhow::Result<&'static Self> {
        let found = PLATFORMS.iter().find(|platform| platform.triple == triple);
        found.with_context(|| {
            let known = PLATFORMS.map(|platform| platform.triple).join(", ");
            format!("no packages for the target `{triple}`; there are packages for {known}")
        })
    }

    /// Returns the architecture of Debian, if Debian has this platform.
    pub(crate) fn debian_architecture(&self) -> Option<&'static str> {
        (self.system == System::Glibc).then_some(match self.processor {
            Processor::X64 => "amd64",
            Processor::Arm64 => "arm64",
        })
    }

    /// Returns the end of the npm package's name: `linux-x64-musl`.
    pub(crate) fn npm_suffix(&self) -> String {
        let libc = match self.system {
            System::Musl => "-musl",
            System::Glibc | System::MacOs => "",
        };
        format!("{}-{}{libc}", self.npm_os(), self.npm_cpu())
    }

    /// Returns `process.platform` of Node.
    pub(crate) fn npm_os(&self) -> &'static str {
        match self.system {
            System::Glibc | System::Musl => "linux",
            System::MacOs => "darwin",
        }
    }

    /// Returns `process.arch` of Node.
    pub(crate) fn npm_cpu(&self) -> &'static str {
        match self.processor {
            Processor::X64 => "x64",
            Processor::Arm64 => "arm64",
        }
    }
}

/// Returns the target of this machine.
pub(crate) fn triple_of_this_machine() -> String {
    let libc = if cfg!(target_env = "musl") {
        "musl"
    } else {
        "gnu"
    };
    format!("{}-unknown-linux-{libc}", std::env::consts::ARCH)
}
