//! Cache of mount plans for the namespaces of runs with the same view. Searching for all hidden
//! paths takes a tenth of a run.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::namespaces::{Plan, Proc, View};
use super::raw::Step;
use crate::sandbox::Sandbox;

/// Mount plan, with the view that it was made for.
#[derive(Debug)]
pub(crate) struct Furnishing {
    sandbox: Arc<Sandbox>,
    visible: Vec<PathBuf>,
    proc: Proc,
    plan: Plan,
}

impl Furnishing {
    fn new(sandbox: &Arc<Sandbox>, visible: &[&Path], proc: Proc) -> io::Result<Self> {
        Ok(Self {
            sandbox: Arc::clone(sandbox),
            visible: visible.iter().map(|path| path.to_path_buf()).collect(),
            proc,
            plan: Plan::new(&View { sandbox, visible }, proc)?,
        })
    }

    fn is_for(&self, sandbox: &Arc<Sandbox>, visible: &[&Path], proc: Proc) -> bool {
        self.proc == proc && self.visible == visible && self.sandbox == *sandbox
    }

    /// The steps to perform.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.plan.steps
    }

    /// Paths that were to be writable and are not, each as a sentence.
    pub(crate) fn skipped(&self) -> &[String] {
        &self.plan.skipped
    }
}

/// Cache of the plans that were used last (LRU).
#[derive(Debug, Default)]
pub(crate) struct Furnishings(Mutex<VecDeque<Arc<Furnishing>>>);

impl Furnishings {
    /// Returns the cached plan for such runs if it is still current, or makes one.
    ///
    /// # Errors
    ///
    /// Those of [`Plan::new`].
    pub(crate) fn get(
        &self,
        sandbox: &Arc<Sandbox>,
        visible: &[&Path],
        proc: Proc,
    ) -> io::Result<Arc<Furnishing>> {
        /// In most cases as many as there are scripts that are called in turn.
        const KEPT: usize = 64;
        let is_it = |known: &Arc<Furnishing>| known.is_for(sandbox, visible, proc);
        let known = self.kept().iter().find(|known| is_it(known)).cloned();
        let furnishing = match known.filter(|known| known.plan.watch.is_current()) {
            Some(known) => known,
            None => Arc::new(Furnishing::new(sandbox, visible, proc)?),
        };
        let mut kept = self.kept();
        kept.retain(|known| !is_it(known));
        kept.truncate(KEPT - 1);
        kept.push_front(Arc::clone(&furnishing));
        Ok(furnishing)
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<Arc<Furnishing>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
