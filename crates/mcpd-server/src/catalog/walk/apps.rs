//! Apps of tools: a page `NAME.ui.html` beside the script `NAME`, for clients that show results in
//! a frame (MCP Apps). A page that no client could show is rejected.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use super::{Reason, StaticFile, Walked, intended_sidecar_name, name, path_below};
use crate::script::fingerprint::Fingerprint;

/// Suffix of a page, after the name of the script.
const SUFFIX: &str = ".ui.html";

/// Returns the script whose page a file is by its name.
pub(crate) fn subject(file: &Path) -> Option<PathBuf> {
    let name = name(file);
    let subject = name.strip_suffix(SUFFIX)?;
    (!subject.is_empty()).then(|| file.with_file_name(subject))
}

/// Returns the page that a script may have.
pub(super) fn beside(script: &Path) -> PathBuf {
    let mut file = script.as_os_str().to_owned();
    file.push(SUFFIX);
    file.into()
}

impl Walked {
    /// Adds the page `file` of the script `subject`.
    pub(super) fn add_app(
        &mut self,
        root: &Path,
        (file, subject): (&Path, &Path),
        metadata: &Metadata,
    ) -> Result<(), Reason> {
        let path = path_below(root, file)?;
        let tool = path_below(root, subject)?;
        let fingerprint = Fingerprint::of(metadata);
        let (file, root) = (file.to_owned(), root.to_owned());
        let page = StaticFile::new(path, file, root, metadata.len(), fingerprint);
        self.files.push(page.into_app(tool));
        Ok(())
    }

    /// Rejects pages without a script, and those that no client could show.
    pub(super) fn check_apps(&mut self) {
        let files = std::mem::take(&mut self.files).into_iter();
        for file in files {
            let fault = file.app_of().and_then(|tool| {
                let subject = subject(file.file())?;
                if !self.scripts.contains_key(tool) && !self.is_hidden(&subject) {
                    let meant = intended_sidecar_name(&subject, file.file());
                    return Some(Reason::AppWithoutScript(meant));
                }
                fault(&file).map(Reason::FaultyApp)
            });
            match fault {
                Some(reason) => self.reject(file.file(), reason),
                None => self.files.push(file),
            }
        }
    }
}

/// Returns why a page can't be shown, if so.
fn fault(page: &StaticFile) -> Option<String> {
    let bytes = match page.read() {
        Ok(bytes) => bytes,
        Err(error) => return Some(error.to_string()),
    };
    let Ok(text) = std::str::from_utf8(&bytes) else {
        return Some("an app must be UTF-8".to_owned());
    };
    let text = text.trim_start_matches('\u{feff}').trim_start();
    // "Content MUST be valid HTML5 document" -- MCP Apps, 2026-01-26
    let is_document = ["<!doctype html", "<html"].iter().any(|start| {
        let beginning = text.get(..start.len()).unwrap_or_default();
        beginning.eq_ignore_ascii_case(start)
    });
    let expected = "an app must be an HTML document that begins with `<!doctype html>`";
    (!is_document).then(|| expected.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::walk;
    use super::*;

    #[track_caller]
    fn check(files: &[(&str, &str)], apps: &[&str], rejected: &[&str]) {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for (name, text) in files {
            fs::write(root.join(name), text).unwrap();
        }
        let walked = walk(&root, None);
        let found: Vec<_> = walked.files.iter().map(StaticFile::uri).collect();
        assert_eq!(found, apps);
        let found = walked.rejected.into_iter();
        let found: Vec<_> = found.map(|one| format!("{:?}", one.reason)).collect();
        assert_eq!(found, rejected);
    }

    #[test]
    fn app_belongs_to_the_script_beside_it() {
        let (page, sidecar) = ("<!DOCTYPE html><title>A</title>", "description = \"A\"\n");
        let script = |name| [(name, "#!/bin/sh\n"), ("a b.mcpd.toml", sidecar)];
        let with = |page| [&script("a b")[..], &[("a b.ui.html", page)]].concat();
        check(&with(page), &["ui://mcpd/a%20b"], &[]);
        check(&with("\n<HTML lang=en>"), &["ui://mcpd/a%20b"], &[]);
        for page in ["", "hello", "<b>é"] {
            let fault =
                "FaultyApp(\"an app must be an HTML document that begins with `<!doctype html>`\")";
            check(&with(page), &[], &[fault]);
        }
        check(&[("a.ui.html", page)], &[], &["AppWithoutScript(None)"]);
        let meant = "AppWithoutScript(Some(\"a.py.ui.html\"))";
        check(&[("a.ui.html", page), ("a.py", "")], &[], &[meant]);
        // The name alone is hidden.
        check(&[(".ui.html", page)], &[], &[]);
    }
}
