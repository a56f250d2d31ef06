//! Memory budget of contents that wait for their readers.

use std::fs;
use std::pin::pin;

use bytes::Bytes;
use futures_util::poll;
use mcpd_server::{Connection, Principal, Reply, Server, ToolNames};
use serde_json::json;
use tokio::time::timeout;

/// Far longer than any step here; only a hang reaches it.
const HANG_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(20);
/// Size of the largest file that is read.
const MAX_FILE_SIZE: usize = 16 << 20;
/// Maximum number of waiting contents of one caller.
const MAX_WAITING_CONTENTS: usize = 4;

fn read(connection: &Connection, id: usize) -> impl Future<Output = Option<Bytes>> + use<> {
    let params = json!({"uri": "mcpd://resources/large"});
    let request = json!({"jsonrpc": "2.0", "id": id, "method": "resources/read", "params": params});
    match connection.receive(request.to_string().as_bytes()) {
        Reply::Pending(answer) => answer,
        reply => panic!("{reply:?}"),
    }
}

#[tokio::test]
async fn memory_budget_delays_reads_of_large_files() {
    let root = tempfile::tempdir().expect("a directory");
    fs::create_dir(root.path().join("resources")).expect("a directory");
    fs::write(
        root.path().join("resources/large"),
        vec![b'x'; MAX_FILE_SIZE],
    )
    .expect("a file");
    let server = Server::builder().scripts(root.path()).start();
    let server = server.expect("starts");
    server.catalog_ready().await;
    let (connection, _messages) = Connection::open(&server, ToolNames::Path);
    let (other, _messages) =
        Connection::open_for(Principal::new("other"), &server, ToolNames::Path);

    let mut answers = Vec::new();
    for id in 0..MAX_WAITING_CONTENTS {
        let answer = timeout(HANG_TIMEOUT, read(&connection, id)).await;
        answers.push(answer.expect("in time").expect("an answer"));
    }
    let mut last = pin!(read(&connection, MAX_WAITING_CONTENTS));
    assert!(poll!(&mut last).is_pending());
    let others = timeout(HANG_TIMEOUT, read(&other, 0)).await;
    assert!(others.expect("in time").expect("an answer").len() > MAX_FILE_SIZE);
    assert!(poll!(&mut last).is_pending());
    drop(answers.pop());
    let answer = timeout(HANG_TIMEOUT, last).await;
    assert!(answer.expect("in time").expect("an answer").len() > MAX_FILE_SIZE);
}
