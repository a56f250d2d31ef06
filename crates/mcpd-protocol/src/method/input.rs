//! Multi round-trip requests: a result that asks the client for input, and the same request again
//! with the answers. Questions and answers pass through as raw JSON; the user's client and the
//! script understand them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::tasks::CreateTaskResult;
use crate::JsonObject;
use crate::capabilities::ClientCapabilities;
use crate::content::Role;
use crate::json;
use crate::meta::ResultMeta;
use crate::stamp::{ResultObject, ResultType, Stamp, stamped};

/// Questions by the name that the script gave them.
pub type InputRequests = BTreeMap<String, InputRequest>;

/// Answers by the name of the question.
pub type InputResponses = BTreeMap<String, Box<RawValue>>;

/// One question.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InputRequest {
    /// Kind of question.
    pub method: InputMethod,
    /// Parameters; optional for `roots/list`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<Box<RawValue>>,
}

/// Kinds of question. On the stateful wire each is a request of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum InputMethod {
    /// Asks the user.
    #[serde(rename = "elicitation/create")]
    ElicitationCreate,
    /// Asks the model.
    #[serde(rename = "sampling/createMessage")]
    SamplingCreateMessage,
    /// Asks which directories the client works in.
    #[serde(rename = "roots/list")]
    RootsList,
}

/// Result that asks for input. At least one of the first two fields is set.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InputRequiredResult {
    /// The questions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// Opaque state that the client returns with the answers, perhaps altered: sign it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Always [`ResultType::INPUT_REQUIRED`] on the stateless wire, the only one that has it.
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

stamped!(InputRequiredResult);

/// Result of a method that may ask for input: `R`, or questions first, or `R` later.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Interactive<R> {
    /// The actual result.
    Complete(R),
    /// The client answers questions and tries again.
    InputRequired(InputRequiredResult),
    /// The request continues as a task. Only tool calls do.
    Task(CreateTaskResult),
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
    /// Makes a question with parameters.
    #[must_use]
    pub const fn new(method: InputMethod, params: Box<RawValue>) -> Self {
        Self {
            method,
            params: Some(params),
        }
    }

    /// Checks that every client can understand the question: the members that its method requires
    /// are present and of the right type.
    ///
    /// # Errors
    /// The fault of the parameters, as a fragment.
    pub fn check(&self) -> Result<(), String> {
        let Some(params) = self.params.as_deref() else {
            return match self.method {
                InputMethod::RootsList => Ok(()),
                _ => Err("expected an object".to_owned()),
            };
        };
        if !json::is_object(params) {
            return Err("expected an object".to_owned());
        }
        let params = params.get();
        match self.method {
            InputMethod::ElicitationCreate if self.is_by_url() => {
                serde_json::from_str::<Page>(params).map(drop)
            }
            InputMethod::ElicitationCreate => serde_json::from_str::<Form>(params).map(drop),
            InputMethod::SamplingCreateMessage => {
                serde_json::from_str::<Sampling>(params).map(drop)
            }
            InputMethod::RootsList => Ok(()),
        }
        .map_err(|error| json::fault(&error))
    }

    /// Converts the question to 2025-11-25, where a URL elicitation has an id of its own; leaves
    /// any other unchanged.
    #[must_use]
    pub fn with_elicitation_id(mut self, id: impl Into<String>) -> Self {
        if self.is_by_url()
            && let Some(params) = &self.params
            && let Ok(mut members) = serde_json::from_str::<JsonObject>(params.get())
        {
            members
                .entry("elicitationId")
                .or_insert_with(|| id.into().into());
            self.params = to_raw_value(&members).ok();
        }
        self
    }

    /// Converts the question to 2025-06-18, where the titles of choices stand beside them and only
    /// booleans have a default; leaves anything but a form unchanged. `None` for a multiple
    /// choice, which that revision can't express --
    /// 2025-06-18/client/elicitation#supported-schema-types
    #[must_use]
    pub fn with_plain_form(mut self) -> Option<Self> {
        if self.method == InputMethod::ElicitationCreate
            && let Some(params) = &self.params
            && let Ok(mut members) = serde_json::from_str::<JsonObject>(params.get())
            && let Some(Value::Object(schema)) = members.get_mut("requestedSchema")
            && let Some(Value::Object(fields)) = schema.get_mut("properties")
        {
            for field in fields.values_mut().filter_map(Value::as_object_mut) {
                make_plain(field)?;
            }
            members.remove("mode");
            self.params = to_raw_value(&members).ok();
        }
        Some(self)
    }

    /// Returns whether the question sends the user to a web page.
    fn is_by_url(&self) -> bool {
        self.method == InputMethod::ElicitationCreate
            && self
                .demands()
                .mode
                .is_some_and(|mode| mode.get() == r#""url""#)
    }

    fn demands(&self) -> Demands<'_> {
        let params = self.params.as_deref().map_or("{}", RawValue::get);
        serde_json::from_str(params).unwrap_or_default()
    }

    /// Returns the capabilities that a client must have declared to be asked this.
    ///
    /// "Servers MUST NOT send an `inputRequests` that the client has not declared support for in
    /// its capabilities." -- 2026-07-28/basic/patterns/mrtr
    #[must_use]
    pub fn required_capabilities(&self) -> ClientCapabilities {
        let mut required = ClientCapabilities::default();
        self.require(&mut required);
        required
    }

    /// Adds the capabilities that a client must have declared to be asked this.
    pub fn require(&self, required: &mut ClientCapabilities) {
        match self.method {
            InputMethod::ElicitationCreate => {
                let elicitation = required.elicitation.get_or_insert_default();
                let mode = if self.is_by_url() {
                    &mut elicitation.url
                } else {
                    &mut elicitation.form
                };
                mode.get_or_insert_default();
            }
            InputMethod::SamplingCreateMessage => {
                let sampling = required.sampling.get_or_insert_default();
                let demands = self.demands();
                // "The client MUST return an error if this field is provided but
                // `ClientCapabilities.sampling.tools` is not declared", both of `tools` and of
                // `toolChoice` -- 2026-07-28/schema#createmessagerequestparams
                if demands.tools.or(demands.tool_choice).is_some() {
                    sampling.tools.get_or_insert_default();
                }
                if (demands.include_context).is_some_and(|context| context.get() != r#""none""#) {
                    sampling.context.get_or_insert_default();
                }
            }
            InputMethod::RootsList => {
                required.roots.get_or_insert_default();
            }
        }
    }
}

/// Parameters of a question that need more than the plain capability.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Demands<'a> {
    #[serde(borrow)]
    mode: Option<&'a RawValue>,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_choice: Option<&'a RawValue>,
    #[serde(borrow)]
    include_context: Option<&'a RawValue>,
}

/// Required members of a form.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(
    dead_code,
    reason = "only that they are there, and what they are, matters"
)]
struct Form {
    mode: Option<FormMode>,
    message: String,
    requested_schema: FormSchema,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum FormMode {
    Form,
}

/// "Only top-level properties are allowed, without nesting."
#[derive(Deserialize)]
#[expect(
    dead_code,
    reason = "only that they are there, and what they are, matters"
)]
struct FormSchema {
    r#type: FormType,
    properties: BTreeMap<String, Field>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum FormType {
    Object,
}

/// Field of a form. An `array` is a multiple choice.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Field {
    String,
    Number,
    Integer,
    Boolean,
    Array {
        #[expect(dead_code, reason = "only that it is there, and what it is, matters")]
        items: Choices,
    },
}

/// Choices, without and with titles.
#[derive(Deserialize)]
#[serde(
    untagged,
    rename_all_fields = "camelCase",
    expecting = "expected `items` with `\"type\": \"string\"` and `enum`, or with `anyOf` of objects with `const` and `title`"
)]
#[expect(
    dead_code,
    reason = "only that they are there, and what they are, matters"
)]
enum Choices {
    Plain { r#type: Text, r#enum: Vec<String> },
    Titled { any_of: Vec<Choice> },
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Text {
    String,
}

#[derive(Deserialize)]
#[expect(
    dead_code,
    reason = "only that they are there, and what they are, matters"
)]
struct Choice {
    r#const: String,
    title: String,
}

/// Required members of a URL elicitation.
#[derive(Deserialize)]
#[expect(
    dead_code,
    reason = "only that they are there, and what they are, matters"
)]
struct Page {
    message: String,
    url: Uri,
}

/// Absolute URI -- RFC 3986, 4.3. Requirements of a scheme are for the client to check, except
/// that `http` and `https` have a host.
#[derive(Deserialize)]
#[serde(try_from = "Cow<'_, str>")]
struct Uri;

impl TryFrom<Cow<'_, str>> for Uri {
    type Error = &'static str;

    fn try_from(text: Cow<'_, str>) -> Result<Self, Self::Error> {
        let (scheme, rest) = text.split_once(':').unwrap_or_default();
        let is_of_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        let is_web = ["http", "https"]
            .iter()
            .any(|web| scheme.eq_ignore_ascii_case(web));
        let has_host = || {
            let host = rest.strip_prefix("//");
            host.is_some_and(|host| !host.is_empty() && !host.starts_with(['/', '?', '#']))
        };
        let is_absolute = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(is_of_scheme)
            && !rest.is_empty()
            && rest
                .chars()
                .all(|c| c.is_ascii_graphic() && !"\"<>\\^`{|}".contains(c))
            && (!is_web || has_host());
        is_absolute
            .then_some(Self)
            .ok_or("`url` must be an absolute URI")
    }
}

/// Required members of a request to a model.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(
    dead_code,
    reason = "only that they are there, and what they are, matters"
)]
struct Sampling {
    messages: Vec<SamplingMessage>,
    max_tokens: u64,
    include_context: Option<IncludeContext>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum IncludeContext {
    None,
    ThisServer,
    AllServers,
}

#[derive(Deserialize)]
#[expect(
    dead_code,
    reason = "only that they are there, and what they are, matters"
)]
struct SamplingMessage {
    role: Role,
    content: IgnoredAny,
}

fn make_plain(field: &mut JsonObject) -> Option<()> {
    let kind = field.get("type").and_then(Value::as_str);
    if kind == Some("array") {
        return None;
    }
    if kind != Some("boolean") {
        field.remove("default");
    }
    if let Some(Value::Array(choices)) = field.remove("oneOf") {
        for (name, member) in [("enum", "const"), ("enumNames", "title")] {
            let told = choices.iter().map(|choice| choice[member].clone());
            field.insert(name.to_owned(), told.collect());
        }
    }
    Some(())
}

impl InputRequiredResult {
    /// Makes a result with questions and without state.
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
            Self::Task(result) => result.stamp(stamp),
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
        match kind.result_type.as_ref().map(ResultType::as_str) {
            Some("input_required") => serde_json::from_str(raw.get()).map(Self::InputRequired),
            Some("task") => serde_json::from_str(raw.get()).map(Self::Task),
            _ => serde_json::from_str(raw.get()).map(Self::Complete),
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

    #[track_caller]
    fn check_shape(method: &str, params: &str, fault: &str) {
        let request = format!(r#"{{"method":"{method}","params":{params}}}"#);
        let request: InputRequest = serde_json::from_str(&request).unwrap();
        assert_eq!(request.check().err().as_deref().unwrap_or_default(), fault);
    }

    #[test]
    fn question_has_the_members_of_its_method() {
        let form = |field: &str| {
            format!(
                r#"{{"message":"m","requestedSchema":{{"type":"object","properties":{{"a":{field}}}}}}}"#
            )
        };
        for field in ["string", "number", "integer", "boolean"] {
            let field = format!(r#"{{"type":"{field}"}}"#);
            check_shape("elicitation/create", &form(&field), "");
        }
        check_shape(
            "elicitation/create",
            &form(r#"{"type":"object"}"#),
            "unknown variant `object`, expected one of `string`, `number`, `integer`, `boolean`, `array`",
        );
        check_shape("elicitation/create", &form("{}"), "missing field `type`");
        check_shape("elicitation/create", "{}", "missing field `message`");
        check_shape("elicitation/create", "7", "expected an object");
        let page = r#"{"mode":"url","message":"m"}"#;
        check_shape("elicitation/create", page, "missing field `url`");
        let sampling = r#"{"messages":[{"role":"user","content":{}}],"maxTokens":1}"#;
        check_shape("sampling/createMessage", sampling, "");
        let sampling = r#"{"messages":[]}"#;
        check_shape(
            "sampling/createMessage",
            sampling,
            "missing field `maxTokens`",
        );
        let sampling = |context: &str| {
            format!(r#"{{"messages":[],"maxTokens":1,"includeContext":"{context}"}}"#)
        };
        check_shape("sampling/createMessage", &sampling("thisServer"), "");
        check_shape(
            "sampling/createMessage",
            &sampling("everything"),
            "unknown variant `everything`, expected one of `none`, `thisServer`, `allServers`",
        );
        check_shape("roots/list", "{}", "");
        check_shape("roots/list", "[]", "expected an object");
    }

    #[test]
    fn multiple_choice_has_choices() {
        #[track_caller]
        fn check(items: &str, fault: &str) {
            let params = format!(
                r#"{{"message":"m","requestedSchema":{{"type":"object","properties":{{"a":{{"type":"array"{items}}}}}}}}}"#
            );
            check_shape("elicitation/create", &params, fault);
        }
        check(
            r#","items":{"type":"string","enum":["r","g"]},"minItems":1"#,
            "",
        );
        check(r#","items":{"anyOf":[{"const":"r","title":"Red"}]}"#, "");
        check("", "missing field `items`");
        for items in [
            r#","items":{}"#,
            r#","items":{"enum":["r"]}"#,
            r#","items":{"type":"string","enum":[1]}"#,
            r#","items":{"anyOf":[{"const":"r"}]}"#,
        ] {
            check(
                items,
                "expected `items` with `\"type\": \"string\"` and `enum`, or with `anyOf` of objects with `const` and `title`",
            );
        }
    }

    #[test]
    fn page_has_an_absolute_url() {
        #[track_caller]
        fn check(url: &str, is_absolute: bool) {
            let params = format!(r#"{{"mode":"url","message":"m","url":"{url}"}}"#);
            let fault = if is_absolute {
                ""
            } else {
                "`url` must be an absolute URI"
            };
            check_shape("elicitation/create", &params, fault);
        }
        for url in [
            "a:b",
            "https://example.com/a?b#c",
            "HTTP://[::1]:80",
            r"https:\/\/a",
            "x-a+b.c:d",
        ] {
            check(url, true);
        }
        for url in [
            "",
            "example.com",
            "/sign-in",
            "//example.com",
            ":b",
            "a:",
            "1a:b",
            "ä:b",
            "a:ö",
            "a b:c",
            "a:b c",
            "https:",
            "https://",
            "https:///a",
            "http:a",
        ] {
            check(url, false);
        }
    }

    #[test]
    fn page_alone_gets_an_elicitation_id() {
        #[track_caller]
        fn check(params: &str, expected: &str) {
            let params = RawValue::from_string(params.to_owned()).unwrap();
            let request = InputRequest::new(InputMethod::ElicitationCreate, params);
            let params = request.with_elicitation_id("e1").params;
            assert_eq!(params.unwrap().get(), expected);
        }
        check(
            r#"{"mode":"url","url":"a:b"}"#,
            r#"{"mode":"url","url":"a:b","elicitationId":"e1"}"#,
        );
        let named = r#"{"mode":"url","elicitationId":"mine"}"#;
        check(named, named);
        check(r#"{"message":"m"}"#, r#"{"message":"m"}"#);
    }

    #[test]
    fn form_is_converted_to_plain() {
        #[track_caller]
        fn check(field: &str, expected: Option<&str>) {
            let form = |field| {
                format!(
                    r#"{{"message":"m","requestedSchema":{{"type":"object","properties":{{"a":{field}}}}}}}"#
                )
            };
            let params = RawValue::from_string(form(field)).unwrap();
            let request = InputRequest::new(InputMethod::ElicitationCreate, params);
            let plain = request.with_plain_form();
            let plain = plain.map(|request| request.params.unwrap().get().to_owned());
            assert_eq!(plain, expected.map(form));
        }
        check(
            r#"{"type":"string","minLength":1}"#,
            Some(r#"{"type":"string","minLength":1}"#),
        );
        check(
            r#"{"type":"integer","default":1}"#,
            Some(r#"{"type":"integer"}"#),
        );
        check(
            r#"{"type":"boolean","default":true}"#,
            Some(r#"{"type":"boolean","default":true}"#),
        );
        check(
            r#"{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}]}"#,
            Some(r#"{"type":"string","enum":["r","g"],"enumNames":["Red","Green"]}"#),
        );
        check(r#"{"type":"array","items":{"enum":["r"]}}"#, None);
    }

    #[test]
    fn questions_need_the_union_of_capabilities() {
        let mut required = ClientCapabilities::default();
        for request in [
            r#"{"method":"sampling/createMessage","params":{"tools":[]}}"#,
            r#"{"method":"sampling/createMessage","params":{}}"#,
            r#"{"method":"elicitation/create","params":{"mode":"url"}}"#,
            r#"{"method":"elicitation/create","params":{}}"#,
        ] {
            let request: InputRequest = serde_json::from_str(request).unwrap();
            request.require(&mut required);
        }
        assert_eq!(
            serde_json::to_string(&required).unwrap(),
            r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}}}"#
        );
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
        for params in [r#"{"tools":[]}"#, r#"{"toolChoice":{"mode":"none"}}"#] {
            check(
                &format!(r#"{{"method":"sampling/createMessage","params":{params}}}"#),
                r#"{"sampling":{"tools":{}}}"#,
            );
        }
        for (context, required) in [
            ("none", r#"{"sampling":{}}"#),
            ("thisServer", r#"{"sampling":{"context":{}}}"#),
            ("allServers", r#"{"sampling":{"context":{}}}"#),
        ] {
            let params = format!(r#"{{"includeContext":"{context}"}}"#);
            check(
                &format!(r#"{{"method":"sampling/createMessage","params":{params}}}"#),
                required,
            );
        }
    }
}
