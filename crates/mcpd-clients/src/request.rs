//! Server to install, in terms that suit every client, and what becomes of it in each.

use std::collections::BTreeMap;
use std::path::Path;

use crate::client::{Client, ClientError, Scope};
use crate::{Places, Server};

/// Server of mcpd to install. Each client gets it as its file can say it.
///
/// ```
/// use mcpd_clients::{Client, Places, Platform, Request, Scope};
///
/// let places = Places::new(Platform::Linux, "/home/ada").with_project("/home/ada/web");
/// let request = Request::serve("tools", "/usr/bin/mcpd", ["/home/ada/web/tools"]);
/// let vscode = Client::find("vscode").expect("a known client");
/// let prepared = request.prepare(vscode, Scope::Project, &places)?;
/// let entry = vscode.entry(&prepared.server)?;
/// assert_eq!(entry["args"][1], "${workspaceFolder}/tools");
/// assert!(prepared.machine_paths.is_empty());
/// # Ok::<(), mcpd_clients::ClientError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Request {
    name: String,
    program: String,
    source: Source,
    search_path: Option<String>,
    env: BTreeMap<String, String>,
    pass_env: Vec<String>,
}

/// Server that a request is for.
#[derive(Debug, Clone)]
enum Source {
    /// Scripts, which the client serves by `mcpd stdio`.
    Directories {
        directories: Vec<String>,
        configuration: Option<String>,
    },
    /// Server over HTTP.
    Url {
        url: String,
        token: Option<Token>,
        transport: Option<UrlTransport>,
    },
}

/// Place of the token for a URL.
#[derive(Debug, Clone)]
enum Token {
    Variable(String),
    File(String),
}

/// Way in which a client reaches a server at a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum UrlTransport {
    /// The client connects to the URL itself, over Streamable HTTP.
    Http,
    /// The client starts `mcpd connect`, which connects to the URL.
    Stdio,
}

/// Request as one client gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prepared {
    /// Server to write to the client's file.
    pub server: Server,
    /// Absolute paths in the file of a project, which hold on this machine only.
    pub machine_paths: Vec<String>,
}

impl Request {
    /// Request to serve directories, given by absolute paths, by that program of mcpd.
    pub fn serve<I: IntoIterator<Item: Into<String>>>(
        name: impl Into<String>,
        program: impl Into<String>,
        directories: I,
    ) -> Self {
        let source = Source::Directories {
            directories: directories.into_iter().map(Into::into).collect(),
            configuration: None,
        };
        Self::new(name.into(), program.into(), source)
    }

    /// Request to connect to a URL: as the client does itself where it can, otherwise by that
    /// program of mcpd.
    pub fn connect(
        name: impl Into<String>,
        program: impl Into<String>,
        url: impl Into<String>,
    ) -> Self {
        let source = Source::Url {
            url: url.into(),
            token: None,
            transport: None,
        };
        Self::new(name.into(), program.into(), source)
    }

    fn new(name: String, program: String, source: Source) -> Self {
        Self {
            name,
            program,
            source,
            search_path: None,
            env: BTreeMap::new(),
            pass_env: Vec::new(),
        }
    }

    /// Serves directories with the configuration file at that absolute path.
    pub fn set_configuration(mut self, path: impl Into<String>) -> Self {
        if let Source::Directories { configuration, .. } = &mut self.source {
            *configuration = Some(path.into());
        }
        self
    }

    /// Sends the value of a variable as the bearer token to the URL.
    pub fn send_token(self, variable: impl Into<String>) -> Self {
        self.set_token(Token::Variable(variable.into()))
    }

    /// Sends the content of the file at that absolute path as the bearer token to the URL.
    pub fn send_token_file(self, path: impl Into<String>) -> Self {
        self.set_token(Token::File(path.into()))
    }

    fn set_token(mut self, new: Token) -> Self {
        if let Source::Url { token, .. } = &mut self.source {
            *token = Some(new);
        }
        self
    }

    /// Reaches the URL in that way only.
    pub fn set_transport(mut self, wanted: UrlTransport) -> Self {
        if let Source::Url { transport, .. } = &mut self.source {
            *transport = Some(wanted);
        }
        self
    }

    /// Gives that `PATH` to a server that a client of a desktop starts, except in the file of a
    /// project: the directories are those of one machine.
    pub fn set_search_path(mut self, path: impl Into<String>) -> Self {
        self.search_path = Some(path.into());
        self
    }

    /// Sets a variable of the scripts.
    pub fn set_env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Passes a variable of the client's environment to the scripts.
    pub fn pass_env(mut self, name: impl Into<String>) -> Self {
        self.pass_env.push(name.into());
        self
    }

    /// Server for the file of a client in a scope. In the file of a project, paths are relative
    /// to the project where the client can do that, and mcpd is looked for in `PATH`.
    ///
    /// # Errors
    ///
    /// The client can't reach the server in that way.
    pub fn prepare(
        &self,
        client: &'static Client,
        scope: Scope,
        places: &Places,
    ) -> Result<Prepared, ClientError> {
        let mut paths = Paths {
            client,
            project: places.project().filter(|_| scope == Scope::Project),
            machine_paths: Vec::new(),
        };
        let server = match &self.source {
            Source::Directories {
                directories,
                configuration,
            } => {
                let mut words = vec!["stdio".to_owned()];
                words.extend(directories.iter().map(|path| paths.text(path)));
                if let Some(path) = configuration {
                    words.extend(["--config".to_owned(), paths.text(path)]);
                }
                let server = Server::stdio(&self.name, paths.program(&self.program), words);
                self.add_variables(server, client, scope)
            }
            Source::Url {
                url,
                token,
                transport,
            } => self.connection(&mut paths, url, token.as_ref(), *transport)?,
        };
        Ok(Prepared {
            server,
            machine_paths: paths.machine_paths,
        })
    }

    fn add_variables(&self, server: Server, client: &Client, scope: Scope) -> Server {
        let path = self.search_path.as_ref();
        let needs_path = client.is_graphical() && client.takes_path() && scope != Scope::Project;
        let server = match path.filter(|_| needs_path) {
            Some(path) => server.set_env("PATH", path),
            None => server,
        };
        let server = self
            .env
            .iter()
            .fold(server, |server, (name, value)| server.set_env(name, value));
        self.pass_env.iter().fold(server, Server::pass_env)
    }

    fn connection(
        &self,
        paths: &mut Paths<'_>,
        url: &str,
        token: Option<&Token>,
        transport: Option<UrlTransport>,
    ) -> Result<Server, ClientError> {
        let client = paths.client;
        let is_direct = client.has_http() && !matches!(token, Some(Token::File(_)));
        let transport = transport.unwrap_or(match is_direct {
            true => UrlTransport::Http,
            false => UrlTransport::Stdio,
        });
        if transport == UrlTransport::Http {
            let title = client.title();
            if !client.has_http() {
                return Err(ClientError::NoHttp { client: title });
            }
            let server = Server::http(&self.name, url);
            return match token {
                None => Ok(server),
                Some(Token::Variable(variable)) => Ok(server.send_token(variable)),
                Some(Token::File(_)) => Err(ClientError::NoTokenFile { client: title }),
            };
        }
        let mut words = vec!["connect".to_owned(), url.to_owned()];
        match token {
            Some(Token::File(file)) => {
                words.extend(["--token-file".to_owned(), paths.text(file)]);
            }
            Some(Token::Variable(variable)) => {
                words.extend(["--token-env".to_owned(), variable.clone()]);
            }
            None => {}
        }
        let server = Server::stdio(&self.name, paths.program(&self.program), words);
        Ok(match token {
            Some(Token::Variable(variable)) => server.pass_env(variable),
            _ => server,
        })
    }
}

/// Paths as the file of a client has them.
struct Paths<'a> {
    client: &'static Client,
    /// Directory of the project whose file it is.
    project: Option<&'a Path>,
    machine_paths: Vec<String>,
}

impl Paths<'_> {
    fn text(&mut self, path: &str) -> String {
        let Some(project) = self.project else {
            return path.to_owned();
        };
        let below = Path::new(path).strip_prefix(project).ok();
        match below.and_then(|below| self.client.project_path().to(below)) {
            Some(text) => text,
            None => {
                self.machine_paths.push(path.to_owned());
                path.to_owned()
            }
        }
    }

    /// Program: in the file of a project its name alone, which each user has in `PATH`.
    fn program(&self, program: &str) -> String {
        let name = Path::new(program)
            .file_stem()
            .and_then(|name| name.to_str());
        match name.filter(|_| self.project.is_some()) {
            Some(name) => name.to_owned(),
            None => program.to_owned(),
        }
    }
}
