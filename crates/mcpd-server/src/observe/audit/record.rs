//! One record of an audit log, as a JSON object: the fields of Script Kit's server first, then
//! those that mcpd adds.

use std::fmt::Write as _;
use std::sync::LazyLock;

use jiff::Timestamp;
use mcpd_scriptspec::is_hidden;
use serde::Serialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::support::own_files::Regained;

/// White space of JSON other than the space.
const LINE_BREAKS: [char; 3] = ['\n', '\r', '\t'];

/// Initial capacity in bytes, enough for most records.
const INITIAL_CAPACITY: usize = 512;

/// Fields of a record, in the order of the file.
#[derive(Debug, Serialize)]
pub(super) struct Record<'a> {
    #[serde(serialize_with = "milliseconds")]
    pub(super) timestamp: Timestamp,
    pub(super) method: &'a str,
    pub(super) params: &'a RawValue,
    pub(super) duration_ms: u64,
    pub(super) success: bool,
    pub(super) error: Option<&'a str>,
    pub(super) event: RecordKind,
    #[serde(flatten)]
    pub(super) caller: Option<RecordedCaller<'a>>,
    #[serde(flatten)]
    pub(super) details: Details<'a>,
    pub(super) pid: u32,
}

/// Kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RecordKind {
    /// Start of a request that is about to be carried out.
    Begin,
    /// End of a request.
    End,
    /// Note about the log itself.
    Note,
}

/// Sender of a request, and its transport.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct RecordedCaller<'a> {
    pub(super) principal: &'a str,
    pub(super) transport: &'a str,
    /// Name and version that the client claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) client: Option<&'a str>,
    pub(super) revision: &'a str,
}

/// Details of a request; unknown ones are omitted.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Details<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) outcome: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result_bytes: Option<u64>,
    #[serde(flatten)]
    pub(super) run: Option<&'a RunDetails>,
}

/// Details of the runs of a request; most requests have one run.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct RunDetails {
    pub(super) runs: u32,
    /// Exit code of the last run, if it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exit_code: Option<i32>,
    /// Processes still alive when their run had ended; omitted if unknown or zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) leftovers: Option<u32>,
    pub(super) stdout_bytes: u64,
    pub(super) stderr_bytes: u64,
    pub(super) queued_ms: u64,
    pub(super) run_ms: u64,
    pub(super) sandbox: String,
    /// Mechanisms of the sandbox that the system lacks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) missing: Vec<&'static str>,
}

impl<'a> Record<'a> {
    fn note(method: &'a str, params: &'a RawValue) -> Self {
        Self {
            timestamp: Timestamp::now(),
            method,
            params,
            duration_ms: 0,
            success: true,
            error: None,
            event: RecordKind::Note,
            caller: None,
            details: Details::default(),
            pid: this_process(),
        }
    }

    /// Encodes the record on one line. Nothing in it controls a terminal or hides from a reader.
    pub(super) fn encode(&self) -> String {
        let mut json = Vec::with_capacity(INITIAL_CAPACITY);
        serde_json::to_writer(&mut json, self).expect("a record has string keys only");
        let mut json = String::from_utf8(json).expect("JSON is text");
        // A loop without an early exit is vectorised; nearly all records are plain.
        let is_plain = |plain, byte| plain & matches!(byte, b' '..=b'~');
        if json.bytes().fold(true, is_plain) {
            return json;
        }
        // A request sent over several lines must not look like several records. Such white space
        // can only stand between tokens.
        if json.contains(LINE_BREAKS) {
            json = json.replace(LINE_BREAKS, " ");
        }
        if !json.contains(is_hidden) {
            return json;
        }
        let mut shown = String::with_capacity(json.len() + 16);
        for char in json.chars() {
            if is_hidden(char) {
                // Such a character can only be part of a string.
                for unit in char.encode_utf16(&mut [0; 2]) {
                    write!(shown, "\\u{unit:04x}").expect("a string takes everything");
                }
            } else {
                shown.push(char);
            }
        }
        shown
    }
}

/// Id of this process. It is cached: asking the system for each record took a fiftieth of the
/// time of the thread that makes them.
pub(super) fn this_process() -> u32 {
    static ID: LazyLock<u32> = LazyLock::new(std::process::id);
    *ID
}

/// Encodes a record about the log itself.
pub(super) fn note(method: &str, params: &serde_json::Value) -> String {
    let params = to_raw_value(params).expect("a JSON value has string keys only");
    Record::note(method, &params).encode()
}

/// Encodes the note on a file whose permissions the server has restored.
pub(super) fn encode_regained(Regained { path, mode }: &Regained) -> String {
    let mode = format!("{mode:04o}");
    note(
        "audit/access-restored",
        &json!({"file": path.display().to_string(), "mode": mode}),
    )
}

fn milliseconds<S: serde::Serializer>(
    timestamp: &Timestamp,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{timestamp:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_escapes_hidden_characters() {
        let text = "a\u{1b}[2J\u{202e}\u{9b}\u{e0041}\"é";
        let note = note("audit/lost", &serde_json::json!({ "text": text }));
        assert!(
            note.contains(r#""a\u001b[2J\u202e\u009b\udb40\udc41\"é""#),
            "{note}"
        );
        let read: serde_json::Value = serde_json::from_str(&note).unwrap();
        assert_eq!(read["params"]["text"], text);
    }

    #[test]
    fn record_is_one_line_for_any_params() {
        let params = "{\"a\": [1,\r\n\t\"é\u{200b}\\n\"\n]}".to_owned();
        let params = RawValue::from_string(params).unwrap();
        let encoded = Record::note("test", &params).encode();
        let expected = r#""params":{"a": [1,   "é\u200b\n" ]},"#;
        assert!(encoded.contains(expected), "{encoded}");
    }

    #[test]
    fn fields_of_script_kit_come_first() {
        let note = note("audit/lost", &serde_json::json!({"records": 1}));
        let (_, rest) = note.split_once("Z\"").unwrap();
        let expected = r#","method":"audit/lost","params":{"records":1},"duration_ms":0,"success":true,"error":null,"event":"note","pid":"#;
        assert!(note.starts_with(r#"{"timestamp":"2"#), "{note}");
        assert!(rest.starts_with(expected), "{note}");
    }
}
