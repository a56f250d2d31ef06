//! Fronts in this process, workers in this process or as processes of their own, scripts with a
//! journal.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpd_cluster::{Cluster, Placement, RerunPolicy, Settings, SharedTasks, Worker};
use mcpd_protocol::jsonrpc::Notification;
use mcpd_protocol::method::{CallToolRequestParams, ReadResourceRequest};
use mcpd_server::transport::local;
use mcpd_server::{Principal, Server, ServerBuilder};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

use crate::nats::Nats;

/// Body of a script that asks once whether its caller is sure.
pub(crate) const ASKS: &str = r#"
if [ -z "${MCPD_INPUT_RESPONSES-}" ]; then
  echo '{"inputRequests": {"sure": {"method": "elicitation/create", "params": {"mode": "form", "message": "Sure?", "requestedSchema": {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}}}}}'
  exit
fi
echo '{"content": [{"type": "text", "text": "was sure"}]}'
exit
"#;

/// Upper bound for anything that a test waits for, on a busy machine.
pub(crate) const EVENT_TIMEOUT: Duration = Duration::from_secs(60);

/// Directory with scripts that write a journal.
pub(crate) struct Scripts {
    directory: tempfile::TempDir,
}

impl Scripts {
    /// Makes `change`, which must not be run twice, `look`, which only reads, and `again`, which
    /// is idempotent. Each takes `id` and `seconds`.
    pub(crate) fn new() -> Self {
        let scripts = Self::none();
        scripts.add("change", "{}", "");
        scripts.add("look", r#"{"read_only": true}"#, "");
        scripts.add("again", r#"{"idempotent": true}"#, "");
        scripts
    }

    pub(crate) fn none() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(directory.path().join("scripts")).expect("a directory");
        Self { directory }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.directory.path().join("scripts")
    }

    /// Writes a script with these annotations, which runs `body` before its end.
    pub(crate) fn add(&self, name: &str, annotations: &str, body: &str) {
        let journal = self.directory.path().join("journal");
        let journal = journal.display();
        let text = format!(
            r#"#!/bin/sh
if [ "${{1-}}" = --help ]; then
  echo '{{"description": "Writes a journal", "annotations": {annotations}}}'
  echo '{{"id": {{"description": "Its name", "required": true, "value_type": "string"}}, "seconds": {{"description": "Its duration", "required": true, "value_type": "string"}}}}' >&2
  exit
fi
echo "start $MCPD_OPT_id" >>{journal}
sleep "$MCPD_OPT_seconds"
{body}
echo "end $MCPD_OPT_id" >>{journal}
echo "did $MCPD_OPT_id"
"#
        );
        self.write(name, &text);
    }

    /// Writes a script with the journal whose calls are tasks, and which runs `body` before its
    /// end.
    pub(crate) fn add_task(&self, name: &str, body: &str) {
        self.add(name, r#"{}, "task": "required""#, body);
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.root().join(name);
        // Replaced as a whole: a file that is written can't be started.
        let new = self.directory.path().join("new");
        fs::write(&new, text).expect("a file");
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).expect("a mode");
        fs::rename(&new, path).expect("a file");
    }

    /// Returns how often each run has begun and ended.
    pub(crate) fn journal(&self) -> BTreeMap<String, (usize, usize)> {
        let text = fs::read_to_string(self.directory.path().join("journal")).unwrap_or_default();
        let mut journal: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for line in text.lines() {
            if let Some(id) = line.strip_prefix("start ") {
                journal.entry(id.to_owned()).or_default().0 += 1;
            } else if let Some(id) = line.strip_prefix("end ") {
                journal.entry(id.to_owned()).or_default().1 += 1;
            }
        }
        journal
    }

    pub(crate) fn counts(&self, id: &str) -> (usize, usize) {
        self.journal().get(id).copied().unwrap_or_default()
    }
}

pub(crate) fn settings(url: &str, node: &str) -> Settings {
    let mut settings = Settings::new(vec![url.to_owned()], node.parse().expect("a name"));
    settings.lease = Duration::from_secs(4);
    settings
}

/// Worker in this process.
pub(crate) struct LocalWorker {
    pub(crate) server: Server,
    stop: Option<oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<Result<(), mcpd_cluster::Error>>,
}

impl LocalWorker {
    pub(crate) fn start(scripts: &Scripts, url: &str, node: &str) -> Self {
        Self::with(Worker::new(settings(url, node)), scripts)
    }

    pub(crate) fn with(worker: Worker, scripts: &Scripts) -> Self {
        let server = Server::builder().scripts(scripts.root()).start();
        let server = server.expect("a server");
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async {
            stopped.await.ok();
        };
        let task = tokio::spawn(worker.serve(server.clone(), stopped));
        Self {
            server,
            stop: Some(stop),
            task,
        }
    }

    /// Drains it, and waits for its end.
    pub(crate) async fn drain(mut self) {
        drop(self.stop.take());
        self.wait().await;
    }

    /// Waits until it has ended.
    pub(crate) async fn wait(mut self) {
        let ended = timeout(EVENT_TIMEOUT, &mut self.task).await;
        ended
            .expect("in time")
            .expect("no panic")
            .expect("a drained worker");
    }
}

impl Drop for LocalWorker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Process of an example of the crate, which can be killed and stopped. It is killed on drop.
pub(crate) struct NodeProcess(pub(crate) Child);

impl NodeProcess {
    /// Returns the command that starts an example, as that of another program, if there is one.
    pub(crate) fn command(prefix: &[&str], example: &str) -> Command {
        let test = std::env::current_exe().expect("a path");
        let profile = test.ancestors().nth(2).expect("target/debug/deps/test");
        let program = profile.join("examples").join(example);
        let words = prefix.iter().map(OsStr::new);
        let mut words = words.chain([program.as_os_str()]);
        #[expect(clippy::disallowed_methods, reason = "the node is no script of a tool")]
        let mut command = Command::new(words.next().expect("the program"));
        command.args(words);
        command
    }

    pub(crate) fn start(command: &mut Command) -> Self {
        let process = command.spawn();
        Self(process.expect("`cargo build -p mcpd-cluster --examples`, as `cargo test` does"))
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(id, signal).expect("a process of this test");
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts a worker in a process of its own.
pub(crate) fn process_worker(scripts: &Scripts, url: &str, node: &str) -> NodeProcess {
    process_worker_with(&[], scripts, url, node)
}

/// Starts it as the command of another program, which becomes the worker.
pub(crate) fn process_worker_with(
    prefix: &[&str],
    scripts: &Scripts,
    url: &str,
    node: &str,
) -> NodeProcess {
    let mut command = NodeProcess::command(prefix, "worker");
    // The directories of a killed worker are removed with the scripts.
    command.env("TMPDIR", scripts.directory.path());
    NodeProcess::start(command.arg(scripts.root()).args([url, node, "4"]))
}

/// Front in this process.
#[derive(Clone)]
pub(crate) struct Front {
    pub(crate) server: Server,
}

/// Result of a call: its text, and whether it is a success; or the error that is its answer.
pub(crate) type Told = Result<(bool, String), String>;

impl Front {
    pub(crate) fn start(url: &str, node: &str) -> Self {
        Self::with(settings(url, node))
    }

    pub(crate) fn with(settings: Settings) -> Self {
        Self::of(settings, Server::builder())
    }

    /// Starts a front that has scripts of its own.
    pub(crate) fn with_scripts(settings: Settings, root: PathBuf) -> Self {
        Self::of(settings, Server::builder().scripts(root))
    }

    fn of(settings: Settings, builder: ServerBuilder) -> Self {
        let place = |path: &str| {
            let mut placement = Placement::default();
            if path == "again" {
                placement.rerun = RerunPolicy::Idempotent;
            }
            placement
        };
        let cluster = Cluster::new(settings).placed(place, None);
        let server = builder.source(cluster).start();
        Self {
            server: server.expect("a server"),
        }
    }

    /// Starts a front whose tasks are those of all fronts.
    pub(crate) fn with_tasks(settings: Settings) -> Self {
        let tasks = SharedTasks::new(settings.clone(), 1);
        let cluster = Cluster::new(settings).with_tasks(tasks.clone());
        let server = Server::builder()
            .source(cluster.clone())
            .task_store(tasks)
            .background_tools()
            .state_secret("the secret that all fronts share")
            .start()
            .expect("a server");
        let sharing = server.clone();
        tokio::spawn(async move { cluster.share_events(&sharing).await });
        Self { server }
    }

    /// Waits until these tools are listed, beside those of the front itself.
    pub(crate) async fn wait_for(&self, names: &[&str]) {
        let start = Instant::now();
        loop {
            let catalog = self.server.catalog();
            let listed: Vec<_> = catalog
                .tools()
                .iter()
                .map(|tool| tool.path().to_string())
                .filter(|path| !path.starts_with("runs_"))
                .collect();
            if listed == names {
                return;
            }
            let faults: Vec<_> = catalog
                .offers()
                .iter()
                .map(|one| one.faults().to_vec())
                .collect();
            assert!(start.elapsed() < EVENT_TIMEOUT, "{listed:?} {faults:?}");
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// Calls a script. Returns the result as JSON, or the message of the error.
    async fn ask(
        &self,
        params: Value,
        notified: impl Fn(&Notification<'_>) + Clone + Send + Sync + 'static,
    ) -> Result<Value, String> {
        let params: CallToolRequestParams = serde_json::from_value(params).expect("parameters");
        let caller = Principal::new("ada");
        let called = local::call(&self.server, caller, &params, notified, |_| true);
        let result = timeout(EVENT_TIMEOUT, called).await;
        let result = result.expect("an answer").expect("a result");
        let result = result.map_err(|error| error.message.to_string())?;
        Ok(serde_json::to_value(&result).expect("JSON"))
    }

    /// Calls a script. Returns the first text of its result.
    pub(crate) async fn call(&self, name: &str, arguments: Value) -> Told {
        let params = json!({"name": name, "arguments": arguments});
        self.ask(params, |_| ())
            .await
            .map(|result| first_text(&result))
    }

    /// Calls a script that succeeds. Returns its result.
    pub(crate) async fn call_in_full(&self, name: &str, arguments: Value) -> Value {
        let params = json!({"name": name, "arguments": arguments});
        self.ask(params, |_| ()).await.expect("a result")
    }

    /// Calls a script, and collects the notifications meanwhile.
    pub(crate) async fn call_with_progress(&self, name: &str) -> (Told, Vec<String>) {
        let messages = Arc::new(Mutex::new(Vec::new()));
        let collected = Arc::clone(&messages);
        let params = json!({"name": name, "arguments": {}, "_meta": {"progressToken": 1}});
        let result = self.ask(params, move |notification| {
            let text = format!("{notification:?}");
            collected.lock().expect("no panic").push(text);
        });
        let told = result.await.map(|result| first_text(&result));
        let messages = std::mem::take(&mut *messages.lock().expect("no panic"));
        (told, messages)
    }

    /// Reads a resource of text. Returns the message of the error if it can't be had.
    pub(crate) async fn read(&self, uri: &str) -> Result<String, String> {
        self.read_as("ada", uri).await
    }

    pub(crate) async fn read_as(&self, caller: &str, uri: &str) -> Result<String, String> {
        let params = serde_json::from_value(json!({ "uri": uri })).expect("parameters");
        let caller = Principal::new(caller);
        let read = local::request::<ReadResourceRequest, _>(&self.server, caller, &params, |_| ());
        let result = timeout(EVENT_TIMEOUT, read).await.expect("an answer");
        let result = result.expect("a result");
        let result = result.map_err(|error| error.message.to_string())?;
        let result = serde_json::to_value(&result).expect("JSON");
        let text = result["contents"][0]["text"].as_str();
        Ok(text.expect("text").to_owned())
    }

    /// Runs a script with the journal. Returns whether the caller was told that it is done.
    pub(crate) async fn run(&self, name: &str, id: &str, seconds: &str) -> Told {
        self.call(name, json!({"id": id, "seconds": seconds})).await
    }
}

/// Returns the URI of the first output that a result links to.
pub(crate) fn first_link(result: &Value) -> &str {
    let mut content = result["content"].as_array().expect("content").iter();
    let link = content.find_map(|one| one["uri"].as_str());
    link.expect("a link")
}

/// Returns whether a result is a success, and its first text.
fn first_text(result: &Value) -> (bool, String) {
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    (result["isError"] != true, text.to_owned())
}

/// Starts a server, a worker `w1` of new scripts, and a front `f1` that lists them. Returns `None`,
/// loudly, if there is no server.
pub(crate) async fn one_worker() -> Option<(Nats, Scripts, LocalWorker, Front)> {
    let nats = Nats::start("")?;
    let scripts = Scripts::new();
    let worker = LocalWorker::start(&scripts, &nats.url(), "w1");
    let front = Front::start(&nats.url(), "f1");
    front.wait_for(&NAMES).await;
    Some((nats, scripts, worker, front))
}

/// Waits until a condition holds.
pub(crate) async fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < EVENT_TIMEOUT, "still waiting: {what}");
        sleep(Duration::from_millis(10)).await;
    }
}

/// Names of the scripts with a journal.
pub(crate) const NAMES: [&str; 3] = ["again", "change", "look"];
