//! State of the server: its numbers, its roots and its sources.

use mcpd_server::{Audit, Server};
use serde_json::{Value, json};

use crate::history;

/// Describes the state of a server now.
pub(super) fn describe(server: &Server) -> Value {
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

fn audit(audit: &Audit) -> Value {
    json!({
        "file": audit.file(),
        "failing": audit.is_failing(),
        "refusing": audit.is_refusing(),
        "lost": audit.lost_records(),
    })
}
