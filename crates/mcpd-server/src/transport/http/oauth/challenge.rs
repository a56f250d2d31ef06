//! Metadata of this resource server, which names the issuers, and the `WWW-Authenticate`
//! challenge that points to it.

use hyper::header::HeaderValue;
use serde_json::{Value, json};

use super::{OAuth, address};
use crate::transport::http::auth::Problem;

/// Path of the metadata of protected resources -- RFC 9728, 3
pub(in super::super) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

impl OAuth {
    /// Returns the metadata served at `path`, if any, by a server that listens at `url`.
    pub(in super::super) fn metadata(&self, path: &str, url: &str) -> Option<Value> {
        let resource = self.resource.as_deref().unwrap_or(url);
        let suffix = path.strip_prefix(WELL_KNOWN)?;
        // A reverse proxy may use another path outside.
        if !matches!(suffix, "" | "/mcp") && suffix != path_of(resource) {
            return None;
        }
        let issuers: Vec<_> = self.issuers.iter().map(|issuer| issuer.url()).collect();
        let mut metadata = json!({
            "resource": resource,
            "authorization_servers": issuers,
            "bearer_methods_supported": ["header"],
        });
        let scopes: Vec<_> = self.first_scopes().collect();
        if !scopes.is_empty() {
            metadata["scopes_supported"] = json!(scopes);
        }
        Some(metadata)
    }

    /// Returns the challenge of a refused request. -- RFC 6750, 3, and RFC 9728, 5.1
    pub(in super::super) fn challenge(&self, problem: Problem<'_>, url: &str) -> HeaderValue {
        let resource = self.resource.as_deref().unwrap_or(url);
        let mut challenge = format!("Bearer resource_metadata=\"{}\"", metadata_url(resource));
        let scope = match problem {
            Problem::InsufficientScope(scope) => scope.to_owned(),
            _ => self.first_scopes().collect::<Vec<_>>().join(" "),
        };
        if !scope.is_empty() {
            challenge += &format!(", scope=\"{scope}\"");
        }
        match problem {
            Problem::NoToken => {}
            Problem::InvalidToken(why) => {
                challenge += &format!(", error=\"invalid_token\", error_description=\"{why}\"");
            }
            Problem::InsufficientScope(_) => challenge += ", error=\"insufficient_scope\"",
        }
        HeaderValue::try_from(challenge).unwrap_or(HeaderValue::from_static("Bearer"))
    }

    /// Scopes that clients request from the start.
    fn first_scopes(&self) -> impl Iterator<Item = &str> {
        let scopes = self.scopes.iter().filter(|scope| !scope.in_step_up);
        scopes.map(|scope| scope.name.as_str())
    }
}

/// Returns the path of a URL as in the metadata, without a trailing slash.
fn path_of(resource: &str) -> String {
    let url = address::parse_resource_url(resource);
    url.map(|url| url.path().trim_end_matches('/').to_owned())
        .unwrap_or_default()
}

/// Returns the public URL of the metadata of a resource -- RFC 9728, 3.1
fn metadata_url(resource: &str) -> String {
    match address::parse_resource_url(resource) {
        Ok(mut url) => {
            url.set_path(&format!("{WELL_KNOWN}{}", path_of(resource)));
            url.into()
        }
        Err(_) => WELL_KNOWN.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Issuer, Scope};
    use super::*;
    use crate::policy::access::CallPattern;

    const HERE: &str = "http://127.0.0.1:43210/mcp";

    fn oauth() -> OAuth {
        let scope = |name| Scope::new(name, CallPattern::default()).unwrap();
        OAuth::new([Issuer::new("https://auth.example").unwrap()])
            .scope(scope("read"))
            .scope(scope("list"))
            .scope(scope("deploy").in_step_up())
    }

    #[test]
    fn challenge_names_metadata_and_scope() {
        #[track_caller]
        fn check(oauth: &OAuth, problem: Problem<'_>, expected: &str) {
            assert_eq!(oauth.challenge(problem, HERE), expected);
        }
        check(
            &oauth(),
            Problem::NoToken,
            r#"Bearer resource_metadata="http://127.0.0.1:43210/.well-known/oauth-protected-resource/mcp", scope="read list""#,
        );
        let outside = oauth().resource("https://tools.example/a/mcp").unwrap();
        check(
            &outside,
            Problem::InvalidToken("the token has expired"),
            r#"Bearer resource_metadata="https://tools.example/.well-known/oauth-protected-resource/a/mcp", scope="read list", error="invalid_token", error_description="the token has expired""#,
        );
        check(
            &outside,
            Problem::InsufficientScope("deploy"),
            r#"Bearer resource_metadata="https://tools.example/.well-known/oauth-protected-resource/a/mcp", scope="deploy", error="insufficient_scope""#,
        );
        let plain = OAuth::new([]).resource("https://tools.example").unwrap();
        check(
            &plain,
            Problem::NoToken,
            r#"Bearer resource_metadata="https://tools.example/.well-known/oauth-protected-resource""#,
        );
    }

    #[test]
    fn metadata_is_served_at_well_known_paths() {
        let oauth = oauth().resource("https://tools.example/a/mcp").unwrap();
        for path in ["", "/mcp", "/a/mcp"] {
            let metadata = oauth
                .metadata(&format!("{WELL_KNOWN}{path}"), HERE)
                .unwrap();
            assert_eq!(metadata["resource"], "https://tools.example/a/mcp");
            assert_eq!(metadata["scopes_supported"], json!(["read", "list"]));
        }
        for path in ["/", "/rpc", "/mcp/", "s"] {
            assert_eq!(oauth.metadata(&format!("{WELL_KNOWN}{path}"), HERE), None);
        }
        let plain = OAuth::new([]).metadata(WELL_KNOWN, HERE).unwrap();
        let expected = json!({"resource": HERE, "authorization_servers": [], "bearer_methods_supported": ["header"]});
        assert_eq!(plain, expected);
    }

    #[test]
    fn resource_url_must_be_plain() {
        for wrong in [
            "",
            "tools.example",
            "ftp://a/",
            "https://a/?b",
            "https://a/#b",
            "https://a/\"",
            "https://a/é",
        ] {
            assert!(OAuth::new([]).resource(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn scope_name_must_fit_in_a_header() {
        for wrong in ["", "a b", "a\"", "a\\", "é", "a\n"] {
            assert!(
                Scope::new(wrong, CallPattern::default()).is_err(),
                "{wrong}"
            );
        }
    }
}
