//! Roots with their own rules: which of their files are considered, and how those are probed.

use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::Probing;
use crate::policy::pattern::PatternError;

/// Settings of one directory with scripts and of everything below it.
///
/// Patterns are those of `.gitignore`, relative to the directory: `*.sh` matches any such file
/// below it, `/bin` an entry directly in it, `build/` a directory; `!` reverts an earlier
/// pattern.
///
/// ```
/// # fn main() -> Result<(), mcpd_server::policy::PatternError> {
/// let root = mcpd_server::policy::Root::new("/srv/tools").include(["bin/"])?.exclude(["*.bak"])?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Root {
    path: PathBuf,
    include: Globs,
    exclude: Globs,
    probing: Probing,
}

/// Patterns of `.gitignore`, as text and compiled.
#[derive(Debug, Clone)]
struct Globs {
    texts: Vec<String>,
    matcher: Gitignore,
}

impl PartialEq for Root {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
            && self.include.texts == other.include.texts
            && self.exclude.texts == other.exclude.texts
            && self.probing == other.probing
    }
}

impl Root {
    /// Creates settings for the directory at `path`, of which all files are considered.
    pub fn new(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        Self {
            path: path.canonicalize().unwrap_or_else(|_| path.to_owned()),
            include: Globs::empty(),
            exclude: Globs::empty(),
            probing: Probing::default(),
        }
    }

    /// Considers only the files that match one of `patterns`, or lie in a matching directory.
    ///
    /// # Errors
    ///
    /// Fails if a pattern is invalid.
    pub fn include<T: Into<String>>(
        mut self,
        patterns: impl IntoIterator<Item = T>,
    ) -> Result<Self, PatternError> {
        self.include = Globs::compile(&self.path, patterns)?;
        Ok(self)
    }

    /// Excludes the files and directories that match one of `patterns`.
    ///
    /// # Errors
    ///
    /// Fails if a pattern is invalid.
    pub fn exclude<T: Into<String>>(
        mut self,
        patterns: impl IntoIterator<Item = T>,
    ) -> Result<Self, PatternError> {
        self.exclude = Globs::compile(&self.path, patterns)?;
        Ok(self)
    }

    /// Sets the confinement of the scripts during probes.
    #[must_use]
    pub fn probing(mut self, probing: Probing) -> Self {
        self.probing = probing;
        self
    }

    /// Returns its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its settings of probes.
    pub(super) fn probing_settings(&self) -> &Probing {
        &self.probing
    }

    /// Returns why the file or directory at `path` is excluded, if it is.
    pub(crate) fn reason_against(&self, path: &Path, is_directory: bool) -> Option<String> {
        if let Some(pattern) = self.exclude.matching_pattern(path, is_directory) {
            return Some(format!("excluded by `{pattern}` in `exclude` of mcpd.toml"));
        }
        // An included file may lie deeper.
        let is_included = is_directory
            || self.include.texts.is_empty()
            || self.include.matching_pattern(path, is_directory).is_some();
        (!is_included).then(|| "not matched by `include` of mcpd.toml".to_owned())
    }
}

impl Globs {
    fn empty() -> Self {
        Self {
            texts: Vec::new(),
            matcher: Gitignore::empty(),
        }
    }

    fn compile<T: Into<String>>(
        root: &Path,
        patterns: impl IntoIterator<Item = T>,
    ) -> Result<Self, PatternError> {
        let texts: Vec<String> = patterns.into_iter().map(Into::into).collect();
        let mut builder = GitignoreBuilder::new(root);
        for text in &texts {
            builder
                .add_line(None, text)
                .map_err(|error| PatternError::new(text, &error.to_string()))?;
        }
        let matcher = builder
            .build()
            .map_err(|error| PatternError::new(&texts.join(", "), &error.to_string()))?;
        Ok(Self { texts, matcher })
    }

    /// Returns the pattern that matches `path` or a directory above it.
    fn matching_pattern(&self, path: &Path, is_directory: bool) -> Option<&str> {
        if self.texts.is_empty() || !path.starts_with(self.matcher.path()) {
            return None;
        }
        let found = self.matcher.matched_path_or_any_parents(path, is_directory);
        match found {
            ignore::Match::Ignore(glob) => Some(glob.original()),
            ignore::Match::None | ignore::Match::Whitelist(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(root: &Root, path: &str, is_served: bool) {
        let reason = root.reason_against(&root.path().join(path), false);
        assert_eq!(reason.is_none(), is_served, "{path}: {reason:?}");
    }

    #[test]
    fn files_are_chosen_by_patterns_of_gitignore() {
        let root = Root::new("/srv/tools");
        check(&root, "a/b", true);
        let root = root.include(["bin/", "/top", "*.py"]).unwrap();
        let root = root.exclude(["test_*", "!test_me.py"]).unwrap();
        for path in ["bin/a", "x/bin/y/z", "top", "x/y.py", "test_me.py"] {
            check(&root, path, true);
        }
        for path in ["a", "x/top", "bin/test_a", "test_b.py", "y.py.bak"] {
            check(&root, path, false);
        }
        assert!(
            root.reason_against(Path::new("/srv/tools/x"), true)
                .is_none()
        );
        assert!(root.reason_against(Path::new("/srv/other"), true).is_none());
    }

    #[test]
    fn faulty_pattern_is_named() {
        let error = Root::new("/srv").exclude(["a", "{b"]).unwrap_err();
        assert!(error.to_string().contains("`{b`"), "{error}");
    }
}
