//! Diagnosis of runs that failed because of hidden files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcpd_exec::{Command, Ending, Level, Outcome, Sandbox};
use mcpd_scriptspec::ScriptPath;

use crate::execution::output;
use crate::policy::EffectivePolicy;

/// Search for the hidden files that a failed run mentions.
pub(super) struct HiddenFileSearch {
    sandbox: Arc<Sandbox>,
    directory: PathBuf,
    search: Option<OsString>,
}

impl HiddenFileSearch {
    /// Exit codes of shells and `env` for a program that was not found or cannot be executed.
    const NOT_EXECUTED: [i32; 2] = [126, 127];

    pub(super) fn of(command: &Command, policy: &EffectivePolicy) -> Option<Self> {
        let sandbox = policy.shared_sandbox();
        (sandbox.level > Level::None).then(|| Self {
            sandbox: Arc::clone(sandbox),
            directory: command.directory().unwrap_or(Path::new("/")).to_owned(),
            search: command.variable("PATH"),
        })
    }

    /// Adds the hidden files that the script at `path` lacks to `outcome`, and logs them.
    pub(super) async fn find(mut self, path: &ScriptPath, outcome: &mut Outcome) {
        let Ending::Exited(code @ 1..) = outcome.ending else {
            return;
        };
        if !Self::NOT_EXECUTED.contains(&code) {
            self.search = None;
        }
        let text = output::tail(&outcome.stderr);
        let find = move || {
            self.sandbox
                .find_hidden(&text, &self.directory, self.search.as_deref())
        };
        // Without an answer the result is merely less detailed.
        outcome.hidden = tokio::task::spawn_blocking(find).await.unwrap_or_default();
        if let Some(lack) = output::describe_hidden_paths(outcome) {
            tracing::warn!(script = %path, "{lack}");
        }
    }
}
