//! Metadata of the protected resource (RFC 9728) and of its authorization server (RFC 8414, or
//! OpenID Connect Discovery).

use reqwest::Url;
use serde::Deserialize;
use serde_json::Value;

use super::challenge::Challenge;
use super::client::AuthClient;

const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const OAUTH: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// Protected resource: the MCP server, as its authorization server knows it.
#[derive(Debug, Deserialize)]
pub(super) struct Resource {
    pub(super) resource: String,
    #[serde(default)]
    pub(super) authorization_servers: Vec<String>,
    #[serde(default)]
    pub(super) scopes_supported: Vec<String>,
}

/// Authorization server.
#[derive(Debug, Deserialize)]
pub(super) struct Issuer {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    pub(super) registration_endpoint: Option<String>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    #[serde(default, rename = "authorization_response_iss_parameter_supported")]
    pub(super) names_itself: bool,
}

/// Finds the metadata of a server.
pub(super) async fn find_resource(
    client: &AuthClient,
    server: &Url,
    challenge: &Challenge,
) -> Result<Resource, String> {
    let places = match &challenge.metadata {
        Some(place) => vec![client.check_url(place)?],
        None => {
            let path = server.path().trim_end_matches('/');
            let mut paths = vec![format!("{RESOURCE}{path}"), RESOURCE.to_owned()];
            paths.dedup();
            paths.into_iter().map(|path| at(server, &path)).collect()
        }
    };
    for place in &places {
        client.check_url(place.as_str())?;
        if let Some(found) = client.get(place).await? {
            let resource: Resource = serde_json::from_value(found)
                .map_err(|error| format!("the metadata at `{place}` are faulty: {error}"))?;
            check_resource(server, &resource.resource)?;
            return Ok(resource);
        }
    }
    // A server of revision 2025-03-26 has no such metadata, and is its own authorization server.
    Ok(Resource {
        resource: server.as_str().to_owned(),
        authorization_servers: vec![server.origin().ascii_serialization()],
        scopes_supported: Vec::new(),
    })
}

/// Checks that the metadata are about this server: a token for another one must not be sent here.
fn check_resource(server: &Url, resource: &str) -> Result<(), String> {
    let is_same = Url::parse(resource).is_ok_and(|url| {
        let path = url.path().trim_end_matches('/');
        let rest = server.path().strip_prefix(path);
        url.origin() == server.origin()
            && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    match is_same {
        true => Ok(()),
        false => Err(format!(
            "its metadata are about another server, `{}`; connect to that URL if it is the \
             intended one",
            resource.escape_debug()
        )),
    }
}

/// Finds the metadata of an authorization server.
pub(super) async fn find_issuer(client: &AuthClient, issuer: &str) -> Result<Issuer, String> {
    let url = client.check_url(issuer)?;
    for place in issuer_places(&url) {
        // Some answer with a page for people where there is no metadata.
        let found = client.get(&place).await;
        let Some(found) = found.ok().flatten().filter(Value::is_object) else {
            continue;
        };
        let found: Issuer = serde_json::from_value(found)
            .map_err(|error| format!("the metadata at `{place}` are faulty: {error}"))?;
        // "If these values are not identical, the data contained in the response MUST NOT be
        // used." -- RFC 8414, section 3.3
        if found.issuer != issuer {
            return Err(format!(
                "the metadata at `{place}` belong to another issuer"
            ));
        }
        if !found
            .code_challenge_methods_supported
            .iter()
            .any(|method| method == "S256")
        {
            return Err(format!("`{issuer}` does not support PKCE with S256"));
        }
        return Ok(found);
    }
    Err(format!(
        "`{issuer}` has no metadata of an authorization server"
    ))
}

/// Returns the candidate URLs of an issuer's metadata, in the order of the search.
/// -- 2026-07-28/basic/authorization/authorization-server-discovery
fn issuer_places(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut paths = vec![format!("{OAUTH}{path}"), format!("{OPENID}{path}")];
    if !path.is_empty() {
        paths.push(format!("{path}{OPENID}"));
    }
    paths.into_iter().map(|path| at(issuer, &path)).collect()
}

/// Returns a URL on the same origin.
fn at(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issuer_metadata_is_searched_at_oauth_and_openid_paths() {
        let places = issuer_places(&Url::parse("https://auth.example/tenant").unwrap());
        let places: Vec<_> = places.iter().map(Url::as_str).collect();
        assert_eq!(
            places,
            [
                "https://auth.example/.well-known/oauth-authorization-server/tenant",
                "https://auth.example/.well-known/openid-configuration/tenant",
                "https://auth.example/tenant/.well-known/openid-configuration",
            ]
        );
    }

    #[test]
    fn resource_is_the_server_or_a_path_above_it() {
        let server = Url::parse("https://tools.example/a/mcp").unwrap();
        for resource in [
            "https://tools.example/a/mcp",
            "https://tools.example/a",
            "https://tools.example/",
        ] {
            assert!(check_resource(&server, resource).is_ok(), "{resource}");
        }
        for resource in [
            "https://other.example/a/mcp",
            "http://tools.example/a/mcp",
            "https://tools.example/a/m",
            "https://tools.example/a/mcp/b",
            "tools",
        ] {
            assert!(check_resource(&server, resource).is_err(), "{resource}");
        }
    }

    /// Serves `metadata` with the issuer's own URL in place of `SELF`, for each request.
    fn serve(metadata: Value) -> String {
        use std::io::{Read as _, Write as _};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let body = metadata.to_string().replace("SELF", &url);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let length = stream.read(&mut [0; 1024]).unwrap();
                assert!(length > 0);
                let length = body.len();
                let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length:";
                write!(stream, "{head} {length}\r\n\r\n{body}").unwrap();
            }
        });
        url
    }

    #[tokio::test]
    async fn issuer_must_name_itself_and_support_pkce() {
        for (issuer, methods, expected) in [
            ("SELF", &["plain", "S256"][..], None),
            ("SELF/", &["S256"], Some("belong to another issuer")),
            (
                "https://auth.example",
                &["S256"],
                Some("belong to another issuer"),
            ),
            ("SELF", &["plain"], Some("does not support PKCE")),
            ("SELF", &[], Some("does not support PKCE")),
        ] {
            let url = serve(serde_json::json!({
                "issuer": issuer,
                "authorization_endpoint": "SELF/authorize",
                "token_endpoint": "SELF/token",
                "code_challenge_methods_supported": methods,
            }));
            let found = find_issuer(&AuthClient::new(true), &url).await;
            match (found, expected) {
                (Ok(found), None) => assert_eq!(found.issuer, url),
                (Err(reason), Some(expected)) => assert!(reason.contains(expected), "{reason}"),
                (found, _) => panic!("{issuer} {methods:?}: {found:?}"),
            }
        }
    }
}
