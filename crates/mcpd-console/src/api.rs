//! Data of the page: each address below `/console/api/`, and the callers that it is for.

use std::io;

use jiff::{Timestamp, Zoned};
use mcpd_server::audit::{self, parse_time};
use mcpd_server::transport::http::console::{SiteAnswer, SiteRequest};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use crate::ConsoleSite;
use crate::runs::{Filter, Page};

mod catalog;
mod operator;
mod state;

/// Refusal of what only operators see.
const ONLY_OPERATORS: &str = "only operators of this server see this";
/// Number of runs of a page.
const PAGE_SIZE: usize = 100;

/// Answers a request.
pub(crate) async fn answer(site: &ConsoleSite, request: SiteRequest<'_>) -> SiteAnswer {
    let is_operator = site.is_operator(request.caller);
    if request.is_change {
        return match request.path {
            _ if !is_operator => refuse(403, "only operators of this server do this"),
            "cancel" => operator::cancel(site, request).await,
            _ => refuse(405, "there is nothing to change here"),
        };
    }
    match request.path {
        "about" => found(about(site, request)),
        "catalog" => {
            let seen_as = match operator::viewpoint(request) {
                Ok(Some(_)) if !is_operator => return refuse(403, ONLY_OPERATORS),
                Ok(seen_as) => seen_as,
                Err(refusal) => return refusal,
            };
            let server = request.server.clone();
            let caller = seen_as.clone().unwrap_or_else(|| request.caller.clone());
            let described = spawn_blocking(move || {
                let mut body = catalog::describe(&server, &caller, is_operator);
                if seen_as.is_some() {
                    body["list"] = catalog::list(&server, &caller);
                }
                body
            });
            match described.await {
                Ok(body) => found(body),
                Err(error) => refuse(500, &format!("the catalog can't be described: {error}")),
            }
        }
        "live" => {
            let name = request.caller.name();
            let open = query(request, "open").unwrap_or_default();
            let open: Vec<_> = open.split(',').filter_map(|it| it.parse().ok()).collect();
            let is_shown = |caller: &str| is_operator || caller == name;
            found(json!({"runs": site.inner.live.shown(is_shown, &open)}))
        }
        "tasks" => {
            let caller = (!is_operator).then(|| request.caller.name());
            found(operator::tasks(request.server, caller))
        }
        "runs" => search(site, request, is_operator).await,
        "connect" => {
            let connection = site.inner.connection.as_ref();
            let clients = connection.map(|connection| connection.clients(is_operator));
            found(json!({"clients": clients.unwrap_or_default()}))
        }
        path => match path.strip_prefix("runs/") {
            Some(id) => record(site, request, id, is_operator).await,
            None if !is_operator => refuse(403, ONLY_OPERATORS),
            None => answer_operator(site, request).await,
        },
    }
}

/// Answers requests for what only operators see.
async fn answer_operator(site: &ConsoleSite, request: SiteRequest<'_>) -> SiteAnswer {
    match request.path {
        "files" => found(json!({"files": site.inner.files.not_served(request.server).await})),
        "server" => found(state::describe(request)),
        "history" => found(json!({"samples": site.inner.history.samples()})),
        "configuration" => found(json!({"settings": site.configuration()})),
        "verify" => verify(request).await,
        "viewpoints" => found(operator::viewpoints(request)),
        path => match path.strip_prefix("report/") {
            Some(name) => report(site, name).await,
            None => refuse(404, "there is no such part of the console"),
        },
    }
}

/// Makes a report that the program has added.
async fn report(site: &ConsoleSite, name: &str) -> SiteAnswer {
    let Some(make) = site.inner.reports.get(name) else {
        return refuse(404, "there is no such report");
    };
    match make().await {
        Ok(body) => found(json!({"report": body})),
        Err(reason) => refuse(500, &reason),
    }
}

fn found(body: Value) -> SiteAnswer {
    SiteAnswer { status: 200, body }
}

fn refuse(status: u16, reason: &str) -> SiteAnswer {
    let body = json!({"error": reason});
    SiteAnswer { status, body }
}

fn about(site: &ConsoleSite, request: SiteRequest<'_>) -> Value {
    let is_operator = site.is_operator(request.caller);
    let connection = site.inner.connection.as_ref();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "caller": request.caller.name(),
        "operator": is_operator,
        "url": connection.map(|connection| connection.url()),
        "tokenFile": connection.and_then(|it| it.operator_token_file(is_operator)),
        "roots": is_operator.then(|| request.server.roots()),
        "audit": request.server.audit().is_some(),
        "reports": is_operator.then(|| site.inner.reports.names()),
    })
}

/// Values of a query, by name.
fn query(request: SiteRequest<'_>, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(request.query.as_bytes());
    let found = pairs.find_map(|(key, value)| (key == name).then(|| value.into_owned()));
    found.filter(|value| !value.is_empty())
}

/// Searches the audit log.
async fn search(site: &ConsoleSite, request: SiteRequest<'_>, is_operator: bool) -> SiteAnswer {
    let Some(audit) = request.server.audit() else {
        return refuse(
            404,
            "this server keeps no audit log: `mode = \"off\"` in `[audit]`",
        );
    };
    let time = |name| -> Result<Option<String>, String> {
        let Some(text) = query(request, name) else {
            return Ok(None);
        };
        let time = parse_time(&text, &Zoned::now());
        let expected = "expected a time such as `2026-11-22T10:30` or `2h`";
        let format = |time: Timestamp| time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
        time.map(|time| Some(format(time)))
            .ok_or_else(|| format!("`{name}` is invalid: {expected}"))
    };
    let (since, until) = match (time("since"), time("until")) {
        (Ok(since), Ok(until)) => (since, until),
        (Err(reason), _) | (_, Err(reason)) => return refuse(400, &reason),
    };
    let filter = Filter {
        tool: query(request, "tool"),
        caller: query(request, "caller"),
        outcome: query(request, "outcome"),
        since,
        until,
        only: (!is_operator).then(|| request.caller.name().to_owned()),
    };
    let skip = query(request, "skip").and_then(|skip| skip.parse().ok());
    let page = Page {
        skip: skip.unwrap_or(0),
        limit: PAGE_SIZE,
    };
    let (index, file) = (site.inner.runs.clone(), audit.file());
    let searched = spawn_blocking(move || index.search(&file, &filter, page)).await;
    of_log(searched.unwrap_or_else(|error| Err(io::Error::other(error))))
}

/// Finds one record.
async fn record(
    site: &ConsoleSite,
    request: SiteRequest<'_>,
    id: &str,
    is_operator: bool,
) -> SiteAnswer {
    let missing = || refuse(404, "the log no longer has this record");
    let Some(audit) = request.server.audit() else {
        return missing();
    };
    let (index, file, id) = (site.inner.runs.clone(), audit.file(), id.to_owned());
    let read = spawn_blocking(move || index.find_record(&file, &id)).await;
    match read.unwrap_or_else(|error| Err(io::Error::other(error))) {
        Ok(Some(record)) if is_operator || record["principal"] == request.caller.name() => {
            found(record)
        }
        Ok(_) => missing(),
        Err(error) => of_log(Err(error)),
    }
}

/// Verifies the audit log.
async fn verify(request: SiteRequest<'_>) -> SiteAnswer {
    let Some(audit) = request.server.audit() else {
        return refuse(404, "this server keeps no audit log");
    };
    let file = audit.file();
    let verified = spawn_blocking(move || {
        let verified = audit::verify(&file)?;
        serde_json::to_value(verified).map_err(io::Error::other)
    });
    of_log(
        verified
            .await
            .unwrap_or_else(|error| Err(io::Error::other(error))),
    )
}

fn of_log(read: io::Result<Value>) -> SiteAnswer {
    match read {
        Ok(body) => found(body),
        Err(error) => refuse(500, &format!("the audit log can't be read: {error}")),
    }
}
