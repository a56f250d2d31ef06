//! Scripted conversations: each file under `wire/` holds the messages of a client, each snapshot
//! beside it the whole exchange. Both wires use one channel: first without a transport, then over
//! two pipes, then with all scripts on another server, with the same expected result.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc as std_mpsc};
use std::time::Duration;

use bytes::Bytes;
use mcpd_exec::Limits;
use mcpd_server::catalog::{DEFAULT_PAGE_SIZE, Search};
use mcpd_server::policy::{Approval, AskFor, Remember, ToolPolicy, WithoutPerson};
use mcpd_server::transport::stdio;
use mcpd_server::{CallContext, Database, Json, Server, ServerBuilder};
use mcpd_server::{Connection, DEFAULT_KEEP, Policy, Reply, ToolNames};
use serde_json::Value;
use tokio::runtime;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

#[path = "remote/loopback.rs"]
mod loopback;

use loopback::Loopback;

/// Far longer than any step here; only a hang reaches it.
const HANG_TIMEOUT: Duration = Duration::from_secs(20);

#[test]
fn conversations() {
    insta::glob!("wire/**/*.txt", |path| {
        let session = std::fs::read_to_string(path).unwrap();
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let transcript = runtime.block_on(async {
            tokio::time::timeout(HANG_TIMEOUT, play(start(&session), &session)).await
        });
        let transcript = transcript.unwrap_or_else(|_| panic!("{} hangs", path.display()));
        insta::with_settings!({omit_expression => true, prepend_module_to_snapshot => false}, {
            insta::assert_snapshot!(transcript);
        });
        check_over_pipes(&session, &transcript);
        check_elsewhere(&session, &transcript);
    });
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Switch {
    /// Whether the lamp is to shine.
    on: bool,
}

/// Adds a built-in lamp, with a resource of each kind.
fn add_lamp(server: ServerBuilder) -> ServerBuilder {
    let is_on = Arc::new(AtomicBool::new(false));
    let lamp = Arc::clone(&is_on);
    let switch = move |switch: Switch, context: CallContext| {
        is_on.store(switch.on, Ordering::SeqCst);
        context.notify_resource_updated("lamp://state");
        async { "switched" }
    };
    let state = move |_| {
        let state = serde_json::json!({"on": lamp.load(Ordering::SeqCst)});
        async { Json(state) }
    };
    let scripts = async |context: CallContext| Json(context.whole_catalog().scan().scripts.len());
    server
        .tool("lamp/switch", "Switches the lamp.", switch)
        .resource("lamp://state", "lamp/state", "How the lamp is.", state)
        .resource("lamp://", "lamp", "A manual.", async |_| "Turn it on.")
        .resource(
            "lamp://light",
            "lamp/light",
            "What it looks like.",
            async |_| vec![0xff, 0xd8],
        )
        .resource(
            "lamp://scripts",
            "lamp/scripts",
            "How many scripts there are.",
            scripts,
        )
        .resource("lamp://bulb", "lamp/bulb", "What is missing.", async |_| {
            Err::<String, _>("there is none")
        })
        .resource(
            "notes://today",
            "lamp/today",
            "Hides a script's.",
            async |_| "dark",
        )
}

/// Starts the server for a conversation. Its first lines may be settings: `# scripts: NAME`
/// selects another directory of scripts than `scripts`, `# page size: NUMBER` splits lists into
/// pages, `# capture: NUMBER` limits results to that many bytes of both ends of an output, `#
/// keep: NUMBER` keeps that many of a longer one, `# approval: SETTINGS` has a person approve
/// calls, `# built in: lamp` adds a lamp, and `# pinned: PATTERN` lists the tools that match, and a
/// search for the others.
fn start(session: &str) -> Server {
    with_scripts(configure(session), session)
}

/// Returns the settings of a conversation.
fn setting<'a>(session: &'a str, name: &str) -> Option<&'a str> {
    let mut remarks = session.lines().map_while(|line| line.strip_prefix("# "));
    remarks.find_map(|remark| remark.strip_prefix(name)?.strip_prefix(": "))
}

/// Returns the server for a conversation, without scripts.
fn configure(session: &str) -> ServerBuilder {
    let setting = |name: &str| setting(session, name);
    let page_size = setting("page size").map(|size| size.parse().expect("a number"));
    let mut limits = Limits::default();
    if let Some(capture) = setting("capture") {
        limits.capture_head = capture.parse().expect("a number");
        limits.capture_tail = limits.capture_head;
    }
    limits.keep = setting("keep").map_or(DEFAULT_KEEP, |keep| keep.parse().expect("a number"));
    let server = match setting("built in") {
        Some(_) => add_lamp(Server::builder()),
        None => Server::builder(),
    };
    let server = match setting("pinned") {
        Some(pinned) => server.search(Search::default().always_list(pinned).expect("a pattern")),
        None => server,
    };
    server
        .page_size(page_size.unwrap_or(DEFAULT_PAGE_SIZE))
        .policy(with_approval(
            Policy::default().limits(limits),
            setting("approval").unwrap_or_default(),
        ))
        // One scan of each directory serves all conversations.
        .database(Database::new(concat!(
            env!("CARGO_TARGET_TMPDIR"),
            "/mcpd.db"
        )))
        .watch(false)
}

/// Starts a server with the scripts of a conversation.
fn with_scripts(server: ServerBuilder, session: &str) -> Server {
    let scripts = setting(session, "scripts").unwrap_or("scripts");
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let server = server.scripts(tests.join(scripts));
    server.start().expect("the scripts are there")
}

/// Words in messages about files that are no scripts, or faulty ones: these stay on the server that
/// has them.
const OF_FILES: [&str; 4] = [
    "esources/",
    "`mcpd check",
    "lamp://scripts",
    "\"text\":\"9\"",
];

/// Refusal of an output of another session. One that a worker keeps belongs to its caller, in any
/// session: fronts that know no sessions of each other read it, too.
const OF_SESSIONS: &str = "\"resource not found\",\"data\":{\"uri\":\"mcpd://runs/";

/// Plays the same conversation with a server that has no scripts, and calls them on another one.
fn check_elsewhere(session: &str, transcript: &str) {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let came = runtime.block_on(async {
        let worker = with_scripts(configure(session), session);
        let front = configure(session).source(Loopback::to(&worker)).start();
        let front = front.expect("it has no scripts");
        tokio::time::timeout(HANG_TIMEOUT, play(front, session)).await
    });
    let came = came.unwrap_or_else(|_| panic!("hangs:\n{session}"));
    let own = || OF_FILES.into_iter().chain([OF_SESSIONS]);
    let is_shared = |line: &&str| !own().any(|word| line.contains(word));
    let expected: Vec<_> = transcript.lines().filter(is_shared).collect();
    let pairs = came.lines().zip(transcript.lines());
    let came: Vec<_> = pairs.filter(|(_, line)| is_shared(line)).collect();
    let came: Vec<_> = came.into_iter().map(|(line, _)| line).collect();
    assert_eq!(came, expected, "with scripts elsewhere");
}

/// Sets the approval of calls, such as `destructive, remember 900, never files/*`.
fn with_approval(policy: Policy, settings: &str) -> Policy {
    let seconds = |text: &str| Duration::from_secs_f64(text.parse().expect("a number"));
    let (mut approval, mut policy) = (Approval::default(), policy);
    for setting in settings.split(", ").filter(|setting| !setting.is_empty()) {
        match setting.split_once(' ').unwrap_or((setting, "")) {
            ("destructive", _) => approval.ask = AskFor::Destructive,
            ("always", _) => approval.ask = AskFor::Always,
            ("without", _) => approval.without = WithoutPerson::Allow,
            ("remember", "session") => approval.remember = Remember::Session,
            ("remember", time) => approval.remember = Remember::For(seconds(time)),
            ("timeout", time) => approval.timeout = seconds(time),
            ("never", pattern) => {
                let rule = ToolPolicy::new(pattern)
                    .expect("a pattern")
                    .ask_first(false);
                policy = policy.tool(rule);
            }
            _ => panic!("unknown setting `{setting}`"),
        }
    }
    policy.approval(approval)
}

/// Substitution of values that differ from run to run.
#[derive(Default)]
struct Words {
    /// Last received `requestState`; sent as `$STATE`.
    state: Option<String>,
    /// Last run with a readable output; sent as `$RUN`.
    run: Option<String>,
}

impl Words {
    fn to_sent(&self, line: &str) -> String {
        let mut line = line.to_owned();
        for (name, value) in [("$STATE", &self.state), ("$RUN", &self.run)] {
            if let Some(value) = value {
                line = line.replace(name, value);
            }
        }
        line
    }

    fn record_received(&mut self, message: &[u8]) -> (Value, String) {
        let message: Value = serde_json::from_slice(message).expect("the server sends JSON");
        let mut shown = message.to_string();
        shown = shown.replace(env!("CARGO_PKG_VERSION"), "VERSION");
        shown = shown.replace(env!("CARGO_MANIFEST_DIR"), "$CRATE");
        if let Some(state) = message["result"]["requestState"].as_str() {
            shown = shown.replace(state, "$STATE");
            self.state = Some(state.to_owned());
        }
        if let Some((_, rest)) = shown.split_once("mcpd://runs/")
            && let Some(id) = rest.split('/').next()
        {
            self.run = Some(id.to_owned());
            shown = shown.replace(id, "$RUN");
        }
        if let Some(id) = message["params"]["elicitationId"].as_str() {
            shown = shown.replace(id, "ELICITATION");
        }
        (message, shown)
    }
}

/// Conversation in progress.
struct Client {
    connection: Connection,
    messages: mpsc::Receiver<Bytes>,
    /// Pending response, while the server asks a question first.
    pending: Option<Pin<Box<dyn Future<Output = Option<Bytes>> + Send>>>,
    /// Requests that run beside the others.
    beside: Vec<JoinHandle<Option<Bytes>>>,
    words: Words,
    transcript: String,
}

/// Plays the client's part, and returns the transcript. A line that begins with `#` is kept as a
/// remark; a request after `& ` continues beside the following lines, once the server has sent a
/// message about it.
async fn play(server: Server, session: &str) -> String {
    let (connection, messages) = Connection::open(&server, ToolNames::Portable);
    let mut client = Client {
        connection,
        messages,
        pending: None,
        beside: Vec::new(),
        words: Words::default(),
        transcript: String::new(),
    };
    for line in session.lines() {
        if line.is_empty() || line.starts_with('#') {
            client.note("", line);
        } else {
            client.say(line).await;
        }
    }
    client.finish().await;
    server.shutdown().await;
    client.transcript
}

impl Client {
    /// Sends one line and waits for its response, recording the messages before it. A question of
    /// the server counts as such a message: the next line replies to it.
    async fn say(&mut self, line: &str) {
        self.note("> ", line);
        let (line, goes_on) = line
            .strip_prefix("& ")
            .map_or((line, false), |line| (line, true));
        let line = self.words.to_sent(line);
        let answer = match self.connection.receive(line.as_bytes()) {
            Reply::Ready(answer) => Some(answer),
            Reply::Nothing => self.answer().await,
            Reply::Pending(answer) if goes_on => {
                self.beside.push(tokio::spawn(answer));
                let message = self.messages.recv().await.expect("still open");
                self.note_message(&message);
                None
            }
            Reply::Pending(answer) => {
                self.pending = Some(answer);
                self.answer().await
            }
        };
        self.catch_up().await;
        if let Some(answer) = answer {
            self.note_message(&answer);
        }
    }

    /// Waits for the pending response, unless the server asks a question first.
    async fn answer(&mut self) -> Option<Bytes> {
        let mut pending = self.pending.take()?;
        loop {
            tokio::select! {
                biased;
                Some(message) = self.messages.recv() => {
                    if self.note_message(&message).get("id").is_some() {
                        self.pending = Some(pending);
                        return None;
                    }
                }
                answer = &mut pending => return answer,
            }
        }
    }

    /// Records the messages that have arrived.
    async fn catch_up(&mut self) {
        // Events reach this client through a separate task, which runs before they are counted.
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
        while let Ok(message) = self.messages.try_recv() {
            self.note_message(&message);
        }
    }

    /// Closes the connection, and waits for the remaining responses.
    async fn finish(&mut self) {
        self.connection.close();
        for answer in std::mem::take(&mut self.beside) {
            let answer = answer.await.expect("no panic");
            self.catch_up().await;
            if let Some(answer) = answer {
                self.note_message(&answer);
            }
        }
    }

    fn note_message(&mut self, message: &[u8]) -> Value {
        let (message, shown) = self.words.record_received(message);
        self.note("< ", &shown);
        message
    }

    fn note(&mut self, mark: &str, text: &str) {
        self.transcript.push_str(mark);
        self.transcript.push_str(text);
        self.transcript.push('\n');
    }
}

/// Sends the same lines over a pipe; after each the same messages must arrive, in any order.
#[track_caller]
fn check_over_pipes(session: &str, transcript: &str) {
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let (server_input, input) = std::io::pipe().expect("a pipe");
    let (output, server_output) = std::io::pipe().expect("a pipe");
    let mut input = Some(input);
    let mut options = stdio::Options::default();
    options.linger = HANG_TIMEOUT;
    let server = runtime.block_on(async { start(session) });
    let serving = runtime
        .spawn(async move { stdio::serve(&server, server_input, server_output, options).await });
    let (sender, lines) = std_mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            sender.send(line.expect("the server writes text")).ok();
        }
    });
    let mut words = Words::default();
    let mut steps = transcript.split("\n> ").peekable();
    while let Some(step) = steps.next() {
        let mut step = step.lines().filter(|line| !line.starts_with('#'));
        let Some(said) = step.next() else { continue };
        let said = said.strip_prefix("> ").unwrap_or(said);
        let said = said.strip_prefix("& ").unwrap_or(said);
        let pipe = input.as_mut().expect("still open");
        writeln!(pipe, "{}", words.to_sent(said)).expect("the server reads");
        if steps.peek().is_none() {
            // Requests beside the others end with the input.
            input = None;
        }
        let mut expected: Vec<_> = step.filter_map(|line| line.strip_prefix("< ")).collect();
        let mut came: Vec<_> = expected
            .iter()
            .map(|_| {
                lines
                    .recv_timeout(HANG_TIMEOUT)
                    .unwrap_or_else(|_| panic!("no answer to {said}"))
            })
            .map(|line| words.record_received(line.as_bytes()).1)
            .collect();
        expected.sort_unstable();
        came.sort_unstable();
        assert_eq!(came, expected, "after {said}");
    }
    let ended = runtime.block_on(async { tokio::time::timeout(HANG_TIMEOUT, serving).await });
    ended
        .expect("it ends")
        .expect("no panic")
        .expect("no error");
    assert_eq!(
        lines.recv_timeout(HANG_TIMEOUT).ok(),
        None,
        "more than was asked for"
    );
}
