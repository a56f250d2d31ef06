//! Directories that the paths of clients' files start from. Nothing is read from the process: the
//! caller says where everything is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Operating system whose paths are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Platform {
    /// Linux and the other systems that follow XDG.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

impl Platform {
    /// Platform that this program was built for.
    #[must_use]
    pub fn current() -> Self {
        if cfg!(windows) {
            Self::Windows
        } else if cfg!(target_os = "macos") {
            Self::MacOs
        } else {
            Self::Linux
        }
    }
}

/// Directories of one user and one project.
#[derive(Debug, Clone)]
pub struct Places {
    platform: Platform,
    home: PathBuf,
    config: PathBuf,
    local_data: PathBuf,
    project: Option<PathBuf>,
    variables: BTreeMap<String, String>,
}

impl Places {
    /// Places below a home directory, with the platform's defaults.
    pub fn new(platform: Platform, home: impl Into<PathBuf>) -> Self {
        let home = home.into();
        let (config, local_data) = match platform {
            Platform::Linux => (home.join(".config"), home.join(".local/share")),
            Platform::MacOs => {
                let support = home.join("Library/Application Support");
                (support.clone(), support)
            }
            Platform::Windows => (home.join("AppData/Roaming"), home.join("AppData/Local")),
        };
        Self {
            platform,
            home,
            config,
            local_data,
            project: None,
            variables: BTreeMap::new(),
        }
    }

    /// Takes variables that move directories: `XDG_CONFIG_HOME` on Linux, `APPDATA` and
    /// `LOCALAPPDATA` on Windows, and those of single clients, such as `CODEX_HOME`. Empty values
    /// and relative paths count as unset.
    #[must_use]
    pub fn with_variables<I: IntoIterator<Item = (String, String)>>(mut self, all: I) -> Self {
        self.variables = all
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .collect();
        let variable = |name: &str| self.directory(name).map(Path::to_owned);
        let (config, local_data) = match self.platform {
            Platform::Linux => (variable("XDG_CONFIG_HOME"), variable("XDG_DATA_HOME")),
            Platform::MacOs => (None, None),
            Platform::Windows => (variable("APPDATA"), variable("LOCALAPPDATA")),
        };
        self.config = config.unwrap_or(self.config);
        self.local_data = local_data.unwrap_or(self.local_data);
        self
    }

    /// Sets the directory of the project: an absolute path.
    #[must_use]
    pub fn with_project(mut self, project: impl Into<PathBuf>) -> Self {
        self.project = Some(project.into());
        self
    }

    /// Platform whose paths are meant.
    #[must_use]
    pub fn platform(&self) -> Platform {
        self.platform
    }

    /// Home directory.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// `XDG_CONFIG_HOME`, `~/Library/Application Support` or `%APPDATA%`.
    #[must_use]
    pub fn config(&self) -> &Path {
        &self.config
    }

    /// `XDG_DATA_HOME`, `~/Library/Application Support` or `%LOCALAPPDATA%`.
    #[must_use]
    pub fn local_data(&self) -> &Path {
        &self.local_data
    }

    /// Directory of the project, if there is one.
    #[must_use]
    pub fn project(&self) -> Option<&Path> {
        self.project.as_deref()
    }

    /// Absolute path in a variable.
    pub(crate) fn directory(&self, variable: &str) -> Option<&Path> {
        let path = Path::new(self.variables.get(variable)?);
        path.is_absolute().then_some(path)
    }
}
