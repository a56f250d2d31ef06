//! Cache of mount plans for the namespaces of runs with the same view. Searching for all hidden
//! paths takes a tenth of a run.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::namespaces::MountPlan;
use super::raw::Step;
use super::view::{Proc, View};
use crate::sandbox::Sandbox;

/// Mount plan, with the view that it was made for.
#[derive(Debug)]
pub(crate) struct CachedPlan {
    sandbox: Arc<Sandbox>,
    visible: Vec<PathBuf>,
    proc: Proc,
    plan: MountPlan,
}

impl CachedPlan {
    fn new(sandbox: &Arc<Sandbox>, visible: &[&Path], proc: Proc) -> io::Result<Self> {
        Ok(Self {
            sandbox: Arc::clone(sandbox),
            visible: visible.iter().map(|path| path.to_path_buf()).collect(),
            proc,
            plan: MountPlan::new(&View { sandbox, visible }, proc)?,
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
    pub(crate) fn skipped_paths(&self) -> &[String] {
        &self.plan.skipped
    }
}

/// Cache of the plans that were used last (LRU).
#[derive(Debug, Default)]
pub(crate) struct MountPlanCache(Mutex<VecDeque<Arc<CachedPlan>>>);

impl MountPlanCache {
    /// Returns the cached plan for such runs if it is still current, or makes one.
    ///
    /// # Errors
    ///
    /// Those of [`MountPlan::new`].
    pub(crate) fn get(
        &self,
        sandbox: &Arc<Sandbox>,
        visible: &[&Path],
        proc: Proc,
    ) -> io::Result<Arc<CachedPlan>> {
        /// In most cases as many as there are scripts that are called in turn.
        const MAX_CACHED_PLANS: usize = 64;
        let is_it = |known: &Arc<CachedPlan>| known.is_for(sandbox, visible, proc);
        let known = self.lock().iter().find(|known| is_it(known)).cloned();
        let plan = match known.filter(|known| known.plan.watch.is_current()) {
            Some(known) => known,
            None => Arc::new(CachedPlan::new(sandbox, visible, proc)?),
        };
        let mut plans = self.lock();
        plans.retain(|known| !is_it(known));
        plans.truncate(MAX_CACHED_PLANS - 1);
        plans.push_front(Arc::clone(&plan));
        Ok(plan)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<CachedPlan>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
