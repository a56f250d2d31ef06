//! Tasks of several servers with one store: requests reach the server that runs a task, and tasks
//! of a server that is gone are continued.

use std::sync::{Arc, Weak};

use super::{TaskCall, Tasks, continuation};
use crate::catalog::call::CallHost;
use crate::remote::SharedEvent;
use crate::support::sync::lock;

impl Tasks {
    /// Attaches the server that these tasks are of, and continues with tasks of other servers that
    /// are gone. Must be called on a tokio runtime.
    pub(crate) fn attach(self: &Arc<Self>, host: &CallHost) {
        self.engine.set(Arc::downgrade(&host.engine)).ok();
        if self.store.has_successors() {
            let host = (Arc::downgrade(&host.engine), Arc::downgrade(&host.catalog));
            let stopping = host.0.upgrade().map(|engine| engine.stopping.clone());
            let adopting = continuation::adopt_tasks(Arc::clone(self), host);
            tokio::spawn(async move {
                if let Some(stopping) = stopping {
                    stopping.run_until_cancelled(adopting).await;
                }
            });
        }
    }

    /// Checks soon whether a request for a task is stored, if that runs here.
    pub(crate) fn check_requests(&self, id: &str) {
        if lock(&self.state).running.contains_key(id) {
            self.requested.notify_one();
        }
    }

    /// Tells the server that runs a task that a request for it is stored.
    pub(super) fn announce_request(&self, id: &str) {
        self.requested.notify_one();
        if let Some(engine) = self.engine.get().and_then(Weak::upgrade) {
            let task = id.to_owned();
            let outlet = &engine.subscribers.outlet;
            outlet.pass(|| SharedEvent::TaskRequested { task });
        }
    }

    /// Follows where the runs of a call are, if another server may have to continue with it.
    pub(super) fn follow_run(&self, call: &mut TaskCall) {
        let script = call.tool.script().filter(|_| self.store.has_successors());
        if script.is_some_and(|script| script.elsewhere().is_some()) {
            call.context.task_run = Some(Arc::default());
        }
    }
}
