//! Resumption: clients whose connection breaks during a call, and which return with
//! `Last-Event-ID`.

use super::*;

/// Script that logs its start, and ends once the file `until` exists, with an output of `size`
/// bytes.
const GATE: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Waits for a file."}'
  echo '{"until": {"description": "The file.", "required": true, "value_type": "string"},
    "size": {"description": "The size of the output.", "default": 4, "value_type": "integer"}}' >&2
  exit 0
fi
[ "$MCPD_OPT_until" = silence ] || echo "INFO begun" >&2
while [ ! -e "$MCPD_OPT_until" ]; do sleep 0.02; done
echo "INFO over" >&2
head -c "$MCPD_OPT_size" /dev/zero | tr '\0' x
"#;

/// Server with the script `gate`, and one of its sessions.
struct Fixture {
    directory: tempfile::TempDir,
    server: Server,
    port: u16,
    session: String,
}

impl Fixture {
    async fn new(version: &str, options: Options) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let scripts = directory.path().join("scripts");
        std::fs::create_dir(&scripts).expect("created");
        let (server, port) = serve_script(&scripts.join("gate"), GATE, options).await;
        let session = open_session(port, version).await;
        let fixture = Self {
            directory,
            server,
            port,
            session,
        };
        let level = r#""method":"logging/setLevel","params":{"level":"info"}"#;
        fixture
            .post(&format!(r#"{{"jsonrpc":"2.0","id":0,{level}}}"#))
            .await;
        fixture
    }

    fn request(&self, message: &str) -> String {
        let session = &self.session;
        with_usual_headers(&format!(
            "POST /mcp\nMcp-Session-Id: {session}\n\n{message}"
        ))
    }

    async fn post(&self, message: &str) -> String {
        exchange(self.port, &self.request(message)).await
    }

    /// File that the script waits for.
    fn gate(&self) -> std::path::PathBuf {
        self.directory.path().join("open")
    }

    fn open_gate(&self) {
        std::fs::write(self.gate(), "").expect("written");
    }

    /// Calls `gate`, disconnects once it has begun, and returns what arrived until then.
    async fn leave_call(&self, size: usize) -> String {
        let gate = self.gate();
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"gate","arguments":{{"until":{gate:?},"size":{size}}}}}}}"#
        );
        let mut stream = send(self.port, &self.request(&call)).await;
        read_until(&mut stream, "begun").await
    }

    /// GET of a stream, after an event if one is given.
    fn get(&self, last: Option<&str>) -> String {
        let last = last.map_or(String::new(), |last| format!("\nLast-Event-ID: {last}"));
        let session = &self.session;
        with_usual_headers(&format!("GET /mcp\nMcp-Session-Id: {session}{last}"))
    }

    /// Returns everything after an event, to the end of its stream.
    async fn resume(&self, last: &str) -> String {
        let request = self.get(Some(last));
        let response = tokio::time::timeout(HANG_TIMEOUT, exchange(self.port, &request)).await;
        response.expect("the stream ends")
    }

    async fn wait_for_the_end(&self) {
        assert!(until(|| self.server.executor().running() == 0).await);
    }
}

async fn open_session(port: u16, version: &str) -> String {
    let initialize = format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"test","version":"0"}}}}}}"#
    );
    let response = exchange(
        port,
        &with_usual_headers(&format!("POST /mcp\n\n{initialize}")),
    )
    .await;
    header(&response, "mcp-session-id")
        .expect("a session")
        .to_owned()
}

/// Returns the ids of all events in a response.
fn ids(response: &str) -> Vec<String> {
    let lines = response
        .lines()
        .filter_map(|line| line.strip_prefix("id: "));
    lines.map(str::to_owned).collect()
}

fn last_id(response: &str) -> String {
    ids(response).pop().expect("an event with an id")
}

fn buffer(bytes: usize) -> Options {
    let mut options = options();
    options.resume_buffer = bytes;
    options
}

#[tokio::test]
async fn broken_call_is_answered_after_its_last_event() {
    let fixture = Fixture::new("2025-11-25", options()).await;
    let before = fixture.leave_call(4).await;
    fixture.open_gate();
    fixture.wait_for_the_end().await;
    let after = fixture.resume(&last_id(&before)).await;
    assert!(after.contains("text/event-stream"), "{after}");
    assert!(
        !after.contains("begun") && after.contains("over"),
        "{after}"
    );
    assert!(
        after.contains(r#""id":7,"result":{"content":[{"type":"text","text":"xxxx"}]"#),
        "{after}"
    );
    // Repeated from the beginning: kept events are available to every repeated request.
    let all = fixture.resume(&ids(&before)[0]).await;
    assert_eq!(ids(&all).len(), 3, "{all}");
    assert_eq!(ids(&all)[1..], ids(&after)[..]);
}

#[tokio::test]
async fn resumed_stream_continues_with_later_events() {
    let fixture = Fixture::new("2025-11-25", options()).await;
    let before = fixture.leave_call(4).await;
    let mut stream = send(fixture.port, &fixture.get(Some(&ids(&before)[0]))).await;
    read_until(&mut stream, "begun").await;
    fixture.open_gate();
    let rest = read_until(&mut stream, r#""id":7,"result""#).await;
    assert!(rest.contains("over"), "{rest}");
}

#[tokio::test]
async fn connection_that_resumes_takes_over_from_one_that_is_stuck() {
    let fixture = Fixture::new("2025-11-25", options()).await;
    let gate = fixture.gate();
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"gate","arguments":{{"until":{gate:?}}}}}}}"#
    );
    let mut stuck = send(fixture.port, &fixture.request(&call)).await;
    let before = read_until(&mut stuck, "begun").await;
    let mut stream = send(fixture.port, &fixture.get(Some(&last_id(&before)))).await;
    read_until(&mut stream, "text/event-stream").await;
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(HANG_TIMEOUT, stuck.read_to_end(&mut rest)).await;
    ended.expect("the first stream ends").expect("readable");
    fixture.open_gate();
    read_until(&mut stream, r#""id":7,"result""#).await;
}

#[tokio::test]
async fn streams_are_primed_where_the_revision_says_so() {
    for (version, is_primed) in [("2025-11-25", true), ("2025-06-18", false)] {
        let fixture = Fixture::new(version, options()).await;
        let call = fixture.leave_call(4).await;
        let listening = send(fixture.port, &fixture.get(None)).await;
        let primed = |response: &str| {
            response.contains("-0\r\ndata:\r\n") || response.contains("-0\ndata:\n\n")
        };
        assert_eq!(primed(&call), is_primed, "{call}");
        // The event has an id all the same.
        assert!(last_id(&call).ends_with("-1"), "{call}");
        if is_primed {
            let mut listening = listening;
            assert!(primed(&read_until(&mut listening, "data:").await));
        }
    }
}

#[tokio::test]
async fn silent_call_gets_an_id_before_its_answer() {
    let fixture = Fixture::new("2025-11-25", options()).await;
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"gate","arguments":{"until":"silence"}}}"#;
    let mut stream = send(fixture.port, &fixture.request(call)).await;
    let before = read_until(&mut stream, "data:").await;
    drop(stream);
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    fixture.post(cancel).await;
    fixture.wait_for_the_end().await;
    // A stream that ended without a response cannot be resumed.
    let last = last_id(&before);
    let is_over = async { while !fixture.resume(&last).await.starts_with("HTTP/1.1 405") {} };
    tokio::time::timeout(HANG_TIMEOUT, is_over)
        .await
        .expect("the stream ends");
}

#[tokio::test]
async fn answer_beyond_the_buffer_is_an_error_to_its_request() {
    let fixture = Fixture::new("2025-11-25", buffer(2000)).await;
    let before = fixture.leave_call(3000).await;
    fixture.open_gate();
    fixture.wait_for_the_end().await;
    // The call is answered no later than this request.
    fixture
        .post(r#"{"jsonrpc":"2.0","id":8,"method":"tools/list"}"#)
        .await;
    let after = fixture.resume(&last_id(&before)).await;
    assert!(
        after.contains(r#""id":7,"error":{"code":-32603"#),
        "{after}"
    );
    assert!(after.contains("resume_buffer"), "{after}");
    let nothing = fixture.resume(&last_id(&after)).await;
    assert!(nothing.starts_with("HTTP/1.1 405"), "{nothing}");
}

#[tokio::test]
async fn answer_beyond_the_buffer_reaches_a_client_that_stays() {
    let fixture = Fixture::new("2025-11-25", buffer(1)).await;
    fixture.open_gate();
    let gate = fixture.gate();
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"gate","arguments":{{"until":{gate:?},"size":50000}}}}}}"#
    );
    let response = fixture.post(&call).await;
    assert!(response.contains(&"x".repeat(50_000)));
}

#[tokio::test]
async fn streams_have_no_ids_without_a_buffer() {
    let fixture = Fixture::new("2025-11-25", buffer(0)).await;
    let before = fixture.leave_call(4).await;
    assert_eq!(ids(&before), [""; 0]);
    let refused = fixture.resume("00000000000000ab-0").await;
    assert!(refused.starts_with("HTTP/1.1 400"), "{refused}");
}

#[tokio::test]
async fn event_of_another_session_is_refused() {
    let mut fixture = Fixture::new("2025-11-25", options()).await;
    let before = fixture.leave_call(4).await;
    fixture.open_gate();
    fixture.session = open_session(fixture.port, "2025-11-25").await;
    for unknown in [&*last_id(&before), "1", "nonsense", ""] {
        let refused = fixture.resume(unknown).await;
        assert!(refused.starts_with("HTTP/1.1 400"), "{unknown}: {refused}");
        assert!(refused.contains("Last-Event-ID"), "{refused}");
    }
}

#[tokio::test]
async fn stream_to_listen_on_goes_on_after_its_last_event() {
    let fixture = Fixture::new("2025-11-25", options()).await;
    let uri = "mcpd://scripts/gate";
    let publish = || fixture.server.notify_resource_updated(uri);
    let subscribe = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{{"uri":"{uri}"}}}}"#
    );
    fixture.post(&subscribe).await;
    let mut stream = send(fixture.port, &fixture.get(None)).await;
    read_until(&mut stream, "data:").await;
    publish();
    let seen = read_until(&mut stream, "updated").await;
    drop(stream);
    publish();
    let mut stream = send(fixture.port, &fixture.get(Some(&last_id(&seen)))).await;
    let resumed = read_until(&mut stream, "updated").await;
    assert!(last_id(&resumed).ends_with("-2"), "{resumed}");
}

#[tokio::test]
async fn session_that_is_ended_has_no_events() {
    let fixture = Fixture::new("2025-11-25", options()).await;
    let before = fixture.leave_call(4).await;
    let session = &fixture.session;
    exchange(
        fixture.port,
        &with_usual_headers(&format!("DELETE /mcp\nMcp-Session-Id: {session}")),
    )
    .await;
    let refused = fixture.resume(&last_id(&before)).await;
    assert!(refused.starts_with("HTTP/1.1 404"), "{refused}");
    fixture.wait_for_the_end().await;
}
