//! Clients of MCP: where each keeps its servers, and the form of an entry there.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::edit::{EditError, Format, Table};
use crate::{ConfigFile, Places, Platform, Server, Transport};

mod files;
mod form;
mod link;
mod table;

use form::Form;
pub(crate) use form::input_id;
use link::Scheme;

/// Client of MCP that takes its servers from a file.
#[derive(Debug)]
pub struct Client {
    name: &'static str,
    title: &'static str,
    format: Format,
    /// Keys of the table of servers.
    keys: &'static [&'static str],
    /// Key of the name, where the table is a list.
    item_key: Option<&'static str>,
    user: Paths,
    project: Option<&'static str>,
    project_path: ProjectPath,
    /// Keeps servers of a project in the user's file as well.
    has_local: bool,
    form: Form,
    reference: Reference,
    is_graphical: bool,
    /// Asks the login shell for its own PATH when a desktop starts it.
    has_shell_path: bool,
    /// Variables of an entry that do not reach the server.
    ignored: &'static [&'static str],
    /// Variables of its own environment that it keeps for itself.
    withheld: &'static [&'static str],
    link: Option<Scheme>,
    /// Directory that exists where the client is installed.
    trace: Paths,
    /// Programs of the client.
    programs: &'static [&'static str],
    /// Settings that a new file starts with.
    preface: &'static str,
    /// Reads a file `*.jsonc` in the place of one `*.json`.
    has_jsonc: bool,
}

/// Reach of a client's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// All projects of the user.
    User,
    /// One project, for all its users: the file is in the project's directory.
    Project,
    /// One project, for the user alone: the entry is in the user's file (Claude Code only).
    Local,
}

/// Way in which a client's file refers to a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reference {
    /// None: values are written as they are.
    Missing,
    /// `${NAME}`.
    Braces,
    /// `${env:NAME}`.
    EnvBraces,
    /// `${env:NAME}` for variables; a token is asked for and kept: `${input:name}`.
    Input,
    /// `{env:NAME}`.
    BareBraces,
    /// `$NAME`.
    Dollar,
    /// `${{ secrets.NAME }}`.
    Secret,
    /// A list of names beside the variables, or a setting that has the name.
    Name,
}

/// Way in which the file of a project refers to the directory of the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProjectPath {
    /// None that is known: paths are absolute, so that the file suits one machine.
    Missing,
    /// Relative paths: the client starts servers in the directory of the project.
    Relative,
    /// Relative paths from a directory in the project's: the client starts servers beside its file.
    Parent,
    /// `${workspaceFolder}`.
    WorkspaceFolder,
}

impl ProjectPath {
    /// Text for a path below the directory of the project; none where there is no such text.
    #[must_use]
    pub fn to(self, below: &Path) -> Option<String> {
        let base = match self {
            Self::Missing => return None,
            Self::Relative => ".",
            Self::Parent => "..",
            Self::WorkspaceFolder => "${workspaceFolder}",
        };
        let mut text = base.to_owned();
        for part in below.components() {
            // With slashes on every platform: the file is for all of them.
            text.push('/');
            text.push_str(part.as_os_str().to_str()?);
        }
        Some(text)
    }
}

impl Reference {
    /// Text that stands for the value of a variable; none where there is no such text.
    #[must_use]
    pub fn to(self, variable: &str) -> Option<String> {
        match self {
            Self::Missing | Self::Name => None,
            Self::Braces => Some(format!("${{{variable}}}")),
            Self::EnvBraces | Self::Input => Some(format!("${{env:{variable}}}")),
            Self::BareBraces => Some(format!("{{env:{variable}}}")),
            Self::Dollar => Some(format!("${variable}")),
            Self::Secret => Some(format!("${{{{ secrets.{variable} }}}}")),
        }
    }
}

/// Reason why a server can't be written to a client's file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The client's file has no entries for servers at a URL.
    #[error(
        "{client} takes no URL in its file; let it start a program that connects there (transport stdio)"
    )]
    NoHttp {
        /// Title of the client.
        client: &'static str,
    },
    /// The client reads no token from a file.
    #[error(
        "{client} can't send a token that is in a file; name a variable that has it, or let it \
         start a program that connects there (transport stdio)"
    )]
    NoTokenFile {
        /// Title of the client.
        client: &'static str,
    },
    /// The client's file can't refer to variables, and a secret must not be written there.
    #[error(
        "{client} can't refer to a variable here, so that `{variable}` can't be passed; let the \
         server read the value from a file"
    )]
    NoReference {
        /// Title of the client.
        client: &'static str,
        /// Variable that would be referred to.
        variable: String,
    },
    /// The client keeps a variable from the server that is to have it.
    #[error(
        "{client} does not give servers the variable `{variable}`; leave it out or use another name"
    )]
    IgnoredVariable {
        /// Title of the client.
        client: &'static str,
        /// The variable.
        variable: String,
    },
    /// The file can't be edited.
    #[error(transparent)]
    Edit(#[from] EditError),
}

/// A path on each platform.
#[derive(Debug, Clone, Copy)]
struct Paths {
    linux: Base,
    macos: Base,
    windows: Base,
    /// Variable that has a directory to take instead, and the path below it.
    variable: Option<(&'static str, &'static str)>,
}

/// A path below a known directory.
#[derive(Debug, Clone, Copy)]
enum Base {
    Home(&'static str),
    Config(&'static str),
    LocalData(&'static str),
    /// Below `~/.config`.
    DotConfig(&'static str),
}

impl Paths {
    /// Path below the home directory on every platform.
    const fn home(path: &'static str) -> Self {
        Self {
            linux: Base::Home(path),
            macos: Base::Home(path),
            windows: Base::Home(path),
            variable: None,
        }
    }

    /// Path below the directory for settings on every platform.
    const fn config(path: &'static str) -> Self {
        Self {
            linux: Base::Config(path),
            macos: Base::Config(path),
            windows: Base::Config(path),
            variable: None,
        }
    }

    const fn or_variable(mut self, variable: &'static str, path: &'static str) -> Self {
        self.variable = Some((variable, path));
        self
    }

    fn resolve(&self, places: &Places) -> PathBuf {
        if let Some((variable, path)) = self.variable
            && let Some(directory) = places.directory(variable)
        {
            return if path.is_empty() {
                directory.to_owned()
            } else {
                directory.join(path)
            };
        }
        let base = match places.platform() {
            Platform::Linux => self.linux,
            Platform::MacOs => self.macos,
            Platform::Windows => self.windows,
        };
        match base {
            Base::Home(path) => places.home().join(path),
            Base::Config(path) => places.config().join(path),
            Base::LocalData(path) => places.local_data().join(path),
            Base::DotConfig(path) => places.home().join(".config").join(path),
        }
    }
}

impl Client {
    /// All clients that are known, by name.
    #[must_use]
    pub fn all() -> &'static [Self] {
        &table::CLIENTS
    }

    /// Client of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        Self::all().iter().find(|client| client.name == name)
    }

    /// Name on the command line, such as `claude-code`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Name for people, such as `Claude Code`.
    #[must_use]
    pub fn title(&self) -> &'static str {
        self.title
    }

    /// Format of its files.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Scopes that it has a file for.
    pub fn scopes(&self) -> impl Iterator<Item = Scope> {
        let project = self.project.map(|_| Scope::Project);
        let local = self.has_local.then_some(Scope::Local);
        [Some(Scope::User), project, local].into_iter().flatten()
    }

    /// Way in which its files refer to variables.
    #[must_use]
    pub fn reference(&self) -> Reference {
        self.reference
    }

    /// Takes servers at a URL.
    #[must_use]
    pub fn has_http(&self) -> bool {
        self.form.http.is_some()
    }

    /// Starts from a desktop, where PATH has the system's directories only: an entry should set
    /// PATH, if [`Self::takes_path`].
    #[must_use]
    pub fn is_graphical(&self) -> bool {
        self.is_graphical
    }

    /// Asks the login shell for PATH when a desktop starts it, so that an entry without PATH gets
    /// that of the shell.
    #[must_use]
    pub fn has_shell_path(&self) -> bool {
        self.has_shell_path
    }

    /// Way in which its file of a project refers to the directory of the project.
    #[must_use]
    pub fn project_path(&self) -> ProjectPath {
        self.project_path
    }

    /// Passes the variable PATH of an entry to the server.
    #[must_use]
    pub fn takes_path(&self) -> bool {
        !self.ignored.contains(&"PATH")
    }

    /// File of a scope, for an entry of that name: some clients have a file for each server.
    /// None if the client has no such scope, or the places have no project.
    #[must_use]
    pub fn file(
        &'static self,
        scope: Scope,
        places: &Places,
        server_name: &str,
    ) -> Option<ConfigFile> {
        let path = match scope {
            Scope::User => self.user.resolve(places),
            Scope::Project => places.project()?.join(self.project?),
            Scope::Local if self.has_local => self.user.resolve(places),
            Scope::Local => return None,
        };
        let mut table = self.table();
        if scope == Scope::Local {
            let project = places.project()?.to_string_lossy();
            table = Table::map(
                ["projects", &project]
                    .into_iter()
                    .chain(self.keys.iter().copied()),
            );
        }
        let path = match path.to_str() {
            Some(text) if text.contains(NAME) => {
                PathBuf::from(text.replace(NAME, &file_stem(server_name)))
            }
            _ => path,
        };
        let jsonc = path.with_extension("jsonc");
        let path = if self.has_jsonc && !path.exists() && jsonc.exists() {
            jsonc
        } else {
            path
        };
        Some(ConfigFile::new(self, scope, path, table))
    }

    /// Sign that the client is installed: its directory, or a program of it in a directory of
    /// that PATH.
    #[must_use]
    pub fn detect(&self, places: &Places, path: Option<&OsStr>) -> Option<PathBuf> {
        let trace = self.trace.resolve(places);
        if trace.exists() {
            return Some(trace);
        }
        let suffixes: &[&str] = match places.platform() {
            Platform::Windows => &[".exe", ".cmd", ".bat"],
            Platform::Linux | Platform::MacOs => &[""],
        };
        std::env::split_paths(path?)
            .filter(|directory| directory.is_absolute())
            .flat_map(|directory| {
                let names = self.programs.iter();
                names.flat_map(move |name| {
                    let directory = directory.clone();
                    suffixes
                        .iter()
                        .map(move |suffix| directory.join(format!("{name}{suffix}")))
                })
            })
            .find(|program| is_program(program))
    }

    /// Entry of a server in the client's form.
    ///
    /// # Errors
    ///
    /// The client has no form for it.
    pub fn entry(&self, server: &Server) -> Result<Value, ClientError> {
        self.form.render(self, server)
    }

    /// Whole file with just that server, in the client's format.
    ///
    /// # Errors
    ///
    /// The client has no form for it.
    pub fn render_snippet(&'static self, server: &Server) -> Result<String, ClientError> {
        ConfigFile::new(self, Scope::User, PathBuf::new(), self.table()).install("", server)
    }

    /// Link that asks the client to add the server when it is opened; none where the client has
    /// no such links. Goose opens links to programs of its own list only, such as `npx` or `uvx`.
    ///
    /// # Errors
    ///
    /// The client has no form for the server.
    pub fn link(&'static self, server: &Server) -> Result<Option<String>, ClientError> {
        let Some(scheme) = self.link else {
            return Ok(None);
        };
        let token = match &server.transport {
            Transport::Http { token_variable, .. } => token_variable.as_ref(),
            Transport::Stdio { .. } => None,
        };
        // Goose replaces variables in headers only if it is told their names, which no link can.
        if let (Scheme::Goose, Some(variable)) = (scheme, token) {
            return Err(ClientError::NoReference {
                client: self.title,
                variable: variable.clone(),
            });
        }
        let file = ConfigFile::new(self, Scope::User, PathBuf::new(), self.table());
        let input = file.token_input(server).map(|(_, input)| input);
        Ok(Some(scheme.render(server, &self.entry(server)?, input)))
    }

    fn table(&self) -> Table {
        match self.item_key {
            None => Table::map(self.keys.iter().copied()),
            Some(item_key) => Table::list(self.keys.iter().copied(), item_key),
        }
    }

    /// Settings that a new file starts with.
    pub(crate) fn preface(&self) -> &'static str {
        self.preface
    }

    /// Entry that keeps what an operator changed in an older one: settings that are not those of
    /// the server, and the values of those that have a default here.
    pub(crate) fn update_entry(&self, old: &Value, new: Value) -> Value {
        self.form.update(old, new)
    }
}

/// Stands for the name of the server in a path.
const NAME: &str = "{name}";

/// Name of a file for a server: no separators, no leading dot.
fn file_stem(name: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let stem: String = name
        .chars()
        .map(|c| if is_safe(c) { c } else { '-' })
        .collect();
    let stem = stem.trim_start_matches('.');
    if stem.is_empty() {
        "mcpd".to_owned()
    } else {
        stem.to_owned()
    }
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;

    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}
