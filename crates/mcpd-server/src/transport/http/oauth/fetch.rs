//! Fetcher of an issuer's metadata and keys: bounded in size and time, and restricted to
//! permitted addresses.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use reqwest::{Client, Response, StatusCode, Url};
use serde::Deserialize;

use super::OAuthError;
use super::address::{self, Resolver};
use crate::support::error_chain::chain;

/// Maximum size of a response, in bytes.
const MAX_BODY: usize = 64 << 10;
/// Lifetime of keys if the issuer sets none, and the bounds of any other.
const DEFAULT_AGE: Duration = Duration::from_secs(10 * 60);
const MIN_AGE: Duration = Duration::from_secs(60);
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// HTTP client for the host that the configuration names, and for public hosts that this one
/// names.
#[derive(Debug, Clone)]
pub(super) struct Fetcher {
    client: Client,
    resolver: Resolver,
}

/// Response body and its lifetime.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) body: Vec<u8>,
    pub(super) age: Duration,
}

impl Fetcher {
    /// Creates a fetcher for the host of `named`, with the timeout `deadline`.
    ///
    /// # Errors
    ///
    /// The certificate store of the system cannot be read.
    pub(super) fn new(named: &Url, deadline: Duration) -> Result<Self, OAuthError> {
        // An embedding program may have installed another provider already, which is fine.
        rustls::crypto::ring::default_provider()
            .install_default()
            .ok();
        let resolver = Resolver::new(named);
        let client = Client::builder()
            .dns_resolver(Arc::new(resolver.clone()))
            .redirect(reqwest::redirect::Policy::none())
            .timeout(deadline)
            .pool_max_idle_per_host(0);
        // Plain HTTP also works on a system without certificate authorities.
        let client = match named.scheme() {
            "http" => client.tls_certs_only([]),
            _ => client,
        };
        let client = client.build();
        let client = client.map_err(|error| OAuthError::Client(chain(&error)))?;
        Ok(Self { client, resolver })
    }

    /// Fetches `url`.
    ///
    /// # Errors
    ///
    /// The reason for the failure.
    pub(super) async fn get(&self, url: &Url) -> Result<Fetched, String> {
        let failed = |error: reqwest::Error| format!("failed to fetch {url}: {}", chain(&error));
        if !self.resolver.allows(url) {
            return Err(format!("{url} is in a private network"));
        }
        let request = self
            .client
            .get(url.clone())
            .header(ACCEPT, "application/json");
        let response = request.send().await.map_err(failed)?;
        if response.status() != StatusCode::OK {
            return Err(format!(
                "{url} responds with status {}",
                response.status().as_u16()
            ));
        }
        let control = response.headers().get(CACHE_CONTROL);
        let age = age(control
            .and_then(|control| control.to_str().ok())
            .unwrap_or_default());
        let body = read_body(url, response).await?;
        Ok(Fetched { body, age })
    }

    /// Sends a form, as the `client` with this name and password. Returns the status and the body
    /// of the response.
    ///
    /// # Errors
    ///
    /// The reason for the failure.
    pub(super) async fn post(
        &self,
        url: &Url,
        client: Option<(&str, &str)>,
        form: &[(&str, &str)],
    ) -> Result<(StatusCode, Vec<u8>), String> {
        let failed = |error: reqwest::Error| format!("failed to reach {url}: {}", chain(&error));
        if !self.resolver.allows(url) {
            return Err(format!("{url} is in a private network"));
        }
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        let request = self
            .client
            .post(url.clone())
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(body);
        let request = match client {
            Some((name, password)) => request.basic_auth(encode(name), Some(encode(password))),
            None => request,
        };
        let response = request.send().await.map_err(failed)?;
        let status = response.status();
        Ok((status, read_body(url, response).await?))
    }

    /// Discovers the key URL of an issuer from its metadata.
    ///
    /// # Errors
    ///
    /// The reason why no metadata was found.
    pub(super) async fn discover(&self, issuer: &str) -> Result<Url, String> {
        let mut failures = Vec::new();
        for place in places(issuer).map_err(|error| error.to_string())? {
            // Some issuers answer with a page for people where there is no metadata, or name
            // their keys in one of two places.
            let fetched = self.get(&place).await;
            match fetched.and_then(|fetched| keys_of(issuer, &fetched.body)) {
                Ok(keys) => return Ok(keys),
                Err(failure) => failures.push(failure),
            }
        }
        Err(failures.join("; "))
    }
}

/// Encodes a part of HTTP Basic credentials as clients of a token endpoint do. -- RFC 6749, 2.3.1
fn encode(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

async fn read_body(url: &Url, mut response: Response) -> Result<Vec<u8>, String> {
    let failed = |error: reqwest::Error| format!("failed to read {url}: {}", chain(&error));
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if body.len() + chunk.len() > MAX_BODY {
            return Err(format!("{url} has more than {MAX_BODY} bytes"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Candidate URLs of an issuer's metadata, in the order of the search.
/// -- 2026-07-28/basic/authorization/authorization-server-discovery, Authorization Server Metadata
/// Discovery
fn places(issuer: &str) -> Result<Vec<Url>, OAuthError> {
    const OAUTH: &str = "/.well-known/oauth-authorization-server";
    const OPENID: &str = "/.well-known/openid-configuration";
    let url = address::parse_fetch_url(issuer)?;
    let path = url.path().trim_end_matches('/');
    let mut paths = vec![format!("{OAUTH}{path}"), format!("{OPENID}{path}")];
    if !path.is_empty() {
        paths.push(format!("{path}{OPENID}"));
    }
    let place = |path: String| {
        let mut place = url.clone();
        place.set_path(&path);
        place
    };
    Ok(paths.into_iter().map(place).collect())
}

fn keys_of(issuer: &str, metadata: &[u8]) -> Result<Url, String> {
    #[derive(Deserialize)]
    struct Metadata {
        issuer: String,
        jwks_uri: String,
    }
    let metadata: Metadata =
        serde_json::from_slice(metadata).map_err(|_| "its metadata has no `jwks_uri`")?;
    if metadata.issuer != issuer {
        return Err("its metadata belongs to another issuer".to_owned());
    }
    address::parse_fetch_url(&metadata.jwks_uri).map_err(|error| error.to_string())
}

/// Returns the lifetime given by `Cache-Control`.
fn age(control: &str) -> Duration {
    let mut directives = control.split(',').map(str::trim);
    let age = directives.find_map(|directive| directive.strip_prefix("max-age=")?.parse().ok());
    age.map_or(DEFAULT_AGE, Duration::from_secs)
        .clamp(MIN_AGE, MAX_AGE)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn metadata_is_searched_at_oauth_and_openid_paths() {
        #[track_caller]
        fn check(issuer: &str, expected: &[&str]) {
            let places = places(issuer).unwrap();
            let places: Vec<_> = places.iter().map(Url::as_str).collect();
            assert_eq!(places, expected);
        }
        let plain = [
            "https://auth.example/.well-known/oauth-authorization-server",
            "https://auth.example/.well-known/openid-configuration",
        ];
        check("https://auth.example", &plain);
        check("https://auth.example/", &plain);
        check(
            "https://auth.example/tenant1",
            &[
                "https://auth.example/.well-known/oauth-authorization-server/tenant1",
                "https://auth.example/.well-known/openid-configuration/tenant1",
                "https://auth.example/tenant1/.well-known/openid-configuration",
            ],
        );
    }

    #[test]
    fn metadata_must_name_the_issuer_and_a_permitted_key_url() {
        let keys = |issuer: &str, keys: &str| {
            let metadata = json!({"issuer": issuer, "jwks_uri": keys}).to_string();
            keys_of("https://auth.example", metadata.as_bytes()).is_ok()
        };
        assert!(keys("https://auth.example", "https://keys.example/a"));
        assert!(!keys("https://auth.example/", "https://keys.example/a"));
        assert!(!keys("https://AUTH.example", "https://keys.example/a"));
        assert!(!keys("https://auth.example", "http://keys.example/a"));
        assert!(!keys("https://auth.example", "file:///etc/passwd"));
        assert!(keys_of("https://auth.example", b"{}").is_err());
    }

    /// Starts an issuer with metadata where OpenID has it, and `elsewhere` in all other places.
    async fn issuer(elsewhere: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let metadata = json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys")}).to_string();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = vec![0; 4096];
                let read = stream.read(&mut head).await.unwrap();
                let head = String::from_utf8_lossy(&head[..read]);
                let is_openid = head.starts_with("GET /.well-known/openid-configuration ");
                let body = if is_openid { &*metadata } else { elsewhere };
                let length = body.len();
                let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        issuer
    }

    #[tokio::test]
    async fn foreign_metadata_is_skipped() {
        for elsewhere in [
            "<!doctype html>",
            "{}",
            r#"{"issuer": "x", "jwks_uri": "https://x.example/"}"#,
        ] {
            let issuer = issuer(elsewhere).await;
            let named = Url::parse(&issuer).unwrap();
            let fetcher = Fetcher::new(&named, Duration::from_secs(20)).unwrap();
            let keys = fetcher.discover(&issuer).await.unwrap();
            assert_eq!(keys.as_str(), format!("{issuer}/keys"));
        }
    }

    #[test]
    fn key_lifetime_follows_cache_control_within_bounds() {
        assert_eq!(age(""), DEFAULT_AGE);
        assert_eq!(age("public, max-age=300"), Duration::from_secs(300));
        assert_eq!(age("max-age=0"), MIN_AGE);
        assert_eq!(age("max-age=99999999"), MAX_AGE);
        assert_eq!(age("max-age=x"), DEFAULT_AGE);
    }
}
