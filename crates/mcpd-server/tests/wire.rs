//! Scripted conversations: each file under `wire/` is what a client sends, each snapshot beside it the
//! whole exchange. One channel, both wires, no transport in between.

use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use mcpd_server::{Connection, DEFAULT_PAGE_SIZE, Reply, Server, ToolNames};
use serde_json::Value;
use tokio::sync::mpsc;

/// Far longer than anything here takes; only a hang meets it.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn conversations() {
    insta::glob!("wire/**/*.txt", |path| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let session = std::fs::read_to_string(path).unwrap();
        let transcript =
            runtime.block_on(async { tokio::time::timeout(PATIENCE, play(&session)).await });
        insta::with_settings!({omit_expression => true, prepend_module_to_snapshot => false}, {
            insta::assert_snapshot!(transcript.expect("the conversation hangs"));
        });
    });
}

/// One conversation under way.
struct Client {
    connection: Connection,
    messages: mpsc::Receiver<Bytes>,
    /// The answer that is still to come: the server has asked something first.
    pending: Option<Pin<Box<dyn Future<Output = Option<Bytes>> + Send>>>,
    /// The last `requestState` that was received; sent as `$STATE`.
    state: Option<String>,
    transcript: String,
}

/// Plays the client's part and writes down both. A line starting with `#` is kept as a remark. The first
/// ones may be settings: `# scripts: NAME` names another directory of scripts than `scripts`,
/// `# page size: NUMBER` cuts lists into pages.
async fn play(session: &str) -> String {
    let scripts = setting(session, "scripts").unwrap_or("scripts");
    let page_size = setting(session, "page size").map(|size| size.parse().expect("a number"));
    let server = Server::builder()
        .scripts(
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests")
                .join(scripts),
        )
        .page_size(page_size.unwrap_or(DEFAULT_PAGE_SIZE))
        // One scan of each directory is enough for all conversations.
        .cache_directory(env!("CARGO_TARGET_TMPDIR"))
        .watch(false)
        .start()
        .expect("the scripts are there");
    let (connection, messages) = Connection::open(&server, ToolNames::Portable);
    let mut client = Client {
        connection,
        messages,
        pending: None,
        state: None,
        transcript: String::new(),
    };
    for line in session.lines() {
        if line.is_empty() || line.starts_with('#') {
            client.note("", line);
        } else {
            client.say(line).await;
        }
    }
    server.shutdown().await;
    client.transcript
}

fn setting<'a>(session: &'a str, name: &str) -> Option<&'a str> {
    let mut remarks = session.lines().map_while(|line| line.strip_prefix("# "));
    remarks.find_map(|remark| remark.strip_prefix(name)?.strip_prefix(": "))
}

impl Client {
    /// Sends one line and waits for its answer, noting what comes before it. A question of the server
    /// comes before it too: the next line replies to that.
    async fn say(&mut self, line: &str) {
        self.note("> ", line);
        let line = match &self.state {
            Some(state) => line.replace("$STATE", state),
            None => line.to_owned(),
        };
        let answer = match self.connection.receive(line.as_bytes()) {
            Reply::Ready(answer) => Some(answer),
            Reply::Nothing => self.answer().await,
            Reply::Pending(answer) => {
                self.pending = Some(answer);
                self.answer().await
            }
        };
        // Events reach this client through a task of their own; it gets its turn before they are counted.
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
        while let Ok(message) = self.messages.try_recv() {
            self.note_message(&message);
        }
        if let Some(answer) = answer {
            self.note_message(&answer);
        }
    }

    /// The pending answer, unless the server asks something first.
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

    fn note_message(&mut self, message: &[u8]) -> Value {
        let message: Value = serde_json::from_slice(message).expect("the server sends JSON");
        let mut shown = message.to_string();
        shown = shown.replace(env!("CARGO_PKG_VERSION"), "VERSION");
        if let Some(state) = message["result"]["requestState"].as_str() {
            shown = shown.replace(state, "$STATE");
            self.state = Some(state.to_owned());
        }
        self.note("< ", &shown);
        message
    }

    fn note(&mut self, mark: &str, text: &str) {
        self.transcript.push_str(mark);
        self.transcript.push_str(text);
        self.transcript.push('\n');
    }
}
