//! Loopback redirect of a login (RFC 8252): a listener on 127.0.0.1 with a random port, which takes
//! the first request with the right `state` and answers all others with an error.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Maximum size of the head of a request, in bytes.
const MAX_HEAD: usize = 16 << 10;
/// Time limit for one request. Browsers open connections that they never use.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of concurrent connections.
const MAX_CONNECTIONS: usize = 16;
const PATH: &str = "/callback";

/// Parameters of the redirect.
pub(super) type Fields = BTreeMap<String, String>;

/// Listener for one redirect.
#[derive(Debug)]
pub(super) struct Redirect {
    listener: TcpListener,
    pub(super) url: String,
}

impl Redirect {
    pub(super) async fn listen() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        Ok(Self {
            listener,
            url: format!("http://127.0.0.1:{port}{PATH}"),
        })
    }

    /// Waits for the redirect of the login with this `state`.
    pub(super) async fn receive(&self, state: &str) -> io::Result<Fields> {
        let state: Arc<str> = state.into();
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                Some(answered) = connections.join_next() => {
                    if let Ok(Some(fields)) = answered {
                        return Ok(fields);
                    }
                }
                accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                    let (stream, _) = accepted?;
                    let answer = answer(stream, Arc::clone(&state));
                    connections.spawn(async move {
                        tokio::time::timeout(REQUEST_TIMEOUT, answer).await.ok()?.ok()?
                    });
                }
            }
        }
    }
}

/// Answers a request. Returns its parameters if it belongs to the login.
async fn answer(mut stream: TcpStream, state: Arc<str>) -> io::Result<Option<Fields>> {
    let head = read_head(&mut stream).await?;
    let fields =
        parse_target(&head).filter(|fields| fields.get("state").is_some_and(|s| **s == *state));
    let (status, text) = match &fields {
        Some(fields) if fields.contains_key("code") => (
            "200 OK",
            "The login is complete. You can close this window.",
        ),
        Some(_) => (
            "200 OK",
            "The login was refused. You can close this window.",
        ),
        None => ("404 Not Found", "This page does not belong to a login."),
    };
    let page =
        format!("<!doctype html>\n<meta charset=\"utf-8\">\n<title>mcpd</title>\n<p>{text}</p>\n");
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n\
         Content-Security-Policy: default-src 'none'\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
    // The parameters count even if the browser does not wait for the page.
    let written = stream.write_all(response.as_bytes()).await;
    if written.is_ok() {
        stream.shutdown().await.ok();
    }
    Ok(fields)
}

async fn read_head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    while !head.windows(4).any(|window| window == b"\r\n\r\n") && head.len() < MAX_HEAD {
        let length = stream.read(&mut buffer).await?;
        if length == 0 {
            break;
        }
        head.extend_from_slice(&buffer[..length]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// Returns the parameters of a request for the redirect's path.
fn parse_target(head: &str) -> Option<Fields> {
    let target = head.strip_prefix("GET ")?.split(' ').next()?;
    if !target.starts_with('/') {
        return None;
    }
    let url = Url::parse(&format!("http://127.0.0.1{target}")).ok()?;
    let pairs = url.query_pairs();
    (url.path() == PATH).then(|| pairs.into_owned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn request(url: &Url, target: &str) -> String {
        let port = url.port().unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let head = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn redirect_with_another_state_is_ignored() {
        let redirect = Redirect::listen().await.unwrap();
        let url = Url::parse(&redirect.url).unwrap();
        let browse = async {
            let _unused = TcpStream::connect(("127.0.0.1", url.port().unwrap()))
                .await
                .unwrap();
            for wrong in [
                "/",
                "/favicon.ico",
                "/callback?code=1",
                "/callback?code=1&state=a",
                "//x",
            ] {
                let answer = request(&url, wrong).await;
                assert!(answer.starts_with("HTTP/1.1 404"), "{wrong}: {answer}");
            }
            request(&url, "/callback?code=a%20b&state=right&iss=c").await
        };
        let (fields, page) = tokio::join!(redirect.receive("right"), browse);
        assert!(page.contains("You can close this window"), "{page}");
        let fields = fields.unwrap();
        assert_eq!((&*fields["code"], &*fields["iss"]), ("a b", "c"));
    }
}
