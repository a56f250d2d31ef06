//! Handshake of SOCKS5 (RFC 1928), with a password where one is asked for (RFC 1929). Only CONNECT
//! is served: there is no way to listen, and none for datagrams.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::Verdict;
use super::target::{Host, Target, host_name};

/// First byte of every message.
pub(super) const VERSION: u8 = 5;

const WITHOUT_PASSWORD: u8 = 0;
const WITH_PASSWORD: u8 = 2;
const NO_METHOD: u8 = 0xff;
const PASSWORD_VERSION: u8 = 1;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

const UNSUPPORTED_COMMAND: u8 = 7;
const UNSUPPORTED_ADDRESS: u8 = 8;

/// Outcome of a handshake.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SocksRequest {
    /// The client waits for [`reply`].
    Connect(Target),
    /// The client was refused, and has been told.
    Refused {
        /// Host that it named, if that was the fault.
        target: String,
    },
}

/// Reads the request of a client.
///
/// `is_authorized` decides by a user and a password; `None` if none is needed.
///
/// # Errors
///
/// The client is gone, or speaks another protocol.
pub(super) async fn receive<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    is_authorized: Option<impl Fn(&[u8], &[u8]) -> bool>,
) -> io::Result<SocksRequest> {
    let refused = |target: String| Ok(SocksRequest::Refused { target });
    expect_byte(stream, VERSION).await?;
    let methods = read_prefixed(stream).await?;
    let method = match is_authorized {
        Some(_) => WITH_PASSWORD,
        None => WITHOUT_PASSWORD,
    };
    if !methods.contains(&method) {
        stream.write_all(&[VERSION, NO_METHOD]).await?;
        return refused(String::new());
    }
    stream.write_all(&[VERSION, method]).await?;
    if let Some(is_authorized) = is_authorized {
        expect_byte(stream, PASSWORD_VERSION).await?;
        let (user, password) = (read_prefixed(stream).await?, read_prefixed(stream).await?);
        let is_right = is_authorized(&user, &password);
        let status = u8::from(!is_right);
        stream.write_all(&[PASSWORD_VERSION, status]).await?;
        if !is_right {
            return refused(String::new());
        }
    }
    expect_byte(stream, VERSION).await?;
    let (command, _reserved, kind) = (
        stream.read_u8().await?,
        stream.read_u8().await?,
        stream.read_u8().await?,
    );
    let host = match kind {
        IPV4 => Ok(Host::address(
            Ipv4Addr::from(stream.read_u32().await?).into(),
        )),
        IPV6 => Ok(Host::address(
            Ipv6Addr::from(stream.read_u128().await?).into(),
        )),
        NAME => read_name(stream).await?,
        _ => {
            stream.write_all(&message(UNSUPPORTED_ADDRESS)).await?;
            return refused(String::new());
        }
    };
    let port = stream.read_u16().await?;
    match host {
        Ok(host) if command == CONNECT && port != 0 => {
            Ok(SocksRequest::Connect(Target { host, port }))
        }
        host => {
            stream.write_all(&message(UNSUPPORTED_COMMAND)).await?;
            refused(host.err().unwrap_or_default())
        }
    }
}

/// Reads a host; as an error the text that is none. Some clients send an address as a name.
async fn read_name<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Result<Host, String>> {
    let bytes = read_prefixed(stream).await?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let host = match text.parse() {
        Ok(address) => Some(Host::address(address)),
        Err(_) => host_name(&text).map(Host::Name),
    };
    Ok(host.ok_or(text))
}

/// Returns the reply to a request that was decided.
pub(super) fn reply(verdict: Verdict) -> [u8; 10] {
    message(match verdict {
        Verdict::Allowed => 0,
        Verdict::Unresolved => 4,
        Verdict::Unreachable => 5,
        Verdict::TooMany => 1,
        Verdict::NotListed | Verdict::PrivateAddress | Verdict::Malformed => 2,
    })
}

/// The address that the proxy connects from is left out, as no client needs it.
fn message(code: u8) -> [u8; 10] {
    [VERSION, code, 0, IPV4, 0, 0, 0, 0, 0, 0]
}

async fn expect_byte<S: AsyncRead + Unpin>(stream: &mut S, byte: u8) -> io::Result<()> {
    match stream.read_u8().await? {
        found if found == byte => Ok(()),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Reads bytes behind a byte with their number.
async fn read_prefixed<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; stream.read_u8().await?.into()];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends all messages at once, and returns the request with what the proxy has answered.
    async fn ask(password: Option<&str>, sent: &[&[u8]]) -> (io::Result<SocksRequest>, Vec<u8>) {
        let (mut ours, mut theirs) = tokio::io::duplex(4096);
        ours.write_all(&sent.concat()).await.unwrap();
        ours.shutdown().await.unwrap();
        let is_right = password.map(|right| {
            move |user: &[u8], given: &[u8]| user == b"run" && given == right.as_bytes()
        });
        let request = receive(&mut theirs, is_right).await;
        drop(theirs);
        let mut answer = Vec::new();
        ours.read_to_end(&mut answer).await.unwrap();
        (request, answer)
    }

    #[tokio::test]
    async fn hosts_are_names_or_addresses() {
        let name: &[u8] = b"\x05\x01\x00\x03\x0bExample.COM\x01\xbb";
        let v4: &[u8] = b"\x05\x01\x00\x01\x0a\x00\x00\x05\x00\x50";
        let mapped = [
            b"\x05\x01\x00\x04",
            &[0; 10][..],
            b"\xff\xff\x7f\x00\x00\x01\x00\x50",
        ];
        let numeric: &[u8] = b"\x05\x01\x00\x03\x09127.0.0.1\x00\x50";
        for (request, expected) in [
            (name, "example.com:443"),
            (v4, "10.0.0.5:80"),
            (&mapped.concat(), "127.0.0.1:80"),
            (numeric, "127.0.0.1:80"),
        ] {
            let (request, answer) = ask(None, &[b"\x05\x02\x00\x02", request]).await;
            let Ok(SocksRequest::Connect(target)) = request else {
                panic!("{expected}: {request:?}");
            };
            assert_eq!(target.to_string(), expected);
            assert_eq!(answer, b"\x05\x00");
        }
    }

    #[tokio::test]
    async fn other_requests_are_refused() {
        let bind: &[u8] = b"\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x50";
        let datagrams: &[u8] = b"\x05\x03\x00\x01\x7f\x00\x00\x01\x00\x50";
        let no_name: &[u8] = b"\x05\x01\x00\x03\x03a b\x00\x50";
        for (request, target) in [(bind, ""), (datagrams, ""), (no_name, "a b")] {
            let (request, answer) = ask(None, &[b"\x05\x01\x00", request]).await;
            let refused = SocksRequest::Refused {
                target: target.to_owned(),
            };
            assert_eq!(request.unwrap(), refused);
            assert_eq!(answer[..4], [5, 0, 5, UNSUPPORTED_COMMAND]);
        }
        let (request, _) = ask(None, &[b"\x04\x01\x00\x50"]).await;
        assert!(request.is_err(), "SOCKS4");
    }

    #[tokio::test]
    async fn password_is_asked_for() {
        let hello: &[u8] = b"\x05\x02\x00\x02";
        let request: &[u8] = b"\x05\x01\x00\x01\x0a\x00\x00\x05\x00\x50";
        let (connected, _) = ask(Some("pw"), &[hello, b"\x01\x03run\x02pw", request]).await;
        assert!(matches!(connected, Ok(SocksRequest::Connect(_))));
        let (refused, answer) = ask(Some("pw"), &[hello, b"\x01\x03run\x02no", request]).await;
        assert!(matches!(refused, Ok(SocksRequest::Refused { .. })));
        assert_eq!(answer, b"\x05\x02\x01\x01");
        let (refused, answer) = ask(Some("pw"), &[b"\x05\x01\x00", request]).await;
        assert!(matches!(refused, Ok(SocksRequest::Refused { .. })));
        assert_eq!(answer, b"\x05\xff");
    }
}
