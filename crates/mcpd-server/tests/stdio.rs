//! Stdio transport: lines, their ends, and a client that disconnects.

use std::io::{
    self, BufRead as _, BufReader, Cursor, ErrorKind, PipeReader, PipeWriter, Read as _, Write,
};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpd_server::transport::stdio::{self, Options};
use mcpd_server::{CallContext, Error, Server};
use serde_json::Value;
use tokio::task::JoinHandle;

/// Far longer than any step here; only a hang reaches it.
const HANG_TIMEOUT: Duration = Duration::from_secs(20);

/// Client ends of two pipes, and the server between them.
struct Client {
    input: Option<PipeWriter>,
    output: BufReader<PipeReader>,
    server: Server,
    serving: JoinHandle<Result<(), Error>>,
}

impl Client {
    fn start(options: Options) -> Self {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
        let server = Server::builder()
            .scripts(scripts)
            .watch(false)
            .start()
            .expect("scripts");
        Self::of(server, options)
    }

    fn of(server: Server, options: Options) -> Self {
        let (server_input, input) = io::pipe().expect("a pipe");
        let (output, server_output) = io::pipe().expect("a pipe");
        let serving = tokio::spawn({
            let server = server.clone();
            async move { stdio::serve(&server, server_input, server_output, options).await }
        });
        Self {
            input: Some(input),
            output: BufReader::new(output),
            server,
            serving,
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.input
            .as_mut()
            .expect("still open")
            .write_all(bytes)
            .expect("the server reads");
    }

    /// Reads the next line of the server.
    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the server writes");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Closes the input, and waits for the server to end by itself.
    async fn finish(mut self) -> Server {
        self.input = None;
        let ended = tokio::time::timeout(HANG_TIMEOUT, self.serving)
            .await
            .expect("the server is shutting down");
        ended.expect("no panic").expect("no error");
        self.server
    }
}

fn call(id: u32, name: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}","arguments":{{"name":"x"}}}}}}"#
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn last_line_without_newline_is_answered() {
    let mut client = Client::start(Options::default());
    client.send(call(1, "greet").as_bytes());
    client.input = None;
    assert_eq!(
        client.receive()["result"]["content"][0]["text"],
        "Hello, x!"
    );
    client.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn line_ends_of_any_kind_and_empty_lines_are_tolerated() {
    let mut client = Client::start(Options::default());
    client.send(
        b"\n\r\n  \n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n{\"jsonrpc\":\"2.0\",",
    );
    assert_eq!(client.receive()["id"], 1);
    client.send(b"\"id\":2,\"method\":\"ping\"}\n");
    assert_eq!(client.receive()["id"], 2);
    client.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn line_too_long_is_rejected_and_the_next_one_read() {
    let mut options = Options::default();
    options.max_message = 1 << 20;
    let mut client = Client::start(options);
    client.send(&vec![b'x'; 5_000_000]);
    client.send(b"\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
    assert_eq!(client.receive()["error"]["code"], -32700);
    assert_eq!(client.receive()["id"], 1);
    client.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn line_too_long_is_rejected_with_its_end_in_the_buffer() {
    let ping = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
    let mut options = Options::default();
    options.max_message = ping.len();
    let mut client = Client::start(options);
    for end in [&b" \n"[..], b"\n", b" "] {
        client.send(&[ping, end].concat());
    }
    client.input = None;
    assert_eq!(client.receive()["error"]["code"], -32700);
    assert_eq!(client.receive()["id"], 1);
    assert_eq!(client.receive()["error"]["code"], -32700);
    client.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_line_that_is_no_message_is_an_ordinary_error() {
    let mut client = Client::start(Options::default());
    let mut line = vec![b'x'; 5_000_000];
    line.push(b'\n');
    client.send(&line);
    assert_eq!(client.receive()["error"]["code"], -32700);
    client.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_requests_at_once_are_each_answered_once() {
    let mut client = Client::start(Options::default());
    // Before the first scan every list is an open request, and the number of those is limited.
    client.server.catalog_ready().await;
    let requests: String = (0..2000)
        .map(|id| match id % 20 {
            0 => call(id, "greet") + "\n",
            _ => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/list\"}}\n"),
        })
        .collect();
    let mut input = client.input.take().expect("open");
    // A client that writes everything before it reads anything must not block the server for
    // good.
    let writer = std::thread::spawn(move || {
        input
            .write_all(requests.as_bytes())
            .expect("the server reads");
        input
    });
    let mut seen = vec![false; 2000];
    for _ in 0..2000 {
        let answer = client.receive();
        let id = answer["id"].as_u64().expect("an id") as usize;
        assert!(
            !std::mem::replace(&mut seen[id], true),
            "{id} is answered twice"
        );
        assert!(answer.get("result").is_some(), "{answer}");
    }
    drop(writer.join().expect("written"));
    client.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn end_of_input_ends_runs_and_answers_their_calls() {
    let mut options = Options::default();
    options.linger = Duration::from_millis(100);
    let mut client = Client::start(options);
    client.send(b"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"logging/setLevel\",\"params\":{\"level\":\"info\"}}\n");
    client.receive();
    client.send((call(1, "wait").replace(r#"{"name":"x"}"#, "{}") + "\n").as_bytes());
    assert_eq!(client.receive()["params"]["data"], "waiting");
    let closed = Instant::now();
    client.input = None;
    let answer = client.receive();
    assert_eq!(answer["id"], 1);
    let told = answer["error"]["message"].as_str();
    assert!(
        told.is_some_and(|told| told.contains("the input ended")),
        "{answer}"
    );
    let server = client.finish().await;
    assert!(
        closed.elapsed() < Duration::from_secs(5),
        "the run goes on for {:?}",
        closed.elapsed()
    );
    server.shutdown().await;
    assert_eq!(server.executor().running(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_client_that_leaves_is_not_answered() {
    let mut options = Options::default();
    options.linger = Duration::from_millis(100);
    let mut client = Client::start(options);
    client.send(br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#);
    client.send(b"\n");
    client.receive();
    client.send((call(1, "wait").replace(r#"{"name":"x"}"#, "{}") + "\n").as_bytes());
    client.send(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n");
    assert_eq!(client.receive()["id"], 2);
    client.input = None;
    let mut rest = String::new();
    client
        .output
        .read_to_string(&mut rest)
        .expect("the output ends");
    assert_eq!(rest, "");
    let server = client.finish().await;
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closed_output_ends_the_linger_time() {
    let mut options = Options::default();
    options.linger = Duration::from_secs(3600);
    let closed = options.output_closed.clone();
    let mut client = client_with_running_script_and(options);
    client.input = None;
    closed.cancel();
    let server = client.finish().await;
    wait_until_idle(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_waits_while_requests_linger() {
    let mut options = Options::default();
    options.linger = Duration::from_millis(500);
    let (stop, ended) = (options.stop.clone(), options.input_ended.clone());
    let mut client = client_with_running_script_and(options);
    client.input = None;
    ended.cancelled().await;
    // The catalog was ready before: from here on the linger time runs.
    tokio::time::sleep(Duration::from_millis(50)).await;
    stop.cancel();
    let answer = client.receive();
    let told = answer["error"]["message"].as_str();
    assert!(told.is_some_and(|told| told.contains("the input ended")));
    client.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_ends_an_open_conversation() {
    let options = Options::default();
    let stop = options.stop.clone();
    let client = client_with_running_script_and(options);
    stop.cancel();
    let ended = tokio::time::timeout(HANG_TIMEOUT, client.serving).await;
    ended
        .expect("it ends")
        .expect("no panic")
        .expect("no error");
    wait_until_idle(&client.server).await;
}

/// Client with a running script.
fn client_with_running_script() -> Client {
    client_with_running_script_and(Options::default())
}

fn client_with_running_script_and(options: Options) -> Client {
    let mut client = Client::start(options);
    client.send(b"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"logging/setLevel\",\"params\":{\"level\":\"info\"}}\n");
    client.receive();
    client.send((call(1, "wait").replace(r#"{"name":"x"}"#, "{}") + "\n").as_bytes());
    assert_eq!(client.receive()["params"]["data"], "waiting");
    client
}

async fn wait_until_idle(server: &Server) {
    let ended = async {
        while server.executor().running() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(HANG_TIMEOUT, ended)
        .await
        .expect("the script ends");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_call_is_not_answered_and_its_script_ends() {
    let mut client = client_with_running_script();
    client.send(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n");
    client.send(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n");
    assert_eq!(client.receive()["id"], 2);
    let server = client.finish().await;
    wait_until_idle(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_after_the_end_run_nothing_and_get_no_response() {
    let mut client = client_with_running_script();
    client.serving.abort();
    wait_until_idle(&client.server).await;
    client.send(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n");
    let mut rest = String::new();
    client
        .output
        .read_to_string(&mut rest)
        .expect("the output ends");
    assert_eq!(rest, "");
}

/// The blocked reader thread must not keep the server from removing its files.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_server_is_gone_with_its_input_open() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing {}

    let held = Arc::new(());
    let kept = Arc::downgrade(&held);
    let tool = move |_: Nothing, _: CallContext| {
        let _held = Arc::clone(&held);
        async { "" }
    };
    let server = Server::builder().tool("tool", "Does nothing.", tool);
    let mut client = Client::of(server.start().expect("starts"), Options::default());
    client.send(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
    client.receive();
    client.server.shutdown().await;
    let Client {
        input: _input,
        serving,
        server,
        ..
    } = client;
    serving.await.expect("no panic").expect("no error");
    drop(server);
    let gone = async {
        while kept.strong_count() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let gone = tokio::time::timeout(HANG_TIMEOUT, gone).await;
    gone.expect("nobody holds the server");
}

/// Serves a client that has closed the input, and whose output fails.
async fn serve_in_vain(fault: ErrorKind) -> Result<(), Error> {
    struct Broken(ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let server = Server::builder().scripts(scripts).watch(false).start();
    let server = server.expect("starts");
    let waiting = call(1, "wait").replace(r#"{"name":"x"}"#, "{}");
    let input = Cursor::new(waiting + "\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n");
    let served = stdio::serve(&server, input, Broken(fault), Options::default());
    let served = tokio::time::timeout(HANG_TIMEOUT, served).await;
    server.shutdown().await;
    served.expect("the server is shutting down")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_response_at_the_end_is_an_error_unless_the_client_is_gone() {
    // Either end may be noticed first, input or output.
    for _ in 0..10 {
        let lost = serve_in_vain(ErrorKind::StorageFull).await;
        let is_told = |error: &Error| matches!(error, Error::Transport(error) if error.kind() == ErrorKind::StorageFull);
        assert!(lost.as_ref().is_err_and(is_told), "{lost:?}");
        serve_in_vain(ErrorKind::BrokenPipe)
            .await
            .expect("no error");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_that_stops_reading_is_disconnected() {
    let client = Client::start(Options::default());
    let Client {
        input,
        output,
        serving,
        server: _server,
    } = client;
    drop(output);
    let request = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    let mut input = input.expect("open");
    // Repeated, because a process that another test is starting may still hold the closed end.
    std::thread::spawn(move || {
        while input.write_all(request).is_ok() {
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    let ended = tokio::time::timeout(HANG_TIMEOUT, serving)
        .await
        .expect("the server is shutting down");
    ended.expect("no panic").expect("no error");
}

/// Client that requests more than a pipe holds.
fn client_with_large_request(options: Options) -> Client {
    const LARGE: usize = 1 << 20;
    let text = async |_| "x".repeat(LARGE);
    let server = Server::builder().resource("much://", "much", "Much.", text);
    let mut client = Client::of(server.start().expect("starts"), options);
    client
        .send(br#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"much://"}}"#);
    client.send(b"\n");
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_reader_is_not_disconnected() {
    let mut options = Options::default();
    options.write_timeout = Duration::from_millis(200);
    let mut client = client_with_large_request(options);
    let mut line = Vec::new();
    while line.last() != Some(&b'\n') {
        let mut part = [0; 64 * 1024];
        std::thread::sleep(Duration::from_millis(50));
        let read = client.output.read(&mut part).expect("readable");
        assert_ne!(read, 0, "it ends after {} bytes", line.len());
        line.extend_from_slice(&part[..read]);
    }
    client.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn response_read_late_is_complete_after_the_input_ends() {
    let mut options = Options::default();
    options.linger = Duration::from_millis(100);
    let mut client = client_with_large_request(options);
    client.input = None;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(client.receive()["id"], 1);
    client.finish().await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_waiting_for_the_first_scan_is_answered_after_the_input_ends() {
    use std::os::unix::fs::PermissionsExt as _;

    let scripts = tempfile::tempdir().expect("a directory");
    let script = scripts.path().join("slow");
    std::fs::write(&script, "#!/bin/sh\nsleep 1\necho '{}'\n").expect("written");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&script, mode).expect("executable");
    let mut options = Options::default();
    options.linger = Duration::from_millis(100);
    let server = Server::builder().scripts(scripts.path()).watch(false);
    let mut client = Client::of(server.start().expect("starts"), options);
    client.send(br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    client.input = None;
    assert_eq!(client.receive()["result"]["tools"][0]["name"], "slow");
    client.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_that_reads_nothing_is_disconnected() {
    let mut options = Options::default();
    options.write_timeout = Duration::from_millis(100);
    let client = Client::start(options);
    let Client {
        input,
        output: _unread,
        serving,
        server: _server,
    } = client;
    let mut input = input.expect("open");
    let ping = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n".repeat(100);
    let (refused, stopped) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        while input.write_all(&ping).is_ok() {}
        refused.send(()).ok();
    });
    let ended = tokio::time::timeout(HANG_TIMEOUT, serving)
        .await
        .expect("the server gives up");
    assert!(ended.expect("no panic").is_err());
    stopped
        .recv_timeout(HANG_TIMEOUT)
        .expect("the server stops reading");
}
