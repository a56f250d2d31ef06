//! Corrections that are safe: they change neither what a script says nor what it does. Each is made
//! of the file as it is at that time, and not at all if the file has changed since.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use mcpd_check::fix::FixedFile;
use mcpd_clients::plan::Plan;
use mcpd_clients::{Client, Connection, Places};
use mcpd_config::{directories, private_file};
use mcpd_exec::Executor;
use serde::{Serialize, Serializer};

use crate::entry;
use crate::scripts::{self, Scripts};

/// Permission bits of others than the owner.
const OF_OTHERS: u32 = 0o077;

/// Most lines of a change that are shown.
const MAX_DIFF_LINES: usize = 40;

/// Fault of a file that can be corrected.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Correction {
    /// The file.
    pub file: PathBuf,
    /// The fault, as a clause.
    pub fault: String,
    #[serde(rename = "correction", serialize_with = "serialize_text")]
    action: Action,
}

/// Correction of a file.
#[derive(Debug)]
enum Action {
    /// Lets a script start.
    Start(Box<FixedFile>),
    /// Removes the permissions of other users.
    MakePrivate,
    /// Writes an entry of a client as an installation would now.
    Rewrite(Box<Plan>),
}

fn serialize_text<S: Serializer>(action: &Action, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&action.text())
}

/// Finds faults of the scripts, of private files, and of the entries of clients.
pub(crate) async fn find(
    executor: &Executor,
    program: &Path,
    scripts: &Scripts,
    only: Option<&'static Client>,
) -> anyhow::Result<Vec<Correction>> {
    let mut corrections = Vec::new();
    if !scripts.directories.is_empty() {
        for file in scripts::unstartable(executor, program, scripts).await? {
            let fixed = FixedFile::of_script(&file, &scripts.directories);
            let fixed = fixed.context("read a script")?;
            corrections.extend(fixed.map(of_script));
        }
    }
    corrections.extend(of_private_files()?);
    corrections.extend(of_entries(&entry::places()?, only)?);
    Ok(corrections)
}

fn of_script(fixed: FixedFile) -> Correction {
    let faults: Vec<_> = fixed.changes.iter().map(|fault| &*fault.message).collect();
    Correction {
        file: fixed.file.clone(),
        fault: faults.join(", and "),
        action: Action::Start(Box::new(fixed)),
    }
}

/// Tokens that other users can read.
fn of_private_files() -> anyhow::Result<Vec<Correction>> {
    let mut files = vec![directories::token()?];
    if let Ok(logins) = fs::read_dir(directories::logins()?) {
        files.extend(logins.flatten().map(|login| login.path()));
    }
    let is_open =
        |path: &PathBuf| is_regular(path) && private_file::permissions(path) & OF_OTHERS != 0;
    let open = files.into_iter().filter(is_open);
    let fix = |file: PathBuf| Correction {
        fault: "other users can read this secret".to_owned(),
        action: Action::MakePrivate,
        file,
    };
    Ok(open.map(fix).collect())
}

/// Returns whether a path is a file, and no link to one.
fn is_regular(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|metadata| metadata.is_file())
}

/// Entries of clients that start mcpd and can't work as they are. One for each file: others of it
/// are found once that one is corrected.
fn of_entries(places: &Places, only: Option<&'static Client>) -> anyhow::Result<Vec<Correction>> {
    let clients = Client::all().iter();
    let clients = clients.filter(|client| only.is_none_or(|only| only.name() == client.name()));
    let mut corrections: Vec<Correction> = Vec::new();
    let mut program: Option<String> = None;
    for client in clients {
        for (scope, installed) in entry::of_client(client, places).servers {
            let Some(file) = client.file(scope, places, &installed.name) else {
                continue;
            };
            if !installed.connection.starts_mcpd()
                || corrections.iter().any(|one| one.file == file.path())
            {
                continue;
            }
            if program.is_none() {
                program = Some(entry::stable_program()?.to_string_lossy().into_owned());
            }
            let now = program.as_deref().unwrap_or_default();
            let Some(repair) = file.repair(&installed, now, &entry::search_path()) else {
                continue;
            };
            let faults: Vec<_> = repair.faults.iter().map(ToString::to_string).collect();
            let path = file.path().to_owned();
            if let Some(plan) = Plan::install(file, &repair.server, false)? {
                corrections.push(Correction {
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
    Ok(corrections)
}

impl Correction {
    /// Fault and correction on one line.
    #[must_use]
    pub fn text(&self) -> String {
        let Self {
            file,
            fault,
            action,
        } = self;
        format!("{}: {fault}; {}", file.display(), action.text())
    }

    /// Lines that change in a text file, up to a readable number; empty for a mode.
    #[must_use]
    pub fn diff(&self) -> String {
        let whole = match &self.action {
            Action::Rewrite(plan) => format!("{}\n{}", plan.path().display(), plan.diff()),
            Action::Start(fixed) if fixed.before != fixed.after => {
                fixed.diff(&self.file.to_string_lossy()).replace('\r', "^M")
            }
            _ => String::new(),
        };
        let lines: Vec<_> = whole.lines().collect();
        let shown = lines.iter().take(MAX_DIFF_LINES);
        let mut text: String = shown.map(|line| format!("{line}\n")).collect();
        if let Some(rest) = lines
            .len()
            .checked_sub(MAX_DIFF_LINES)
            .filter(|rest| *rest > 0)
        {
            text += &format!("… {rest} more lines\n");
        }
        text
    }

    /// Returns whether it writes the path of this program to the file of a client.
    #[must_use]
    pub fn names_program(&self) -> bool {
        matches!(self.action, Action::Rewrite(_))
    }

    /// Makes the correction.
    ///
    /// # Errors
    ///
    /// The file has changed since it was read, or can't be written.
    pub fn apply(&self) -> anyhow::Result<()> {
        let path = &self.file;
        let failed = || format!("correct `{}`", path.display());
        match &self.action {
            Action::Start(fixed) => fixed.write().with_context(failed),
            Action::MakePrivate => make_private(path).with_context(failed),
            Action::Rewrite(plan) => plan.apply().with_context(failed),
        }
    }
}

impl Action {
    fn text(&self) -> String {
        match self {
            Self::Start(fixed) => {
                let removed = fixed.before.len() - fixed.after.len();
                let ends = match removed {
                    0 => None,
                    1 => Some("take the carriage return out of 1 line".to_owned()),
                    count => Some(format!("take the carriage returns out of {count} lines")),
                };
                let mode = fixed
                    .becomes_executable
                    .then(|| "make it executable".to_owned());
                let steps: Vec<_> = ends.into_iter().chain(mode).collect();
                steps.join(", and ")
            }
            Self::MakePrivate => "make it readable for its owner alone".to_owned(),
            Self::Rewrite(_) => "write the entry as `mcpd install` would".to_owned(),
        }
    }
}

/// Removes the permissions of other users from the file as it is now. A link is not followed.
#[cfg(unix)]
fn make_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;

    let metadata = path.symlink_metadata()?;
    if !metadata.is_file() {
        return Err(std::io::Error::other("it is no regular file"));
    }
    let mode = metadata.permissions().mode() & 0o7777 & !OF_OTHERS;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn make_private(_: &Path) -> std::io::Result<()> {
    Ok(())
}

/// Directories that the entries of a client serve.
///
/// # Errors
///
/// There is no home directory, or no working directory.
pub fn served_directories(client: &'static Client) -> anyhow::Result<Vec<PathBuf>> {
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
