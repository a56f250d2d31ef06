//! One record of an audit log, as a JSON object: the fields that Script Kit's server has, then what mcpd adds.

use std::fmt::Write as _;
use std::sync::LazyLock;

use jiff::Timestamp;
use mcpd_scriptspec::is_hidden;
use serde::Serialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::own_files::Regained;

/// The white space of JSON that is no space.
const BREAKS: [char; 3] = ['\n', '\r', '\t'];

/// Bytes that most records have room in.
const USUAL: usize = 512;

/// What a record tells, in the order of the file.
#[derive(Debug, Serialize)]
pub(super) struct Record<'a> {
    #[serde(serialize_with = "milliseconds")]
    pub(super) timestamp: Timestamp,
    pub(super) method: &'a str,
    pub(super) params: &'a RawValue,
    pub(super) duration_ms: u64,
    pub(super) success: bool,
    pub(super) error: Option<&'a str>,
    pub(super) event: Event,
    #[serde(flatten)]
    pub(super) caller: Option<Caller<'a>>,
    #[serde(flatten)]
    pub(super) details: Details<'a>,
    pub(super) pid: u32,
}

/// What a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Event {
    /// A request that is about to be carried out.
    Begin,
    /// One that is over.
    End,
    /// The log itself.
    Note,
}

/// Who made a request, and how.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Caller<'a> {
    pub(super) principal: &'a str,
    pub(super) transport: &'a str,
    /// What the client calls itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) client: Option<&'a str>,
    pub(super) revision: &'a str,
}

/// What else is known of a request; what is not, is left out.
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

/// What is known of the runs that a request took; most take one.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct RunDetails {
    pub(super) runs: u32,
    /// Of the last one, if that was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exit_code: Option<i32>,
    /// Processes that were alive when their run had ended; as far as that is known, and if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) leftovers: Option<u32>,
    pub(super) stdout_bytes: u64,
    pub(super) stderr_bytes: u64,
    pub(super) queued_ms: u64,
    pub(super) run_ms: u64,
    pub(super) sandbox: String,
    /// Mechanisms of the sandbox that the system does not have.
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
            event: Event::Note,
            caller: None,
            details: Details::default(),
            pid: this_process(),
        }
    }

    /// The record as text on one line. Nothing in it does anything to a terminal, or hides from a reader.
    pub(super) fn encode(&self) -> String {
        let mut json = Vec::with_capacity(USUAL);
        serde_json::to_writer(&mut json, self).expect("a record has string keys only");
        let mut json = String::from_utf8(json).expect("JSON is text");
        // Written without a way out, the loop is vectorised; nearly all records are so.
        let is_plain = |plain, byte| plain & matches!(byte, b' '..=b'~');
        if json.bytes().fold(true, is_plain) {
            return json;
        }
        // What was sent over several lines must not look like several records. Such white space can only stand between
        // tokens.
        if json.contains(BREAKS) {
            json = json.replace(BREAKS, " ");
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

/// Its number. The system is not asked for each record, which was a fiftieth of what the thread that makes them does.
pub(super) fn this_process() -> u32 {
    static ID: LazyLock<u32> = LazyLock::new(std::process::id);
    *ID
}

/// A record of something that is no request, but worth knowing of the log.
pub(super) fn note(method: &str, params: &serde_json::Value) -> String {
    let params = to_raw_value(params).expect("a JSON value has string keys only");
    Record::note(method, &params).encode()
}

/// Note of a file to which the server has regained its rights.
pub(super) fn regained(Regained { path, mode }: &Regained) -> String {
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
    fn nothing_hides_in_a_record() {
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
    fn a_record_is_one_line_whatever_was_sent() {
        let params = "{\"a\": [1,\r\n\t\"é\u{200b}\\n\"\n]}".to_owned();
        let params = RawValue::from_string(params).unwrap();
        let encoded = Record::note("test", &params).encode();
        let expected = r#""params":{"a": [1,   "é\u200b\n" ]},"#;
        assert!(encoded.contains(expected), "{encoded}");
    }

    #[test]
    fn the_fields_of_script_kit_come_first() {
        let note = note("audit/lost", &serde_json::json!({"records": 1}));
        let (_, rest) = note.split_once("Z\"").unwrap();
        let expected = r#","method":"audit/lost","params":{"records":1},"duration_ms":0,"success":true,"error":null,"event":"note","pid":"#;
        assert!(note.starts_with(r#"{"timestamp":"2"#), "{note}");
        assert!(rest.starts_with(expected), "{note}");
    }
}
