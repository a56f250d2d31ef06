//! Requests as sent, and the interpretation of responses.

use futures_util::FutureExt as _;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation,
    InitializeRequest, NumberOrString,
};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::remarks::Remarks;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Posts a request with a trace to a server that answers with `answer`; returns the request as
/// received, and the interpretation of the answer.
async fn exchange(answer: &'static str) -> (String, Result<StreamableHttpPostResponse, HttpFault>) {
    let mut request =
        ClientRequest::CallToolRequest(CallToolRequest::new(CallToolRequestParams::new("greet")));
    request.get_meta_mut().set_traceparent(PARENT);
    request.get_meta_mut().set_tracestate("a=b");
    post(&client(&Listener::default()), request, answer).await
}

fn client(listener: &Listener) -> HttpClient {
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
    let reader = Reader {
        remarks: Remarks::default(),
        pending: listener.pending.clone(),
    };
    HttpClient::new(reqwest::Client::new(), reader, listener)
}

async fn post(
    client: &HttpClient,
    request: ClientRequest,
    answer: &'static str,
) -> (String, Result<StreamableHttpPostResponse, HttpFault>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let message = ClientJsonRpcMessage::request(request, NumberOrString::Number(7));
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut arrived = String::new();
        while !arrived.contains("\r\n\r\n") {
            let byte = stream.read_u8().await.unwrap();
            arrived.push(byte.into());
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
        arrived
    };
    let post = client.post_message(url.into(), message, None, None, Headers::default());
    tokio::join!(serve, post)
}

#[tokio::test]
async fn trace_is_in_the_headers() {
    let (arrived, _) = exchange("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n").await;
    for expected in [&format!("traceparent: {PARENT}\r\n"), "tracestate: a=b\r\n"] {
        assert!(arrived.contains(expected), "{arrived}");
    }
}

#[tokio::test]
async fn url_query_is_in_no_fault() {
    let client = client(&Listener::default());
    let url: Arc<str> = "http://127.0.0.1:1/mcp?key=s3cret".into();
    let session: Arc<str> = "1".into();
    let headers = Headers::default;
    let (url, session) = (|| Arc::clone(&url), || Arc::clone(&session));
    let stream = client.get_stream(url(), None, None, None, headers());
    let deleted = client.delete_session(url(), session(), None, headers());
    for fault in [stream.await.err(), deleted.await.err()] {
        let fault = fault.expect("nobody is there");
        let told = format!("{fault} {fault:?} {}", conversion::chain(&fault));
        assert!(!told.contains("s3cret"), "{told}");
    }
}

#[tokio::test]
async fn capabilities_are_read_again_after_a_new_greeting() {
    let listener = Listener::default();
    let client = client(&listener);
    let identity = Implementation::new("test", "0");
    let config = ClientConfig::new(ClientCapabilities::default(), identity);
    for is_news in [false, true] {
        let greeting = InitializeRequest::new(config.clone());
        let greeting = ClientRequest::InitializeRequest(greeting);
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 41\r\n\r\n{\"jsonrpc\": \"2.0\", \"id\": 7, \"result\": {}}";
        post(&client, greeting, answer).await.1.unwrap();
        let changed = listener.changed.notified().now_or_never();
        assert_eq!(changed.is_some(), is_news);
    }
}

#[track_caller]
fn check(answered: Result<StreamableHttpPostResponse, HttpFault>, data: Option<serde_json::Value>) {
    let Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(answer), None)) = answered
    else {
        panic!("{answered:?}");
    };
    assert_eq!(answer.id, Some(NumberOrString::Number(7)));
    assert_eq!((answer.error.code.0, answer.error.data), (429, data));
}

#[tokio::test]
async fn status_429_is_an_answer() {
    let head = "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\nRetry-After: 2\r\n\r\n";
    check(exchange(head).await.1, Some(json!({"retryAfterMs": 2000})));
    let head = "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\nRetry-After: soon\r\n\r\n";
    check(exchange(head).await.1, None);
}
