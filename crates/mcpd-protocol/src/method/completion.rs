//! Suggestions while a person types the argument of a prompt or of a resource template.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::request;
use crate::meta::ResultMeta;
use crate::stamp::{ResultType, stamped};

request! {
    /// `completion/complete`.
    CompleteRequest, "completion/complete", CompleteRequestParams => CompleteResult
}

/// Argument to complete, and its place.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompleteRequestParams {
    /// Prompt or template of the argument.
    #[serde(rename = "ref")]
    pub reference: CompletionReference,
    /// Argument and its current text.
    pub argument: CompletionArgument,
    /// Other arguments; since 2025-06-18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<CompletionContext>,
    /// Request metadata; read it with [`Params`](crate::Params).
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

/// Reference to the owner of an argument: the schema's `PromptReference` and
/// `ResourceTemplateReference`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum CompletionReference {
    /// A prompt.
    #[serde(rename = "ref/prompt")]
    Prompt {
        /// Name of the prompt.
        name: String,
        /// Display name; since 2025-06-18.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    },
    /// A resource template.
    #[serde(rename = "ref/resource")]
    Resource {
        /// Template, or a URI made from it.
        uri: String,
    },
}

/// Argument while it is typed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompletionArgument {
    /// Name of the argument.
    pub name: String,
    /// Current text.
    pub value: String,
}

/// Known values of the other arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompletionContext {
    /// Values by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<BTreeMap<String, String>>,
}

/// Suggestions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Completion {
    /// Values, best first, at most 100.
    pub values: Vec<String>,
    /// Total number of values, sent or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// There are more values than were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
}

/// Suggestions, as a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompleteResult {
    /// The suggestions.
    pub completion: Completion,
    /// Kind of result; stateless wire only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Metadata.
    #[serde(
        rename = "_meta",
        default,
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}

stamped!(CompleteResult);

impl CompleteRequestParams {
    /// Makes a request without context.
    pub fn new(
        reference: CompletionReference,
        name: impl Into<String>,
        value: impl Into<String>,
    ) -> Self {
        let argument = CompletionArgument {
            name: name.into(),
            value: value.into(),
        };
        Self {
            reference,
            argument,
            context: None,
            meta: None,
        }
    }
}

impl CompleteResult {
    /// Keeps the first 100 values, which is the schema's limit, and records the total.
    #[must_use]
    pub fn new(mut values: Vec<String>) -> Self {
        let count = values.len();
        values.truncate(100);
        let completion = Completion {
            has_more: Some(count > values.len()),
            total: u64::try_from(count).ok(),
            values,
        };
        Self {
            completion,
            result_type: None,
            meta: ResultMeta::default(),
        }
    }
}
