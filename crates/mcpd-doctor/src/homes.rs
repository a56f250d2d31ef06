//! Parts of the homes on this machine that confined scripts see.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use mcpd_exec::Sandbox;
use serde::Serialize;

/// A home directory, and the directories and files that programs keep in it.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Home {
    /// The home.
    pub path: PathBuf,
    /// Readable at `guarded`, as paths below the home.
    pub visible: BTreeSet<PathBuf>,
    /// Hidden at `guarded`, as paths below the home.
    pub hidden: BTreeSet<PathBuf>,
}

/// Reads every home whose secrets are hidden.
pub(crate) fn homes() -> Vec<Home> {
    let sandbox = Sandbox::guarded();
    let shown = sandbox.readable_in_homes();
    let homes = sandbox.homes.iter();
    homes
        .filter_map(|home| Home::new(home, &sandbox, &shown))
        .collect()
}

impl Home {
    fn new(home: &Path, sandbox: &Sandbox, shown: &[PathBuf]) -> Option<Self> {
        let entries = fs::read_dir(home).ok()?.flatten().map(|entry| entry.path());
        let is_hidden = |path: &PathBuf| sandbox.hidden_by(path).is_some();
        let below = |path: PathBuf| path.strip_prefix(home).map(Path::to_owned).ok();
        let visible = shown
            .iter()
            .filter(|path| path.exists() && !is_hidden(path));
        Some(Self {
            path: home.to_owned(),
            visible: visible.cloned().filter_map(below).collect(),
            hidden: entries.filter(is_hidden).filter_map(below).collect(),
        })
    }

    pub(crate) fn write(&self, text: &mut String) -> std::fmt::Result {
        let Self {
            path,
            visible,
            hidden,
        } = self;
        writeln!(
            text,
            "\nvisible to sandboxed scripts in the home directory {}",
            path.display()
        )?;
        let plain = "names without a leading dot";
        match visible.is_empty() {
            true => writeln!(text, "  guarded  {plain}")?,
            false => writeln!(text, "  guarded  {plain}, {}", list(visible))?,
        }
        writeln!(
            text,
            "  strict   the served directory and the working directory of the script"
        )?;
        if hidden.is_empty() {
            return Ok(());
        }
        writeln!(text, "  hidden   {}", list(hidden))?;
        writeln!(
            text,
            "  make hidden paths readable with `read` in `[sandbox.NAME]` or `--allow-read`"
        )
    }
}

/// Paths on one line, up to a readable number.
fn list(paths: &BTreeSet<PathBuf>) -> String {
    const MAX_PATHS: usize = 40;
    let shown = paths.iter().take(MAX_PATHS);
    let mut names: Vec<_> = shown.map(|path| path.display().to_string()).collect();
    if paths.len() > MAX_PATHS {
        names.push(format!("and {} more", paths.len() - MAX_PATHS));
    }
    names.join(", ")
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn home_lists_tool_chains_as_visible_and_the_rest_as_hidden() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path();
        for directory in [".cargo", ".config/git", ".foo", "notes"] {
            fs::create_dir_all(home.join(directory)).unwrap();
        }
        let mut sandbox = Sandbox::guarded();
        sandbox.homes = vec![home.to_owned()];
        let home = Home::new(home, &sandbox, &sandbox.readable_in_homes()).unwrap();
        let set = |paths: [&str; 2]| paths.map(PathBuf::from).into();
        assert_eq!(home.visible, set([".cargo", ".config/git"]));
        assert_eq!(home.hidden, set([".config", ".foo"]));
        let mut text = String::new();
        home.write(&mut text).unwrap();
        assert!(
            text.contains("without a leading dot, .cargo, .config/git\n"),
            "{text}"
        );
        assert!(text.contains("hidden   .config, .foo\n"), "{text}");
    }
}
