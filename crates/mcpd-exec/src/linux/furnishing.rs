//! The furnishing of namespaces, planned once for runs that see the same: to look for all that is to be hidden takes a tenth
//! of a run.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::namespaces::{Plan, Proc, View};
use super::raw::Step;
use crate::sandbox::Sandbox;

/// How the namespaces of some runs are furnished.
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

    /// What has to be done.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.plan.steps
    }

    /// What was to be writable and is not, each as a sentence.
    pub(crate) fn skipped(&self) -> &[String] {
        &self.plan.skipped
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
    /// Those of [`Plan::new`].
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
