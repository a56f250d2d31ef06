//! Corrections that are safe: they change neither what a script says nor what it does.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use mcpd_clients::file::{self, Backup, Change};
use mcpd_clients::{Client, Connection, Places};
use mcpd_config::{directories, private_file};
use mcpd_doctor::entry;
use mcpd_exec::Executor;
use serde::{Serialize, Serializer};

use super::scripts::{self, Scripts};
use crate::command::connect;
use crate::command::install::change::{self, Plan, Planned};
use crate::command::install::request;
use crate::exit_code::ExitCode;
use crate::output;

/// Permission bits of others than the owner.
const OF_OTHERS: u32 = 0o077;

/// Fault of a file that can be corrected.
#[derive(Serialize)]
pub(super) struct Fix {
    file: PathBuf,
    fault: String,
    #[serde(rename = "correction", serialize_with = "serialize_text")]
    action: Action,
}

/// Correction of a file.
enum Action {
    /// Adds or removes permissions.
    SetMode(u32),
    /// Ends lines as Unix does.
    EndLines { before: String, after: String },
    /// Writes an entry of a client as an installation would now.
    Rewrite(Box<Plan>),
}

fn serialize_text<S: Serializer>(action: &Action, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&action.text())
}

/// Finds faults of the scripts, of private files, and of the entries of clients.
pub(super) async fn find(
    executor: &Executor,
    program: &Path,
    scripts: &Scripts<'_>,
    only: Option<&'static Client>,
) -> anyhow::Result<Vec<Fix>> {
    let mut fixes = Vec::new();
    if !scripts.directories.is_empty() {
        for file in scripts::unstartable(executor, program, scripts).await? {
            fixes.extend(of_script(&file)?);
        }
    }
    fixes.extend(of_private_files()?);
    fixes.extend(of_entries(&entry::places()?, only)?);
    Ok(fixes)
}

/// Corrections of a script that begins with `#!` and can't be started.
fn of_script(path: &Path) -> anyhow::Result<Vec<Fix>> {
    let mut fixes = Vec::new();
    // A file that is no text is no script that can be corrected here.
    let Ok(Some(text)) = file::read(path) else {
        return Ok(fixes);
    };
    if !text.starts_with("#!") {
        return Ok(fixes);
    }
    let first_line = text.lines().next().unwrap_or_default();
    if text[first_line.len()..].starts_with("\r\n") {
        fixes.push(Fix {
            file: path.to_owned(),
            fault: "a carriage return is part of its `#!` line".to_owned(),
            action: Action::EndLines {
                after: text.replace("\r\n", "\n"),
                before: text,
            },
        });
    }
    let mode = private_file::permissions(path);
    let executable = mode | (mode & 0o444) >> 2;
    if cfg!(unix) && mode & 0o111 == 0 {
        fixes.push(Fix {
            file: path.to_owned(),
            fault: "it begins with `#!` and is not executable".to_owned(),
            action: Action::SetMode(executable),
        });
    }
    Ok(fixes)
}

/// Tokens that other users can read.
fn of_private_files() -> anyhow::Result<Vec<Fix>> {
    let mut files = vec![directories::token()?];
    if let Ok(logins) = fs::read_dir(connect::login_directory()?) {
        files.extend(logins.flatten().map(|login| login.path()));
    }
    let is_open =
        |path: &PathBuf| path.is_file() && private_file::permissions(path) & OF_OTHERS != 0;
    let open = files.into_iter().filter(is_open);
    let fix = |file: PathBuf| Fix {
        fault: "other users can read this secret".to_owned(),
        action: Action::SetMode(private_file::permissions(&file) & !OF_OTHERS),
        file,
    };
    Ok(open.map(fix).collect())
}

/// Entries of clients that start mcpd and can't work as they are. One for each file: others of it
/// are found once that one is corrected.
fn of_entries(places: &Places, only: Option<&'static Client>) -> anyhow::Result<Vec<Fix>> {
    let clients = Client::all().iter();
    let clients = clients.filter(|client| only.is_none_or(|only| only.name() == client.name()));
    let mut fixes: Vec<Fix> = Vec::new();
    let mut program: Option<String> = None;
    for client in clients {
        for (scope, installed) in entry::of_client(client, places).servers {
            let Some(file) = client.file(scope, places, &installed.name) else {
                continue;
            };
            if !installed.connection.starts_mcpd()
                || fixes.iter().any(|fix| fix.file == file.path())
            {
                continue;
            }
            if program.is_none() {
                program = Some(request::program()?);
            }
            let now = program.as_deref().unwrap_or_default();
            let Some(repair) = file.repair(&installed, now, &request::search_path()) else {
                continue;
            };
            let faults: Vec<_> = repair.faults.iter().map(ToString::to_string).collect();
            let path = file.path().to_owned();
            let done = String::new();
            let planned = change::installation(file, &repair.server, false, done)?;
            if let Planned::Change(plan) = planned {
                fixes.push(Fix {
                    file: path,
                    fault: format!(
                        "`{}` of {}: {}",
                        installed.name,
                        client.title(),
                        faults.join(", and ")
                    ),
                    action: Action::Rewrite(Box::new(plan)),
                });
            }
        }
    }
    Ok(fixes)
}

/// Shows the corrections, asks for them once, and makes them.
pub(super) fn make(fixes: &[Fix], is_agreed: bool) -> anyhow::Result<ExitCode> {
    if fixes.is_empty() {
        output::write_text("nothing to correct")?;
        return Ok(ExitCode::Success);
    }
    for fix in fixes {
        output::note(&format!("{}\n", fix.text()));
        if let Action::Rewrite(plan) = &fix.action {
            plan.show();
        }
    }
    let mut paths: Vec<_> = fixes.iter().map(|fix| fix.file.as_path()).collect();
    paths.dedup();
    if !is_agreed && !change::confirm(&paths)? {
        return Ok(ExitCode::Failure);
    }
    let mut code = ExitCode::Success;
    for fix in fixes {
        match fix.apply() {
            Ok(()) => output::write_text(&format!("corrected `{}`", fix.file.display()))?,
            Err(error) => {
                output::error(&format!("failed to {error:#}"));
                code = ExitCode::Failure;
            }
        }
    }
    Ok(code)
}

impl Fix {
    /// Fault and correction on one line.
    pub(super) fn text(&self) -> String {
        let Self {
            file,
            fault,
            action,
        } = self;
        format!("{}: {fault}; {}", file.display(), action.text())
    }

    fn apply(&self) -> anyhow::Result<()> {
        let path = &self.file;
        let failed = || format!("correct `{}`", path.display());
        match &self.action {
            Action::SetMode(mode) => set_mode(path, *mode).with_context(failed),
            Action::EndLines { before, after } => Change::new(path, Some(before), Some(after))
                .set_private(false)
                .set_backup(Backup::Skip)
                .apply()
                .with_context(failed),
            Action::Rewrite(plan) => plan.apply(),
        }
    }
}

impl Action {
    fn text(&self) -> String {
        match self {
            Self::SetMode(mode) => format!("set its mode to {mode:o}"),
            Self::EndLines { before, .. } => match before.matches("\r\n").count() {
                1 => "take the carriage return out of 1 line".to_owned(),
                count => format!("take the carriage returns out of {count} lines"),
            },
            Self::Rewrite(_) => "write the entry as `mcpd install` would".to_owned(),
        }
    }
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_: &Path, _: u32) -> std::io::Result<()> {
    Ok(())
}

/// Directories that the entries of a client serve.
pub(super) fn served_directories(client: &'static Client) -> anyhow::Result<Vec<PathBuf>> {
    let variables = entry::own_environment();
    let servers = entry::of_client(client, &entry::places()?).servers;
    let own = servers.into_iter().map(|(_, server)| server.connection);
    let own = own.filter(Connection::starts_mcpd);
    let words = own.filter_map(|connection| match connection.resolve(&variables) {
        Connection::Stdio { args, .. } => Some(args),
        _ => None,
    });
    let words = words.filter(|args| args.first().is_some_and(|verb| verb == "stdio"));
    let paths = words.flat_map(|args| args.into_iter().skip(1).map(PathBuf::from));
    let mut directories: Vec<_> = paths.filter(|path| path.is_dir()).collect();
    directories.sort();
    directories.dedup();
    Ok(directories)
}
