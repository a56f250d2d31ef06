//! Action endpoint as a source: polled for its list, and called for each tool call. A failure
//! never affects other sources, and a failed poll keeps the previous list. Back-off:
//!
//! ```text
//! listed ─► wait `refresh` (60 s) ─► poll
//! failed ─► wait 1 s, 2 s, 4 s … at most `refresh` ─► poll
//! ```

use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcpd_exec::Executor;
use mcpd_scriptspec::{OutputFormat, PathError, excerpt};
use serde_json::value::RawValue;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::client::{EndpointClient, EndpointRequest, NoAnswer};
use super::remote;
use crate::catalog::source::{Publisher, Source, below};
use crate::execution::run;
use crate::policy::ToolPolicy;

/// Default interval of polls.
const DEFAULT_REFRESH: Duration = Duration::from_secs(60);
/// Timeout of a poll.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// First delay after a failure; each further failure doubles it.
const FIRST_RETRY_DELAY: Duration = Duration::from_secs(1);
/// Maximum length of the command in a message, in characters.
const MAX_COMMAND_CHARS: usize = 80;
const LIST_TOOLS: &str = "list_tools";

/// Action endpoint whose tools are served. See
/// [`ServerBuilder::source`](crate::ServerBuilder::source).
///
/// ```
/// use std::time::Duration;
/// use mcpd_server::Server;
/// use mcpd_server::endpoint::Endpoint;
///
/// let notes = Endpoint::new(["./notes", "--endpoint"], "/srv/notes")
///     .prefix("notes")
///     .timeout(Duration::from_secs(30));
/// let server = Server::builder().source(notes);
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Endpoint {
    command: Vec<String>,
    directory: PathBuf,
    prefix: String,
    refresh: Duration,
    tool_policy: ToolPolicy,
}

impl Endpoint {
    /// Creates the endpoint `command`, a program and its arguments, which runs in `directory`. A
    /// program given as a path is relative to the directory, too. No shell is involved.
    pub fn new(
        command: impl IntoIterator<Item = impl Into<String>>,
        directory: impl Into<PathBuf>,
    ) -> Self {
        Self {
            command: command.into_iter().map(Into::into).collect(),
            directory: directory.into(),
            prefix: String::new(),
            refresh: DEFAULT_REFRESH,
            tool_policy: ToolPolicy::for_all(),
        }
    }

    /// Serves the tools below the path `prefix`, such as `notes`.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets the interval of polls; the default is one minute.
    pub fn refresh(mut self, refresh: Duration) -> Self {
        self.refresh = refresh;
        self
    }

    /// Sets the time limit of a call, if no tool of the [`Policy`](crate::Policy) does.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.tool_policy = self.tool_policy.timeout(timeout);
        self
    }

    /// Sets a variable whose value is a secret, if no tool of the [`Policy`](crate::Policy) does.
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.tool_policy = self.tool_policy.variable(name, value);
        self
    }

    /// Requests the list of tools.
    async fn list(
        &self,
        client: &EndpointClient,
        executor: &Executor,
    ) -> Result<Box<RawValue>, String> {
        let path = below(&self.prefix, LIST_TOOLS);
        let wrong = |error: PathError| format!("has an invalid prefix: {error}");
        // Policy rules match paths, so the request has one too.
        let policy = client.policy_for(&path.parse().map_err(wrong)?);
        let mut limits = policy.limits().clone();
        // The limit of a call does not apply to the list, without which there are no calls.
        limits.wall = LIST_TIMEOUT;
        let request = EndpointRequest {
            action: LIST_TOOLS,
            tool: None,
            arguments: None,
        };
        let command = client.command(&policy, &request).limits(limits);
        let run = run::run_redacted(executor, &policy, OutputFormat::Json, command, |_| {});
        let outcome = run.await.map_err(NoAnswer::from);
        let answer = outcome.and_then(|outcome| client.answer(&outcome));
        let wrong = |reason: &str| format!("did not list its tools: {reason}");
        let answer = answer.map_err(|no_answer| wrong(&no_answer.reason))?;
        answer
            .tools
            .ok_or_else(|| wrong("its response has no `tools`"))
    }
}

impl Source for Endpoint {
    async fn run(self, publisher: Publisher) {
        let host = publisher.host();
        self.tool_policy.warn_of_short_secrets();
        let client = Arc::new(EndpointClient {
            name: self.to_string(),
            command: self.command.clone(),
            directory: self.directory.clone(),
            policy: (*host.policy)
                .clone()
                .default_tool(self.tool_policy.clone()),
        });
        let mut known: Option<Box<RawValue>> = None;
        let mut retry_delay = FIRST_RETRY_DELAY;
        loop {
            let wait = match self.list(&client, &host.probes).await {
                Ok(list) => {
                    if known.as_deref().map(RawValue::get) != Some(list.get()) {
                        publish(&publisher, &client, &self.prefix, list.clone()).await;
                    }
                    known = Some(list);
                    retry_delay = FIRST_RETRY_DELAY;
                    self.refresh
                }
                Err(fault) => {
                    publisher.fail(fault);
                    known = None;
                    let wait = retry_delay;
                    retry_delay = self.refresh.min(retry_delay * 2);
                    wait
                }
            };
            if !publisher.is_followed() {
                return;
            }
            sleep(wait).await;
        }
    }

    fn fingerprint(&self) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        let Self {
            command,
            directory,
            prefix,
            refresh,
            tool_policy,
        } = self;
        (command, directory, prefix, refresh).hash(&mut hasher);
        tool_policy.hash_settings(&mut hasher);
        Some(hasher.finish())
    }

    fn follows_policy(&self) -> bool {
        true
    }
}

/// Publishes the tools of a list. A long list is processed on a blocking thread, so that it
/// delays no other task.
async fn publish(
    publisher: &Publisher,
    client: &Arc<EndpointClient>,
    prefix: &str,
    list: Box<RawValue>,
) {
    let mut offer = publisher.offer();
    let (client, prefix) = (Arc::clone(client), prefix.to_owned());
    let fill = move || {
        remote::fill(&mut offer, &client, &prefix, &list);
        offer
    };
    if let Ok(offer) = spawn_blocking(fill).await {
        publisher.publish(offer);
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = excerpt(&self.command.join(" "), MAX_COMMAND_CHARS);
        write!(f, "the endpoint `{command}`")
    }
}
