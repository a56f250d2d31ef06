//! Run elsewhere of a call that is a task or may become one: where it is, so that the task can say
//! so, and another server can continue with it.

use std::sync::{Arc, Mutex};

use super::{NotRun, OnEvent, Place, Request};
use crate::database::rows::TaskKey;
use crate::support::sync::lock;

/// Runs of one call, one after the other.
#[derive(Debug, Default)]
pub(crate) struct TaskRun(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    task: Option<TaskKey>,
    /// Location of a run that another server has begun, until this one waits for it.
    adopted: Option<String>,
    /// Place and id of the run that goes on.
    current: Option<(Arc<dyn Place>, String)>,
}

impl TaskRun {
    /// Creates the runs of a task that another server has begun. `location` is where its run is, if
    /// there is one.
    pub(crate) fn of_task(task: TaskKey, location: Option<String>) -> Self {
        Self(Mutex::new(State {
            task: Some(task),
            adopted: location,
            current: None,
        }))
    }

    /// Ties the run that goes on, and those that follow, to a task. Returns where it is, if that is
    /// known.
    pub(crate) async fn keep(&self, task: TaskKey) -> Option<String> {
        let current = {
            let mut state = lock(&self.0);
            state.task = Some(task.clone());
            state.current.clone()
        };
        let (place, run) = current?;
        place.keep(&run, task).await.ok()
    }

    /// Leaves the run that goes on to another server.
    pub(crate) fn release(&self) {
        if let Some((place, run)) = &lock(&self.0).current {
            place.release(run);
        }
    }

    /// Runs a script at a place, or waits for the run that another server has begun.
    ///
    /// # Errors
    ///
    /// As for [`Place::run`].
    ///
    /// # Cancel safety
    ///
    /// As for [`Place::run`].
    pub(crate) async fn run(
        &self,
        place: &Arc<dyn Place>,
        mut request: Request,
        on_event: OnEvent<'_>,
    ) -> Result<mcpd_exec::Outcome, NotRun> {
        let adopted = {
            let mut state = lock(&self.0);
            request.task.clone_from(&state.task);
            state.current = Some((Arc::clone(place), request.run.clone()));
            state.adopted.take()
        };
        let ended = match adopted {
            Some(location) => place.adopt(request, &location, on_event).await,
            None => place.run(request, on_event).await,
        };
        lock(&self.0).current = None;
        ended
    }
}
