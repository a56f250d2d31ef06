//! Actions of operators: they cancel runs and background tasks of other callers, and see the tools
//! as other callers do. Each cancellation is a note in the audit log.

use mcpd_server::transport::http::console::{SiteAnswer, SiteRequest};
use mcpd_server::{Principal, Server};
use serde_json::{Value, json};

use super::{found, query, refuse};
use crate::ConsoleSite;

/// Kind of note in the audit log.
const CANCEL: &str = "console/cancel";

/// Cancels the running request `run`, or the background task `task`.
pub(super) async fn cancel(site: &ConsoleSite, request: SiteRequest<'_>) -> SiteAnswer {
    let cancelled = match (query(request, "run"), query(request, "task")) {
        (Some(number), None) => {
            let number = number.parse().ok();
            number.and_then(|number| site.inner.live.cancel(number))
        }
        (None, Some(id)) => match request.server.cancel_background_task(&id).await {
            Ok(task) => {
                task.map(|task| json!({"task": task.id, "tool": task.tool, "caller": task.owner}))
            }
            Err(error) => return refuse(500, &error.message),
        },
        _ => return refuse(400, "expected `run` or `task`"),
    };
    let Some(mut cancelled) = cancelled else {
        return refuse(404, "it has ended already");
    };
    cancelled["operator"] = request.caller.name().into();
    if let Some(audit) = request.server.audit() {
        audit.note(CANCEL, &cancelled);
    }
    found(cancelled)
}

/// Lists the background tasks that run here and are those of `caller`, or of all callers.
pub(super) fn tasks(server: &Server, caller: Option<&str>) -> Value {
    /// Characters of a log that are shown: the last.
    const MAX_LOG_CHARS: usize = 20_000;
    let tasks = server.background_tasks().into_iter();
    let tasks = tasks.filter(|task| caller.is_none_or(|caller| caller == task.owner));
    let tasks = tasks.map(|task| {
        let skipped = task.log.chars().count().saturating_sub(MAX_LOG_CHARS);
        let log: String = task.log.chars().skip(skipped).collect();
        json!({
            "id": task.id,
            "caller": task.owner,
            "tool": task.tool,
            "time": task.created_at,
            "progress": task.progress,
            "log": log,
        })
    });
    json!({"tasks": tasks.collect::<Vec<_>>()})
}

/// Lists the callers and profiles as which the tools can be seen.
pub(super) fn viewpoints(request: SiteRequest<'_>) -> Value {
    let callers = request.auth.callers().into_iter();
    let callers = callers.filter(|caller| caller.name() != request.caller.name());
    let callers: Vec<_> = callers.map(|caller| caller.name().to_owned()).collect();
    json!({"callers": callers, "profiles": request.server.selections()})
}

/// Returns the caller or profile that a request names in `as`, such as `caller:team-a`.
///
/// # Errors
///
/// There is none of that name.
pub(super) fn viewpoint(request: SiteRequest<'_>) -> Result<Option<Principal>, SiteAnswer> {
    let Some(name) = query(request, "as") else {
        return Ok(None);
    };
    let seen = match name.split_once(':') {
        Some(("caller", name)) => {
            let mut callers = request.auth.callers().into_iter();
            callers.find(|caller| caller.name() == name)
        }
        Some(("profile", name)) => request.server.caller_of_selection(name),
        _ => None,
    };
    match seen {
        Some(seen) => Ok(Some(seen)),
        None => Err(refuse(404, "there is no such caller or profile now")),
    }
}
