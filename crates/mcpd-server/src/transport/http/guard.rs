//! Guard against DNS rebinding and CSRF, and authentication: checks host, origin and credentials
//! of a request, in this order, before anything else of it is read.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderValue, ORIGIN, WWW_AUTHENTICATE};
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::auth::{Auth, Credentials, Failures, Hash, Problem, Unidentified};
use super::peer::LocalSide;
use crate::policy::principal::Principal;

/// Access rules of one listener.
#[derive(Debug)]
pub(super) struct Guard {
    auth: Auth,
    failures: Failures,
    hosts: Vec<String>,
    origins: Vec<String>,
    /// Listening addresses.
    local: Vec<IpAddr>,
    /// URL of the endpoint without proxies.
    url: String,
}

/// Refusal of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GuardRefusal {
    pub(super) status: StatusCode,
    pub(super) reason: &'static str,
    /// Time to wait, if a retry helps.
    pub(super) wait: Option<Duration>,
    /// Challenge, if other credentials help.
    pub(super) challenge: Option<HeaderValue>,
}

impl GuardRefusal {
    fn new(status: StatusCode, reason: &'static str) -> Self {
        Self {
            status,
            reason,
            wait: None,
            challenge: None,
        }
    }

    fn later(status: StatusCode, reason: &'static str, wait: Duration) -> Self {
        Self {
            wait: Some(wait),
            ..Self::new(status, reason)
        }
    }
}

impl Guard {
    /// Credentials of all callers.
    pub(super) fn auth(&self) -> &Auth {
        &self.auth
    }

    pub(super) fn new(options: &super::Options, local: &[SocketAddr], url: String) -> Self {
        Self {
            auth: options.auth.clone(),
            failures: Failures::default(),
            hosts: options
                .allowed_hosts
                .iter()
                .map(|host| host.to_ascii_lowercase())
                .collect(),
            origins: options
                .allowed_origins
                .iter()
                .map(|origin| origin.to_ascii_lowercase())
                .collect(),
            local: local
                .iter()
                .map(|local| local.ip().to_canonical())
                .collect(),
            url,
        }
    }

    /// Checks the host and the origin of a request. A web page that points its own host name at
    /// this machine (DNS rebinding) is refused by both checks.
    ///
    /// "Servers MUST validate the `Origin` header on all incoming connections"
    /// -- 2026-07-28/basic/transports/streamable-http#security
    pub(super) fn check_source(&self, parts: &Parts, local: LocalSide) -> Result<(), GuardRefusal> {
        let refused = |status, reason| Err(GuardRefusal::new(status, reason));
        let Some(authority) = authority(parts) else {
            return refused(StatusCode::BAD_REQUEST, "exactly one Host is required");
        };
        let Some(host) = self.allowed_host(host_of(&authority), local) else {
            return refused(
                StatusCode::FORBIDDEN,
                "this Host is not allowed; see --allow-host",
            );
        };
        let mut origins = parts.headers.get_all(ORIGIN).iter();
        let Some(origin) = origins.next() else {
            return Ok(());
        };
        let origin = origin.to_str().unwrap_or_default().to_ascii_lowercase();
        let is_own = match origin.split_once("://") {
            Some(("http", place)) => place == authority && !local.is_encrypted,
            // If TLS does not end here, it may end at a proxy, which uses a name that the
            // operator has allowed.
            Some(("https", place)) => {
                place == authority && (local.is_encrypted || host == AllowedHost::Listed)
            }
            _ => false,
        };
        if origins.next().is_some() || !(is_own || self.origins.contains(&origin)) {
            return refused(
                StatusCode::FORBIDDEN,
                "this Origin is not allowed; see --allow-origin",
            );
        }
        Ok(())
    }

    /// Identifies the sender of a request from `address` by its credentials.
    pub(super) async fn identify(
        &self,
        credentials: Credentials<'_>,
        address: IpAddr,
    ) -> Result<Principal, GuardRefusal> {
        let unidentified = match self.auth.principal(credentials, &self.url).await {
            Ok(principal) => return Ok(principal),
            Err(unidentified) => unidentified,
        };
        let problem = match unidentified {
            Unidentified::NoToken => Problem::NoToken,
            Unidentified::InvalidToken(why) => Problem::InvalidToken(why),
            Unidentified::UnknownToken => {
                // A valid token never has to wait: other clients may share the address, above all
                // on this machine.
                if let Some(wait) = self.failures.count(address) {
                    let reason = "too many wrong tokens; the server printed the path of the token file when it started";
                    return Err(GuardRefusal::later(
                        StatusCode::TOO_MANY_REQUESTS,
                        reason,
                        wait,
                    ));
                }
                Problem::InvalidToken("the token is unknown")
            }
            Unidentified::Unavailable(wait) => {
                let reason = "the issuer of the token cannot be reached at the moment";
                return Err(GuardRefusal::later(
                    StatusCode::SERVICE_UNAVAILABLE,
                    reason,
                    wait,
                ));
            }
        };
        let reason = match problem {
            Problem::InvalidToken(_) => {
                "unauthorized: this token is not accepted; the server printed the path of the token file when it started"
            }
            _ => {
                "unauthorized: send the header `Authorization: Bearer TOKEN`; the server printed the path of the token file when it started"
            }
        };
        Err(GuardRefusal {
            challenge: Some(self.auth.challenge(problem, &self.url)),
            ..GuardRefusal::new(StatusCode::UNAUTHORIZED, reason)
        })
    }

    /// Counts a wrong secret from `address`.
    pub(super) fn count_failure(&self, address: IpAddr) {
        self.failures.count(address);
    }

    /// Returns the public metadata at `path`.
    pub(super) fn metadata(&self, path: &str) -> Option<Value> {
        self.auth.metadata(path, &self.url)
    }

    /// Turns a response into a challenge for a token with the scope that the client lacks.
    pub(super) fn ask_for<B>(&self, scope: &str, response: &mut Response<B>) {
        *response.status_mut() = StatusCode::FORBIDDEN;
        let problem = Problem::InsufficientScope(scope);
        let challenge = self.auth.challenge(problem, &self.url);
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }

    /// Returns the reason why `host` is allowed, or `None`.
    ///
    /// An address is not a name that a web page could point elsewhere, so the one that the client
    /// has connected to is always allowed: a kubelet uses the address of its pod, which no
    /// operator knows beforehand.
    fn allowed_host(&self, host: &str, local: LocalSide) -> Option<AllowedHost> {
        if self.hosts.iter().any(|allowed| allowed == host) {
            return Some(AllowedHost::Listed);
        }
        let address = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse::<IpAddr>();
        let is_own = match address.map(|address| address.to_canonical()) {
            Ok(address) => {
                address.is_loopback()
                    || self.local.contains(&address)
                    || local.address == Some(address)
            }
            Err(_) => host == "localhost",
        };
        is_own.then_some(AllowedHost::Own)
    }
}

/// Reason why a host is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AllowedHost {
    /// It is on the operator's list.
    Listed,
    /// It is an address of this server, or `localhost`.
    Own,
}

/// Returns the credentials of a request, on a connection with this certificate. A header takes
/// precedence over the certificate, even if it is invalid: it belongs to this request.
pub(super) fn credentials<'a>(
    headers: &'a HeaderMap,
    certificate: Option<&'a Hash>,
) -> Credentials<'a> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    // With two headers, two readers could see different tokens.
    match (given.next(), given.next()) {
        (None, _) => certificate.map_or(Credentials::Nothing, Credentials::Certificate),
        (Some(header), None) => bearer(header).map_or(Credentials::Nothing, Credentials::Token),
        (Some(_), Some(_)) => Credentials::Nothing,
    }
}

/// Returns the hash of the bearer token of a request, if it has exactly one.
pub(super) fn bearer_hash(headers: &HeaderMap) -> Option<Hash> {
    match credentials(headers, None) {
        Credentials::Token(token) => Some(Sha256::digest(token).into()),
        _ => None,
    }
}

/// Returns the host of the request, in lower case: the authority in HTTP/2, else the header.
pub(super) fn authority(parts: &Parts) -> Option<String> {
    if let Some(authority) = parts.uri.authority() {
        return Some(authority.as_str().to_ascii_lowercase());
    }
    let mut hosts = parts.headers.get_all(HOST).iter();
    let host = hosts.next()?.to_str().ok()?;
    hosts.next().is_none().then(|| host.to_ascii_lowercase())
}

/// Strips the port. A trailing dot names the same host.
fn host_of(authority: &str) -> &str {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    host.strip_suffix('.').unwrap_or(host)
}

/// Returns the token of `Bearer TOKEN`; the case of the scheme is ignored.
fn bearer(value: &HeaderValue) -> Option<&[u8]> {
    let (scheme, token) = value.as_bytes().split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"Bearer ")
        .then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use hyper::http::request::{Builder, Request};

    use super::super::{Certificate, Options, Token};
    use super::*;

    /// Hash of a known certificate.
    const CERTIFICATE: Hash = [7; 32];

    fn guard() -> Guard {
        let token = Token::new("secret", Principal::new("agent"));
        let certificate = Certificate::from_hash(&"07".repeat(32), Principal::new("robot"));
        let mut options = Options::new(Auth::tokens([token]).certificates(certificate));
        options.allowed_hosts = vec!["Tools.example".to_owned()];
        options.allowed_origins = vec!["https://app.example".to_owned()];
        let local: [SocketAddr; 1] = ["192.0.2.7:80".parse().unwrap()];
        Guard::new(&options, &local, "http://192.0.2.7/mcp".to_owned())
    }

    fn parts(request: Builder) -> Parts {
        request.body(()).unwrap().into_parts().0
    }

    #[track_caller]
    fn check(host: &str, origin: Option<&str>, expected: Option<u16>) {
        check_at(LocalSide::default(), host, origin, expected);
    }

    #[track_caller]
    fn check_at(local: LocalSide, host: &str, origin: Option<&str>, expected: Option<u16>) {
        let mut request = Request::builder().uri("/mcp").header(HOST, host);
        if let Some(origin) = origin {
            request = request.header(ORIGIN, origin);
        }
        let refused = guard().check_source(&parts(request), local).err();
        assert_eq!(
            refused.map(|refusal| refusal.status.as_u16()),
            expected,
            "{host} {origin:?}"
        );
    }

    #[test]
    fn hosts_must_be_known() {
        for host in [
            "localhost",
            "LOCALHOST:43210",
            "localhost.",
            "127.0.0.1",
            "127.0.0.1:1",
            "127.1.2.3",
            "[::1]",
            "[::1]:43210",
            "192.0.2.7:80",
            "tools.example",
            "TOOLS.example:443",
        ] {
            check(host, None, None);
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "evil.localhost",
            "192.0.2.8",
            "0.0.0.0",
            "[::]",
            "127.0.0.1.nip.io",
            "",
            ":80",
            "tools.example.evil",
            "xlocalhost",
            "localhost:x",
        ] {
            check(host, None, Some(403));
        }
    }

    #[test]
    fn origins_must_be_own_or_listed() {
        check("localhost:43210", Some("http://localhost:43210"), None);
        check("[::1]:43210", Some("http://[::1]:43210"), None);
        check("localhost:43210", Some("https://app.example"), None);
        check("localhost:43210", Some("HTTPS://APP.example"), None);
        for origin in [
            "null",
            "http://localhost",
            "http://localhost:3000",
            "http://evil.example",
            "https://app.example:444",
            "http://app.example",
            "https://app.example.evil",
            "file://",
            "",
            "localhost:43210",
        ] {
            check("localhost:43210", Some(origin), Some(403));
        }
    }

    #[test]
    fn host_may_be_the_address_that_the_client_connected_to() {
        let local = LocalSide {
            address: Some([10, 244, 0, 5].into()),
            ..LocalSide::default()
        };
        for host in [
            "10.244.0.5:43210",
            "10.244.0.5",
            "[::ffff:10.244.0.5]:43210",
        ] {
            check_at(local, host, None, None);
            check(host, None, Some(403));
        }
        check_at(local, "10.244.0.6", None, Some(403));
        check_at(local, "10.244.0.5.nip.io", None, Some(403));
        check_at(
            local,
            "10.244.0.5:43210",
            Some("http://10.244.0.5:43210"),
            None,
        );
        check("[::ffff:127.0.0.1]:43210", None, None);
    }

    #[test]
    fn origin_is_compared_with_its_scheme() {
        let plain = LocalSide::default();
        let encrypted = LocalSide {
            is_encrypted: true,
            ..plain
        };
        let own = "localhost:43210";
        check_at(plain, own, Some("http://localhost:43210"), None);
        check_at(plain, own, Some("https://localhost:43210"), Some(403));
        check_at(encrypted, own, Some("https://localhost:43210"), None);
        check_at(encrypted, own, Some("http://localhost:43210"), Some(403));
        check_at(encrypted, own, Some("ftp://localhost:43210"), Some(403));
        // An encrypting proxy passes on its own name.
        check_at(plain, "tools.example", Some("https://tools.example"), None);
        check_at(plain, "tools.example", Some("http://tools.example"), None);
        check_at(
            encrypted,
            "tools.example",
            Some("http://tools.example"),
            Some(403),
        );
    }

    #[test]
    fn host_header_must_be_single() {
        let none = Request::builder().uri("/mcp");
        let two = Request::builder()
            .uri("/mcp")
            .header(HOST, "localhost")
            .header(HOST, "localhost");
        for request in [none, two] {
            assert_eq!(
                guard()
                    .check_source(&parts(request), LocalSide::default())
                    .unwrap_err()
                    .status,
                StatusCode::BAD_REQUEST
            );
        }
    }

    /// Checks the credentials found in these headers.
    #[track_caller]
    fn check_credentials(values: &[&str], certificate: Option<&Hash>, expected: Option<&str>) {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, value.parse().unwrap());
        }
        let guard = guard();
        let credentials = credentials(&headers, certificate);
        let identified = guard.identify(credentials, [127, 0, 0, 1].into());
        let identified = identified.now_or_never().expect("nobody is asked");
        let name = identified.as_ref().ok().map(Principal::name);
        assert_eq!(name, expected, "{values:?} {certificate:?}");
    }

    #[test]
    fn token_must_match_exactly() {
        #[track_caller]
        fn check(values: &[&str], allowed: bool) {
            check_credentials(values, None, allowed.then_some("agent"));
        }
        check(&["Bearer secret"], true);
        check(&["bearer  secret"], true);
        for refused in [
            "",
            "secret",
            "Bearer",
            "Bearer ",
            "Bearer secre",
            "Bearer secrets",
            "Basic secret",
            "Bearersecret",
        ] {
            check(&[refused], false);
        }
        check(&[], false);
        check(&["Bearer secret", "Bearer secret"], false);
    }

    #[test]
    fn certificate_counts_without_a_token() {
        check_credentials(&[], Some(&CERTIFICATE), Some("robot"));
        check_credentials(&[], Some(&[8; 32]), None);
        check_credentials(&["Bearer secret"], Some(&CERTIFICATE), Some("agent"));
        check_credentials(&["Bearer wrong"], Some(&CERTIFICATE), None);
        check_credentials(&["Basic secret"], Some(&CERTIFICATE), None);
        check_credentials(&["Bearer secret"; 2], Some(&CERTIFICATE), None);
    }
}
