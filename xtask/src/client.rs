//! HTTP client: one connection, one request at a time. It does the minimum of work, as it shares
//! the machine with the measured server.

use std::io;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use socket2::{SockFilter, SockRef};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::request::{REVISION, Request};

/// Maximum number of headers in an answer.
const HEADERS: usize = 32;

/// Packet filter that drops everything: "return 0" of BPF.
const NOTHING: SockFilter = SockFilter::new(0x06, 0, 0, 0);

/// Connection.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    /// Beginning of every request.
    head: String,
    /// Bytes received.
    buffer: Vec<u8>,
}

/// Head of a response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) status: u16,
    is_stream: bool,
    /// Length of the body, unless it is chunked.
    body: Option<usize>,
    /// Length of the head.
    length: usize,
}

/// Answer of the server.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) message: Value,
    pub(crate) took: Duration,
}

impl Answer {
    /// Returns the suggested retry delay from the message. The header has whole seconds only,
    /// after which all clients would return at once.
    pub(crate) fn wait(&self) -> Option<Duration> {
        let milliseconds = &self.message["error"]["data"]["retryAfterMs"];
        milliseconds.as_u64().map(Duration::from_millis)
    }

    /// Returns the text of a result that is not an error.
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
    /// Fails if the server refuses the connection.
    pub(crate) async fn connect(address: &str, token: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: {REVISION}\r\n"
        );
        Ok(Self {
            stream,
            head,
            buffer: Vec::new(),
        })
    }

    /// Disappears without closing: incoming packets are dropped, and none is acknowledged.
    ///
    /// # Errors
    ///
    /// Fails if the system has no such filter.
    pub(crate) fn vanish(&self) -> io::Result<()> {
        SockRef::from(&self.stream).attach_filter(&[NOTHING])
    }

    /// Calls a tool.
    ///
    /// # Errors
    ///
    /// Fails if there is no complete answer.
    pub(crate) async fn call(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<Answer> {
        self.answer(&Request::call(tool, arguments, None)).await
    }

    /// Lists the tools.
    ///
    /// # Errors
    ///
    /// Fails if there is no complete answer.
    pub(crate) async fn list(&mut self) -> anyhow::Result<Answer> {
        self.answer(&Request::new("tools/list", json!({}))).await
    }

    async fn answer(&mut self, request: &Request) -> anyhow::Result<Answer> {
        let start = Instant::now();
        let head = self.send(request, 1).await?;
        let body = self.body(head).await?;
        Ok(Answer {
            status: head.status,
            message: serde_json::from_slice(&body).unwrap_or_default(),
            took: start.elapsed(),
        })
    }

    /// Makes the request with this id. Returns the answer.
    ///
    /// # Errors
    ///
    /// Fails if there is no complete answer, or none with a result.
    pub(crate) async fn exchange(
        &mut self,
        request: &Request,
        number: u64,
    ) -> anyhow::Result<Vec<u8>> {
        let head = self.send(request, number).await?;
        let body = self.body(head).await?;
        ensure!(
            head.status == 200,
            "status {}: {:.300}",
            head.status,
            String::from_utf8_lossy(&body)
        );
        Ok(body)
    }

    /// Opens a session of an older revision.
    ///
    /// # Errors
    ///
    /// Fails if there is no answer, or none that opens a session.
    pub(crate) async fn open_session(&mut self) -> anyhow::Result<()> {
        const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"xtask","version":"0"}}}"#;
        let head = self.head.replace(REVISION, "2025-11-25");
        let length = INITIALIZE.len();
        let message = format!("{head}Content-Length: {length}\r\n\r\n{INITIALIZE}");
        let head = self.transmit(message.as_bytes()).await?;
        let is_open = self.buffer[..head.length].to_ascii_lowercase();
        let is_open = memchr::memmem::find(&is_open, b"mcp-session-id:").is_some();
        self.body(head).await?;
        ensure!(head.status == 200 && is_open, "status {}", head.status);
        Ok(())
    }

    /// Waits until the stream that the last request has opened has this text, and forgets what it
    /// had so far.
    ///
    /// # Errors
    ///
    /// Fails if the stream ends before that.
    pub(crate) async fn wait_for(&mut self, text: &str) -> anyhow::Result<()> {
        while memchr::memmem::find(&self.buffer, text.as_bytes()).is_none() {
            self.read().await?;
        }
        self.buffer.clear();
        Ok(())
    }

    /// Sends the request with this id, and returns the head of the response before its body
    /// arrives.
    ///
    /// # Errors
    ///
    /// Fails if there is no answer.
    pub(crate) async fn send(&mut self, request: &Request, number: u64) -> anyhow::Result<Head> {
        let body = request.message(number);
        let mut message = format!("{}Mcp-Method: {}\r\n", self.head, request.method);
        if let Some(tool) = &request.tool {
            message += &format!("Mcp-Name: {tool}\r\n");
        }
        message += &format!("Content-Length: {}\r\n\r\n", body.len());
        let mut message = message.into_bytes();
        message.extend(body);
        self.transmit(&message).await
    }

    /// Sends a message over HTTP, and returns the head of the response.
    async fn transmit(&mut self, message: &[u8]) -> anyhow::Result<Head> {
        self.stream.write_all(message).await?;
        self.buffer.clear();
        loop {
            self.read().await?;
            if let Some(head) = Head::parse(&self.buffer)? {
                return Ok(head);
            }
        }
    }

    /// Returns the message in the body of a response, which is the body itself or the last event
    /// of a stream.
    async fn body(&mut self, head: Head) -> anyhow::Result<Vec<u8>> {
        let body = match head.body {
            Some(length) => {
                while self.buffer.len() < head.length + length {
                    self.read().await?;
                }
                self.buffer[head.length..head.length + length].to_vec()
            }
            None => self.chunks(head.length).await?,
        };
        if !head.is_stream {
            return Ok(body);
        }
        let mut lines = body.split(|byte| *byte == b'\n').rev();
        let last = lines.find_map(|line| line.strip_prefix(b"data: "));
        Ok(last.context("no event in the stream")?.to_vec())
    }

    /// Joins the chunks of a body that begins at this position.
    async fn chunks(&mut self, mut place: usize) -> anyhow::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            match httparse::parse_chunk_size(&self.buffer[place..]) {
                Ok(httparse::Status::Complete((line, size))) => {
                    let start = place + line;
                    let end = start + usize::try_from(size)?;
                    while self.buffer.len() < end + 2 {
                        self.read().await?;
                    }
                    body.extend_from_slice(&self.buffer[start..end]);
                    place = end + 2;
                    if size == 0 {
                        return Ok(body);
                    }
                }
                Ok(httparse::Status::Partial) => self.read().await?,
                Err(_) => bail!("no chunk"),
            }
        }
    }

    async fn read(&mut self) -> anyhow::Result<()> {
        self.buffer.reserve(4 * 1024);
        let count = self.stream.read_buf(&mut self.buffer).await?;
        ensure!(count > 0, "the server has closed the connection");
        Ok(())
    }
}

impl Head {
    /// Parses the head at the start of `text`, if it is complete.
    fn parse(text: &[u8]) -> anyhow::Result<Option<Self>> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(length) = response.parse(text)? else {
            return Ok(None);
        };
        let mut head = Self {
            status: response.code.context("no status")?,
            is_stream: false,
            body: Some(0),
            length,
        };
        for header in response.headers {
            if header.name.eq_ignore_ascii_case("content-length") {
                head.body = Some(std::str::from_utf8(header.value)?.parse()?);
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                head.body = None;
            } else if header.name.eq_ignore_ascii_case("content-type") {
                head.is_stream = header.value.starts_with(b"text/event-stream");
            }
        }
        Ok(Some(head))
    }
}
