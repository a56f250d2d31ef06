//! Redacted parameters of a request for its record: as detailed as configured, without secrets.

use std::borrow::Cow;
use std::sync::Arc;

use indexmap::IndexMap;
use mcpd_protocol::{Params, json_string};
use mcpd_scriptspec::{ScriptPath, ScriptSpec};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use sha2::{Digest as _, Sha256};

use super::Arguments;
use crate::policy::Redactor;
use crate::policy::secret_arguments::{has_secrets, is_secret};
use crate::support::random_id;

/// Size above which a value is recorded as its length and hash, in bytes.
const MAX_VALUE: usize = 1024;
/// Size above which all arguments together are recorded as length and hash, in bytes.
const MAX_ARGUMENTS: usize = 16 * 1024;
/// Replacement for a secret.
const REDACTED: &str = "[redacted]";

/// Rules for recording parameters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recorder<'a> {
    pub(crate) arguments: Arguments,
    /// Finds the secrets that mcpd has been given.
    pub(crate) redactor: Option<&'a Redactor>,
}

/// Tool, prompt or resource that a request names, as far as the record of its parameters depends
/// on it.
#[derive(Debug, Clone, Default)]
pub(crate) struct NamedItem {
    pub(crate) path: Option<String>,
    pub(crate) spec: Option<Arc<ScriptSpec>>,
    /// The arguments belong to an unknown tool.
    pub(crate) is_for_unknown: bool,
    /// The URI was made from a template.
    pub(crate) is_uri_made: bool,
}

impl NamedItem {
    /// Sets the item that the request names, and the spec of a script.
    pub(crate) fn set(&mut self, path: &ScriptPath, spec: Option<&Arc<ScriptSpec>>) {
        self.path = Some(path.to_string());
        self.spec = spec.cloned();
        self.is_for_unknown = false;
    }

    /// Returns the recorded parameters of a request for the item.
    pub(crate) fn params(
        &self,
        recorder: Recorder<'_>,
        sent: &ParamsToRecord<'_>,
    ) -> Box<RawValue> {
        let recorder = match self.path.is_some() && !self.is_for_unknown {
            true => recorder,
            false => recorder.for_unknown_tool(),
        };
        recorder.params(sent, self.spec.as_deref(), self.is_uri_made)
    }
}

/// Members worth recording in the parameters of the three methods.
#[derive(Debug)]
pub(crate) struct ParamsToRecord<'a> {
    name: Option<Cow<'a, str>>,
    uri: Option<Cow<'a, str>>,
    arguments: Option<Cow<'a, RawValue>>,
}

impl<'a> ParamsToRecord<'a> {
    pub(crate) fn new(sent: &Params<'a>) -> Self {
        Self {
            name: sent.string("name"),
            uri: sent.string("uri"),
            arguments: sent
                .member("arguments")
                .filter(|arguments| arguments.get() != "null")
                .map(Cow::Borrowed),
        }
    }

    /// Length of the arguments, in bytes.
    pub(crate) fn arguments_len(&self) -> usize {
        self.arguments.as_ref().map_or(0, |raw| raw.get().len())
    }

    pub(crate) fn into_owned(self) -> ParamsToRecord<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        ParamsToRecord {
            name: self.name.map(owned),
            uri: self.uri.map(owned),
            arguments: self.arguments.map(|raw| Cow::Owned(raw.into_owned())),
        }
    }
}

#[derive(Serialize)]
struct RecordedParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Recorded>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<Recorded>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Recorded>,
}

/// A value, or its replacement in the record.
#[derive(Serialize)]
#[serde(untagged)]
enum Recorded {
    Text(String),
    Json(Box<RawValue>),
    Digest { bytes: usize, sha256: String },
    Names(Vec<String>),
    Values(IndexMap<String, Self>),
}

impl Recorded {
    fn digest(text: &str) -> Self {
        Self::Digest {
            bytes: text.len(),
            sha256: random_id::hex(&Sha256::digest(text)),
        }
    }

    /// Records a text. A long one is hashed where it is.
    fn text(text: Cow<'_, str>) -> Self {
        if text.len() > MAX_VALUE {
            Self::digest(&text)
        } else {
            Self::Text(text.into_owned())
        }
    }

    fn json(value: &RawValue) -> Self {
        match json_string(value) {
            Some(text) => Self::text(text),
            None if value.get().len() > MAX_VALUE || !is_readable(value.get()) => {
                Self::digest(value.get())
            }
            None => Self::Json(value.to_owned()),
        }
    }

    /// Replaces the value by its digest, however short it is.
    fn into_digest(self) -> Self {
        match self {
            Self::Text(text) => Self::digest(&text),
            Self::Json(value) => Self::digest(value.get()),
            other => other,
        }
    }
}

impl Recorder<'_> {
    /// Restricts the recorder for parameters of an unknown tool, whose secrets are unknown too.
    fn for_unknown_tool(mut self) -> Self {
        if self.arguments != Arguments::None {
            self.arguments = Arguments::Names;
        }
        self
    }

    /// Returns the recorded parameters of a request. `spec` declares the secrets of the script;
    /// `is_uri_made` is true if the URI was made from arguments.
    fn params(
        self,
        sent: &ParamsToRecord<'_>,
        spec: Option<&ScriptSpec>,
        is_uri_made: bool,
    ) -> Box<RawValue> {
        let recorded = RecordedParams {
            name: sent
                .name
                .as_deref()
                .map(|name| Recorded::text(self.redact_text(name).into())),
            uri: sent
                .uri
                .as_deref()
                .and_then(|uri| self.uri(uri, spec, is_uri_made)),
            arguments: sent
                .arguments
                .as_deref()
                .and_then(|all| self.arguments(all, spec)),
        };
        to_raw_value(&recorded).expect("its keys are strings")
    }

    /// Redacts and shortens a message about a request, which may repeat any of its arguments.
    pub(super) fn message(self, message: &str) -> String {
        let mut message = self.redact_text(message);
        let end = message.floor_char_boundary(MAX_VALUE);
        if end < message.len() {
            message.truncate(end);
            message.push('…');
        }
        message
    }

    /// Records a URI; one that contains arguments is treated like an argument.
    fn uri(self, uri: &str, spec: Option<&ScriptSpec>, is_uri_made: bool) -> Option<Recorded> {
        let recorded = Recorded::text(self.redact_text(uri).into());
        if !is_uri_made {
            return Some(recorded);
        }
        match self.arguments {
            Arguments::None | Arguments::Names => None,
            _ if spec.is_some_and(has_secrets) => Some(Recorded::Text(REDACTED.to_owned())),
            Arguments::Full => Some(recorded),
            _ => Some(recorded.into_digest()),
        }
    }

    fn arguments(self, arguments: &RawValue, spec: Option<&ScriptSpec>) -> Option<Recorded> {
        if self.arguments == Arguments::None {
            return None;
        }
        let json = self.redact_json(arguments.get());
        let recorded = match serde_json::from_str::<IndexMap<String, &RawValue>>(&json) {
            Err(_) => Recorded::digest(&json),
            Ok(values) if self.arguments == Arguments::Names => {
                Recorded::Names(values.into_keys().collect())
            }
            Ok(values) => Recorded::Values(
                values
                    .into_iter()
                    .map(|(name, value)| {
                        let value = self.value(&name, value, spec);
                        (name, value)
                    })
                    .collect(),
            ),
        };
        let recorded = to_raw_value(&recorded).expect("its keys are strings");
        Some(if recorded.get().len() > MAX_ARGUMENTS {
            Recorded::digest(&json)
        } else {
            Recorded::Json(recorded)
        })
    }

    fn value(self, name: &str, value: &RawValue, spec: Option<&ScriptSpec>) -> Recorded {
        if spec.is_some_and(|spec| is_secret(name, spec)) {
            return Recorded::Text(REDACTED.to_owned());
        }
        let recorded = Recorded::json(value);
        match self.arguments {
            Arguments::Hash => recorded.into_digest(),
            _ => recorded,
        }
    }

    fn redact_text(self, text: &str) -> String {
        let redacted = self
            .redactor
            .map(|redactor| redactor.redact_piece(text.as_bytes(), false, false));
        redacted.map_or_else(
            || text.to_owned(),
            |text| String::from_utf8_lossy(&text).into_owned(),
        )
    }

    fn redact_json(self, json: &str) -> Cow<'_, str> {
        let redacted = self
            .redactor
            .map(|redactor| redactor.redact_json_text(json.as_bytes()));
        match redacted {
            Some(Cow::Owned(json)) => String::from_utf8_lossy(&json).into_owned().into(),
            _ => json.into(),
        }
    }
}

/// Returns whether readers of the log can parse a value, which is three levels deep there. Half a
/// surrogate pair or endless depth would hide the whole record from `mcpd audit grep`.
fn is_readable(value: &str) -> bool {
    serde_json::from_str::<Value>(&format!("[[[{value}]]]")).is_ok()
}

#[cfg(test)]
mod tests {
    use mcpd_scriptspec::{HelpOutput, parse};
    use serde_json::json;

    use super::*;

    fn spec(metadata: &Value, options: &Value) -> ScriptSpec {
        let parsed = parse(HelpOutput {
            stdout: metadata.to_string().as_bytes(),
            stderr: options.to_string().as_bytes(),
        });
        parsed.spec.unwrap()
    }

    fn tool() -> ScriptSpec {
        spec(
            &json!({"description": "Logs in."}),
            &json!({
                "user": {"description": "Who.", "value_type": "string", "required": true},
                "password": {"description": "How.", "value_type": "string", "required": true, "secret": true},
            }),
        )
    }

    fn encode(how: Arguments, params: &Value, spec: Option<&ScriptSpec>) -> String {
        encode_with(how, params, spec, false)
    }

    fn encode_with(
        how: Arguments,
        params: &Value,
        spec: Option<&ScriptSpec>,
        is_uri_made: bool,
    ) -> String {
        let redactor = Redactor::new([("API_KEY", "0123456789")].into_iter()).unwrap();
        let recorder = Recorder {
            arguments: how,
            redactor: Some(&redactor),
        };
        let params = to_raw_value(params).unwrap();
        recorder
            .params(
                &ParamsToRecord::new(&Params::read(Some(&params)).unwrap_or_default()),
                spec,
                is_uri_made,
            )
            .get()
            .to_owned()
    }

    #[track_caller]
    fn check(how: Arguments, expected: &str) {
        let params = json!({
            "name": "login",
            "arguments": {"user": "ada", "password": "pa55", "pasword": "x"},
            "_meta": {"progressToken": 1},
            "requestState": "state",
        });
        assert_eq!(encode(how, &params, Some(&tool())), expected);
    }

    #[test]
    fn arguments_are_recorded_as_configured() {
        check(Arguments::None, r#"{"name":"login"}"#);
        check(
            Arguments::Names,
            r#"{"name":"login","arguments":["user","password","pasword"]}"#,
        );
        check(
            Arguments::Hash,
            r#"{"name":"login","arguments":{"user":{"bytes":3,"sha256":"fdee430d40bd57deeac186cd9790033d0f06f909a8806e7ce6e717ab7c7d5029"},"password":"[redacted]","pasword":"[redacted]"}}"#,
        );
        check(
            Arguments::Full,
            r#"{"name":"login","arguments":{"user":"ada","password":"[redacted]","pasword":"[redacted]"}}"#,
        );
    }

    /// Returns the record of parameters given as text.
    fn encode_text(params: &str) -> String {
        let recorder = Recorder {
            arguments: Arguments::Full,
            redactor: None,
        };
        let params = RawValue::from_string(params.to_owned()).unwrap();
        let params = Params::read(Some(&params)).unwrap();
        let params = ParamsToRecord::new(&params);
        recorder.params(&params, None, false).get().to_owned()
    }

    #[test]
    fn recorded_values_keep_their_bytes() {
        let params = r#"{"arguments": {"b": 1.50, "a": 12345678901234567890123, "c": [ 1, {} ]}, "name": "x"}"#;
        assert_eq!(
            encode_text(params),
            r#"{"name":"x","arguments":{"b":1.50,"a":12345678901234567890123,"c":[ 1, {} ]}}"#
        );
    }

    #[test]
    fn unreadable_values_are_recorded_as_digests() {
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        for value in [
            r#"["\ud800"]"#,
            "1e999",
            &nested(124),
            &nested(125),
            &nested(300),
        ] {
            let recorded = encode_text(&format!(r#"{{"arguments":{{"a":{value}}}}}"#));
            let record = format!(r#"{{"params":{recorded}}}"#);
            let read = serde_json::from_str::<Value>(&record);
            assert!(read.is_ok(), "{record}");
        }
        let depth = nested(124);
        let recorded = encode_text(&format!(r#"{{"arguments":{{"a":{depth}}}}}"#));
        assert!(recorded.contains(&depth));
    }

    #[test]
    fn known_secret_is_redacted_everywhere() {
        let params = json!({"name": "a0123456789", "arguments": {"b": ["0123456789"], "0123456789": "\u{30}123456789"}});
        assert_eq!(
            encode(Arguments::Full, &params, None),
            r#"{"name":"a[redacted API_KEY]","arguments":{"b":["[redacted API_KEY]"],"[redacted API_KEY]":"[redacted API_KEY]"}}"#
        );
    }

    #[test]
    fn long_values_are_recorded_as_length_and_hash() {
        let [plain, escaped] = ["x", "\n"].map(|text| text.repeat(1025));
        let params =
            json!({"name": "x", "arguments": {"a": &plain[1..], "b": plain, "c": escaped}});
        let recorded_params = encode(Arguments::Full, &params, None);
        for (name, text) in [("b", &plain), ("c", &escaped)] {
            let hash = random_id::hex(&Sha256::digest(text));
            let expected = format!(r#""{name}":{{"bytes":1025,"sha256":"{hash}"}}"#);
            assert!(recorded_params.contains(&expected), "{recorded_params}");
        }
        assert!(recorded_params.contains(&plain[1..]));

        let many: Value = (0..2000)
            .map(|n| (format!("option{n}"), json!(n)))
            .collect();
        for how in [Arguments::Names, Arguments::Hash, Arguments::Full] {
            let recorded = encode(how, &json!({"name": "x", "arguments": many}), None);
            assert!(recorded.contains(r#""arguments":{"bytes":"#), "{how:?}");
        }
        let name = encode(Arguments::None, &json!({"name": "x".repeat(9999)}), None);
        assert!(name.starts_with(r#"{"name":{"bytes":9999,"#), "{name}");
    }

    #[track_caller]
    fn check_uri(how: Arguments, secret: bool, expected: &str) {
        let template = spec(
            &json!({"description": "A page.", "kind": "resource", "uri_template": "wiki://{page}"}),
            &json!({"page": {"description": "Which.", "value_type": "string", "required": true, "secret": secret}}),
        );
        let params = json!({"uri": "wiki://start"});
        let of_script = encode_with(how, &params, Some(&template), true);
        assert_eq!(of_script, expected);
        if !secret {
            // Nothing more is known of a URI that comes from another server.
            assert_eq!(encode_with(how, &params, None, true), expected);
        }
    }

    #[test]
    fn uri_made_from_arguments_is_treated_as_an_argument() {
        check_uri(Arguments::None, false, "{}");
        check_uri(Arguments::Names, false, "{}");
        check_uri(Arguments::Full, false, r#"{"uri":"wiki://start"}"#);
        check_uri(Arguments::Full, true, r#"{"uri":"[redacted]"}"#);
        check_uri(Arguments::Hash, true, r#"{"uri":"[redacted]"}"#);
        let fixed = encode(Arguments::None, &json!({"uri": "wiki://start"}), None);
        assert_eq!(fixed, r#"{"uri":"wiki://start"}"#);
    }

    #[test]
    fn malformed_parameters_are_recorded_as_empty() {
        for params in [json!([1]), json!({"name": 1}), json!("x")] {
            assert_eq!(encode(Arguments::Full, &params, None), "{}");
        }
        let odd = encode(
            Arguments::Full,
            &json!({"name": "x", "arguments": [1]}),
            None,
        );
        assert!(odd.contains(r#""arguments":{"bytes":3,"#), "{odd}");
        let absent = encode(
            Arguments::Full,
            &json!({"name": "x", "arguments": null}),
            None,
        );
        assert_eq!(absent, r#"{"name":"x"}"#);
    }

    #[test]
    fn message_is_truncated_and_redacted() {
        let redactor = Redactor::new([("API_KEY", "0123456789")].into_iter()).unwrap();
        let recorder = Recorder {
            arguments: Arguments::Full,
            redactor: Some(&redactor),
        };
        assert_eq!(recorder.message("a 0123456789"), "a [redacted API_KEY]");
        let long = recorder.message(&"é".repeat(1000));
        assert_eq!(long.chars().count(), 513);
    }
}
