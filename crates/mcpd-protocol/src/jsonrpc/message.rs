//! Decoding of bytes to messages. A refused message keeps its id whenever that was readable, so
//! that the sender learns which of its requests was wrong.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::error::ErrorObject;
use super::id::RequestId;
use crate::json;

/// One JSON-RPC message, borrowed from the bytes it was read from.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC 2.0 has these three")]
pub enum Message<'a> {
    /// Requires exactly one response.
    Request(Request<'a>),
    /// Requires none.
    Notification(Notification<'a>),
    /// Answers a request of this side.
    Response(Response<'a>),
}

/// Call that requires an answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request<'a> {
    /// Id, echoed in the response.
    pub id: RequestId,
    /// Name of the method.
    pub method: Cow<'a, str>,
    /// Parameters; always an object when present.
    pub params: Option<&'a RawValue>,
}

/// Call that requires no answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Notification<'a> {
    /// Name of the event.
    pub method: Cow<'a, str>,
    /// Parameters; always an object when present.
    pub params: Option<&'a RawValue>,
}

/// The answer to a request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Response<'a> {
    /// Id of the request; `None` when the peer could not read it.
    pub id: Option<RequestId>,
    /// The raw `result`, or the `error`.
    pub outcome: Result<&'a RawValue, ErrorObject>,
}

/// Content of one line or body: a message, or a 2025-03-26 batch of them.
#[derive(Clone, Debug)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a JSON text holds one message or several"
)]
pub enum Frame<'a> {
    /// One message, the only form in every other revision.
    Single(Message<'a>),
    /// Batch of at least one element. Each is decoded by itself, so that one bad element fails
    /// alone.
    Batch(Vec<&'a RawValue>),
}

/// Reason why bytes are not a message, in the form that is sent back.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DecodeError {
    /// Id of the refused request, when it was readable.
    pub id: Option<RequestId>,
    /// `-32700` for input that is not JSON, `-32600` for JSON that is not a message.
    pub error: ErrorObject,
    /// The message was meant as a notification: "The receiver MUST NOT send a response" --
    /// 2026-07-28/basic#notifications
    pub is_notification: bool,
}

impl<'a> Message<'a> {
    /// Reads one message.
    ///
    /// # Errors
    /// Fails if the bytes are not JSON, or not a JSON-RPC 2.0 message whose `params` are an
    /// object; `null` and an empty array count as absent. Members that JSON-RPC does not define
    /// are ignored; those it defines must not repeat.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Self::decode_unmarked(without_byte_order_mark(bytes))
    }

    /// Reads one message from bytes without a byte order mark.
    fn decode_unmarked(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let text = utf8(bytes)?;
        if first_byte(bytes) != Some(b'{') {
            let value: &RawValue = serde_json::from_str(text).map_err(|e| not_json(&e))?;
            return Err(refuse(
                None,
                format!("a message is an object, not {}", json::kind(value)),
            ));
        }
        let envelope: Envelope<'a> = serde_json::from_str(text).map_err(|e| not_json(&e))?;
        envelope.into_message()
    }
}

impl<'a> Frame<'a> {
    /// Reads one message or one batch, depending on the first byte.
    ///
    /// # Errors
    /// Fails like [`Message::decode`], and for an empty batch, which is no message at all.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let bytes = without_byte_order_mark(bytes);
        if first_byte(bytes) != Some(b'[') {
            return Message::decode_unmarked(bytes).map(Self::Single);
        }
        let text = utf8(bytes)?;
        let elements: Vec<&RawValue> = serde_json::from_str(text).map_err(|e| not_json(&e))?;
        if elements.is_empty() {
            return Err(refuse(None, "a batch has at least one message"));
        }
        Ok(Self::Batch(elements))
    }
}

impl<'a> Request<'a> {
    /// Makes a request from its parts. `params` must be an object.
    pub fn new(
        id: RequestId,
        method: impl Into<Cow<'a, str>>,
        params: Option<&'a RawValue>,
    ) -> Self {
        Self {
            id,
            method: method.into(),
            params,
        }
    }

    /// Reads the parameters of a known method; absent ones count as `{}`.
    ///
    /// # Errors
    /// `-32602` naming the member that is missing or of the wrong type.
    pub fn parse_params<P: Deserialize<'a>>(&self) -> Result<P, ErrorObject> {
        parse_params(self.params)
    }
}

impl<'a> Notification<'a> {
    /// Reads the parameters of a known notification; absent ones count as `{}`.
    ///
    /// # Errors
    /// `-32602` naming the member that is missing or of the wrong type. It is for the log: a
    /// notification is never answered.
    pub fn parse_params<P: Deserialize<'a>>(&self) -> Result<P, ErrorObject> {
        parse_params(self.params)
    }
}

fn parse_params<'a, P: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<P, ErrorObject> {
    serde_json::from_str(params.map_or("{}", RawValue::get))
        .map_err(|error| json::invalid_params(&error))
}

/// Raw members that JSON-RPC defines. Nothing is judged before all of them, the id above all, have
/// been read.
#[derive(Default)]
struct Envelope<'a> {
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    /// Name of a repeated member: two readers may each see a different one, so it is refused.
    repeated: Option<&'static str>,
}

impl<'a> Envelope<'a> {
    fn into_message(self) -> Result<Message<'a>, DecodeError> {
        let id = match self.id {
            Some(_) if self.repeated == Some("id") => None,
            Some(raw) if raw.get() == "null" && self.error.is_some() => None,
            Some(raw) => Some(read_id(raw)?),
            None => None,
        };
        // The id of an answer belongs to a request of this side: echoed, it would seem to answer
        // one of the peer's.
        let is_answer = self.method.is_none() && (self.result.is_some() || self.error.is_some());
        let echoed = id.clone().filter(|_| !is_answer);
        let is_notification = self.is_notification();
        self.classify(id).map_err(|message| DecodeError {
            is_notification,
            ..refuse(echoed, message)
        })
    }

    /// Returns whether the message is a notification, apart from its parameters.
    fn is_notification(&self) -> bool {
        let is_call = self.method.and_then(json::string).is_some();
        let others = [self.id, self.result, self.error];
        is_call
            && self.repeated.is_none()
            && self.is_json_rpc()
            && others.iter().all(Option::is_none)
    }

    fn is_json_rpc(&self) -> bool {
        self.jsonrpc.and_then(json::string).as_deref() == Some("2.0")
    }

    fn classify(&self, id: Option<RequestId>) -> Result<Message<'a>, Cow<'static, str>> {
        if let Some(name) = self.repeated {
            return Err(format!("`{name}` occurs more than once").into());
        }
        match self.jsonrpc {
            Some(_) if self.is_json_rpc() => {}
            Some(_) => return Err("`jsonrpc` must be the string \"2.0\"".into()),
            None => return Err("`jsonrpc` is missing; it must be \"2.0\"".into()),
        }
        // Some senders write both a `result` and `"error": null`.
        let is_null = |error: &&RawValue| error.get() == "null";
        let error = self
            .error
            .filter(|error| self.result.is_none() || !is_null(error));
        match (self.method, self.result, error) {
            (Some(method), None, None) => self.call(id, method),
            (None, Some(result), None) if id.is_some() => Ok(Message::Response(Response {
                id,
                outcome: Ok(result),
            })),
            (None, Some(_), None) => Err("a `result` requires the `id` of its request".into()),
            (None, None, Some(error)) => {
                let error = serde_json::from_str(error.get()).or_else(|e| {
                    let fault = format!("invalid `error`: {}", json::fault(&e));
                    match id {
                        // The caller of this request waits, so a malformed error still ends it.
                        Some(_) => Ok(ErrorObject::invalid_request(fault)),
                        None => Err(fault),
                    }
                })?;
                Ok(Message::Response(Response {
                    id,
                    outcome: Err(error),
                }))
            }
            (None, None, None) => Err("one of `method`, `result` and `error` is needed".into()),
            _ => Err("only one of `method`, `result` and `error` is allowed".into()),
        }
    }

    fn call(
        &self,
        id: Option<RequestId>,
        method: &'a RawValue,
    ) -> Result<Message<'a>, Cow<'static, str>> {
        let method = json::string(method)
            .ok_or_else(|| format!("`method` must be a string, not {}", json::kind(method)))?;
        let params = self.params.filter(|params| !json::is_nothing(params));
        if let Some(params) = params.filter(|params| !json::is_object(params)) {
            let kind = json::kind(params);
            return Err(format!("`params` must be an object or be left out, not {kind}").into());
        }
        Ok(match id {
            Some(id) => Message::Request(Request { id, method, params }),
            None => Message::Notification(Notification { method, params }),
        })
    }
}

impl<'de> Deserialize<'de> for Envelope<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EnvelopeVisitor)
    }
}

struct EnvelopeVisitor;

impl<'de> Visitor<'de> for EnvelopeVisitor {
    type Value = Envelope<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut envelope = Envelope::default();
        while let Some(member) = map.next_key()? {
            let (slot, name) = match member {
                Member::Jsonrpc => (&mut envelope.jsonrpc, "jsonrpc"),
                Member::Id => (&mut envelope.id, "id"),
                Member::Method => (&mut envelope.method, "method"),
                Member::Params => (&mut envelope.params, "params"),
                Member::Result => (&mut envelope.result, "result"),
                Member::Error => (&mut envelope.error, "error"),
                Member::Other => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            // A repeated id takes precedence over other repetitions: it must not be echoed.
            if slot.replace(map.next_value()?).is_some() && envelope.repeated != Some("id") {
                envelope.repeated = Some(name);
            }
        }
        Ok(envelope)
    }
}

/// Name of a member with its escapes resolved: `"m\u0065thod"` is `method`.
#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Member {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    #[serde(other)]
    Other,
}

/// Returns the bytes without the byte order mark that some editors and shells write first.
/// "implementations that parse JSON texts MAY ignore the presence of a byte order mark rather than
/// treating it as an error" -- RFC 8259, 8.1
fn without_byte_order_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes)
}

fn utf8(bytes: &[u8]) -> Result<&str, DecodeError> {
    std::str::from_utf8(bytes).map_err(|e| DecodeError {
        id: None,
        error: ErrorObject::parse_error(format!("not UTF-8 from byte {} on", e.valid_up_to())),
        is_notification: false,
    })
}

/// Returns the first byte that is not JSON whitespace.
fn first_byte(bytes: &[u8]) -> Option<u8> {
    bytes
        .iter()
        .copied()
        .find(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
}

fn read_id(raw: &RawValue) -> Result<RequestId, DecodeError> {
    serde_json::from_str(raw.get()).map_err(|_| {
        let kind = json::kind(raw);
        let expected = "a string or a 64-bit integer";
        refuse(None, format!("`id` is {kind}; it must be {expected}"))
    })
}

fn not_json(cause: &serde_json::Error) -> DecodeError {
    DecodeError {
        id: None,
        error: ErrorObject::parse_error(format!("not JSON: {cause}")),
        is_notification: false,
    }
}

fn refuse(id: Option<RequestId>, message: impl Into<Cow<'static, str>>) -> DecodeError {
    DecodeError {
        id,
        error: ErrorObject::invalid_request(message),
        is_notification: false,
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for DecodeError {}
