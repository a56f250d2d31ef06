//! Sources, fetched: their content as a directory of its own, which nothing has run.

use std::path::{Path, PathBuf};

use mcpd_exec::Executor;
use tempfile::TempDir;
use url::Url;

use crate::git::Repository;
use crate::staging::Staging;
use crate::{Digest, FetchError, Pin, Source, archive};

/// Content of a source. It is deleted when this is dropped, unless a [`Store`](crate::Store) takes
/// it.
#[derive(Debug)]
pub struct Fetched {
    directory: TempDir,
    root: PathBuf,
    pin: Pin,
}

impl Fetched {
    /// The directory with the content.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Pin of this content.
    #[must_use]
    pub fn pin(&self) -> &Pin {
        &self.pin
    }

    pub(crate) fn into_parts(self) -> (TempDir, PathBuf) {
        (self.directory, self.root)
    }
}

impl Source {
    /// Fetches the content: that of the commit of `pin`, or else of the revision as it is now.
    /// The directory is made inside `parent`, in which a [`Store`](crate::Store) keeps it.
    ///
    /// No part of the content is run, and no program but `git` and what it starts for a transport.
    ///
    /// # Errors
    ///
    /// [`FetchError`] if the host, the revision or the directory is not there, an entry is
    /// refused, there is too much, or the content is not what `pin` says.
    pub async fn fetch(
        &self,
        executor: &Executor,
        pin: Option<&Pin>,
        parent: &Path,
    ) -> Result<Fetched, FetchError> {
        let staging = Staging::new_in(parent).map_err(|reason| FetchError::Write {
            path: parent.to_owned(),
            reason,
        })?;
        let fetched = match self {
            Self::Git {
                url,
                revision,
                path,
            } => {
                let commit = pin.and_then(|pin| pin.commit.as_deref());
                let wanted = commit.or(revision.as_deref());
                fetch_git(executor, url, wanted, path.as_deref(), staging).await?
            }
            Self::Archive { url, digest } => fetch_archive(url, *digest, staging).await?,
        };
        match pin.filter(|pin| pin.tree != fetched.pin.tree) {
            Some(pin) => Err(FetchError::Digest {
                expected: pin.tree,
                found: fetched.pin.tree,
            }),
            None => Ok(fetched),
        }
    }
}

async fn fetch_git(
    executor: &Executor,
    url: &Url,
    revision: Option<&str>,
    path: Option<&str>,
    mut staging: Staging,
) -> Result<Fetched, FetchError> {
    let repository = tempfile::tempdir().map_err(|reason| FetchError::Write {
        path: std::env::temp_dir(),
        reason,
    })?;
    let git = Repository::new(executor, repository.path(), url).await?;
    let commit = git.fetch(url, revision).await?;
    git.extract(&commit, path, &mut staging).await?;
    let (directory, root, tree) = staging.finish(Path::new(""))?;
    Ok(Fetched {
        directory,
        root,
        pin: Pin::git(commit, tree),
    })
}

async fn fetch_archive(
    url: &Url,
    digest: Digest,
    mut staging: Staging,
) -> Result<Fetched, FetchError> {
    let bytes = archive::download(url, digest).await?;
    let url = url.clone();
    let (directory, root, tree) = blocking(move || {
        archive::unpack(&url, &bytes, &mut staging)?;
        let root = staging.only_directory()?;
        staging.finish(&root)
    })
    .await?;
    Ok(Fetched {
        directory,
        root,
        pin: Pin::archive(tree),
    })
}

/// Runs work on a thread that may wait for a disk.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FetchError> + Send + 'static,
) -> Result<T, FetchError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(FetchError::Archive {
            reason: error.to_string(),
        }),
    }
}
