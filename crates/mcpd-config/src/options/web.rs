//! Allowed hosts and origins, in the form in which HTTP clients send them. Values that no client
//! ever sends are rejected: they would only look as if they were allowed.

use std::borrow::Cow;
use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Returns whether `text` is not empty, and has only ASCII letters, digits and `others`.
fn is_made_of(text: &str, others: &str) -> bool {
    let is_known = |char: char| char.is_ascii_alphanumeric() || others.contains(char);
    !text.is_empty() && text.chars().all(is_known)
}

/// Defines a string type with the validator `is_good`, for flags and for the configuration alike.
macro_rules! text {
    ($(#[$doc:meta])* $name:ident, $is_good:path, $expected:literal, $pattern:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
        #[serde(try_from = "String")]
        pub struct $name(String);

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let good = $is_good(text).then(|| Self(text.to_owned()));
                good.ok_or_else(|| concat!("expected ", $expected).to_owned())
            }
        }

        impl TryFrom<String> for $name {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                text.parse()
                    .map_err(|error| format!("`{text}` is invalid: {error}"))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": $pattern })
            }
        }
    };
}

text!(
    /// Host without its port: a name or an address.
    Host,
    is_host,
    "a name such as `tools.example`, without a scheme and a port; an IPv6 address is written in brackets",
    r"^([0-9A-Za-z_-]+(\.[0-9A-Za-z_-]+)*|\[[0-9A-Fa-f:.]+\])$"
);

text!(
    /// Web origin of a page.
    WebOrigin,
    is_origin,
    "an origin such as `https://app.example`, without a path",
    r"^(null|[A-Za-z][0-9A-Za-z+.-]*://[0-9A-Za-z._:\[\]-]+)$"
);

fn is_host(text: &str) -> bool {
    let address = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    match address {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => text.split('.').all(|label| is_made_of(label, "-_")),
    }
}

fn is_origin(text: &str) -> bool {
    // Browsers send this word for pages with an opaque origin, such as local files.
    let is_opaque = text == "null";
    is_opaque
        || text.split_once("://").is_some_and(|(scheme, host)| {
            scheme.starts_with(|char: char| char.is_ascii_alphabetic())
                && is_made_of(scheme, "+.-")
                && is_made_of(host, "-._:[]")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check<T: FromStr + JsonSchema>(text: &str, is_good: bool) {
        assert_eq!(text.parse::<T>().is_ok(), is_good, "{text}");
        let schema = schemars::schema_for!(T).to_value();
        let value = serde_json::Value::from(text);
        assert_eq!(jsonschema::is_valid(&schema, &value), is_good, "{text}");
    }

    #[test]
    fn host_is_a_name_or_an_address_without_port() {
        for host in [
            "tools.example",
            "tools",
            "10.1.2.3",
            "[2001:db8::1]",
            "A_b-c",
        ] {
            check::<Host>(host, true);
        }
        for wrong in [
            "",
            "a b",
            "tools.example.",
            "tools.example:80",
            "https://tools.example",
            "tools.example/mcp",
            "2001:db8::1",
            "*.example",
            "bücher.example",
        ] {
            check::<Host>(wrong, false);
        }
    }

    #[test]
    fn origin_has_a_scheme_and_no_path() {
        for origin in [
            "https://app.example",
            "http://localhost:3000",
            "http://[::1]:3000",
            "vscode-webview://1b4e28ba",
            "null",
        ] {
            check::<WebOrigin>(origin, true);
        }
        for wrong in [
            "",
            "foo",
            "app.example",
            "https://",
            "://app.example",
            "https://app.example/",
            "https://a b",
            "https://ada@app.example",
            "*",
        ] {
            check::<WebOrigin>(wrong, false);
        }
    }
}
