//! Scripts of a Script Kit without a schema. Clients cannot call them; only lists of the kit show
//! them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use mcpd_scriptspec::{Dialect, ScriptPath};

use super::files::{PassOverKind, PassedOver};
use super::{Scan, reading};

/// Directory in which Script Kit searches for scripts.
const DIRECTORY: &str = "scripts";

/// Script of a Script Kit that has no schema.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemalessScript {
    /// Path that it would have as a tool.
    pub path: ScriptPath,
    /// Location in the file system.
    pub file: PathBuf,
    /// Title, or else the name of its file.
    pub title: String,
    /// Description, if it has one.
    pub description: Option<String>,
}

impl Scan {
    /// Returns whether [`schemaless_scripts`](Self::schemaless_scripts) has any file to read.
    #[must_use]
    pub fn has_schemaless_scripts(&self) -> bool {
        self.schemaless_files().next().is_some()
    }

    /// Reads the metadata of the scripts of a Script Kit that have no schema. Blocks.
    #[must_use]
    pub fn schemaless_scripts(&self) -> Vec<SchemalessScript> {
        let files = self.schemaless_files();
        files.filter_map(SchemalessScript::read).collect()
    }

    fn schemaless_files(&self) -> impl Iterator<Item = &PassedOver> {
        let passed_over = self.passed_over.iter();
        passed_over
            .filter(|passed| passed.kind != PassOverKind::Ignored && is_kit_script(&passed.file))
    }
}

impl SchemalessScript {
    /// Reads the beginning of a file; `None` if that is unreadable or has no valid name.
    fn read(passed: &PassedOver) -> Option<Self> {
        let file = passed.file.clone();
        let text = String::from_utf8_lossy(&reading::read_head(&file).ok()?).into_owned();
        let name = file.file_name()?.to_str()?;
        let described = Dialect::ScriptKit.read(name, text.as_bytes()).pop()?;
        let spec = described.parsed.spec;
        let (title, description) = spec
            .map(|spec| (spec.title, spec.description))
            .unwrap_or_default();
        let title = title.or_else(|| Some(file.file_stem()?.to_str()?.to_owned()))?;
        Some(Self {
            path: described.path?.parse().ok()?,
            file,
            title,
            description,
        })
    }
}

/// Returns whether Script Kit lists a file among its scripts.
pub(super) fn is_kit_script(file: &Path) -> bool {
    let directory = file.parent().and_then(Path::file_name);
    let extension = file.extension().and_then(OsStr::to_str);
    directory.is_some_and(|name| name == DIRECTORY) && matches!(extension, Some("ts" | "js"))
}
