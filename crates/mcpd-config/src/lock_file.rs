//! Lock file: the reviewed contents of sources, and what is approved of each tool. `mcpd update`
//! writes one part, `mcpd lock` and `mcpd approve` write the other, and each keeps the part of the
//! other.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use mcpd_files::{Access, NewFile};
use mcpd_server::catalog::pins::{Locked, Pins, Roots};
use mcpd_sources::Lock;
use toml_edit::DocumentMut;

use crate::file::File;
use crate::options::Locking;

/// Name of the lock file.
const NAME: &str = "mcpd.lock";

/// Tables of what is approved. All others are those of sources.
const TABLES: [&str; 3] = ["unlocked", "tool", "file"];

/// Content of a lock file, and its place.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LockFile {
    path: PathBuf,
    /// Reviewed contents of sources.
    pub sources: Lock,
    /// Approved tools, prompts, resources and other files.
    pub pins: Pins,
}

impl LockFile {
    /// Reads the lock file at `path`; one that is missing locks nothing.
    ///
    /// # Errors
    ///
    /// The file can't be read, or is no lock file.
    pub fn read(path: PathBuf) -> anyhow::Result<Self> {
        let named = || format!("read `{}`", path.display());
        let (sources, pins) = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Default::default(),
            text => parse(&text.with_context(named)?).with_context(named)?,
        };
        Ok(Self {
            path,
            sources,
            pins,
        })
    }

    /// Place of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the file in place of the one that is there.
    ///
    /// # Errors
    ///
    /// It can't be written.
    pub fn write(&self) -> anyhow::Result<()> {
        let named = || format!("write `{}`", self.path.display());
        let mut text = self.sources.to_string();
        if self.pins != Pins::default() {
            text += "\n";
            text += &toml::to_string_pretty(&self.pins).with_context(named)?;
        }
        // Other users review it, so the umask applies.
        let new = NewFile::with_content(&self.path, text.as_bytes(), Access::Default);
        new.and_then(NewFile::replace).with_context(named)
    }

    /// Names of roots in this file.
    pub fn roots(&self, file: &File) -> Roots {
        let base = match self.path.parent() {
            Some(directory) if !directory.as_os_str().is_empty() => directory,
            _ => Path::new("."),
        };
        Roots::new(base, file.reviewed.values().cloned())
    }
}

fn parse(text: &str) -> anyhow::Result<(Lock, Pins)> {
    let mut sources: DocumentMut = text.parse()?;
    let mut pins = DocumentMut::new();
    for name in TABLES {
        if let Some(table) = sources.remove(name) {
            pins.insert(name, table);
        }
    }
    let sources = sources.to_string().parse()?;
    Ok((sources, toml::from_str(&pins.to_string())?))
}

impl File {
    /// Place of the lock file for scripts below `roots`: the one that the user names, or else
    /// beside `mcpd.toml`, or else in the first root.
    pub fn lock_file<'a>(
        &self,
        locking: &Locking,
        roots: impl IntoIterator<Item = &'a PathBuf>,
    ) -> PathBuf {
        if let Some(path) = &locking.lock_file {
            return path.clone();
        }
        if self.path().is_some() {
            return self.lock_path();
        }
        match roots.into_iter().next() {
            Some(root) if root.is_file() => root.with_file_name(NAME),
            Some(root) => root.join(NAME),
            None => NAME.into(),
        }
    }

    /// Path of the lock file of sources, beside this one.
    pub fn lock_path(&self) -> PathBuf {
        self.absolute(Path::new(NAME))
    }
}

/// Approved entries below `roots`, if only these are served.
///
/// # Errors
///
/// There is no lock file, or a faulty one.
pub fn locked<'a>(
    file: &File,
    locking: &Locking,
    roots: impl IntoIterator<Item = &'a PathBuf>,
) -> anyhow::Result<Option<Locked>> {
    if !locking.locked {
        return Ok(None);
    }
    let roots: Vec<_> = roots.into_iter().collect();
    let path = file.lock_file(locking, roots.iter().copied());
    if !path.exists() {
        let roots: BTreeSet<_> = roots
            .iter()
            .map(|root| root.display().to_string())
            .collect();
        let roots: Vec<_> = roots.into_iter().collect();
        bail!(
            "serve only what is approved: there is no lock file `{}`; create it with `mcpd lock {}`",
            path.display(),
            roots.join(" ")
        );
    }
    let lock = LockFile::read(path)?;
    let roots = lock.roots(file);
    Ok(Some(Locked::new(lock.pins, roots)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCES: &str = "version = 1\n\n[[source]]\nurl = \"git+https://a.example/x\"\n";

    fn sources() -> String {
        let digest = "0".repeat(64);
        format!(
            "{SOURCES}commit = \"{}\"\ntree = \"{digest}\"\n",
            "a".repeat(40)
        )
    }

    #[test]
    fn both_parts_of_a_lock_file_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(NAME);
        let tool = "[[tool]]\nroot = \".\"\npath = \"a\"\nkind = \"tool\"\n\n[tool.definition]\n\
            description = \"x\"\n";
        let text = format!("{}\n{tool}", sources());
        fs::write(&path, &text).unwrap();
        let mut lock = LockFile::read(path.clone()).unwrap();
        lock.write().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        lock.pins = Pins::default();
        lock.write().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), sources());
    }

    #[test]
    fn faulty_lock_files_are_refused() {
        for (text, reason) in [
            (
                "version = 1\n[[tool]]\nroot = \".\"\n",
                "missing field `path`",
            ),
            (
                "version = 1\n[[tool]]\nroot = \".\"\npath = \"a\"\nkind = \"x\"\n",
                "unknown variant",
            ),
            ("version = 1\nother = 1\n", "other"),
            ("[[tool]]\n", "version"),
            ("version = 1\n[[tool]\n", "tool"),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn lock_file_lies_beside_the_configuration_or_in_the_first_root() {
        let roots = [PathBuf::from("a"), PathBuf::from("b")];
        let mut locking = Locking::default();
        let place = |file: &File, locking: &Locking| file.lock_file(locking, &roots);
        assert_eq!(place(&File::default(), &locking), Path::new("a/mcpd.lock"));
        let file = File::of_text(Path::new("/etc/mcpd/mcpd.toml"), String::new()).unwrap();
        assert_eq!(place(&file, &locking), Path::new("/etc/mcpd/mcpd.lock"));
        locking.lock_file = Some("c".into());
        assert_eq!(place(&file, &locking), Path::new("c"));
    }
}
