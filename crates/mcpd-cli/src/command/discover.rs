//! `mcpd discover`: the servers in the configurations of clients.

use mcpd_clients::Client;
use mcpd_doctor::entry::{self, Entries};
use serde::Serialize;

use crate::args::Discover;
use crate::exit_code::ExitCode;
use crate::output;

/// A server that a client has.
#[derive(Debug, Serialize)]
struct Found {
    /// Name for other commands, such as `cursor:github`.
    place: String,
    /// Program with its arguments, or URL, without secrets.
    server: String,
    is_enabled: bool,
}

/// Prints one server a line, and on stderr the files that can't be read.
pub(crate) fn run(args: &Discover) -> anyhow::Result<ExitCode> {
    let places = entry::places()?;
    let (mut found, mut all_faults) = (Vec::new(), Vec::new());
    for client in Client::all() {
        let Entries {
            servers, faults, ..
        } = entry::of_client(client, &places);
        all_faults.extend(faults);
        for (_, server) in servers {
            found.push(Found {
                place: format!("{}:{}", client.name(), server.name),
                server: entry::describe(&server.connection),
                is_enabled: server.is_enabled,
            });
        }
    }
    if args.json {
        output::write_json(&found)?;
    } else {
        let rows: Vec<_> = found.iter().map(row).collect();
        let rows = rows.iter().map(|(place, server)| (*place, server.as_str()));
        output::write_table(rows)?;
        if found.is_empty() {
            output::note("no servers found; `mcpd install` adds one\n");
        }
    }
    for fault in &all_faults {
        output::error(fault);
    }
    Ok(match all_faults[..] {
        [] => ExitCode::Success,
        _ => ExitCode::Failure,
    })
}

fn row(found: &Found) -> (&str, String) {
    let server = match found.is_enabled {
        true => found.server.clone(),
        false => format!("(switched off) {}", found.server),
    };
    (&found.place, server)
}
