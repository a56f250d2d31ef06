//! Remote servers that a command line names in place of a directory.

use std::env;
use std::path::Path;

use anyhow::{Context as _, bail};
use mcpd_clients::{Client, Scope};
use mcpd_connect::Target;
use mcpd_doctor::entry::{self, own_environment};
use mcpd_server::Server;
use mcpd_upstream::{Address, Program, Upstream};

use super::Requested;
use crate::args::{Remote, ServerCommand, unknown_client};
use crate::output;

/// Remote server at a place: a URL, an entry `CLIENT:NAME`, or `-` with a command; none if the
/// place is a directory.
pub(super) fn remote_source(
    place: &Path,
    remote: &Remote,
    command: &ServerCommand,
) -> anyhow::Result<Option<Upstream>> {
    let text = place.to_str().unwrap_or_default();
    match (text, &command.words[..]) {
        ("-", [program, arguments @ ..]) => {
            let started = Program::new(program).args(arguments);
            return Ok(Some(Upstream::stdio(program, started)));
        }
        ("-", []) => bail!("use the server `-`: add `--` and the command that starts it"),
        (_, [_, ..]) => bail!(
            "use the command behind `--`: it needs `-` in place of `{}`",
            place.display()
        ),
        _ => {}
    }
    if is_url(text) {
        return Ok(Some(at_url(text, remote)?));
    }
    if remote.token_env.is_some() {
        bail!("use `--token-env`: it is for a URL, and `{text}` is none");
    }
    let entry = text.split_once(':').filter(|_| !place.exists());
    let Some((client, name)) = entry.filter(|(client, _)| is_client_name(client)) else {
        return Ok(None);
    };
    let Some(client) = Client::find(client) else {
        bail!("use `{text}`: {}", unknown_client(client));
    };
    let (scope, found) = entry::find(client, name)?;
    if scope == Scope::Project {
        output::note(&format!("using `{name}` as this project defines it\n"));
    }
    Ok(Some(entry::upstream(text, &found, &own_environment())?))
}

/// Returns whether a place is a URL; its scheme may have capitals.
fn is_url(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        ["http", "https"]
            .iter()
            .any(|one| scheme.eq_ignore_ascii_case(one))
    })
}

/// Returns whether the part before a colon may be a client: not the drive of a path, nor a part of
/// one.
fn is_client_name(text: &str) -> bool {
    text.len() > 1
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn at_url(text: &str, remote: &Remote) -> anyhow::Result<Upstream> {
    let mut address = Address::new(text)?;
    if let Some(variable) = &remote.token_env {
        if !Target::new(text)?.is_confidential() {
            bail!(
                "send the token to `{}`: networks on the way could read it; use https",
                mcpd_config::shown_url(text)
            );
        }
        address = address.token(token(variable)?);
    }
    Ok(Upstream::http(mcpd_config::shown_url(text), address))
}

/// Token in a variable, which no message repeats.
fn token(variable: &str) -> anyhow::Result<String> {
    let token = env::var_os(variable).filter(|token| !token.is_empty());
    let token = token.with_context(|| format!("use the variable `{variable}`: it is not set"))?;
    let token = token.into_string().ok();
    token.with_context(|| format!("use the variable `{variable}`: it is not UTF-8"))
}

/// A server with that source alone.
pub(super) fn server(source: Upstream) -> Requested {
    Requested {
        server: Server::builder().source(source.prefix("")).watch(false),
        is_remote: true,
    }
}
