//! Builder of a server. All errors are found in `start`.

use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use mcpd_exec::{Config, Executor};
use mcpd_protocol::Implementation;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::identity::BuiltWith;
use super::settings::{AppliedSettings, Settings};
use super::{Inner, Server};
use crate::catalog::DEFAULT_PAGE_SIZE;
use crate::catalog::call::{CallContext, CallHost};
use crate::catalog::live::LiveCatalog;
use crate::catalog::scan::Scanner;
use crate::catalog::search::Search;
use crate::catalog::source::{Host, Source, Sources};
use crate::client::subscribers::Subscribers;
#[cfg(feature = "database")]
use crate::database::Database;
use crate::execution::engine::Engine;
use crate::execution::seal::Seal;
use crate::observe::Observers;
use crate::observe::audit::Audit;
use crate::observe::audit::request_log::Auditor;
use crate::observe::request_events::{RequestEvent, RequestObserver};
use crate::observe::spans::Spans;
use crate::policy::Policy;
use crate::script::interpreter::Interpreters;
use crate::server::error::Error;
use crate::tools::background_tools;
use crate::tools::native::{
    IntoResourceBody, IntoToolResult, NativeResource, NativeToolDescription,
};
use crate::tools::run_command::RunCommand;
use crate::tools::tasks::Tasks;
#[cfg(feature = "database")]
use crate::tools::tasks::store::DatabaseStore;
use crate::tools::tasks::store::Store;

mod entries;

pub(super) use entries::command_tool;
use entries::{add_command_tool, add_search, built_in};

/// Configuration of a server before its start. See [`Server::builder`].
#[derive(Debug)]
#[must_use]
pub struct ServerBuilder {
    identity: Implementation,
    instructions: Option<String>,
    roots: Vec<PathBuf>,
    tools: Vec<NativeToolDescription>,
    resources: Vec<ResourceDescription>,
    pub(super) settings: Settings,
    executor: Option<Executor>,
    probes: Option<Executor>,
    #[cfg(feature = "database")]
    database: Option<Database>,
    tasks: Option<Arc<Tasks>>,
    background_tools: bool,
    search: Option<Search>,
    page_size: NonZeroUsize,
    watch: bool,
    only: Option<String>,
    is_thorough: bool,
    state_secret: Option<Vec<u8>>,
    audit: Option<Audit>,
    node: Option<String>,
    spans: Spans,
    requests: RequestObserver,
}

#[derive(Debug)]
struct ResourceDescription {
    uri: String,
    name: String,
    description: String,
    resource: NativeResource,
}

impl ServerBuilder {
    pub(super) fn new() -> Self {
        Self {
            identity: Implementation::new("mcpd", env!("CARGO_PKG_VERSION")),
            instructions: None,
            roots: Vec::new(),
            tools: Vec::new(),
            resources: Vec::new(),
            settings: Settings::default(),
            executor: None,
            probes: None,
            #[cfg(feature = "database")]
            database: None,
            tasks: None,
            background_tools: false,
            search: None,
            page_size: DEFAULT_PAGE_SIZE,
            watch: true,
            only: None,
            is_thorough: false,
            state_secret: None,
            audit: None,
            node: None,
            spans: Default::default(),
            requests: RequestObserver::default(),
        }
    }

    /// Sets the name and version in the identity; mcpd's own by default.
    pub fn identity(mut self, identity: Implementation) -> Self {
        self.identity = identity;
        self
    }

    /// Sets instructions for models on how to use this server.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Serves every script under `directory`. Of two scripts with one path, the one in the
    /// earlier directory is served.
    pub fn scripts(mut self, directory: impl Into<PathBuf>) -> Self {
        self.roots.push(directory.into());
        self
    }

    /// Serves `function` as the tool `name`, which may be a path such as `kit/show`. It takes
    /// precedence over scripts with that path, and the first of two functions over the other: see
    /// [`Catalog::conflicts`](crate::Catalog::conflicts).
    ///
    /// The input schema is that of the argument type, by `schemars` 1; invalid arguments never
    /// reach the function. Unknown arguments are ignored, unless the type has
    /// `#[serde(deny_unknown_fields)]`.
    ///
    /// Each call is a task of the runtime: long computations belong into
    /// [`tokio::task::spawn_blocking`], as everywhere. A panic is an internal error for its
    /// caller alone. The future of the function is dropped when the call is cancelled.
    ///
    /// A tool with more metadata, such as annotations or an output schema, is offered by a
    /// [`source`](Self::source), and so are prompts and resource templates.
    pub fn tool<A, F, R, O>(
        mut self,
        name: impl Into<String>,
        description: impl Into<String>,
        function: F,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(A, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = O> + Send + 'static,
        O: IntoToolResult,
    {
        let (name, description) = (name.into(), description.into());
        let tool = NativeToolDescription::new(name, description, function);
        self.tools.push(tool);
        self
    }

    /// Serves the result of `read` as the resource at `uri`, such as `kit://state`, under the
    /// name `name`, which may be a path such as `kit/state`.
    ///
    /// The return type determines the content: text, bytes, or JSON. Each read is a task of the
    /// runtime, as calls of tools are. [`Server::notify_resource_updated`] notifies subscribers
    /// when the resource changes.
    pub fn resource<F, R, O>(
        mut self,
        uri: impl Into<String>,
        name: impl Into<String>,
        description: impl Into<String>,
        read: F,
    ) -> Self
    where
        F: Fn(CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = O> + Send + 'static,
        O: IntoResourceBody,
    {
        self.resources.push(ResourceDescription {
            uri: uri.into(),
            name: name.into(),
            description: description.into(),
            resource: NativeResource::new(read),
        });
        self
    }

    /// Serves the offer of `source`. A script with the same path takes precedence.
    pub fn source(mut self, source: impl Source) -> Self {
        self.settings = self.settings.source(source);
        self
    }

    /// Serves the tool `run_command`, which runs any command that a model writes: see
    /// [`RunCommand`].
    pub fn run_command(mut self, run_command: RunCommand) -> Self {
        self.settings = self.settings.run_command(run_command);
        self
    }

    /// Serves the tools `runs_start`, `runs_list`, `runs_status`, `runs_output` and `runs_stop`,
    /// which give background calls to clients that do not support tasks. They need a
    /// [database](Self::tasks).
    pub fn background_tools(mut self) -> Self {
        self.background_tools = true;
        self
    }

    /// Lists the tools `search_tools` and `call_tool` in place of all others, except those that are
    /// [pinned](Search::pin): so that a list of many tools costs a model little. Clients that know
    /// a tool may still call it by its name.
    pub fn search(mut self, search: Search) -> Self {
        self.search = Some(search);
        self
    }

    /// Sets the executor of scripts, and with it the number of concurrent runs.
    pub fn executor(mut self, executor: Executor) -> Self {
        self.executor = Some(executor);
        self
    }

    /// Sets the executor of probes. The default is a separate one, so that a new script is found
    /// however many calls are queued.
    pub fn probes(mut self, executor: Executor) -> Self {
        self.probes = Some(executor);
        self
    }

    /// Sets the policy of scripts. By default none is confined.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.settings = self.settings.policy(policy);
        self
    }

    /// Sets the interpreters of scripts that are not programs.
    pub fn interpreters(mut self, interpreters: Interpreters) -> Self {
        self.settings = self.settings.interpreters(interpreters);
        self
    }

    /// Probes no more scripts than necessary to know the one at `path`, such as `math/add`: for a
    /// program with a single purpose. Other scripts are missing, unless they are known without a
    /// probe.
    pub fn only(mut self, path: impl Into<String>) -> Self {
        self.only = Some(path.into());
        self
    }

    /// Reports the result for every file below the roots: for a program that shows it.
    pub fn thorough(mut self) -> Self {
        self.is_thorough = true;
        self
    }

    /// Caches probe results in `database`, so that the next start probes no script.
    #[cfg(feature = "database")]
    pub fn database(mut self, database: Database) -> Self {
        self.database = Some(database);
        self
    }

    /// Keeps tasks in `database`: background calls and their results. Without a database no call
    /// becomes a task.
    #[cfg(feature = "database")]
    pub fn tasks(mut self, database: Database) -> Self {
        self.tasks = Some(Arc::new(Tasks::new(DatabaseStore::new(database))));
        self
    }

    /// Sets the number of entries on a page of a list; [`DEFAULT_PAGE_SIZE`] by default.
    pub fn page_size(mut self, page_size: NonZeroUsize) -> Self {
        self.page_size = page_size;
        self
    }

    /// Seals the state of scripts that ask questions with a key derived from `secret`, so that
    /// servers with the same secret accept each other's state. The default is a random key, lost
    /// with the server.
    pub fn state_secret(mut self, secret: impl Into<Vec<u8>>) -> Self {
        self.state_secret = Some(secret.into());
        self
    }

    /// Records in `audit` every call of a tool, and every prompt and resource that a script
    /// produces, for any caller. By default nothing is recorded.
    pub fn audit(mut self, audit: Audit) -> Self {
        self.audit = Some(audit);
        self
    }

    /// Names this machine in the records of requests, as several machines of a cluster have
    /// something to do with one. By default records have no such name.
    pub fn node(mut self, node: impl Into<String>) -> Self {
        self.node = Some(node.into());
        self
    }

    /// Creates a span for every request, and a child span for every run, with the tracer provider
    /// of OpenTelemetry that is global at this call. By default none are created. The spans are
    /// described in `docs/observability.md`.
    #[cfg(feature = "otel")]
    pub fn spans(mut self) -> Self {
        self.spans = Spans::global();
        self
    }

    /// Supports calls that run as tasks, and keeps these in `store`, which other servers may share.
    pub fn task_store(mut self, store: impl Store) -> Self {
        self.tasks = Some(Arc::new(Tasks::new(store)));
        self
    }

    /// Observes the requests that may run something: each event comes with the number of its
    /// request, which counts from 1. The callback runs on a thread of the async runtime, and on
    /// the way of the request: it must not block.
    pub fn observe_requests(
        mut self,
        callback: impl Fn(u64, RequestEvent<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.requests = self.requests.with(callback);
        self
    }

    /// Sets whether changes under the roots are followed. They are by default.
    pub fn watch(mut self, watch: bool) -> Self {
        self.watch = watch;
        self
    }

    /// Starts the server. The first scan runs in the background.
    ///
    /// # Errors
    ///
    /// Fails if a root is no readable directory, a tool or resource cannot be served as
    /// described, or the system refuses a thread.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn start(self) -> Result<Server, Error> {
        let roots = absolute_roots(&self.roots)?;
        let settings = self.settings;
        let current = AppliedSettings::of(&settings);
        let mut tools = self.tools;
        if self.background_tools {
            tools.extend(background_tools::describe(self.tasks.as_ref()));
        }
        let mut built_in = built_in(tools, self.resources)?;
        let mut instructions: Vec<_> = self.instructions.into_iter().collect();
        if let Some(options) = settings.run_command {
            instructions.push(add_command_tool(&mut built_in, options, &current.policy)?);
        }
        instructions.extend(self.search.map(|search| add_search(&mut built_in, search)));
        let executor = executor_or_default(self.executor)?;
        let probes = executor_or_default(self.probes)?;
        let seal = seal(self.state_secret.as_deref())?;
        settings.policy.warn_of_short_secrets();
        let stop = CancellationToken::new();
        let auditor = (self.audit).map(|audit| Auditor::new(audit, self.node));
        let host = Host::new(&probes, &settings.policy, self.watch);
        let (policy, interpreters) = (settings.policy, settings.interpreters);
        let scanner = Scanner::new(probes.clone(), policy, interpreters, roots.clone());
        let scanner = settings.locked.into_iter().fold(scanner, Scanner::locked);
        #[cfg(feature = "database")]
        let scanner = with_database(scanner, self.database);
        let sources = Sources::started(settings.sources, &host, stop.clone());
        let measurements = sources.measurements();
        let subscribers = Arc::new(Subscribers::default());
        let catalog = LiveCatalog::start(
            built_in,
            self.page_size,
            configure_scanner(scanner, self.only, self.is_thorough),
            sources,
            self.watch.then(|| roots.clone()),
            Arc::clone(&subscribers),
            stop.clone(),
        );
        let built_with = BuiltWith::new(self.identity, instructions);
        let identity = built_with.with(settings.identity, settings.instructions);
        let observers = Observers::new(auditor, &current.policy, self.spans, self.requests);
        let engine = Engine::new(executor, observers, subscribers, seal, identity, stop);
        engine.set_choices(&current.policy, settings.selections);
        let call_host = CallHost {
            engine: Arc::new(engine),
            catalog,
        };
        if let Some(tasks) = &self.tasks {
            tasks.attach(&call_host);
        }
        let inner = Arc::new(Inner {
            built_with,
            watching: self.watch,
            call_host,
            probes,
            applied: Mutex::new(current),
            tasks: self.tasks,
            measurements,
        });
        Ok(Server { inner })
    }
}

/// Returns the roots as absolute paths. Links in them are kept: they may lead elsewhere later.
fn absolute_roots(roots: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let readable = |root: &PathBuf| {
        let refused = |mut source: io::Error| {
            if root.is_file() {
                let hint = "it is a file; use the directory that contains it";
                source = io::Error::new(source.kind(), hint);
            }
            let root = root.clone();
            Error::Root { root, source }
        };
        std::fs::read_dir(root).map_err(refused)?;
        std::path::absolute(root).map_err(refused)
    };
    roots.iter().map(readable).collect()
}

#[cfg(feature = "database")]
fn with_database(scanner: Scanner, database: Option<Database>) -> Scanner {
    match database {
        Some(database) => scanner.database(database),
        None => scanner,
    }
}

fn configure_scanner(scanner: Scanner, only: Option<String>, is_thorough: bool) -> Scanner {
    let scanner = match is_thorough {
        true => scanner.thorough(),
        false => scanner,
    };
    match only {
        Some(path) => scanner.only(path),
        None => scanner,
    }
}

fn seal(secret: Option<&[u8]>) -> Result<Seal, Error> {
    match secret {
        Some(secret) => Ok(Seal::new(secret)),
        None => Seal::random().map_err(|error| Error::Randomness(error.to_string())),
    }
}

fn executor_or_default(executor: Option<Executor>) -> Result<Executor, Error> {
    let new = || Executor::new(Config::default());
    executor.map_or_else(new, Ok).map_err(Error::Executor)
}
