//! Status of every file below the roots: served, faulty, passed over or ignored, and the reason.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use mcpd_scriptspec::Severity;
use mcpd_server::Catalog;
use mcpd_server::catalog::scan::{PassOverKind, ScannedScript};
use serde::Serialize;

/// A file or directory, and its status.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct ListedFile {
    /// Path, as the scan found it.
    pub file: PathBuf,
    /// Its status.
    pub status: FileStatus,
    /// Name in the catalog, if the file is served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Reason for the status, unless the file is served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Status of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FileStatus {
    /// The file is served, or describes or belongs to a served one.
    Served,
    /// The file should be served, and can't be.
    Faulty,
    /// The file is not as it was approved.
    HeldBack,
    /// The file is not meant to be served.
    PassedOver,
    /// The operator's patterns or the file's name exclude it.
    Ignored,
}

impl FileStatus {
    /// The status in words: `passed over`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Served => "served",
            Self::Faulty => "faulty",
            Self::HeldBack => "held back",
            Self::PassedOver => "passed over",
            Self::Ignored => "ignored",
        }
    }
}

/// Lists every file below the roots of a catalog, by its path. Ignored ones are among them if the
/// scan of the catalog was thorough.
#[must_use]
pub fn files(catalog: &Catalog) -> Vec<ListedFile> {
    let scan = catalog.scan();
    let mut files = Vec::new();
    let mut taken = BTreeSet::new();
    for script in &scan.scripts {
        let is_first = script.spec.is_none() || taken.insert(&script.path);
        files.push(of_script(script, is_first));
        if script.described_in != script.file {
            files.push(of_sidecar(script));
        }
    }
    files.extend(scan.static_files().map(|(uri, file)| ListedFile {
        file: file.to_owned(),
        status: FileStatus::Served,
        name: Some(uri),
        reason: None,
    }));
    files.extend(scan.unusable.iter().map(|unusable| ListedFile {
        file: unusable.file.clone(),
        status: FileStatus::Faulty,
        name: None,
        reason: Some(unusable.reason.clone()),
    }));
    let overlooked = |file: &Path| scan.overlooked.iter().find(|other| other.file == file);
    files.extend(scan.passed_over.iter().map(|passed| {
        let overlooked = overlooked(&passed.file).map(|file| &file.reason);
        ListedFile {
            file: passed.file.clone(),
            status: match passed.kind {
                PassOverKind::Ignored => FileStatus::Ignored,
                _ => FileStatus::PassedOver,
            },
            name: None,
            reason: Some(overlooked.unwrap_or(&passed.reason).clone()),
        }
    }));
    files.sort();
    // A file may hold several tools, and be described by a file of its own.
    files.dedup();
    files
}

fn of_script(script: &ScannedScript, is_first: bool) -> ListedFile {
    let errors = script.diagnostics.iter();
    let fault = errors
        .filter(|fault| fault.severity == Severity::Error)
        .map(|fault| fault.message.clone())
        .next();
    let (status, name, reason) = match (&script.spec, is_first) {
        _ if let Some(held_back) = &script.held_back => {
            (FileStatus::HeldBack, None, Some(held_back.to_string()))
        }
        (None, _) if !script.is_faulty() => {
            let reason = script.diagnostics.first();
            let reason = reason.map(|reason| reason.message.clone());
            (FileStatus::PassedOver, None, reason)
        }
        (None, _) => (FileStatus::Faulty, None, fault),
        (Some(_), true) => (FileStatus::Served, Some(script.path.to_string()), None),
        (Some(_), false) => {
            let reason = format!("another script is already served as `{}`", script.path);
            (FileStatus::PassedOver, None, Some(reason))
        }
    };
    ListedFile {
        file: script.file.clone(),
        status,
        name,
        reason,
    }
}

fn of_sidecar(script: &ScannedScript) -> ListedFile {
    ListedFile {
        file: script.described_in.clone(),
        status: match script.spec {
            Some(_) => FileStatus::Served,
            None => FileStatus::Faulty,
        },
        name: script.spec.as_ref().map(|_| script.path.to_string()),
        reason: script
            .spec
            .is_none()
            .then(|| format!("it describes `{}`", script.path)),
    }
}
