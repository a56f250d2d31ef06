//! Man pages and shell completions, printed by the binary itself if it has the commands for them
//! and runs on this machine.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

use anyhow::{Context as _, ensure};

use super::binary::Binary;
use crate::report::line;

/// Shells with completions, and the file of each below a prefix such as `/usr`.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/mcpd"),
    ("fish", "share/fish/vendor_completions.d/mcpd.fish"),
    ("zsh", "share/zsh/vendor-completions/_mcpd"),
];

/// Directory of the man pages below a prefix.
const MAN_PAGES: &str = "share/man/man1";

/// Generated file.
#[derive(Debug)]
pub(crate) struct Document {
    /// Path below a prefix such as `/usr`.
    pub(crate) path: String,
    pub(crate) text: Vec<u8>,
}

impl Document {
    pub(crate) fn is_man_page(&self) -> bool {
        self.path.starts_with(MAN_PAGES)
    }
}

/// Prints the documents that the binary has commands for: `mcpd man DIR` and
/// `mcpd completions SHELL`.
///
/// # Errors
///
/// Fails if the binary can't be run, or a command that its help names fails.
pub(crate) fn print(binary: &Binary) -> anyhow::Result<Vec<Document>> {
    if !binary.is_native() {
        line(format_args!(
            "man pages, completions: left out, the binary does not run on this machine"
        ));
        return Ok(Vec::new());
    }
    let directory = tempfile::tempdir()?;
    let program = directory.path().join("mcpd");
    // Closed before the program starts: Linux runs no file that is open for writing.
    fs::File::create(&program)?.write_all(&binary.bytes)?;
    fs::set_permissions(&program, Permissions::from_mode(0o755))?;
    let run = |arguments: &[&str]| -> anyhow::Result<Vec<u8>> {
        let output = start(&program, arguments)?;
        let log = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "`mcpd {}` failed: {log}",
            arguments.join(" ")
        );
        Ok(output.stdout)
    };
    let help = run(&["help"])?;
    let help = String::from_utf8_lossy(&help);
    let has = |command: &str| {
        help.lines()
            .any(|line| line.starts_with("  ") && line.split_whitespace().next() == Some(command))
    };
    let mut documents = Vec::new();
    if has("man") {
        let pages = directory.path().join("man");
        run(&["man", &pages.to_string_lossy()])?;
        for page in fs::read_dir(&pages)? {
            let page = page?;
            let name = page.file_name();
            documents.push(Document {
                path: format!("{MAN_PAGES}/{}", name.to_string_lossy()),
                text: fs::read(page.path())?,
            });
        }
        documents.sort_by(|a, b| a.path.cmp(&b.path));
    }
    if has("completions") {
        for (shell, path) in SHELLS {
            let text = run(&["completions", shell])?;
            let path = path.to_owned();
            documents.push(Document { path, text });
        }
    }
    Ok(documents)
}

/// Runs the binary apart from the configuration of this machine.
#[expect(clippy::disallowed_methods, reason = "mcpd is no script")]
fn start(program: &std::path::Path, arguments: &[&str]) -> anyhow::Result<Output> {
    let output = Command::new(program).args(arguments).env_clear().output();
    output.context("the binary can't be started")
}
