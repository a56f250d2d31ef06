//! `mcpd install`: writes a server to the configuration of a client, or takes it away again.

use std::env;
use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::{self, Path, PathBuf};

use anyhow::{Context as _, bail};
use mcpd_clients::edit::Removal;
use mcpd_clients::file::{self, Backup, Change};
use mcpd_clients::{Client, ConfigFile, Places, Server, diff};
use mcpd_connect::Target;
use reqwest::Url;

use super::entry;
use crate::args::{Install, InstallScope};
use crate::exit_code::ExitCode;
use crate::output;

mod list;
mod trial;

/// Longest line of a change that is shown whole, in characters.
const MAX_LINE: usize = 160;

/// Lists, prints, writes, removes or checks, as the flags say.
pub(crate) async fn run(args: Install) -> anyhow::Result<ExitCode> {
    let places = entry::places()?;
    let Some(name) = &args.client else {
        return list::run(&args, &places);
    };
    let client = Client::find(name).context("find the client")?;
    check_names(&args)?;
    let target = client_file(client, &args, &places)?;
    if args.print || args.link {
        return print(&args, client);
    }
    let text = file::read(target.path()).context("read the configuration of the client")?;
    if args.check {
        return trial::run(&target, text.as_deref().unwrap_or_default(), &args.name).await;
    }
    if args.remove {
        return remove(&args, &target, text.as_deref());
    }
    install(&args, &target, text.as_deref())
}

/// Rejects names that no client could use, above all a token in place of the name of its variable.
fn check_names(args: &Install) -> anyhow::Result<()> {
    let is_name = |name: &str| {
        let is_word = |char: char| char.is_ascii_alphanumeric() || char == '_';
        name.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_')
            && name.chars().all(is_word)
    };
    let set = args.env.iter().map(|variable| {
        let name = variable.split('=').next().unwrap_or_default();
        ("--env", name)
    });
    let passed = args
        .pass_env
        .iter()
        .map(|name| ("--pass-env", name.as_str()));
    let token = args
        .token_env
        .iter()
        .map(|name| ("--token-env", name.as_str()));
    for (flag, name) in set.chain(passed).chain(token) {
        if !is_name(name) {
            // It may be the secret itself, which no message repeats.
            bail!(
                "use the value of `{flag}`: expected the name of a variable, such as TOOLS_TOKEN"
            );
        }
    }
    let is_plain = |char: char| !char.is_control() && !"/\\".contains(char);
    if args.name.trim().is_empty() || !args.name.chars().all(is_plain) {
        bail!(
            "use the name `{}`: expected a name without slashes",
            args.name.escape_debug()
        );
    }
    if args.url.is_none() && (args.token_env.is_some() || args.token_file.is_some()) {
        bail!("use the token: it is for a server at a URL; add `--url`");
    }
    Ok(())
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

fn install(args: &Install, target: &ConfigFile, text: Option<&str>) -> anyhow::Result<ExitCode> {
    let client = target.client();
    let server = server(args, client)?;
    let before = text.unwrap_or_default();
    let failed = || format!("edit `{}`", target.path().display());
    let after = target.install(before, &server).with_context(failed)?;
    let installed = target.installed_servers(before).with_context(failed)?;
    let old = installed.iter().find(|old| old.name == args.name);
    if let Some(old) = old.filter(|old| !entry::is_of_mcpd(&old.connection) && args.url.is_none()) {
        bail!(
            "install `{}`: another server of {} has this name, `{}`; choose another with `--name`, or remove it first",
            args.name,
            client.title(),
            entry::describe(&old.connection)
        );
    }
    // The copy of the file is that from before the first installation.
    let is_first = !installed
        .iter()
        .any(|old| entry::is_of_mcpd(&old.connection));
    if after == before {
        let path = target.path().display();
        output::write_text(&format!("unchanged: `{}` is in {path} already", args.name))?;
        return Ok(ExitCode::Success);
    }
    if !confirm(args, target, &diff(before, &after))? {
        return Ok(ExitCode::Failure);
    }
    let backup = match is_first {
        true => Backup::Replace,
        false => Backup::KeepOld,
    };
    Change::new(target.path(), text, Some(&after))
        .set_private(target.is_private())
        .set_backup(backup)
        .apply()
        .context("change the configuration of the client")?;
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
    let original = file::read(&file::backup_path(path)).context("read the copy of the file")?;
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
        // Nothing is left. Only a file that an installation made is deleted.
        Removal::Empty(rest) => {
            Some(rest).filter(|_| !is_made_by_installation(args, target, before))
        }
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
        .apply()
        .context("change the configuration of the client")?;
    let title = target.client().title();
    output::write_text(&format!("{title} no longer has `{}`", args.name))?;
    Ok(ExitCode::Success)
}

/// Returns whether a file is as an installation of its one entry makes it.
fn is_made_by_installation(args: &Install, target: &ConfigFile, text: &str) -> bool {
    let servers = target.installed_servers(text).unwrap_or_default();
    let entry = servers.into_iter().find(|server| server.name == args.name);
    let server = entry.and_then(|entry| entry::server(&args.name, &entry.connection));
    let made = server.and_then(|server| target.install("", &server).ok());
    made.is_some_and(|made| made == text)
}

/// Shows a change, and asks for it on a terminal. Lines that stay are left out, and long ones cut:
/// they may have secrets of other servers.
fn confirm(args: &Install, target: &ConfigFile, change: &str) -> anyhow::Result<bool> {
    let path = target.path().display();
    let lines = change.lines().filter(|line| !line.starts_with(' '));
    let lines = lines.map(|line| match line.char_indices().nth(MAX_LINE) {
        Some((end, _)) => format!("{}…\n", &line[..end]),
        None => format!("{line}\n"),
    });
    output::note(&format!("{path}\n{}", lines.collect::<String>()));
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
        if directory.is_file() {
            bail!(
                "serve `{}`: it is a file; name its directory",
                directory.display()
            );
        }
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
    let has_token = args.token_env.is_some() || args.token_file.is_some();
    if has_token && !Target::new(url)?.is_confidential() {
        bail!("send the token to `{url}`: networks on the way could read it; use https");
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
