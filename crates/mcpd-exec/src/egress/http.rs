//! Requests of HTTP to a proxy: CONNECT, and requests for an `http` address in absolute form, which
//! are passed on in origin form (RFC 9112, section 3.2).
//!
//! Such a request is the last of its connection: the next one may be for another host.

use httparse::{EMPTY_HEADER, Header, Status};

use super::Verdict;
use super::target::Target;

/// Maximum size of a request line with its headers, in bytes.
pub(super) const MAX_HEAD: usize = 64 * 1024;

/// Maximum number of headers.
const MAX_HEADERS: usize = 128;

/// Headers between a client and its proxy, which no other server reads.
const HOP_BY_HOP: &[&str] = &[
    "connection",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
];

/// Request to the proxy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HttpRequest {
    pub(super) target: Target,
    /// The connection becomes a tunnel, and the proxy says so first.
    pub(super) is_tunnel: bool,
    /// Bytes for the destination: the request, and what has followed it.
    pub(super) early_bytes: Vec<u8>,
}

/// Reason that a request can't be served.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BadRequest {
    /// The request makes no sense, or is for another kind of address.
    Malformed {
        reason: &'static str,
        target: String,
    },
    /// It lacks the password.
    Unauthorized,
}

fn malformed(reason: &'static str, target: &str) -> BadRequest {
    BadRequest::Malformed {
        reason,
        target: target.chars().take(MAX_SHOWN_TARGET).collect(),
    }
}

/// Maximum length of a faulty target in a report.
const MAX_SHOWN_TARGET: usize = 256;

/// Reads a request; `None` if its headers are not complete. `is_authorized` decides by the value
/// of `Proxy-Authorization`.
///
/// # Errors
///
/// The request can't be served.
pub(super) fn parse(
    bytes: &[u8],
    is_authorized: impl Fn(Option<&[u8]>) -> bool,
) -> Result<Option<HttpRequest>, BadRequest> {
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(bytes) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) if bytes.len() < MAX_HEAD => return Ok(None),
        Ok(Status::Partial) => return Err(malformed("its headers are too long", "")),
        Err(_) => return Err(malformed("it is not HTTP", "")),
    };
    let (Some(method), Some(address)) = (request.method, request.path) else {
        return Err(malformed("it has no address", ""));
    };
    let password = find(request.headers, "proxy-authorization");
    if !is_authorized(password) {
        return Err(BadRequest::Unauthorized);
    }
    let rest = &bytes[length..];
    if method == "CONNECT" {
        let target = Target::parse(address)
            .ok_or_else(|| malformed("CONNECT needs a host and a port", address))?;
        return Ok(Some(HttpRequest {
            target,
            is_tunnel: true,
            early_bytes: rest.to_vec(),
        }));
    }
    let (authority, path) = split_address(address)
        .ok_or_else(|| malformed("only `http://` addresses and CONNECT are served", address))?;
    let target = match Target::new(authority, 80) {
        Some(target) => Some(target),
        None => Target::parse(authority),
    };
    let target = target.ok_or_else(|| malformed("its address has no valid host", address))?;
    let version = request.version.unwrap_or(1);
    let mut early_bytes = format!("{method} {path} HTTP/1.{version}\r\nHost: {authority}\r\n");
    early_bytes.push_str("Connection: close\r\n");
    let mut early_bytes = early_bytes.into_bytes();
    for header in request.headers.iter() {
        if !HOP_BY_HOP.contains(&header.name.to_ascii_lowercase().as_str()) {
            early_bytes.extend([header.name.as_bytes(), b": ", header.value, b"\r\n"].concat());
        }
    }
    early_bytes.extend(b"\r\n");
    early_bytes.extend(rest);
    Ok(Some(HttpRequest {
        target,
        is_tunnel: false,
        early_bytes,
    }))
}

fn find<'a>(headers: &[Header<'a>], name: &str) -> Option<&'a [u8]> {
    let found = headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case(name));
    found.map(|header| header.value)
}

/// Splits an `http` address into its authority and its path.
fn split_address(address: &str) -> Option<(&str, String)> {
    let scheme = address.get(..7)?;
    if !scheme.eq_ignore_ascii_case("http://") {
        return None;
    }
    let rest = &address[7..];
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let path = match path.strip_prefix('/') {
        Some(_) => path.to_owned(),
        None => format!("/{path}"),
    };
    Some((authority, path))
}

/// Returns the response that refuses a request.
pub(super) fn refusal(verdict: Verdict, reason: &str) -> Vec<u8> {
    let status = match verdict {
        Verdict::Malformed => "400 Bad Request",
        Verdict::TooMany => "429 Too Many Requests",
        Verdict::Unresolved | Verdict::Unreachable => "502 Bad Gateway",
        _ => "403 Forbidden",
    };
    response(status, "", reason)
}

/// Returns the response to a request without the password.
pub(super) fn authentication_required() -> Vec<u8> {
    let header = "Proxy-Authenticate: Basic realm=\"run\"\r\n";
    let status = "407 Proxy Authentication Required";
    response(status, header, "this proxy serves another run")
}

fn response(status: &str, header: &str, text: &str) -> Vec<u8> {
    let length = text.len() + 1;
    format!(
        "HTTP/1.1 {status}\r\n{header}Content-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}\n"
    )
    .into_bytes()
}

/// Announcement that a tunnel is open.
pub(super) const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_open(text: &str) -> Result<Option<HttpRequest>, BadRequest> {
        parse(text.as_bytes(), |_| true)
    }

    #[test]
    fn connect_becomes_a_tunnel_and_keeps_what_follows() {
        let text = "CONNECT API.example.com:443 HTTP/1.1\r\nHost: other.example.com\r\n\r\nhello";
        let request = parse_open(text).unwrap().unwrap();
        assert_eq!(request.target.to_string(), "api.example.com:443");
        assert!(request.is_tunnel);
        assert_eq!(request.early_bytes, b"hello");
        for end in 0..text.len() - "hello\n".len() {
            assert_eq!(parse_open(&text[..end]).unwrap(), None, "{end}");
        }
    }

    #[test]
    fn plain_request_is_passed_on_in_origin_form_with_its_own_host() {
        let text = "POST HTTP://Example.com:8080/a?b=c HTTP/1.1\r\nHost: evil.com\r\n\
             Proxy-Authorization: Basic x\r\nProxy-Connection: keep-alive\r\n\
             Connection: keep-alive\r\nContent-Length: 2\r\n\r\nhi";
        let request = parse_open(text).unwrap().unwrap();
        assert_eq!(request.target.to_string(), "example.com:8080");
        assert!(!request.is_tunnel);
        let sent = String::from_utf8(request.early_bytes).unwrap();
        assert_eq!(
            sent,
            "POST /a?b=c HTTP/1.1\r\nHost: Example.com:8080\r\nConnection: close\r\n\
             Content-Length: 2\r\n\r\nhi"
        );
        let short = parse_open("GET http://[::1]?x HTTP/1.0\r\n\r\n").unwrap();
        let short = short.unwrap();
        assert_eq!(short.target.to_string(), "[::1]:80");
        assert!(
            short
                .early_bytes
                .starts_with(b"GET /?x HTTP/1.0\r\nHost: [::1]\r\n")
        );
    }

    #[test]
    fn request_that_makes_no_sense_is_refused() {
        for address in [
            "/",
            "https://a.com/",
            "ftp://a.com/",
            "http://",
            "http://user@a.com/",
            "http://a.com:0/",
            "http://a.com:99999/",
            "http://[::1/",
            "*",
        ] {
            let text = format!("GET {address} HTTP/1.1\r\n\r\n");
            let refused = parse_open(&text).unwrap_err();
            assert!(matches!(refused, BadRequest::Malformed { .. }), "{address}");
        }
        for text in [
            "CONNECT a.com HTTP/1.1\r\n\r\n",
            "CONNECT /x:1 HTTP/1.1\r\n\r\n",
        ] {
            assert!(parse_open(text).is_err(), "{text}");
        }
        assert!(parse_open("\u{16}\u{3}\u{1}").is_err(), "TLS");
        let long = format!("GET http://a.com/ HTTP/1.1\r\nA: {}", "x".repeat(MAX_HEAD));
        assert!(parse_open(&long).is_err());
    }

    #[test]
    fn password_is_asked_for() {
        let text = "CONNECT a.com:1 HTTP/1.1\r\nProxy-authorization: secret\r\n\r\n";
        let check = |expected: &'static [u8]| {
            parse(text.as_bytes(), |found| found == Some(expected)).map(drop)
        };
        assert_eq!(check(b"secret"), Ok(()));
        assert_eq!(check(b"other"), Err(BadRequest::Unauthorized));
    }
}
