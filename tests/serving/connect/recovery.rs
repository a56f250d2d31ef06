//! Recovery of `mcpd connect`: servers that restart, forget a session, break off a stream or answer
//! with something else, and what is never sent twice.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use mcpd_tests::{Daemon, Sandbox, eventually, output, peak_memory};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::stand_in::{Request, StandIn, respond, respond_events, respond_json};
use super::{Client, ERAS, Era, HELLO, connect, sandbox};

const LIST: &str = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#;

/// Stops a daemon, and returns its port.
pub(super) fn stop(daemon: Daemon) -> String {
    let port = daemon.address().rsplit(':').next().unwrap().to_owned();
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().0, 0);
    port
}

#[test]
fn restarted_server_answers_the_next_call() {
    for era in ERAS {
        let sandbox = sandbox();
        let daemon = Daemon::start(&sandbox, &[]);
        let mut client = Client::start(connect(&sandbox, &daemon), era);
        client.call(1, "hello");
        client.check_answer(1, "hello");
        let port = stop(daemon);
        let _daemon = Daemon::listening(&sandbox, &["--port", &port]);
        client.call(2, "hello");
        client.check_answer(2, "hello");
    }
}

#[test]
fn call_waits_for_a_server_that_is_down() {
    for era in ERAS {
        let sandbox = sandbox();
        let daemon = Daemon::start(&sandbox, &[]);
        let mut command = connect(&sandbox, &daemon);
        command.args(["--retry-for", "600"]);
        let mut client = Client::start(command, era);
        let port = stop(daemon);
        client.call(1, "hello");
        let _daemon = Daemon::listening(&sandbox, &["--port", &port]);
        client.check_answer(1, "hello");
    }
}

#[test]
fn server_that_never_comes_is_named_in_the_answer() {
    let sandbox = sandbox();
    let run = |url: &str| {
        let command = sandbox.command(&["connect", url, "--retry-for", "1"]);
        let output = output(command, format!("{LIST}\n{LIST}").as_bytes());
        let transcript = sandbox.transcript(&output);
        assert!(transcript.starts_with("exit code: 0\n"), "{transcript}");
        transcript
    };
    // Nothing listens on the port of a listener that is gone.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let refused = run(&format!("http://127.0.0.1:{port}/mcp?key=secret"));
    assert!(
        refused.contains("\"id\":1,\"error\":{\"code\":-32603"),
        "{refused}"
    );
    let place = format!("failed to reach `http://127.0.0.1:{port}/mcp`");
    assert!(
        refused.contains(&place) && refused.contains("check that the server runs"),
        "{refused}"
    );
    assert!(
        refused.contains("trying again for 1 s") && !refused.contains("secret"),
        "{refused}"
    );
    let unknown = run("http://unknown.invalid/mcp");
    assert!(
        unknown.contains("failed to reach `http://unknown.invalid/mcp`"),
        "{unknown}"
    );
}

/// Answers `initialize` with a session of this name, and notifications.
fn answer_introduction(request: &Request, stream: &mut TcpStream, session: &str) -> bool {
    let message = request.message();
    match message["method"].as_str() {
        Some("initialize") => {
            let result = json!({"protocolVersion": "2025-11-25", "capabilities": {},
                "serverInfo": {"name": "stand-in", "version": "0"}});
            let session = format!("Mcp-Session-Id: {session}\r\n");
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            respond_json(stream, &session, &answer);
        }
        _ if request.line.starts_with("GET") => respond(stream, "405 Not Allowed", "", ""),
        _ if request.line.starts_with("DELETE") => respond(stream, "200 OK", "", ""),
        Some(_) if message["id"].is_null() => respond(stream, "202 Accepted", "", ""),
        _ => return false,
    }
    true
}

fn result(request: &Request, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": request.message()["id"],
        "result": {"content": [{"type": "text", "text": text}]}})
}

fn connect_to(sandbox: &Sandbox, server: &StandIn) -> std::process::Command {
    sandbox.command(&["connect", &server.url, "--retry-for", "5"])
}

#[test]
fn lost_session_is_opened_again_once() {
    for status in ["404 Not Found", "400 Bad Request"] {
        let sessions = AtomicUsize::new(0);
        let server = StandIn::start(move |request, stream| {
            if request.method() == "initialize" {
                sessions.fetch_add(1, SeqCst);
            }
            let session = format!("session-{}", sessions.load(SeqCst));
            if answer_introduction(request, stream, &session) {
                return;
            }
            // The first session is forgotten at once.
            match request.header("mcp-session-id") {
                Some("session-2") => respond_json(stream, "", &result(request, "hello")),
                _ => respond(
                    stream,
                    status,
                    "",
                    "Bad Request: No valid session ID provided",
                ),
            }
        });
        let sandbox = Sandbox::new();
        let mut client = Client::start(connect_to(&sandbox, &server), Era::Sessions);
        client.call(1, "hello");
        client.check_answer(1, "hello");
        client.pipes.close_input();
        // The client has seen nothing of it.
        let (code, rest) = client.pipes.wait_with_rest();
        assert_eq!((code, rest.len()), (0, 0));
        let expected = [
            "initialize",
            "notifications/initialized",
            "tools/call",
            "initialize",
            "notifications/initialized",
            "tools/call",
            "DELETE /mcp",
        ];
        assert_eq!(server.methods(), expected);
        let requests = server.requests();
        let header = |at: usize, name| requests[at].header(name);
        assert_eq!(header(0, "mcp-session-id"), None);
        assert_eq!(header(3, "mcp-session-id"), None);
        for (at, session) in [
            (1, "session-1"),
            (2, "session-1"),
            (4, "session-2"),
            (5, "session-2"),
        ] {
            assert_eq!(header(at, "mcp-session-id"), Some(session));
            assert_eq!(header(at, "mcp-protocol-version"), Some("2025-11-25"));
        }
        assert_eq!(requests[0].body, requests[3].body);
        assert_eq!(header(6, "mcp-session-id"), Some("session-2"));
    }
}

#[test]
fn session_that_is_lost_again_is_an_error() {
    let server = StandIn::start(|request, stream| {
        if !answer_introduction(request, stream, "session") {
            respond(stream, "404 Not Found", "", "no such session");
        }
    });
    let sandbox = Sandbox::new();
    let mut client = Client::start(connect_to(&sandbox, &server), Era::Sessions);
    client.call(1, "hello");
    let answer = client.answer();
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("HTTP 404 Not Found: no such session"),
        "{message}"
    );
    assert_eq!(
        server
            .methods()
            .iter()
            .filter(|method| *method == "tools/call")
            .count(),
        2
    );
}

#[test]
fn broken_stream_is_resumed() {
    let server = StandIn::start(|request, stream| {
        if request.header("last-event-id") == Some("7") {
            let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress"});
            // The connection breaks again, between the two.
            respond_events(stream, &format!("id: 8\ndata: {progress}\n\n"));
        } else if request.header("last-event-id") == Some("8") {
            let answer = json!({"jsonrpc": "2.0", "id": 1,
                "result": {"content": [{"type": "text", "text": "late"}]}});
            respond_events(stream, &format!("data: {answer}\n\n"));
        } else if !answer_introduction(request, stream, "session") {
            respond_events(stream, "id: 7\nretry: 10\ndata:\n\n");
        }
    });
    let sandbox = Sandbox::new();
    let mut client = Client::start(connect_to(&sandbox, &server), Era::Sessions);
    client.call(1, "slow");
    assert_eq!(client.pipes.receive()["method"], "notifications/progress");
    client.check_answer(1, "late");
    let methods = server.methods();
    assert_eq!(methods[2..], ["tools/call", "GET /mcp", "GET /mcp"]);
}

#[test]
fn request_that_may_have_been_executed_is_not_repeated() {
    for (era, cut) in [
        (Era::Stateless, ""),
        (
            Era::Stateless,
            "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
        ),
        (
            Era::Stateless,
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nid: 1\ndata: {",
        ),
        (
            Era::Stateless,
            "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n",
        ),
        (Era::Sessions, ""),
        (
            Era::Sessions,
            "HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 0\r\n\r\n",
        ),
    ] {
        let server = StandIn::start(move |request, stream| {
            if !answer_introduction(request, stream, "session") {
                stream.write_all(cut.as_bytes()).ok();
            }
        });
        let sandbox = Sandbox::new();
        let mut client = Client::start(connect_to(&sandbox, &server), era);
        client.call(1, "once");
        let answer = client.answer();
        assert_eq!(answer["error"]["code"], -32603, "{cut}: {answer}");
        let calls = server.methods();
        assert_eq!(
            calls
                .iter()
                .filter(|method| *method == "tools/call")
                .count(),
            1,
            "{cut}"
        );
    }
}

#[test]
fn overloaded_server_is_asked_again() {
    let calls = AtomicUsize::new(0);
    let server = StandIn::start(move |request, stream| match calls.fetch_add(1, SeqCst) {
        0 => respond(
            stream,
            "503 Service Unavailable",
            "Retry-After: 0\r\n",
            "later",
        ),
        _ => respond_json(stream, "", &result(request, "hello")),
    });
    let sandbox = Sandbox::new();
    let mut client = Client::start(connect_to(&sandbox, &server), Era::Stateless);
    client.call(1, "hello");
    client.check_answer(1, "hello");
}

#[test]
fn absurd_waits_of_a_server_are_bounded() {
    let server = StandIn::start(|_, stream| {
        let wait = format!("Retry-After: {}\r\n", u64::MAX);
        respond(stream, "503 Service Unavailable", &wait, "never");
    });
    let sandbox = Sandbox::new();
    let mut client = Client::start(connect_to(&sandbox, &server), Era::Stateless);
    client.call(1, "hello");
    let answer = client.answer().to_string();
    assert!(
        answer.contains("HTTP 503 Service Unavailable: never"),
        "{answer}"
    );
}

#[test]
fn token_follows_no_redirect_to_another_origin() {
    let elsewhere = StandIn::start(|request, stream| {
        respond_json(stream, "", &result(request, "stolen"));
    });
    let location = format!("Location: {}\r\n", elsewhere.url.replace("mcp", "trap"));
    let server = StandIn::start(move |request, stream| match &*request.line {
        "POST /mcp" => respond(
            stream,
            "307 Temporary Redirect",
            "Location: /v2/mcp\r\n",
            "",
        ),
        _ => respond(stream, "308 Permanent Redirect", &location, ""),
    });
    let sandbox = Sandbox::new();
    let mut command = connect_to(&sandbox, &server);
    command.env("MCPD_TOKEN", "secret");
    let mut client = Client::start(command, Era::Stateless);
    client.call(1, "hello");
    let answer = client.answer().to_string();
    assert!(
        answer.contains("HTTP 308 redirects to") && answer.contains("/trap"),
        "{answer}"
    );
    assert!(elsewhere.requests().is_empty());
    let requests = server.requests();
    let lines: Vec<_> = requests.iter().map(|request| &*request.line).collect();
    assert_eq!(lines, ["POST /mcp", "POST /v2/mcp"]);
    for request in requests {
        assert_eq!(request.header("authorization"), Some("Bearer secret"));
        assert_eq!(request.header("mcp-method"), Some("tools/call"));
        assert_eq!(request.header("mcp-name"), Some("hello"));
        assert_eq!(request.header("mcp-protocol-version"), Some("2026-07-28"));
    }
}

#[test]
fn foreign_answers_become_errors() {
    for (status, kind, body, expected) in [
        (
            "200 OK",
            "text/html",
            "<html>Welcome</html>",
            "`text/html` and not JSON",
        ),
        (
            "200 OK",
            "application/json",
            "{\"jsonrpc\": \"2.0\"",
            "is not a message",
        ),
        (
            "200 OK",
            "application/json",
            "{\"a\": 1}",
            "is not a message",
        ),
        (
            "202 Accepted",
            "text/plain",
            "",
            "HTTP 202 without an answer",
        ),
        (
            "404 Not Found",
            "text/html",
            "<html>Lost</html>",
            "HTTP 404 Not Found; check the path",
        ),
        (
            "200 OK",
            "application/json",
            "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":7,\"message\":\"no\"}}",
            "no",
        ),
        (
            "400 Bad Request",
            "application/json",
            "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":7,\"message\":\"no\"}}",
            "no",
        ),
    ] {
        let server = StandIn::start(move |_, stream| {
            respond(stream, status, &format!("Content-Type: {kind}\r\n"), body);
        });
        let sandbox = Sandbox::new();
        let mut client = Client::start(connect_to(&sandbox, &server), Era::Stateless);
        client.call(1, "hello");
        let answer = client.answer();
        assert_eq!(answer["id"], 1);
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn batch_of_the_server_is_taken_apart() {
    let server = StandIn::start(|request, stream| {
        let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}});
        respond_json(stream, "", &json!([log, result(request, "hello")]));
    });
    let sandbox = Sandbox::new();
    let mut client = Client::start(connect_to(&sandbox, &server), Era::Stateless);
    client.call(1, "hello");
    assert_eq!(client.pipes.receive()["method"], "notifications/message");
    client.check_answer(1, "hello");
}

#[test]
fn call_cancelled_while_the_server_is_down_is_never_sent() {
    for era in ERAS {
        let sandbox = Sandbox::new()
            .with_counter("count")
            .with_script("hello", HELLO);
        let daemon = Daemon::start(&sandbox, &[]);
        let mut command = connect(&sandbox, &daemon);
        command.args(["--retry-for", "600"]);
        let mut client = Client::start(command, era);
        let port = stop(daemon);
        client.call(1, "count");
        client.cancel(1);
        let _daemon = Daemon::listening(&sandbox, &["--port", &port]);
        client.call(2, "hello");
        client.check_answer(2, "hello");
        assert_eq!(sandbox.runs(), 0, "{era:?}");
    }
}

#[test]
fn messages_outside_responses_are_passed_on() {
    let server = StandIn::start(|request, stream| {
        let is_stream = request.line.starts_with("GET");
        let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}});
        let ask = json!({"jsonrpc": "2.0", "id": "ask", "method": "roots/list"});
        if is_stream && request.header("mcp-session-id") == Some("session") {
            respond_events(
                stream,
                &format!(": hello\r\n\r\ndata: {log}\r\n\r\ndata: {ask}\r\n\r\n"),
            );
        } else if request.body.contains("\"roots\"") {
            respond(stream, "202 Accepted", "", "");
        } else {
            answer_introduction(request, stream, "session");
        }
    });
    let sandbox = Sandbox::new();
    let mut client = Client::start(connect_to(&sandbox, &server), Era::Sessions);
    assert_eq!(client.pipes.receive()["method"], "notifications/message");
    assert_eq!(client.pipes.receive()["method"], "roots/list");
    client.send(&json!({"jsonrpc": "2.0", "id": "ask", "result": {"roots": []}}));
    eventually("the answer is posted", || {
        let requests = server.requests();
        requests
            .iter()
            .any(|request| request.body.contains("\"roots\""))
            .then_some(())
    });
}

#[test]
fn result_of_100_mb_passes_in_bounded_memory() {
    const SIZE: usize = 100 << 20;
    for (era, is_streamed) in ERAS.into_iter().flat_map(|era| [(era, false), (era, true)]) {
        let server = StandIn::start(move |request, stream| {
            if answer_introduction(request, stream, "session") {
                return;
            }
            let body = result(request, &"x".repeat(SIZE)).to_string();
            match is_streamed {
                // An error of the client's is reported by its own thread.
                true => respond_events(stream, &format!("data: {body}\n\n")),
                // Line breaks between the tokens become spaces.
                false => {
                    let body = body.replacen(':', ":\n", 1);
                    respond(
                        stream,
                        "200 OK",
                        "Content-Type: application/json\r\n",
                        &body,
                    );
                }
            }
        });
        let sandbox = Sandbox::new();
        let mut client = Client::start(connect_to(&sandbox, &server), era);
        client.call(1, "large");
        let answer = client.answer();
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.len() == SIZE && text.bytes().all(|byte| byte == b'x'));
        let peak = peak_memory(client.pipes.id());
        // One buffer that grows to at most twice the message.
        let limit = 2 * SIZE as u64 + (64 << 20);
        assert!(peak < limit, "{era:?}, {is_streamed}: {peak} bytes");
    }
}

#[test]
fn message_beyond_the_limit_is_refused_in_both_directions() {
    let server = StandIn::start(|request, stream| {
        respond_json(stream, "", &result(request, &"x".repeat(2000)));
    });
    let sandbox = Sandbox::new();
    let mut command = connect_to(&sandbox, &server);
    command.args(["--max-message", "1000"]);
    let mut client = Client::start(command, Era::Stateless);
    client.call(1, "large");
    let answer = client.answer().to_string();
    assert!(answer.contains("more than 1000 bytes"), "{answer}");
    client.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "x".repeat(2000)}));
    let answer = client.pipes.receive();
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
}

#[test]
fn closed_output_ends_it() {
    let server = StandIn::start(|request, stream| {
        respond_json(stream, "", &result(request, "hello"));
    });
    let sandbox = Sandbox::new();
    let mut command = connect_to(&sandbox, &server);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    writeln!(input, "{LIST}").unwrap();
    let mut answer = String::new();
    output.read_line(&mut answer).unwrap();
    assert!(answer.contains("hello"), "{answer}");
    drop(output);
    // The input stays open: only the lack of a reader ends it.
    writeln!(input, "{LIST}").unwrap();
    let status = eventually("its end", || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
}
