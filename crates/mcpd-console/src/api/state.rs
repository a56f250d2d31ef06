//! State of the server: its numbers and limits, its roots and its sources.

use std::collections::BTreeMap;

use mcpd_server::transport::http::console::SiteRequest;
use mcpd_server::{Audit, Principal};
use serde_json::{Value, json};

use crate::history;

/// Describes the state of a server now.
pub(super) fn describe(request: SiteRequest<'_>) -> Value {
    let server = request.server;
    let numbers = server.numbers();
    let refusals: BTreeMap<_, _> = numbers.refusals_by_reason.into_iter().collect();
    let callers = request.auth.callers();
    let catalog = server.catalog();
    let sources = catalog.offers().iter().map(|offer| {
        json!({
            "source": offer.source(),
            "pending": offer.is_pending(),
            "faulty": offer.is_faulty(),
            "faults": offer.faults(),
        })
    });
    json!({
        "now": history::sample(server),
        "refusals": refusals,
        "limits": {
            "running": numbers.max_running,
            "queued": numbers.max_queued,
            "callers": callers.iter().map(limits).collect::<Vec<_>>(),
        },
        "roots": server.roots(),
        "tools": catalog.tools().len(),
        "prompts": catalog.prompts().len(),
        "resources": catalog.resources().len(),
        "templates": catalog.templates().len(),
        "faulty": catalog.scan().faulty().count(),
        "unusable": catalog.scan().unusable.len(),
        "conflicts": catalog.conflicts().len(),
        "sources": sources.collect::<Vec<_>>(),
        "audit": server.audit().map(audit),
    })
}

/// Describes the limits of a caller in force. A rate without a limit is `null`.
fn limits(caller: &Principal) -> Value {
    let quota = caller.quota();
    let rate = quota.rate.filter(|rate| rate.per_second().is_finite());
    json!({
        "caller": caller.name(),
        "concurrency": quota.concurrency,
        "rate": rate.map(|rate| rate.per_second()),
        "burst": rate.map(|rate| rate.burst()),
    })
}

fn audit(audit: &Audit) -> Value {
    json!({
        "file": audit.file(),
        "failing": audit.is_failing(),
        "refusing": audit.is_refusing(),
        "lost": audit.lost_records(),
    })
}
