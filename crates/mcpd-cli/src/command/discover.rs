//! `mcpd discover`: the servers in the configurations of clients.

use mcpd_clients::{Client, Connection, InstalledServer};
use serde::Serialize;

use super::target::{installed_servers, places};
use crate::args::Discover;
use crate::exit_code::ExitCode;
use crate::output;

/// A server that a client has.
#[derive(Debug, Serialize)]
struct Found {
    /// Name for other commands, such as `cursor:github`.
    place: String,
    /// Program with its arguments, or URL.
    server: String,
    is_enabled: bool,
}

/// Prints one server a line.
pub(crate) fn run(args: &Discover) -> anyhow::Result<ExitCode> {
    let places = places()?;
    let mut found = Vec::new();
    for client in Client::all() {
        for (_, server) in installed_servers(client, &places) {
            found.push(Found {
                place: format!("{}:{}", client.name(), server.name),
                server: describe(&server),
                is_enabled: server.is_enabled,
            });
        }
    }
    if args.json {
        output::write_json(&found)?;
        return Ok(ExitCode::Success);
    }
    let rows = found.iter().map(|one| (&*one.place, &*one.server));
    output::write(output::table(rows, output::columns()).as_bytes())?;
    if found.is_empty() {
        output::note("no servers found; `mcpd install` adds one\n");
    }
    Ok(ExitCode::Success)
}

fn describe(server: &InstalledServer) -> String {
    let how = match &server.connection {
        Connection::Stdio { command, args, .. } => {
            output::shell_command(std::iter::once(command).chain(args).map(String::as_str))
        }
        Connection::Http { url, .. } => url.clone(),
        _ => "an entry of unknown form".to_owned(),
    };
    match server.is_enabled {
        true => how,
        false => format!("(switched off) {how}"),
    }
}
