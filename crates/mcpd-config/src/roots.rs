//! Roots of the file: directories of this machine, and sources elsewhere, which are served as they
//! were reviewed. `mcpd.lock` beside the file says what that is.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use mcpd_exec::Executor;
use mcpd_sources::{Lock, Pin, Source, Store};

use crate::directories;
use crate::file::File;
use crate::lock_file::LockFile;

/// A source in `roots` or `[[root]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RootSource {
    /// The address as it is in the file.
    pub address: String,
    /// The parsed address.
    pub source: Source,
}

/// Reviewed contents on this machine, by address as it is in the file.
pub(crate) type Reviewed = BTreeMap<PathBuf, PathBuf>;

/// Returns whether a root is an address rather than a directory of this machine.
pub fn is_address(root: &Path) -> bool {
    let text = root.to_string_lossy();
    text.starts_with("git+") || text.contains("://")
}

/// The store of reviewed contents of this user.
///
/// # Errors
///
/// There is no home directory.
pub fn store() -> anyhow::Result<Store> {
    Ok(Store::new(directories::data()?.join("sources")))
}

impl File {
    /// The sources among the roots, each once.
    ///
    /// # Errors
    ///
    /// A faulty address, with its place.
    pub fn sources(&self) -> anyhow::Result<Vec<RootSource>> {
        let mut sources: Vec<RootSource> = Vec::new();
        for (key, root, span) in self.root_texts().filter(|(_, root, _)| is_address(root)) {
            let address = root.to_string_lossy().into_owned();
            let source = address
                .parse()
                .map_err(|error| self.failure(key, span, &anyhow::Error::from(error)))?;
            let source = RootSource { address, source };
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        Ok(sources)
    }

    /// Reads the lock file of the sources; one that is missing pins nothing.
    ///
    /// # Errors
    ///
    /// The file can't be read, or is no lock file.
    pub fn lock(&self) -> anyhow::Result<Lock> {
        Ok(LockFile::read(self.lock_path())?.sources)
    }

    /// Replaces the part of sources in the lock file.
    ///
    /// # Errors
    ///
    /// It can't be read or written.
    pub fn write_lock(&self, lock: &Lock) -> anyhow::Result<()> {
        let mut file = LockFile::read(self.lock_path())?;
        file.sources = lock.clone();
        file.write()
    }

    /// Finds what was reviewed of each source, and fetches it again if this machine does not have
    /// it and `may_fetch`. Sources of which nothing is found are not served; the reasons are
    /// returned. Without sources this does nothing.
    ///
    /// # Errors
    ///
    /// A faulty address or lock file.
    pub async fn open_sources(&mut self, may_fetch: bool) -> anyhow::Result<Vec<anyhow::Error>> {
        let sources = self.sources()?;
        if sources.is_empty() {
            return Ok(Vec::new());
        }
        let lock = self.lock()?;
        let store = store()?;
        let mut faults = Vec::new();
        for RootSource { address, source } in sources {
            let opened = match lock.get(&source) {
                None => Err(anyhow::anyhow!("it was never reviewed; run `mcpd update`")),
                Some(pin) => open(&store, &source, pin, may_fetch).await,
            };
            match opened {
                Ok(root) => drop(self.reviewed.insert(address.into(), root)),
                Err(error) => {
                    faults.push(error.context(format!("serve the source `{address}`")));
                }
            }
        }
        Ok(faults)
    }

    /// Absolute path of a root; none for a source of which nothing is to be served.
    pub(crate) fn root(&self, root: &Path) -> Option<PathBuf> {
        match is_address(root) {
            true => self.reviewed.get(root).cloned(),
            false => Some(self.absolute(root)),
        }
    }

    /// The roots as they are written, each with its key and place.
    pub(crate) fn root_texts(&self) -> impl Iterator<Item = (&'static str, &Path, Range<usize>)> {
        let roots = self.tables.roots.iter().flatten();
        let roots = roots.map(|root| ("roots", root));
        let own = self.tables.root.iter().map(|root| ("path", &root.path));
        roots
            .chain(own)
            .map(|(key, root)| (key, root.get_ref().as_path(), root.span()))
    }
}

/// The content of a pin, from the store or, if it must be, from its source.
async fn open(
    store: &Store,
    source: &Source,
    pin: &Pin,
    may_fetch: bool,
) -> anyhow::Result<PathBuf> {
    if let Some(root) = store.find(pin.tree).await? {
        return Ok(root);
    }
    if !may_fetch {
        anyhow::bail!("what was reviewed is not on this machine");
    }
    let fetched = source
        .fetch(&executor()?, Some(pin), store.directory())
        .await
        .context("fetch what was reviewed, which is not on this machine")?;
    Ok(store.keep(fetched).await?)
}

/// Executor of `git`.
///
/// # Errors
///
/// The system runs no processes.
fn executor() -> anyhow::Result<Executor> {
    crate::server::executor(None, None)
}
