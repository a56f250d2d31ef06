//! Scripted conversations: each file under `wire/` is what a client sends, each snapshot beside it the
//! whole exchange. One channel, both wires, no transport in between.

use std::path::Path;
use std::time::Duration;

use mcpd_server::{Connection, Reply, Server, ToolNames};
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
    messages: mpsc::Receiver<bytes::Bytes>,
    transcript: String,
}

/// Plays the client's part and writes down both. A line starting with `#` is kept as a remark.
async fn play(session: &str) -> String {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let server = Server::builder()
        .scripts(scripts)
        .watch(false)
        .start()
        .expect("the scripts are there");
    let (connection, messages) = Connection::open(&server, ToolNames::Portable);
    let mut client = Client {
        connection,
        messages,
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

impl Client {
    /// Sends one line and waits for its answer, noting what comes before it.
    async fn say(&mut self, line: &str) {
        self.note("> ", line);
        let answer = match self.connection.receive(line.as_bytes()) {
            Reply::Ready(answer) => Some(answer),
            Reply::Nothing => None,
            Reply::Pending(answer) => answer.await,
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

    fn note_message(&mut self, message: &[u8]) {
        let message: Value = serde_json::from_slice(message).expect("the server sends JSON");
        let message = message.to_string();
        let message = message.replace(env!("CARGO_PKG_VERSION"), "VERSION");
        self.note("< ", &message);
    }

    fn note(&mut self, mark: &str, text: &str) {
        self.transcript.push_str(mark);
        self.transcript.push_str(text);
        self.transcript.push('\n');
    }
}
