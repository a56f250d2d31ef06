//! URI normalization (RFC 3986, 6.2.2): the one form in which URIs are listed and compared.

use std::borrow::Cow;

use fluent_uri::Uri;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::name::ScriptPath;

pub use crate::uri_template::{TemplateError, UriTemplate};

/// ASCII characters that are always encoded in a URI.
const EXCLUDED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Returns the normalized form of `uri`: scheme and host in lower case,
/// percent-encoding exactly where it is required, no `.` and `..` segments. Text that
/// is not a URI even then stays unchanged.
///
/// Clients parse the URIs of a list and send back the form of their parser, so two URIs are equal
/// if their normalized forms are.
///
/// ```
/// use mcpd_scriptspec::uri::normalize_uri;
///
/// assert_eq!(normalize_uri("Note://Today/größe%7e.txt"), "note://today/gr%C3%B6%C3%9Fe~.txt");
/// assert_eq!(normalize_uri("no URI"), "no URI");
/// ```
#[must_use]
pub fn normalize_uri(uri: &str) -> Cow<'_, str> {
    // After `mcpd://` comes the path of a script, whose first segment is not a host.
    if let Some(path) = ScriptPath::from_uri(uri) {
        return path.uri().into();
    }
    let encoded: Cow<'_, str> = utf8_percent_encode(uri, EXCLUDED).into();
    match Uri::parse(&*encoded) {
        Ok(parsed) => match parsed.normalize().into_string() {
            normalized if normalized == uri => uri.into(),
            normalized => normalized.into(),
        },
        Err(_) => uri.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(uri: &str, expected: &str) {
        assert_eq!(normalize_uri(uri), expected);
        assert_eq!(normalize_uri(expected), expected);
    }

    #[test]
    fn normalized_uri_has_scheme_and_host_in_small_letters() {
        check("NOTE://Today.Example/List", "note://today.example/List");
        check("Memo:Today", "memo:Today");
        check("x://Ada@HOST:7/P?Q#F", "x://Ada@host:7/P?Q#F");
    }

    #[test]
    fn normalized_uri_is_encoded_where_it_must_be() {
        check("note:///größe.txt", "note:///gr%C3%B6%C3%9Fe.txt");
        check("note:///a b\"<>", "note:///a%20b%22%3C%3E");
        check("note:///%c3%b6%7e%41%2f", "note:///%C3%B6~A%2F");
    }

    #[test]
    fn normalized_uri_has_no_dot_segments() {
        check("x://a/b/../c/./d", "x://a/c/d");
    }

    #[test]
    fn normalized_uri_of_a_script_keeps_its_path() {
        check("mcpd://Math/add/state", "mcpd://Math/add/state");
        check("mcpd://Math/%61dd/größe", "mcpd://Math/add/gr%C3%B6%C3%9Fe");
    }

    #[test]
    fn text_that_is_no_uri_stays_as_it_is() {
        for text in ["today", "x://100%", "", "größe", "x://[a"] {
            assert_eq!(normalize_uri(text), text);
        }
    }
}
