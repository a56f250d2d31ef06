//! OpenTelemetry collector that records the spans it receives, as far as the tests need them.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use mcpd_tests::eventually;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, Span as Sent};
use prost::Message as _;

/// Attributes by name, as text.
pub(super) type Attributes = BTreeMap<String, String>;

/// Recorded span.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub(super) name: String,
    pub(super) is_of_server: bool,
    pub(super) is_of_client: bool,
    /// Trace id in hexadecimal, as in `traceparent`.
    pub(super) trace: String,
    pub(super) id: String,
    /// Empty for a root.
    pub(super) parent: String,
    pub(super) has_failed: bool,
    pub(super) attributes: Attributes,
    /// Attributes of the resource that sent the span.
    pub(super) resource: Attributes,
}

/// HTTP request as received.
#[derive(Debug, Clone)]
struct Request {
    head: String,
    body: Vec<u8>,
}

/// Collector. Its threads end with the process.
#[derive(Debug)]
pub(super) struct Collector {
    pub(super) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Collector {
    /// Starts a collector that accepts everything.
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let collector = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            requests: Arc::default(),
        };
        let requests = Arc::clone(&collector.requests);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let request = receive(stream).unwrap();
                requests.lock().unwrap().push(request);
            }
        });
        collector
    }

    /// Returns all received heads and bodies as text.
    pub(super) fn text(&self) -> String {
        let requests = self.requests.lock().unwrap().clone();
        let texts = requests.into_iter().map(|request| {
            let body = String::from_utf8_lossy(&request.body).into_owned();
            request.head + &body
        });
        texts.collect()
    }

    /// Returns the spans received so far.
    pub(super) fn spans(&self) -> Vec<Span> {
        let requests = self.requests.lock().unwrap().clone();
        let decoded = requests.iter().flat_map(|request| {
            ExportTraceServiceRequest::decode(&*request.body)
                .unwrap()
                .resource_spans
        });
        decoded.flat_map(spans).collect()
    }

    /// Waits for the span called `name`.
    #[track_caller]
    pub(super) fn span(&self, name: &str) -> Span {
        eventually(name, || {
            let spans = self.spans();
            spans.into_iter().find(|span| span.name == name)
        })
    }
}

fn receive(mut stream: TcpStream) -> io::Result<Request> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        reader.read_line(&mut head)?;
    }
    let lengths = head.to_ascii_lowercase();
    let length = lengths.split("content-length: ").nth(1).unwrap_or_default();
    let length = length.split("\r\n").next().unwrap_or_default();
    let mut body = vec![0; length.parse().unwrap_or_default()];
    reader.read_exact(&mut body)?;
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
    Ok(Request { head, body })
}

fn spans(sent: ResourceSpans) -> Vec<Span> {
    let resource = attributes(sent.resource.unwrap_or_default().attributes);
    let all = sent.scope_spans.into_iter().flat_map(|scope| scope.spans);
    all.map(|span| read(span, &resource)).collect()
}

fn read(span: Sent, resource: &Attributes) -> Span {
    assert!(span.end_time_unix_nano >= span.start_time_unix_nano);
    assert!(span.events.is_empty() && span.links.is_empty());
    Span {
        name: span.name,
        is_of_server: span.kind == SpanKind::Server as i32,
        is_of_client: span.kind == SpanKind::Client as i32,
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        has_failed: span.status.unwrap_or_default().code == StatusCode::Error as i32,
        attributes: attributes(span.attributes),
        resource: resource.clone(),
    }
}

fn attributes(sent: Vec<KeyValue>) -> Attributes {
    let count = sent.len();
    let read: Attributes = sent
        .into_iter()
        .map(|attribute| (attribute.key, text(attribute.value)))
        .collect();
    assert_eq!(read.len(), count, "an attribute is there twice");
    read
}

fn text(value: Option<AnyValue>) -> String {
    match value.and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::DoubleValue(number)) => number.to_string(),
        other => panic!("{other:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
