//! Instructions for models: the configured ones, those of the roots, and a note on a directory that
//! is empty or has faulty files. An empty list without an explanation puzzles both model and
//! operator.

use std::fmt::Write as _;
use std::time::Duration;

use crate::catalog::Catalog;
use crate::policy::principal::Principal;
use crate::server::Server;

/// Longest wait for the first scan: instructions are sent once, and clients do not wait for a
/// slow start.
const CATALOG_TIMEOUT: Duration = Duration::from_secs(1);

/// Waits until the first scan is complete, but not long.
pub(super) async fn wait_for_catalog(server: &Server) {
    let ready = server.catalog_ready();
    tokio::time::timeout(CATALOG_TIMEOUT, ready).await.ok();
}

/// Returns the instructions for the client of `principal`, if there are any.
pub(super) fn instructions(server: &Server, principal: &Principal) -> Option<String> {
    let identity = server.engine().identity.load();
    let configured = identity.instructions().map(str::to_owned);
    let shortfall = describe_shortfall(server, principal);
    let catalog = server.catalog();
    let of_roots = catalog.scan().instructions.iter().cloned();
    let parts: Vec<_> = configured
        .into_iter()
        .chain(of_roots)
        .chain(shortfall)
        .collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// Describes the files that are not served, and the command for the operator. Only a caller on
/// this machine may read the paths.
fn describe_shortfall(server: &Server, principal: &Principal) -> Option<String> {
    if server.roots().is_empty() || !server.live_catalog().is_scanned() {
        return None;
    }
    let catalog = server.catalog();
    let mut text = String::new();
    if is_empty(&catalog) {
        let see = command("mcpd list --all", server, principal);
        let what =
            "This server offers nothing: none of its files is a tool, a prompt or a resource.";
        let seen = format!("The operator can list the status of every file with `{see}`.");
        write!(text, "{what} {seen}").ok()?;
    }
    let faulty = count_faulty(&catalog, principal);
    if faulty > 0 {
        let check = command("mcpd check", server, principal);
        let (separator, files) = (if text.is_empty() { "" } else { " " }, files(faulty));
        let why = format!("The operator can list the reasons with `{check}`.");
        write!(text, "{separator}{files} and not served. {why}").ok()?;
    }
    (!text.is_empty()).then_some(text)
}

fn is_empty(catalog: &Catalog) -> bool {
    catalog.tools().is_empty()
        && catalog.prompts().is_empty()
        && catalog.resources().is_empty()
        && catalog.templates().is_empty()
}

/// Counts the faulty files; of scripts only those that `principal` could use.
fn count_faulty(catalog: &Catalog, principal: &Principal) -> usize {
    let access = principal.access();
    let scripts = catalog.scan().faulty();
    let scripts = scripts.filter(|script| access.is_none_or(|access| access.allows(&script.path)));
    scripts.count() + catalog.scan().unusable.len()
}

fn files(count: usize) -> String {
    match count {
        1 => "One file is faulty".to_owned(),
        count => format!("{count} files are faulty"),
    }
}

/// Returns a command on all roots, quoted for a shell.
fn command(command: &str, server: &Server, principal: &Principal) -> String {
    if *principal != Principal::local() {
        return command.to_owned();
    }
    let roots = server.roots().iter().map(|root| root.to_string_lossy());
    let roots: Vec<_> = roots.collect();
    // A path has no NUL, the only character that cannot be quoted.
    let roots = shlex::try_join(roots.iter().map(|root| &**root)).unwrap_or_default();
    format!("{command} {roots}")
}
