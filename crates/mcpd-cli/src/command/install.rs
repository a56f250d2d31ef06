//! `mcpd install`: writes a server to the configuration of clients, or takes it away again.

use std::env;

use anyhow::{Context as _, bail};
use mcpd_clients::plan::Plan;
use mcpd_clients::{Client, ConfigFile, Places, Request, Scope, file};
use mcpd_doctor::{entry, installed};

use self::change::Planned;
use crate::args::{Clients, Install, InstallScope};
use crate::exit_code::ExitCode;
use crate::output;

pub(super) mod change;
mod list;
pub(super) mod request;
mod trial;

/// Lists, prints, writes, removes or checks, as the flags say.
pub(crate) async fn run(args: Install) -> anyhow::Result<ExitCode> {
    let places = entry::places()?;
    let Some(clients) = &args.clients else {
        return list::run(&args, &places);
    };
    request::check_names(&args)?;
    let clients = match clients {
        Clients::Named(named) => named.clone(),
        Clients::Found => found_clients(&args, &places)?,
    };
    match &clients[..] {
        [client] => run_one(&args, client, &places).await,
        clients => run_all(&args, clients, &places).await,
    }
}

/// Each client that is found on this machine and has the scope; where a server is removed or
/// checked, each that has the server.
fn found_clients(args: &Install, places: &Places) -> anyhow::Result<Vec<&'static Client>> {
    let path = env::var_os("PATH");
    let has_server = |file: &ConfigFile| {
        let text = file::read(file.path()).ok().flatten().unwrap_or_default();
        let servers = file.installed_servers(&text);
        servers.is_ok_and(|servers| servers.iter().any(|server| server.name == args.name))
    };
    let is_meant = |client: &&'static Client| {
        let file = client.file(args.scope.into(), places, &args.name);
        file.is_some_and(|file| match args.remove || args.check {
            true => has_server(&file),
            false => client.detect(places, path.as_deref()).is_some(),
        })
    };
    let found: Vec<_> = Client::all().iter().filter(is_meant).collect();
    match (&found[..], args.remove || args.check) {
        ([], true) => bail!("find `{}`: no client has it", args.name),
        ([], false) => bail!("find a client: none is here; `mcpd install --list` shows all"),
        _ => Ok(found),
    }
}

async fn run_one(
    args: &Install,
    client: &'static Client,
    places: &Places,
) -> anyhow::Result<ExitCode> {
    let target = client_file(client, args, places)?;
    if args.print || args.link {
        return print(args, client, places);
    }
    if args.check {
        let text = file::read(target.path()).context("read the configuration of the client")?;
        return trial::run(&target, text.as_deref().unwrap_or_default(), &args.name).await;
    }
    let request = match args.remove {
        true => None,
        false => Some(request::request(args)?),
    };
    match plan(args, target, request.as_ref(), places)? {
        Planned::Change(plan, done) => change::make(&[(plan, done)], args.yes),
        Planned::Unchanged(message) => {
            output::write_text(&message)?;
            Ok(ExitCode::Success)
        }
    }
}

/// Changes or checks several clients. One that can't be changed does not stop the others.
async fn run_all(
    args: &Install,
    clients: &[&'static Client],
    places: &Places,
) -> anyhow::Result<ExitCode> {
    if args.print || args.link {
        bail!("print for several clients: each has a text of its own; name one client");
    }
    let request = match args.remove || args.check {
        true => None,
        false => Some(request::request(args)?),
    };
    let mut plans: Vec<(Plan, String)> = Vec::new();
    let mut code = ExitCode::Success;
    for client in clients {
        let title = client.title();
        let outcome = match client_file(client, args, places) {
            Ok(file) if args.check => {
                output::write_text(&format!("{title}:"))?;
                check(args, &file).await
            }
            Ok(file) => match plans.iter().find(|(plan, _)| plan.path() == file.path()) {
                Some((other, _)) => {
                    let other = other.file().client().title();
                    let message = format!("{title} reads the same file as {other}");
                    output::write_text(&message).map(|()| ExitCode::Success)
                }
                None => collect(plan(args, file, request.as_ref(), places), &mut plans),
            },
            Err(error) => Err(error),
        };
        match outcome {
            Ok(ExitCode::Success) => {}
            Ok(other) => code = other,
            Err(error) => {
                output::error(&format!("{title}: failed to {error:#}"));
                code = ExitCode::Failure;
            }
        }
    }
    match change::make(&plans, args.yes)? {
        ExitCode::Success => Ok(code),
        failed => Ok(failed),
    }
}

async fn check(args: &Install, file: &ConfigFile) -> anyhow::Result<ExitCode> {
    let text = file::read(file.path()).context("read the configuration of the client")?;
    trial::run(file, text.as_deref().unwrap_or_default(), &args.name).await
}

/// Adds a change to the others, or says why there is none.
fn collect(
    planned: anyhow::Result<Planned>,
    plans: &mut Vec<(Plan, String)>,
) -> anyhow::Result<ExitCode> {
    match planned? {
        Planned::Change(plan, done) => plans.push((plan, done)),
        Planned::Unchanged(message) => output::write_text(&message)?,
    }
    Ok(ExitCode::Success)
}

fn client_file(
    client: &'static Client,
    args: &Install,
    places: &Places,
) -> anyhow::Result<ConfigFile> {
    let file = client.file(args.scope.into(), places, &args.name);
    file.with_context(|| {
        let scopes: Vec<_> = client.scopes().map(installed::scope_name).collect();
        format!(
            "find the file of this scope: {} has only `--scope {}`",
            client.title(),
            scopes.join("` and `--scope ")
        )
    })
}

/// Prints the text of the file, or the link.
fn print(args: &Install, client: &'static Client, places: &Places) -> anyhow::Result<ExitCode> {
    let request = request::request(args)?;
    let prepared = request.prepare(client, args.scope.into(), places);
    let server = prepared.with_context(|| prepare_hint(args))?.server;
    let text = match args.link {
        false => client.render_snippet(&server).context("write the entry")?,
        true => match client.link(&server).context("write the entry")? {
            Some(link) => link,
            None => bail!(
                "make a link: {} opens none; use `--print` for the text of its file",
                client.title()
            ),
        },
    };
    output::write_text(&text)?;
    Ok(ExitCode::Success)
}

/// Attempt that a client's refusal of a transport ended.
fn prepare_hint(args: &Install) -> String {
    format!("install `{}`", args.name)
}

/// Plans to install the server of the request, or to remove the one of that name.
fn plan(
    args: &Install,
    file: ConfigFile,
    request: Option<&Request>,
    places: &Places,
) -> anyhow::Result<Planned> {
    let Some(request) = request else {
        return change::removal(file, &args.name);
    };
    let (client, scope) = (file.client(), file.scope());
    let prepared = request.prepare(client, scope, places);
    let prepared = prepared.with_context(|| prepare_hint(args))?;
    for path in &prepared.machine_paths {
        output::note(&format!(
            "`{path}` is a path of this machine, in a file for all users of the project; {}\n",
            match client.project_path().to(std::path::Path::new("")) {
                Some(_) => "choose one below the project".to_owned(),
                None => format!("{} has no other way to name it", client.title()),
            }
        ));
    }
    if scope == Scope::Project {
        output::note(&format!(
            "every user of this project needs mcpd in the PATH of {}\n",
            client.title()
        ));
    }
    let done = format!(
        "{} has `{}` now; restart it, or reload its MCP servers\ntest it with: mcpd install {} --check{}",
        client.title(),
        args.name,
        client.name(),
        repeated_flags(args)
    );
    change::installation(file, &prepared.server, args.url.is_some(), done)
}

/// Flags that find the same entry again.
fn repeated_flags(args: &Install) -> String {
    let mut flags = String::new();
    if args.name != "mcpd" {
        flags += &format!(" {}", output::shell_command(["--name", &args.name]));
    }
    match args.scope {
        InstallScope::User => {}
        InstallScope::Project => flags += " --scope project",
        InstallScope::Local => flags += " --scope local",
    }
    flags
}
