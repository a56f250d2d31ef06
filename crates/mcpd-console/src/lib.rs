//! Web console of a server: the files of a page, and the data that it shows beside what MCP has
//! methods for. A `Console` of `mcpd-server` serves both, and decides who may read them.
//!
//! ```no_run
//! use mcpd_console::ConsoleSite;
//! use mcpd_server::transport::http::{self, Auth, Options, Token, console::Console};
//! use mcpd_server::{Principal, Server};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let site = ConsoleSite::new().operator("me");
//! let server = site.observe(Server::builder().scripts("/srv/tools")).start()?;
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:43210").await?;
//! let mut options = Options::new(Auth::tokens([Token::new("a secret", Principal::new("me"))]));
//! let console = Console::new(site.clone());
//! println!("http://127.0.0.1:43210/console#code={}", console.one_time_code("a secret"));
//! options.console = Some(console);
//! tokio::select! {
//!     served = http::serve(&server, listener, options) => served?,
//!     never = site.follow(&server) => match never {},
//! }
//! # Ok(()) }
//! ```
//!
//! Callers see their own tools and their own runs. Operators see the runs of all callers, the
//! faults of scripts, the configuration and the state of the server.
//!
//! # Stability
//!
//! The addresses below `/console/api/` are for the page of the same version, and for no other
//! program.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcpd_server::transport::http::console::{Site, SiteAnswerFuture, SiteAsset, SiteRequest};
use mcpd_server::{Principal, Server, ServerBuilder};
use serde_json::Value;
use tokio::task::spawn_blocking;

mod api;
mod assets;
mod connection;
mod files;
mod history;
mod live;
mod reports;
mod runs;

pub use connection::Connection;

use files::FileCache;
use history::History;
use live::LiveRuns;
use reports::{MakeReport, Reports};
use runs::RunIndex;

/// Site of a console. All clones share it.
#[derive(Debug, Clone, Default)]
pub struct ConsoleSite {
    inner: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    operators: BTreeSet<String>,
    configuration: Arc<Mutex<Value>>,
    connection: Option<Connection>,
    reports: Reports,
    live: Arc<LiveRuns>,
    history: Arc<History>,
    runs: Arc<RunIndex>,
    files: FileCache,
}

impl ConsoleSite {
    /// Creates a site whose operators are the callers that are [operators](Principal::operator).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the caller of that name an operator as well, to whom everything is shown.
    #[must_use]
    pub fn operator(self, name: &str) -> Self {
        self.with(|shared| {
            shared.operators.insert(name.to_owned());
        })
    }

    /// Sets the configuration that operators see, at the start and after a reload: a list of
    /// objects with `key`, `value` and `origin`, without secrets.
    pub fn set_configuration(&self, configuration: Value) {
        *self.lock_configuration() = configuration;
    }

    fn configuration(&self) -> Value {
        self.lock_configuration().clone()
    }

    fn lock_configuration(&self) -> MutexGuard<'_, Value> {
        let configuration = self.inner.configuration.lock();
        configuration.unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the way in which clients reach the server.
    #[must_use]
    pub fn connection(self, connection: Connection) -> Self {
        self.with(|shared| shared.connection = Some(connection))
    }

    /// Adds a report that operators may ask for, such as an examination of the machine, as text.
    /// The error is a sentence for them.
    #[must_use]
    pub fn report<F, R>(self, name: &'static str, make: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<String, String>> + Send + 'static,
    {
        let make: Arc<MakeReport> = Arc::new(move || Box::pin(make()));
        self.with(|shared| shared.reports.add(name, make))
    }

    /// Changes what is set, in a site that shares its running parts with this one.
    fn with(self, change: impl FnOnce(&mut Shared)) -> Self {
        let mut shared = Shared {
            operators: self.inner.operators.clone(),
            configuration: Arc::clone(&self.inner.configuration),
            connection: self.inner.connection.clone(),
            reports: self.inner.reports.clone(),
            live: Arc::clone(&self.inner.live),
            history: Arc::clone(&self.inner.history),
            runs: Arc::clone(&self.inner.runs),
            files: FileCache::default(),
        };
        change(&mut shared);
        Self {
            inner: Arc::new(shared),
        }
    }

    /// Shows the requests of the server while they run.
    pub fn observe(&self, server: ServerBuilder) -> ServerBuilder {
        let live = Arc::clone(&self.inner.live);
        server.observe_requests(move |number, event| live.add(number, event))
    }

    /// Records the metrics of the server, for ever.
    ///
    /// # Cancel safety
    ///
    /// May be dropped and called again at any time.
    pub async fn follow(&self, server: &Server) -> Infallible {
        if let Some(audit) = server.audit() {
            let (runs, file) = (Arc::clone(&self.inner.runs), audit.file());
            drop(spawn_blocking(move || runs.warm_up(&file)));
        }
        self.inner.history.follow(server).await
    }

    fn is_operator(&self, caller: &Principal) -> bool {
        caller.is_operator() || self.inner.operators.contains(caller.name())
    }
}

impl Site for ConsoleSite {
    fn asset(&self, path: &str) -> Option<SiteAsset> {
        assets::find(path)
    }

    fn answer<'a>(&'a self, request: SiteRequest<'a>) -> SiteAnswerFuture<'a> {
        Box::pin(api::answer(self, request))
    }
}
