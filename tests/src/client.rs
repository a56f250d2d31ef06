//! Minimal HTTP client: one message a connection, no streams.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;

use crate::wait::EVENT_TIMEOUT;

/// HTTP client that may have the token of a server.
#[derive(Debug, Clone)]
pub struct Client {
    address: String,
    token: Option<String>,
    /// Header lines beside the standard ones.
    headers: String,
}

impl Client {
    /// Makes a client of the server at `address`, such as `127.0.0.1:80`.
    #[must_use]
    pub fn new(address: &str, token: Option<&str>) -> Self {
        Self {
            address: address.to_owned(),
            token: token.map(str::to_owned),
            headers: String::new(),
        }
    }

    /// Makes a copy of the client with another token, or with none.
    #[must_use]
    pub fn with_token(&self, token: Option<&str>) -> Self {
        Self::new(&self.address, token)
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers += &format!("{name}: {value}\r\n");
        self
    }

    /// Sends one message, and returns the status and the body of the answer.
    ///
    /// # Errors
    ///
    /// Fails if there is no complete answer.
    pub fn post(&self, message: &str) -> io::Result<(u16, String)> {
        self.ask("POST /mcp", message)
    }

    /// Requests `path`, and returns the status and the body of the answer.
    ///
    /// # Errors
    ///
    /// Fails if there is no complete answer.
    pub fn get(&self, path: &str) -> io::Result<(u16, String)> {
        self.ask(&format!("GET {path}"), "")
    }

    fn ask(&self, request: &str, body: &str) -> io::Result<(u16, String)> {
        let (head, body) = self.exchange(request, body)?;
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
        Ok((status, body))
    }

    /// Sends a request such as `GET /health`, and returns the head and the body of the answer.
    ///
    /// # Errors
    ///
    /// Fails if there is no complete answer.
    pub fn exchange(&self, request: &str, body: &str) -> io::Result<(String, String)> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(EVENT_TIMEOUT))?;
        stream.write_all(self.request(request, body).as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let parts = answer.split_once("\r\n\r\n");
        let (head, body) = parts.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
        Ok((head.to_owned(), body.to_owned()))
    }

    fn request(&self, request: &str, body: &str) -> String {
        let (address, headers, length) = (&self.address, &self.headers, body.len());
        let token = self.token.as_ref();
        let token = token
            .map(|token| format!("Authorization: Bearer {token}\r\n"))
            .unwrap_or_default();
        format!(
            "{request} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{token}{headers}\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        )
    }
}
