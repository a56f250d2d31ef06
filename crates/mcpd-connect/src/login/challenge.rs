//! Challenge of a server that wants a token, or a token with more scopes: `WWW-Authenticate` of RFC
//! 6750 and RFC 9728.

use std::collections::BTreeMap;

use reqwest::header::WWW_AUTHENTICATE;
use reqwest::{Response, StatusCode};

/// Demand for a token.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Challenge {
    /// URL of the metadata of the protected resource.
    pub(crate) metadata: Option<String>,
    pub(crate) scope: Option<String>,
    /// The token is good, and lacks a scope.
    pub(crate) is_step_up: bool,
}

impl Challenge {
    /// Returns the challenge of a response, if it has one.
    pub(crate) fn of(response: &Response) -> Option<Self> {
        let values = response.headers().get_all(WWW_AUTHENTICATE).iter();
        let mut bearer = values.filter_map(|value| parse_bearer(value.to_str().ok()?));
        let mut members = bearer.next().unwrap_or_default();
        let is_step_up = members
            .get("error")
            .is_some_and(|error| error == "insufficient_scope");
        match response.status() {
            StatusCode::UNAUTHORIZED => {}
            StatusCode::FORBIDDEN if is_step_up => {}
            _ => return None,
        }
        Some(Self {
            metadata: members.remove("resource_metadata"),
            scope: members.remove("scope").filter(|scope| !scope.is_empty()),
            is_step_up,
        })
    }
}

/// Returns the members of the `Bearer` challenge in a header.
fn parse_bearer(header: &str) -> Option<BTreeMap<String, String>> {
    const SCHEME: &str = "bearer";
    let lower = header.to_ascii_lowercase();
    let mut starts = lower.match_indices(SCHEME).map(|(start, _)| start);
    let start = starts.find(|start| {
        let before = lower[..*start].trim_end();
        let after = &lower[start + SCHEME.len()..];
        (before.is_empty() || before.ends_with(',')) && (after.is_empty() || after.starts_with(' '))
    })?;
    let mut members = BTreeMap::new();
    let mut rest = header[start + SCHEME.len()..].trim_start();
    while let Some((name, after)) = rest.split_once('=') {
        let name = name.trim();
        // A name with a space begins the next challenge.
        if name.is_empty() || name.contains(' ') {
            break;
        }
        let (value, after) = match after.trim_start().strip_prefix('"') {
            Some(quoted) => read_quoted(quoted),
            None => {
                let end = after.find(',').unwrap_or(after.len());
                (after[..end].trim().to_owned(), &after[end..])
            }
        };
        members.insert(name.to_ascii_lowercase(), value);
        rest = after.trim_start().trim_start_matches(',').trim_start();
    }
    Some(members)
}

/// Reads a quoted string after its first quote. Returns the rest as well.
fn read_quoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.extend(chars.next().map(|(_, char)| char)),
            char => value.push(char),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(header: &str, expected: Option<&[(&str, &str)]>) {
        let members = parse_bearer(header);
        let members = members.as_ref().map(|members| {
            let members = members.iter();
            members
                .map(|(name, value)| (&**name, &**value))
                .collect::<Vec<_>>()
        });
        assert_eq!(members.as_deref(), expected, "{header}");
    }

    #[test]
    fn bearer_challenge_is_found_among_others() {
        check("Bearer", Some(&[]));
        check("Basic realm=\"bearer\"", None);
        check(
            "Bearer resource_metadata=\"https://a/b?c=d,e\", scope=\"a b\", error=invalid_token",
            Some(&[
                ("error", "invalid_token"),
                ("resource_metadata", "https://a/b?c=d,e"),
                ("scope", "a b"),
            ]),
        );
        check(
            "Basic realm=\"a, b\", bearer Realm=\"\\\"x\", Digest nonce=\"y\"",
            Some(&[("realm", "\"x")]),
        );
    }
}
