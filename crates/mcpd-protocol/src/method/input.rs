//! Multi round-trip requests: a result that asks the client for input, and the same request again
//! with the answers. Questions and answers pass through as raw JSON; the user's client and the
//! script understand them.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::meta::ResultMeta;
use crate::stamp::{ResultObject, ResultType, Stamp, stamped};

/// Questions by the name their asker gave them.
pub type InputRequests = BTreeMap<String, InputRequest>;

/// Answers by the name of the question.
pub type InputResponses = BTreeMap<String, Box<RawValue>>;

/// One question.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InputRequest {
    /// What kind.
    pub method: InputMethod,
    /// Its parameters; `roots/list` may go without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<Box<RawValue>>,
}

/// The questions a client can be asked. On the stateful wire each is a request of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum InputMethod {
    /// Ask the person.
    #[serde(rename = "elicitation/create")]
    ElicitationCreate,
    /// Ask the model.
    #[serde(rename = "sampling/createMessage")]
    SamplingCreateMessage,
    /// Ask which directories the client works in.
    #[serde(rename = "roots/list")]
    RootsList,
}

/// A result that asks. At least one of the two fields is set.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InputRequiredResult {
    /// The questions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// Comes back unread with the answers, perhaps changed: sign it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Always [`ResultType::INPUT_REQUIRED`] on the stateless wire, the only one it is sent on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Beside the payload.
    #[serde(
        rename = "_meta",
        default,
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}

stamped!(InputRequiredResult);

/// What a method may answer that is allowed to ask: `R`, or questions first.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Interactive<R> {
    /// The result proper.
    Complete(R),
    /// The client is asked, and tries again.
    InputRequired(InputRequiredResult),
}

impl InputMethod {
    /// The `method` member.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ElicitationCreate => "elicitation/create",
            Self::SamplingCreateMessage => "sampling/createMessage",
            Self::RootsList => "roots/list",
        }
    }
}

impl InputRequest {
    /// A question with parameters.
    #[must_use]
    pub fn new(method: InputMethod, params: Box<RawValue>) -> Self {
        Self {
            method,
            params: Some(params),
        }
    }
}

impl InputRequiredResult {
    /// Questions without state.
    #[must_use]
    pub fn new(input_requests: InputRequests) -> Self {
        Self {
            input_requests: Some(input_requests),
            request_state: None,
            result_type: Some(ResultType::INPUT_REQUIRED),
            meta: ResultMeta::default(),
        }
    }
}

impl<R> From<R> for Interactive<R> {
    fn from(result: R) -> Self {
        Self::Complete(result)
    }
}

impl<R: ResultObject> ResultObject for Interactive<R> {
    fn stamp(&mut self, stamp: &Stamp) {
        match self {
            Self::Complete(result) => result.stamp(stamp),
            Self::InputRequired(result) => result.stamp(stamp),
        }
    }
}

impl<'de, R: for<'a> Deserialize<'a>> Deserialize<'de> for Interactive<R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Kind {
            result_type: Option<ResultType>,
        }
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let kind: Kind = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
        if kind.result_type == Some(ResultType::INPUT_REQUIRED) {
            serde_json::from_str(raw.get()).map(Self::InputRequired)
        } else {
            serde_json::from_str(raw.get()).map(Self::Complete)
        }
        .map_err(D::Error::custom)
    }
}
