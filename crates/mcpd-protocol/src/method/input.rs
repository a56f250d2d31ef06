//! Multi round-trip requests: a result that asks the client for input, and the same request again
//! with the answers. Questions and answers pass through as raw JSON; the user's client and the
//! script understand them.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::JsonObject;
use crate::capabilities::{ClientCapabilities, RootsCapability};
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
    pub const fn new(method: InputMethod, params: Box<RawValue>) -> Self {
        Self {
            method,
            params: Some(params),
        }
    }

    /// What a client must have declared to be asked this.
    ///
    /// "Servers MUST NOT send an `inputRequests` that the client has not declared support for in its
    /// capabilities." -- 2026-07-28/basic/patterns/mrtr
    #[must_use]
    pub fn required_capabilities(&self) -> ClientCapabilities {
        let params = self.params.as_deref().map_or("{}", RawValue::get);
        let demands: Demands<'_> = serde_json::from_str(params).unwrap_or_default();
        let mut required = ClientCapabilities::default();
        match self.method {
            InputMethod::ElicitationCreate => {
                let by_url = demands.mode.is_some_and(|mode| mode.get() == r#""url""#);
                let elicitation = required.elicitation.get_or_insert_default();
                elicitation.url = by_url.then(JsonObject::new);
                elicitation.form = (!by_url).then(JsonObject::new);
            }
            InputMethod::SamplingCreateMessage => {
                let sampling = required.sampling.get_or_insert_default();
                sampling.tools = demands.tools.map(|_| JsonObject::new());
            }
            InputMethod::RootsList => required.roots = Some(RootsCapability::default()),
        }
        required
    }
}

/// The parameters of a question that need more than the plain capability.
#[derive(Default, Deserialize)]
struct Demands<'a> {
    #[serde(borrow)]
    mode: Option<&'a RawValue>,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(request: &str, required: &str) {
        let request: InputRequest = serde_json::from_str(request).unwrap();
        let capabilities = serde_json::to_string(&request.required_capabilities()).unwrap();
        assert_eq!(capabilities, required);
    }

    #[test]
    fn each_question_needs_its_capability() {
        check(r#"{"method":"roots/list"}"#, r#"{"roots":{}}"#);
        check(
            r#"{"method":"elicitation/create","params":{}}"#,
            r#"{"elicitation":{"form":{}}}"#,
        );
        check(
            r#"{"method":"elicitation/create","params":{"mode":"url"}}"#,
            r#"{"elicitation":{"url":{}}}"#,
        );
        check(
            r#"{"method":"sampling/createMessage","params":{}}"#,
            r#"{"sampling":{}}"#,
        );
        check(
            r#"{"method":"sampling/createMessage","params":{"tools":[]}}"#,
            r#"{"sampling":{"tools":{}}}"#,
        );
    }
}
