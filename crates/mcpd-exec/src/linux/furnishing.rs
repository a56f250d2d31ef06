//! The furnishing of namespaces, made once for runs that see the same: to look for all that is to be hidden takes a tenth
//! of a run.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::namespaces::{self, Proc, View};
use super::raw::Step;
use super::watch::Watch;
use crate::sandbox::Sandbox;

/// How the namespaces of some runs are furnished.
#[derive(Debug)]
pub(crate) struct Furnishing {
    sandbox: Arc<Sandbox>,
    visible: Vec<PathBuf>,
    proc: Proc,
    steps: Vec<Step>,
    skipped: Vec<PathBuf>,
    /// What the steps were made of.
    watch: Watch,
}

impl Furnishing {
    fn new(sandbox: &Arc<Sandbox>, visible: &[&Path], proc: Proc) -> io::Result<Self> {
        let view = View { sandbox, visible };
        let mut watch = Watch::default();
        Ok(Self {
            sandbox: Arc::clone(sandbox),
            visible: visible.iter().map(|path| path.to_path_buf()).collect(),
            proc,
            steps: namespaces::steps(&view, proc, &mut watch)?,
            skipped: namespaces::skipped(sandbox),
            watch,
        })
    }

    fn is_for(&self, sandbox: &Arc<Sandbox>, visible: &[&Path], proc: Proc) -> bool {
        self.proc == proc && self.visible == visible && self.sandbox == *sandbox
    }

    /// What has to be done.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Paths that were to be writable and could not be found.
    pub(crate) fn skipped(&self) -> &[PathBuf] {
        &self.skipped
    }
}

/// Those that were used last.
#[derive(Debug, Default)]
pub(crate) struct Furnishings(Mutex<VecDeque<Arc<Furnishing>>>);

impl Furnishings {
    /// The one that was made for such runs, or one that is made now.
    ///
    /// # Errors
    ///
    /// Those of [`namespaces::steps`].
    pub(crate) fn get(
        &self,
        sandbox: &Arc<Sandbox>,
        visible: &[&Path],
        proc: Proc,
    ) -> io::Result<Arc<Furnishing>> {
        /// As many as scripts that are called in turn, in most cases.
        const KEPT: usize = 64;
        let is_it = |known: &Arc<Furnishing>| known.is_for(sandbox, visible, proc);
        let known = self.kept().iter().find(|known| is_it(known)).cloned();
        if let Some(known) = known.filter(|known| known.watch.is_current()) {
            return Ok(known);
        }
        let made = Arc::new(Furnishing::new(sandbox, visible, proc)?);
        let mut kept = self.kept();
        kept.retain(|known| !is_it(known));
        kept.truncate(KEPT - 1);
        kept.push_front(Arc::clone(&made));
        Ok(made)
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<Arc<Furnishing>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
