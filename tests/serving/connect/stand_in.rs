//! Stand-in for a server over HTTP, which answers each request as a test says. Each connection has
//! one request.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

/// Request as it was received.
#[derive(Debug, Clone)]
pub(super) struct Request {
    /// Method and path, such as `POST /mcp`.
    pub(super) line: String,
    headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(known, _)| known == name);
        header.map(|(_, value)| &**value)
    }

    pub(super) fn message(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    pub(super) fn method(&self) -> String {
        self.message()["method"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

/// Server whose threads end with the process.
#[derive(Debug)]
pub(super) struct StandIn {
    pub(super) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl StandIn {
    /// Starts a server that writes the answer of `respond`, and closes the connection.
    pub(super) fn start(
        respond: impl Fn(&Request, &mut TcpStream) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let (log, respond) = (Arc::clone(&requests), Arc::new(respond));
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let (log, respond) = (Arc::clone(&log), Arc::clone(&respond));
                thread::spawn(move || {
                    let Some(request) = read(&stream) else { return };
                    log.lock().unwrap().push(request.clone());
                    respond(&request, &mut stream);
                });
            }
        });
        Self { url, requests }
    }

    /// Returns the requests received so far, without those for the stream of messages.
    pub(super) fn requests(&self) -> Vec<Request> {
        let requests = self.requests.lock().unwrap();
        let is_stream = |request: &&Request| {
            request.line.starts_with("GET") && request.header("last-event-id").is_none()
        };
        requests
            .iter()
            .filter(|request| !is_stream(request))
            .cloned()
            .collect()
    }

    /// Returns the methods of the messages received so far.
    pub(super) fn methods(&self) -> Vec<String> {
        let requests = self.requests();
        let methods = requests.iter().map(|request| match request.method() {
            method if method.is_empty() => request.line.clone(),
            method => method,
        });
        methods.collect()
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader
            .read_line(&mut line)
            .ok()
            .filter(|length| *length > 0)?;
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let first = lines.first()?;
    let line = first.rsplit_once(' ')?.0.to_owned();
    let headers = lines.iter().filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned()));
    let mut request = Request {
        line,
        headers: headers.collect(),
        body: String::new(),
    };
    let length = request
        .header("content-length")
        .and_then(|length| length.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    request.body = String::from_utf8(body).ok()?;
    Some(request)
}

/// Writes a response; a client that is gone is none of its business.
pub(super) fn respond(stream: &mut TcpStream, status: &str, headers: &str, body: &str) {
    let length = body.len();
    let response = format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(response.as_bytes()).ok();
}

/// Writes a response in JSON.
pub(super) fn respond_json(stream: &mut TcpStream, headers: &str, body: &Value) {
    let headers = format!("Content-Type: application/json\r\n{headers}");
    respond(stream, "200 OK", &headers, &body.to_string());
}

/// Writes a part of a stream of events, and closes the connection.
pub(super) fn respond_events(stream: &mut TcpStream, events: &str) {
    respond(
        stream,
        "200 OK",
        "Content-Type: text/event-stream\r\n",
        events,
    );
}
