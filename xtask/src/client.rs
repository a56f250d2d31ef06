//! A client of revision 2026-07-28 over HTTP: one connection, one request at a time.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, RETRY_AFTER};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;

const REVISION: &str = "2026-07-28";

/// A connection.
#[derive(Debug)]
pub(crate) struct Client {
    sender: SendRequest<Full<Bytes>>,
    address: String,
    token: String,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Whether it says when to try again.
    pub(crate) says_when: bool,
    pub(crate) message: Value,
    pub(crate) took: Duration,
}

impl Answer {
    /// The text of a result that is no error.
    pub(crate) fn text(&self) -> Option<&str> {
        let result = &self.message["result"];
        let text = result["content"][0]["text"].as_str();
        text.filter(|_| result["isError"] == false)
    }
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    ///
    /// When the server doesn't take the connection.
    pub(crate) async fn connect(address: &str, token: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self {
            sender,
            address: address.to_owned(),
            token: token.to_owned(),
        })
    }

    /// Calls a tool.
    ///
    /// # Errors
    ///
    /// When there is no complete answer.
    pub(crate) async fn call(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<Answer> {
        let params = json!({"name": tool, "arguments": arguments});
        self.request("tools/call", Some(tool), params).await
    }

    /// Lists the tools.
    ///
    /// # Errors
    ///
    /// When there is no complete answer.
    pub(crate) async fn list(&mut self) -> anyhow::Result<Answer> {
        self.request("tools/list", None, json!({})).await
    }

    /// Sends a request, and gives its answer before the body is read.
    ///
    /// # Errors
    ///
    /// When there is no answer.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        name: Option<&str>,
        mut params: Value,
    ) -> anyhow::Result<Response<hyper::body::Incoming>> {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientInfo": {"name": "xtask", "version": "0"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut request = Request::post("/mcp")
            .header(HOST, &self.address)
            .header(AUTHORIZATION, format!("Bearer {}", self.token))
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .header("mcp-protocol-version", REVISION)
            .header("mcp-method", method);
        if let Some(name) = name {
            request = request.header("mcp-name", name);
        }
        let request = request.body(Full::from(message.to_string()))?;
        self.sender.ready().await?;
        Ok(self.sender.send_request(request).await?)
    }

    async fn request(
        &mut self,
        method: &str,
        name: Option<&str>,
        params: Value,
    ) -> anyhow::Result<Answer> {
        let start = Instant::now();
        let response = self.send(method, name, params).await?;
        let status = response.status().as_u16();
        let says_when = response.headers().contains_key(RETRY_AFTER);
        let body = response.into_body().collect().await?.to_bytes();
        Ok(Answer {
            status,
            says_when,
            message: message(&body).unwrap_or_default(),
            took: start.elapsed(),
        })
    }
}

/// The answer in a body: the body itself, or the last event of a stream.
fn message(body: &[u8]) -> anyhow::Result<Value> {
    let text = std::str::from_utf8(body)?;
    let last = text
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("data: "));
    serde_json::from_str(last.unwrap_or(text)).context("no JSON")
}
