//! `mcpd install`: writes a server to the configuration of a client, or takes it away again.

use std::env;
use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::{self, Path, PathBuf};

use anyhow::{Context as _, bail};
use mcpd_clients::edit::Removal;
use mcpd_clients::file::{self, Backup, Change};
use mcpd_clients::{Client, ConfigFile, Drift, Places, Server, diff};
use reqwest::Url;

use super::entry;
use crate::args::{Install, InstallScope};
use crate::exit_code::ExitCode;
use crate::output;

mod list;
mod trial;

/// Lists, prints, writes, removes or checks, as the flags say.
pub(crate) async fn run(args: Install) -> anyhow::Result<ExitCode> {
    let places = entry::places()?;
    let Some(name) = &args.client else {
        return list::run(&args, &places);
    };
    let client = Client::find(name).context("find the client")?;
    if args.print || args.link {
        return print(&args, client);
    }
    let target = client_file(client, &args, &places)?;
    let text = file::read(target.path())?;
    if args.check {
        return trial::run(&target, text.as_deref().unwrap_or_default(), &args.name).await;
    }
    if args.remove {
        return remove(&args, &target, text.as_deref());
    }
    install(&args, &target, text.as_deref())
}

fn client_file(
    client: &'static Client,
    args: &Install,
    places: &Places,
) -> anyhow::Result<ConfigFile> {
    let file = client.file(args.scope.into(), places, &args.name);
    file.with_context(|| {
        let scopes: Vec<_> = client.scopes().map(list::scope_name).collect();
        format!(
            "find the file of this scope: {} has only `--scope {}`",
            client.title(),
            scopes.join("` and `--scope ")
        )
    })
}

/// Prints the text of the file, or the link.
fn print(args: &Install, client: &'static Client) -> anyhow::Result<ExitCode> {
    let server = server(args, client)?;
    let text = match args.link {
        false => client.render_snippet(&server)?,
        true => match client.link(&server)? {
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

fn install(args: &Install, target: &ConfigFile, text: Option<&str>) -> anyhow::Result<ExitCode> {
    let client = target.client();
    let server = server(args, client)?;
    let before = text.unwrap_or_default();
    let failed = || format!("edit `{}`", target.path().display());
    let after = target.install(before, &server).with_context(failed)?;
    let is_present = target.drift(before, &server).with_context(failed)? != Drift::Missing;
    if after == before {
        let path = target.path().display();
        output::write_text(&format!("unchanged: `{}` is in {path} already", args.name))?;
        return Ok(ExitCode::Success);
    }
    if !confirm(args, target, &diff(before, &after))? {
        return Ok(ExitCode::Failure);
    }
    let backup = match is_present {
        true => Backup::KeepOld,
        false => Backup::Replace,
    };
    Change::new(target.path(), text, Some(&after))
        .set_private(target.is_private())
        .set_backup(backup)
        .apply()?;
    let (title, name) = (client.title(), client.name());
    output::write_text(&format!(
        "{title} has `{}` now; restart it, or reload its MCP servers\ntest it with: mcpd install {name} --check{}",
        args.name,
        repeated_flags(args)
    ))?;
    Ok(ExitCode::Success)
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

fn remove(args: &Install, target: &ConfigFile, text: Option<&str>) -> anyhow::Result<ExitCode> {
    let path = target.path();
    let before = text.unwrap_or_default();
    let original = file::read(&file::backup_path(path))?;
    let removal = target.remove(before, &args.name, original.as_deref());
    let failed = || format!("edit `{}`", path.display());
    let after = match removal.with_context(failed)? {
        Removal::Missing => {
            output::write_text(&format!(
                "unchanged: there is no `{}` in {}",
                args.name,
                path.display()
            ))?;
            return Ok(ExitCode::Success);
        }
        Removal::Text(rest) => Some(rest),
        // Nothing is left of a file that an installation made.
        _ => None,
    };
    if !confirm(
        args,
        target,
        &diff(before, after.as_deref().unwrap_or_default()),
    )? {
        return Ok(ExitCode::Failure);
    }
    Change::new(path, text, after.as_deref())
        .set_private(target.is_private())
        .set_backup(Backup::Skip)
        .apply()?;
    let title = target.client().title();
    output::write_text(&format!("{title} no longer has `{}`", args.name))?;
    Ok(ExitCode::Success)
}

/// Shows a change, and asks for it on a terminal.
fn confirm(args: &Install, target: &ConfigFile, change: &str) -> anyhow::Result<bool> {
    let path = target.path().display();
    output::note(&format!("{path}\n{change}"));
    if args.yes {
        return Ok(true);
    }
    if !io::stdin().is_terminal() {
        bail!("change `{path}`: there is no terminal to ask at; add `--yes` to change it");
    }
    output::note("Change it? [y/N] ");
    let mut answer = String::new();
    io::stdin()
        .lock()
        .read_line(&mut answer)
        .context("read the answer")?;
    let is_wanted = matches!(answer.trim(), "y" | "Y" | "yes");
    if !is_wanted {
        output::note("nothing changed\n");
    }
    Ok(is_wanted)
}

/// Server to write, as the flags say.
fn server(args: &Install, client: &Client) -> anyhow::Result<Server> {
    if let Some(url) = &args.url {
        return remote_server(args, client, url);
    }
    if args.directories.is_empty() {
        bail!("install a server: name a directory with scripts, or a server with `--url`");
    }
    let mut words = vec!["stdio".to_owned()];
    for directory in &args.directories {
        words.push(absolute_text(directory)?);
    }
    if let Some(path) = args.configuration.named() {
        words.extend(["--config".to_owned(), absolute_text(path)?]);
    }
    let program = program()?;
    let mut server = Server::stdio(&args.name, absolute_text(&program)?, words);
    if client.is_graphical() && client.takes_path() {
        server = server.set_env("PATH", search_path());
    }
    for variable in &args.env {
        let Some((name, value)) = variable.split_once('=') else {
            bail!("use `--env {variable}`: expected NAME=VALUE");
        };
        server = server.set_env(name, value);
    }
    Ok(args.pass_env.iter().fold(server, Server::pass_env))
}

/// Server at a URL: as the client takes it, or through `mcpd connect`.
fn remote_server(args: &Install, client: &Client, url: &str) -> anyhow::Result<Server> {
    let parsed = Url::parse(url).ok();
    let parsed = parsed.filter(|url| matches!(url.scheme(), "http" | "https"));
    let Some(parsed) = parsed else {
        bail!(
            "use the URL `{}`: expected an `http` or `https` URL",
            mcpd_config::shown_url(url)
        );
    };
    if !parsed.username().is_empty() || parsed.password().is_some() {
        bail!("use the URL: it has a password, which the file would show; use `--token-file`");
    }
    if client.has_http() && args.token_file.is_none() {
        let server = Server::http(&args.name, url);
        return Ok(match &args.token_env {
            Some(variable) => server.send_token(variable),
            None => server,
        });
    }
    let mut words = vec!["connect".to_owned(), url.to_owned()];
    if let Some(file) = &args.token_file {
        words.extend(["--token-file".to_owned(), absolute_text(file)?]);
    }
    if let Some(variable) = &args.token_env {
        words.extend(["--token-env".to_owned(), variable.clone()]);
    }
    let server = Server::stdio(&args.name, absolute_text(&program()?)?, words);
    Ok(match &args.token_env {
        Some(variable) => server.pass_env(variable),
        None => server,
    })
}

/// Path of this program that survives an update: the one in `PATH`, if it leads here.
fn program() -> anyhow::Result<PathBuf> {
    let own = env::current_exe().context("find the path of mcpd")?;
    let canonical = own.canonicalize().unwrap_or_else(|_| own.clone());
    let name = own.file_name().unwrap_or_default();
    let path = env::var_os("PATH").unwrap_or_default();
    let stable = env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|file| file.canonicalize().is_ok_and(|file| file == canonical));
    let program = stable.unwrap_or(own);
    if program
        .components()
        .any(|part| part.as_os_str() == "target")
    {
        output::note(&format!(
            "`{}` is in a build directory; install mcpd first, or the client loses it at the next clean-up\n",
            program.display()
        ));
    }
    Ok(program)
}

/// Directories of programs that a script may need: those of this shell, as desktops know none.
fn search_path() -> String {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut known: Vec<PathBuf> = Vec::new();
    for directory in env::split_paths(&path) {
        if directory.is_absolute() && directory.is_dir() && !known.contains(&directory) {
            known.push(directory);
        }
    }
    let joined = env::join_paths(known).unwrap_or(path);
    joined.to_string_lossy().into_owned()
}

fn absolute_text(path: &Path) -> anyhow::Result<String> {
    let absolute =
        path::absolute(path).with_context(|| format!("use the path `{}`", path.display()))?;
    if !absolute.exists() {
        bail!(
            "use the path `{}`: there is no such file or directory",
            path.display()
        );
    }
    let text = absolute.into_os_string().into_string();
    text.map_err(|path| anyhow::anyhow!("use the path {path:?}: it is not UTF-8"))
}
