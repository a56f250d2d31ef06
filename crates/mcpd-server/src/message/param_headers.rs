//! Arguments that a client repeats in HTTP headers (`Mcp-Param-*`), so that a gateway can route
//! by them without reading the body. Both must agree
//! -- 2026-07-28/basic/transports/streamable-http#custom-headers-from-tool-parameters

use std::borrow::Cow;
use std::collections::BTreeMap;

use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_scriptspec::{Decimal, ScriptOption, members};
use serde_json::Value;
use serde_json::value::RawValue;

/// `Mcp-Param-*` headers of a request: names in lower case; decoded values, or the decoding
/// error.
#[derive(Debug, Clone, Default)]
pub(crate) struct ParameterHeaders(pub(crate) BTreeMap<String, Result<String, ErrorObject>>);

/// Argument with its name.
type Member<'a> = (Cow<'a, str>, &'a RawValue);

/// Argument that a tool wants repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeaderParameter {
    /// Name of the header without its prefix, in lower case.
    header: String,
    /// Location of the argument: property by property from the root.
    path: Vec<String>,
}

/// Collects the arguments that `schema` marks with `x-mcp-header`, reachable through `properties`
/// alone.
pub(crate) fn collect_parameters(schema: &Value) -> Vec<HeaderParameter> {
    let mut found = Vec::new();
    collect(schema, &mut Vec::new(), &mut found);
    found
}

fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<HeaderParameter>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    for (name, property) in properties {
        path.push(name.clone());
        if let Some(header) = property.get("x-mcp-header").and_then(Value::as_str) {
            found.push(HeaderParameter {
                header: header.to_ascii_lowercase(),
                path: path.clone(),
            });
        }
        collect(property, path, found);
        path.pop();
    }
}

/// Checks the headers of a call against its arguments.
///
/// # Errors
///
/// `-32020`, naming the header that is missing, malformed, stray or different.
pub(crate) fn check(
    parameters: &[HeaderParameter],
    headers: &ParameterHeaders,
    arguments: Option<&RawValue>,
) -> Result<(), ErrorObject> {
    if parameters.is_empty() {
        return Ok(());
    }
    let members = match members(arguments) {
        Ok(members) => members,
        Err(fault) if arguments.is_some_and(|raw| raw.get().starts_with('{')) => {
            let reason = format!("the headers cannot be compared with the arguments: {fault}");
            return Err(ErrorObject::header_mismatch(reason));
        }
        // Arguments that are not an object fail later, with a text for the model.
        Err(_) => Vec::new(),
    };
    parameters
        .iter()
        .try_for_each(|parameter| parameter.check(headers, &members))
}

impl HeaderParameter {
    /// Returns the argument of an option that names a header.
    pub(crate) fn from_option(option: &ScriptOption) -> Option<Self> {
        let header = option.header.as_ref()?.to_ascii_lowercase();
        let path = vec![option.name.clone()];
        Some(Self { header, path })
    }

    fn check(&self, headers: &ParameterHeaders, members: &[Member<'_>]) -> Result<(), ErrorObject> {
        let header = headers.0.get(&self.header).cloned().transpose()?;
        match (value_at(&self.path, members), header) {
            (None, None) => Ok(()),
            (Some(argument), Some(header)) if agree(argument, &header) => Ok(()),
            (Some(_), Some(_)) => Err(self.mismatch("differs from")),
            (Some(_), None) => Err(self.mismatch("is missing, but required by")),
            (None, Some(_)) => Err(self.mismatch("is present without")),
        }
    }

    fn mismatch(&self, how: &str) -> ErrorObject {
        let Self { header, path } = self;
        ErrorObject::header_mismatch(format!(
            "the header `mcp-param-{header}` {how} the argument `{}`",
            path.join(".")
        ))
    }
}

/// Returns the argument at `path`, unless it is `null`.
fn value_at<'a>(path: &[String], given: &[Member<'a>]) -> Option<&'a RawValue> {
    let (name, inside) = path.split_first()?;
    let (_, value) = given.iter().find(|(key, _)| key == name)?;
    if inside.is_empty() {
        return (value.get() != "null").then_some(*value);
    }
    value_at(inside, &members(Some(value)).ok()?)
}

/// Returns whether argument and header have the same value. Numbers are compared as numbers:
/// `42.0` is `42`.
fn agree(argument: &RawValue, header: &str) -> bool {
    let json = argument.get();
    if let Some(number) = Decimal::parse(json) {
        return Decimal::parse(header) == Some(number);
    }
    match serde_json::from_str::<String>(json) {
        Ok(text) => text == header,
        Err(_) => json == header,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_pair(headers: &[(&str, &str)], arguments: &str, agrees: bool) {
        let schema = json!({"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "count": {"type": "integer", "x-mcp-header": "Count"},
            "deep": {"properties": {"flag": {"type": "boolean", "x-mcp-header": "Flag"}}},
            "list": {"items": {"properties": {"x": {"x-mcp-header": "Never"}}}},
        }});
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Ok((*value).to_owned())));
        let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
        let result = check(
            &collect_parameters(&schema),
            &ParameterHeaders(headers.collect()),
            Some(&arguments),
        );
        assert_eq!(result.is_ok(), agrees, "{arguments} {result:?}");
    }

    #[test]
    fn headers_and_arguments_must_agree() {
        check_pair(&[], "{}", true);
        check_pair(&[("region", "eu")], r#"{"region": "eu"}"#, true);
        check_pair(&[("region", "EU")], r#"{"region": "eu"}"#, false);
        check_pair(&[], r#"{"region": "eu"}"#, false);
        check_pair(&[], r#"{"region": null}"#, true);
        check_pair(&[("region", "eu")], "{}", false);
        check_pair(&[("count", "42.0")], r#"{"count": 42}"#, true);
        check_pair(&[("count", "42")], r#"{"count": 43}"#, false);
        // Both are the same number in floating point.
        check_pair(
            &[("count", "9007199254740992")],
            r#"{"count": 9007199254740993}"#,
            false,
        );
        check_pair(&[("count", "many")], r#"{"count": 43}"#, false);
        check_pair(&[("flag", "true")], r#"{"deep": {"flag": true}}"#, true);
        check_pair(&[("flag", "True")], r#"{"deep": {"flag": true}}"#, false);
        check_pair(&[("unknown", "x")], "{}", true);
        check_pair(&[], r#"{"list": [{"x": 1}]}"#, true);
    }

    #[test]
    fn other_members_do_not_affect_the_comparison() {
        let (digits, nested) = ("9".repeat(400), ["[".repeat(127), "]".repeat(127)].concat());
        for other in ["1e999", &digits, &nested] {
            let arguments = format!(r#"{{"region": "eu", "other": {other}}}"#);
            check_pair(&[], &arguments, false);
            check_pair(&[("region", "eu")], &arguments, true);
        }
        check_pair(&[("count", "1e999")], r#"{"count": 10e998}"#, true);
        check_pair(&[("count", "1e999")], r#"{"count": 1e998}"#, false);
    }

    #[test]
    fn unreadable_arguments_agree_with_no_header() {
        check_pair(
            &[("region", "eu")],
            r#"{"region": "us", "region": "eu"}"#,
            false,
        );
        check_pair(&[], r#"{"deep": {"flag": null, "flag": true}}"#, false);
        // These are refused later, with another text.
        check_pair(&[], "[1]", true);
        check_pair(&[("region", "eu")], "[1]", false);
    }
}
