//! Reports on a bundle: before it is made, and after.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use super::{Calls, Content};

impl Content {
    /// Packed files, left-out files and settings, in lines, with the names of files.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = "files:\n".to_owned();
        for path in self.archive.paths() {
            let _ = writeln!(text, "  {path}");
        }
        let left_out = self.left_out();
        let keys = self.left_out_keys.iter();
        let keys = keys.map(|key| (format!("`{key}` of mcpd.toml"), "it is about this machine"));
        let left_out: Vec<_> = left_out.chain(keys).collect();
        if !left_out.is_empty() {
            text += "left out:\n";
        }
        for (what, reason) in left_out {
            let _ = writeln!(text, "  {what}: {reason}");
        }
        if !self.settings.is_empty() {
            text += "settings that the user of the bundle is asked for:\n";
        }
        for setting in &self.settings {
            let user = &setting.user;
            let required = if user.required { ", required" } else { "" };
            let secret = if user.sensitive { ", secret" } else { "" };
            let unset = match self.unset.contains(&setting.variable) {
                true => " (not set here, so the trial has another value)",
                false => "",
            };
            let (variable, title) = (&setting.variable, &user.title);
            let _ = writeln!(text, "  {variable}: {title}{required}{secret}{unset}");
        }
        text
    }

    /// Report on the finished bundle, for people.
    ///
    /// # Errors
    ///
    /// The file is gone.
    pub fn report(&self, target: &Path, digest: &str, calls: Calls) -> anyhow::Result<String> {
        let size = target.metadata()?.len();
        let mut text = format!("{}: {size} bytes, SHA-256 {digest}\n", target.display());
        let tools = count(self.manifest.tools.len(), "tool");
        let _ = writeln!(
            text,
            "unpacked and started as a client would: {tools} listed"
        );
        text += &match calls.passed {
            0 => "no tool was called: none has a case\n".to_owned(),
            passed => format!("{} called and passed\n", count(passed, "case")),
        };
        if calls.skipped > 0 {
            let skipped = count(calls.skipped, "case");
            let _ = writeln!(text, "not called: {skipped} with variables or answers");
        }
        Ok(text)
    }

    /// Report on the finished bundle, for programs.
    ///
    /// # Errors
    ///
    /// The file is gone.
    pub fn report_json(&self, target: &Path, digest: &str, calls: Calls) -> anyhow::Result<Value> {
        let left_out = self.left_out();
        let left_out = left_out.map(|(path, reason)| json!({"path": path, "reason": reason}));
        Ok(json!({
            "file": target,
            "sha256": digest,
            "size": target.metadata()?.len(),
            "files": self.archive.paths().collect::<Vec<_>>(),
            "left_out": left_out.collect::<Vec<_>>(),
            "left_out_keys": self.left_out_keys,
            "manifest": self.manifest,
            "unset": self.unset,
            "calls": {"passed": calls.passed, "skipped": calls.skipped},
        }))
    }
}

fn count(number: usize, what: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {what}{ending}")
}
