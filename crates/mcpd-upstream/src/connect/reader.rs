//! Reader of messages: bytes of a server to messages of rmcp, which accepts only well-formed ones.
//!
//! A message with only one possible meaning is read as that, with a remark. An unreadable answer
//! becomes an error, because its caller would wait in vain for anything else.

use std::borrow::Cow;
use std::fmt::Display;

use mcpd_scriptspec::excerpt;
use rmcp::model::{
    ClientJsonRpcMessage, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage, ServerResult,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::link::UNREADABLE;
use crate::pending::{Kind, Pending, is_same};
use crate::remarks::Remarks;

mod results;
mod text;

/// Maximum length of an excerpt in a remark, in characters.
const MAX_EXCERPT: usize = 200;
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Reader for the messages of one connection.
#[derive(Debug, Clone)]
pub(super) struct Reader {
    pub(super) remarks: Remarks,
    pub(super) pending: Pending,
}

/// Request whose response contained a message.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    pub(super) id: RequestId,
    pub(super) kind: Kind,
    /// The response is a stream, which may carry other messages as well.
    pub(super) is_streamed: bool,
}

impl Origin {
    pub(super) fn of(message: &ClientJsonRpcMessage) -> Option<Self> {
        let ClientJsonRpcMessage::Request(request) = message else {
            return None;
        };
        Some(Self {
            id: request.id.clone(),
            kind: Kind::of(&request.request),
            is_streamed: false,
        })
    }

    /// Returns an error as its answer.
    pub(super) fn fail(&self, why: impl Display) -> ServerJsonRpcMessage {
        ServerJsonRpcMessage::error(unreadable(why), Some(self.id.clone()))
    }
}

/// Message, and whether the original bytes had to be corrected.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) message: ServerJsonRpcMessage,
    pub(super) is_mended: bool,
}

/// Members of a message. `Some` also for an explicit `null`.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

fn is_null(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(|raw| raw.get() == "null")
}

/// Returns the error that replaces an unreadable answer.
pub(super) fn unreadable(why: impl Display) -> ErrorData {
    ErrorData::new(UNREADABLE, format!("invalid response: {why}"), None)
}

impl Reader {
    /// Reads the messages in `bytes`, which may be several in an array. `origin` is the request in
    /// whose response they came.
    pub(super) fn read(&self, bytes: &[u8], origin: Option<&Origin>) -> Vec<Reading> {
        let bytes = bytes.strip_prefix(BOM).unwrap_or(bytes).trim_ascii();
        if bytes.is_empty() {
            return Vec::new();
        }
        let text = String::from_utf8_lossy(bytes);
        let is_lossy = matches!(text, Cow::Owned(_));
        if is_lossy {
            self.remarks
                .add("sends bytes that are not UTF-8; they are replaced with U+FFFD");
        }
        let messages: Vec<&RawValue> = match text.starts_with('[') {
            true => serde_json::from_str(&text).unwrap_or_default(),
            false => Vec::new(),
        };
        if messages.is_empty() {
            let reading = self.read_one(&text, origin).map(|mut reading| {
                reading.is_mended |= is_lossy;
                reading
            });
            return reading.into_iter().collect();
        }
        self.remarks.add("sends messages in an array");
        let read = |raw: &&RawValue| self.read_one(raw.get(), origin);
        let mut readings: Vec<_> = messages.iter().filter_map(read).collect();
        readings
            .iter_mut()
            .for_each(|reading| reading.is_mended = true);
        readings
    }

    fn read_one(&self, text: &str, origin: Option<&Origin>) -> Option<Reading> {
        match serde_json::from_str::<Envelope<'_>>(text) {
            Ok(envelope) if envelope.method.is_some() => self.read_said(text, &envelope),
            Ok(envelope) if envelope.is_answer() => self.read_answer(&envelope, origin),
            Ok(_) => self.note_noise(text),
            Err(error) => self.salvage(text, origin, error),
        }
    }

    /// Reads a request or a notification.
    fn read_said(&self, text: &str, envelope: &Envelope<'_>) -> Option<Reading> {
        let method = envelope.method.as_deref()?;
        let is_void = |raw: &&RawValue| matches!(raw.get(), "null" | "[]");
        let is_odd = is_null(envelope.id)
            || envelope.params.as_ref().is_some_and(is_void)
            || envelope.result.is_some()
            || envelope.error.is_some()
            || envelope.jsonrpc.is_none_or(|raw| raw.get() != r#""2.0""#);
        if !is_odd && let Ok(message) = serde_json::from_str(text) {
            return Some(Reading {
                message,
                is_mended: false,
            });
        }
        let mut members = Map::new();
        members.insert("jsonrpc".to_owned(), "2.0".into());
        members.insert("method".to_owned(), method.into());
        let id = envelope.id.filter(|raw| raw.get() != "null");
        let params = envelope.params.filter(|raw| !is_void(raw));
        for (name, raw) in [("id", id), ("params", params)] {
            if let Some(raw) = raw {
                members.insert(name.to_owned(), text::parse(raw.get()).ok()?);
            }
        }
        let method = excerpt(method, MAX_EXCERPT);
        match serde_json::from_value(Value::Object(members)) {
            Ok(message) => {
                self.remarks
                    .add(format!("sends `{method}` with an invalid envelope"));
                Some(Reading {
                    message,
                    is_mended: true,
                })
            }
            Err(error) => {
                self.remarks
                    .add(format!("sends an invalid `{method}`: {error}"));
                None
            }
        }
    }

    /// Reads an answer: its id and its content.
    fn read_answer(&self, envelope: &Envelope<'_>, origin: Option<&Origin>) -> Option<Reading> {
        let named = envelope
            .id
            .and_then(|raw| serde_json::from_str::<RequestId>(raw.get()).ok());
        let error = envelope.error.filter(|raw| raw.get() != "null");
        let known = named.as_ref().and_then(|id| self.pending.find(id));
        let mut is_mended = envelope.jsonrpc.is_none_or(|raw| raw.get() != r#""2.0""#);
        if envelope.error.is_some() && envelope.result.is_some() {
            is_mended = true;
            self.remarks
                .add("sends responses with both `result` and `error`, of which one is `null`");
        }
        let (id, kind) = match (origin, known) {
            (Some(origin), _) if named.as_ref().is_some_and(|id| is_same(&origin.id, id)) => {
                (Some(origin.id.clone()), origin.kind)
            }
            (Some(origin), Some((id, kind))) if origin.is_streamed => (Some(id), kind),
            (Some(origin), _) => {
                is_mended = true;
                if let Some(id) = &named {
                    let id = excerpt(&id.to_string(), MAX_EXCERPT);
                    self.remarks
                        .add(format!("sends a response with a wrong id: {id}"));
                    if error.is_none() {
                        let message =
                            origin.fail(format!("it is the response to another request, {id}"));
                        return Some(Reading { message, is_mended });
                    }
                }
                (Some(origin.id.clone()), origin.kind)
            }
            (None, Some((id, kind))) => (Some(id), kind),
            (None, None) => (named, Kind::Other),
        };
        let result = match error {
            Some(error) => Err(self.read_error(error)),
            None => self.read_result(envelope.result, kind, &mut is_mended),
        };
        is_mended |= result.is_err();
        let message = match (result, id) {
            (Err(error), id) => ServerJsonRpcMessage::error(error, id),
            (Ok(result), Some(id)) => ServerJsonRpcMessage::response(result, id),
            (Ok(_), None) => {
                self.remarks.add("sends a result without a request id");
                return None;
            }
        };
        Some(Reading { message, is_mended })
    }

    fn read_result(
        &self,
        result: Option<&RawValue>,
        kind: Kind,
        is_mended: &mut bool,
    ) -> Result<ServerResult, ErrorData> {
        let result = result.ok_or_else(|| unreadable("it has neither `result` nor `error`"))?;
        results::read(result.get(), kind, &self.remarks, is_mended)
    }

    /// Reads an error in any form.
    fn read_error(&self, raw: &RawValue) -> ErrorData {
        if let Ok(error) = serde_json::from_str(raw.get()) {
            return error;
        }
        let error = text::parse(raw.get()).unwrap_or_else(|_| raw.get().into());
        self.remarks
            .add("sends errors that are not objects with `code` and `message`");
        let code = match &error["code"] {
            Value::String(code) => code.parse().ok(),
            code => code.as_i64().or(code.as_f64().map(|code| code as i64)),
        };
        let code = code.and_then(|code| i32::try_from(code).ok());
        let message = match (&error, &error["message"]) {
            (Value::String(text), _) | (_, Value::String(text)) => text.clone(),
            (other, _) => other.to_string(),
        };
        let code = code.map_or(ErrorCode::INTERNAL_ERROR, ErrorCode);
        ErrorData::new(code, message, error.get("data").cloned())
    }

    /// Returns an error in place of an answer that is not JSON: its caller would wait in vain.
    fn salvage(&self, text: &str, origin: Option<&Origin>, why: impl Display) -> Option<Reading> {
        if !text::looks_like_answer(text) {
            return self.note_noise(text);
        }
        self.remarks
            .add(format!("sends an invalid response: {why}"));
        let id = match origin {
            Some(origin) => Some(origin.id.clone()),
            None => text::find_id(text).map(|id| self.pending.find(&id).map_or(id, |(id, _)| id)),
        };
        Some(Reading {
            message: ServerJsonRpcMessage::error(unreadable(why), id),
            is_mended: true,
        })
    }

    /// Returns an error in place of an answer of which only the beginning was read.
    pub(super) fn salvage_beginning(
        &self,
        beginning: &[u8],
        why: impl Display,
    ) -> Option<ServerJsonRpcMessage> {
        let beginning = String::from_utf8_lossy(beginning);
        let reading = self.salvage(&beginning, None, why);
        reading.map(|reading| reading.message)
    }

    fn note_noise(&self, text: &str) -> Option<Reading> {
        let text = excerpt(text, MAX_EXCERPT).replace(char::is_control, " ");
        self.remarks
            .add(format!("sends something that is not a message: {text}"));
        None
    }
}

impl Envelope<'_> {
    fn is_answer(&self) -> bool {
        let is_named = self.jsonrpc.is_some() || self.id.is_some();
        let has_outcome = self.result.is_some() || self.error.is_some();
        is_named && (has_outcome || self.id.is_some() && !is_null(self.id))
    }
}

/// Reads `json` as `T`; if that fails, in the form that `mend` gives it.
fn read_or_mend<T: DeserializeOwned>(
    json: &str,
    is_mended: &mut bool,
    mend: impl FnOnce(Value) -> Value,
) -> Result<T, ErrorData> {
    if let Ok(read) = serde_json::from_str(json) {
        return Ok(read);
    }
    *is_mended = true;
    let value = text::parse(json).map_err(unreadable)?;
    serde_json::from_value(mend(value)).map_err(unreadable)
}

#[cfg(test)]
mod tests;
