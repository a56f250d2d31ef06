//! One record of an audit log, as a JSON object: the fields of Script Kit's server first, then
//! those that mcpd adds.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::access::Regained;

/// White space of JSON other than the space.
const LINE_BREAKS: [char; 3] = ['\n', '\r', '\t'];

/// Initial capacity in bytes, enough for most records.
const INITIAL_CAPACITY: usize = 512;

/// Record of a request, or of an event of the log itself: fields in the order of the file.
#[derive(Debug, Clone, Serialize)]
pub struct Record<'a> {
    #[serde(serialize_with = "serialize_time")]
    timestamp: SystemTime,
    method: &'a str,
    params: &'a RawValue,
    #[serde(rename = "duration_ms", serialize_with = "serialize_milliseconds")]
    duration: Duration,
    success: bool,
    error: Option<&'a str>,
    event: RecordKind,
    #[serde(flatten)]
    caller: Option<RecordedCaller<'a>>,
    #[serde(flatten)]
    details: Details<'a>,
    pid: u32,
}

/// Kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RecordKind {
    /// Start of a request that is about to be carried out.
    Begin,
    /// End of a request.
    End,
    /// Note about the log itself, or about what an operator did.
    Note,
}

/// Sender of a request, and its transport.
#[derive(Debug, Clone, Copy, Serialize)]
#[non_exhaustive]
pub struct RecordedCaller<'a> {
    /// Name by which the program knows the sender.
    pub principal: &'a str,
    /// Transport of the request.
    pub transport: &'a str,
    /// Name and version that the client claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<&'a str>,
    /// Revision of the protocol.
    pub revision: &'a str,
}

impl<'a> RecordedCaller<'a> {
    /// Creates a sender whose client claims no name.
    #[must_use]
    pub fn new(principal: &'a str, transport: &'a str, revision: &'a str) -> Self {
        Self {
            principal,
            transport,
            client: None,
            revision,
        }
    }
}

/// Details of a request; unknown ones are omitted.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[non_exhaustive]
pub struct Details<'a> {
    /// Name of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<&'a str>,
    /// Identifier of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<&'a str>,
    /// Identifier of the trace that the request is part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<&'a str>,
    /// Name of the machine that writes the record, where several have something to do with a
    /// request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<&'a str>,
    /// Machine that was asked to run the script, if that is not this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<&'a str>,
    /// Identifier of the run, which both machines record.
    #[serde(rename = "run", skip_serializing_if = "Option::is_none")]
    pub run_id: Option<&'a str>,
    /// Digest of the version of the script, where two machines have to mean the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<&'a str>,
    /// Last step of the approval by a person, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<&'a str>,
    /// Ending of the request, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<&'a str>,
    /// Size of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<u64>,
    /// Processes that the request has run.
    #[serde(flatten)]
    pub run: Option<&'a RunDetails>,
    /// First connections of these processes, where their destinations are limited.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub connections: &'a [ConnectionDetails],
    /// Number of further connections.
    #[serde(skip_serializing_if = "is_zero")]
    pub connections_omitted: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Connection of a run, or its attempt to make one.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct ConnectionDetails {
    /// Host and port as the run has named them.
    pub destination: String,
    /// Address that it was connected to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Decision about it, in one word.
    pub verdict: &'static str,
    /// Bytes to the destination.
    pub sent_bytes: u64,
    /// Bytes from the destination.
    pub received_bytes: u64,
}

/// Details of the runs of a request; most requests have one run.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct RunDetails {
    /// Number of runs.
    pub runs: u32,
    /// Exit code of the last run, if it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Processes still alive when their run had ended; omitted if unknown or zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leftovers: Option<u32>,
    /// Size of the standard output.
    pub stdout_bytes: u64,
    /// Size of the standard error output.
    pub stderr_bytes: u64,
    /// Time in a queue before the runs, in milliseconds.
    pub queued_ms: u64,
    /// Time of the runs, in milliseconds.
    pub run_ms: u64,
    /// Start of the last run, `warm` or `cold`, if it was to be warm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<&'static str>,
    /// Level of confinement.
    pub sandbox: String,
    /// Mechanisms of the sandbox that the system lacks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Cow<'static, str>>,
}

impl<'a> Record<'a> {
    /// Creates a record of this moment and this process, of a request that has succeeded.
    #[must_use]
    pub fn new(event: RecordKind, method: &'a str, params: &'a RawValue) -> Self {
        Self {
            timestamp: SystemTime::now(),
            method,
            params,
            duration: Duration::ZERO,
            success: true,
            error: None,
            event,
            caller: None,
            details: Details::default(),
            pid: this_process(),
        }
    }

    /// Sets the time of the event.
    #[must_use]
    pub fn timestamp(self, timestamp: SystemTime) -> Self {
        Self { timestamp, ..self }
    }

    /// Sets the duration of the request.
    #[must_use]
    pub fn duration(self, duration: Duration) -> Self {
        Self { duration, ..self }
    }

    /// Sets the error; with one, the request has not succeeded.
    #[must_use]
    pub fn error(self, error: Option<&'a str>) -> Self {
        Self {
            success: error.is_none(),
            error,
            ..self
        }
    }

    /// Sets the sender of the request.
    #[must_use]
    pub fn caller(self, caller: RecordedCaller<'a>) -> Self {
        Self {
            caller: Some(caller),
            ..self
        }
    }

    /// Sets the details of the request.
    #[must_use]
    pub fn details(self, details: Details<'a>) -> Self {
        Self { details, ..self }
    }

    /// Encodes the record as a JSON object on one line, without its position in the chain. Nothing
    /// in it controls a terminal or hides from a reader.
    #[must_use]
    #[expect(
        clippy::missing_panics_doc,
        reason = "every value of the fields can be encoded"
    )]
    pub fn encode(&self) -> String {
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
fn this_process() -> u32 {
    static ID: LazyLock<u32> = LazyLock::new(std::process::id);
    *ID
}

/// Encodes a record that is about no request.
pub(crate) fn note(method: &str, params: &serde_json::Value) -> String {
    let params = to_raw_value(params).expect("a JSON value has string keys only");
    Record::new(RecordKind::Note, method, &params).encode()
}

/// Encodes the note on a file whose permissions the server has restored.
pub(crate) fn encode_regained(Regained { path, mode }: &Regained) -> String {
    let mode = format!("{mode:04o}");
    note(
        "audit/access-restored",
        &json!({"file": path.display().to_string(), "mode": mode}),
    )
}

fn serialize_time<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    // A clock beyond the year 9999 is wrong.
    let time = Timestamp::try_from(*time).unwrap_or(Timestamp::MAX);
    serializer.collect_str(&format_args!("{time:.3}"))
}

fn serialize_milliseconds<S: Serializer>(
    duration: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// Returns whether a character is hidden: control characters, direction marks, invisible
/// characters and tags. The joiners U+200C and U+200D belong to the spelling of several writing
/// systems, and to many emoji.
fn is_hidden(char: char) -> bool {
    match char {
        ' '..='~' => false,
        '\u{ad}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}' => true,
        '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}' => true,
        '\u{e0000}'..='\u{e0fff}' => true,
        // Letters and marks without a shape.
        '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{2800}' | '\u{3164}' => {
            true
        }
        '\u{180b}'..='\u{180f}' | '\u{ffa0}' | '\u{1d173}'..='\u{1d17a}' => true,
        _ => char.is_control(),
    }
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
        let encoded = Record::new(RecordKind::Note, "test", &params).encode();
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
