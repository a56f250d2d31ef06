//! Input rounds: scripts that ask before they return a result. A script runs, returns a result or
//! questions, and runs again with the answers: on the stateless wire the client repeats the
//! request with its answers, on the stateful wire it is asked within the request.
//!
//! ```text
//! request ──► run ──► result
//!             ▲  │
//!     answers │  └──► questions ──► stateless: returned to the client, with sealed state
//!             │                     stateful: sent to the client at once
//!             └──────────────────────────────────┘
//! ```

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;

use mcpd_protocol::jsonrpc::{ErrorCode, ErrorObject};
use mcpd_protocol::{
    CallToolResult, ClientCapabilities, InputMethod, InputRequest, InputRequests,
    InputRequiredResult, InputResponses, Interactive, Role,
};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::Server;
use crate::context::Context;
use crate::id;
use crate::questions::Unanswered;
pub(crate) use crate::seal::Binding;
use crate::session::Session;

/// Maximum number of rounds of one call where the client does not limit them: on the stateful
/// wire, and in a task.
pub(crate) const MAX_ROUNDS: usize = 32;

/// Result of one run.
#[derive(Debug)]
pub(crate) enum Produced<R> {
    /// Final result.
    Complete(R),
    /// Questions.
    Ask(Question),
    /// Rejection by the script, as an error of the protocol.
    Refused(ErrorObject),
}

/// Questions of a script, and the state that it wants back with the answers.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) requests: InputRequests,
    pub(crate) state: Option<Box<RawValue>>,
}

/// Input of a run from the rounds before it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answers {
    pub(crate) responses: Option<InputResponses>,
    pub(crate) state: Option<Box<RawValue>>,
}

/// Part of a request that resumes earlier rounds, not yet validated.
#[derive(Debug, Default)]
pub(crate) struct Brought {
    pub(crate) responses: Option<InputResponses>,
    pub(crate) state: Option<String>,
}

/// Reason for a missing result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Error in response to the request.
    Error(ErrorObject),
    /// The script did not run, or its questions were not answered; a tool reports this in a
    /// result.
    NoResult(String),
}

impl Failure {
    /// Converts the failure to the result of a tool, or to an error in its place.
    pub(crate) fn told_by_tool(self) -> Result<CallToolResult, ErrorObject> {
        match self {
            Self::Error(error) => Err(error),
            Self::NoResult(reason) => Ok(CallToolResult::error(reason)),
        }
    }
}

/// Conversion for methods whose results cannot express a failure.
impl From<Failure> for ErrorObject {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Error(error) => error,
            Failure::NoResult(reason) => Self::internal_error(reason),
        }
    }
}

impl From<ErrorObject> for Failure {
    fn from(error: ErrorObject) -> Self {
        Self::Error(error)
    }
}

/// Runs until there is a result, or questions for a client that repeats the request with answers.
///
/// # Errors
///
/// See [`Failure`].
pub(crate) async fn interact<R, F>(
    server: &Server,
    context: &Context,
    binding: Binding<'_>,
    brought: Brought,
    run: impl Fn(Answers) -> F,
) -> Result<Interactive<R>, Failure>
where
    F: Future<Output = Result<Produced<R>, Failure>>,
{
    let mut answers = open(server, binding, brought)?;
    for _ in 0..MAX_ROUNDS {
        let question = match run(answers).await? {
            Produced::Complete(result) => return Ok(Interactive::Complete(result)),
            Produced::Refused(error) => return Err(error.into()),
            Produced::Ask(question) => question,
        };
        let Some(session) = &context.session else {
            return close(server, context, binding, question).map(Interactive::InputRequired);
        };
        answers = ask(session, context, question).await?;
    }
    Err(Failure::NoResult(format!(
        "the script asked more than {MAX_ROUNDS} times"
    )))
}

/// Validates the answers and the state from the client.
fn open(server: &Server, binding: Binding<'_>, brought: Brought) -> Result<Answers, ErrorObject> {
    for (key, response) in brought.responses.iter().flatten() {
        check_response(key, response, None)?;
    }
    let state = brought
        .state
        .map(|state| server.seal().open(&state, binding))
        .transpose()?;
    Ok(Answers {
        responses: brought.responses,
        state,
    })
}

/// Checks that an answer has the shape of the result of its question. If only the script knows
/// which question that is, any of the three shapes will do.
pub(crate) fn check_response(
    key: &str,
    response: &RawValue,
    question: Option<InputMethod>,
) -> Result<(), ErrorObject> {
    fn is<T: DeserializeOwned>(response: &RawValue) -> bool {
        // A struct would also deserialize from an array.
        response.get().starts_with('{') && serde_json::from_str::<T>(response.get()).is_ok()
    }
    let shapes = [
        (
            InputMethod::ElicitationCreate,
            is::<Elicited> as fn(&RawValue) -> bool,
            "an `action` that is `accept`, `decline` or `cancel`, with an object as `content` if any",
        ),
        (
            InputMethod::RootsList,
            is::<Listed>,
            "`roots` with a `uri` each",
        ),
        (
            InputMethod::SamplingCreateMessage,
            is::<Sampled>,
            "`role`, `content` and `model`",
        ),
    ];
    let mut expected = Vec::new();
    for (method, fits, shape) in shapes {
        if question.is_none_or(|question| question == method) {
            if fits(response) {
                return Ok(());
            }
            expected.push(shape);
        }
    }
    Err(ErrorObject::invalid_params(format!(
        "the input response `{key}` must have {}",
        expected.join(", or else ")
    )))
}

type Object = BTreeMap<String, IgnoredAny>;

/// Answer of a person.
#[derive(Deserialize)]
#[expect(dead_code, reason = "only that it is there, and what it is, matters")]
struct Elicited {
    action: Action,
    content: Option<Object>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Accept,
    Decline,
    Cancel,
}

/// Directories that the client works in.
#[derive(Deserialize)]
#[expect(dead_code, reason = "only that it is there, and what it is, matters")]
struct Listed {
    roots: Vec<Root>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only that it is there, and what it is, matters")]
struct Root {
    uri: String,
}

/// Answer of a model.
#[derive(Deserialize)]
#[expect(dead_code, reason = "only that it is there, and what it is, matters")]
struct Sampled {
    role: Role,
    content: OneOrMore,
    model: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
#[expect(dead_code, reason = "only that it is there, and what it is, matters")]
enum OneOrMore {
    One(Object),
    More(Vec<Object>),
}

/// Builds the result with the questions, for a client that supports them.
fn close(
    server: &Server,
    context: &Context,
    binding: Binding<'_>,
    question: Question,
) -> Result<InputRequiredResult, Failure> {
    // "Servers MUST NOT send an `inputRequests` that the client has not declared support for"
    // -- 2026-07-28/basic/patterns/mrtr
    let mut required = ClientCapabilities::default();
    for request in question.requests.values() {
        request.require(&mut required);
    }
    require(&context.capabilities, &required)?;
    let mut result = InputRequiredResult::new(question.requests);
    result.input_requests = result.input_requests.filter(|asked| !asked.is_empty());
    result.request_state = question
        .state
        .map(|state| server.seal().close(state, binding))
        .transpose()?;
    Ok(result)
}

/// Checks that the client has declared `required`.
///
/// # Errors
///
/// `-32021` with the missing capabilities.
pub(crate) fn require(
    declared: &ClientCapabilities,
    required: &ClientCapabilities,
) -> Result<(), ErrorObject> {
    if declared.covers(required) {
        Ok(())
    } else {
        Err(ErrorObject::missing_required_client_capability(required))
    }
}

/// Message of an error for a caller that cannot declare capabilities.
pub(crate) fn reason(error: ErrorObject) -> Cow<'static, str> {
    if error.code != ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY {
        return error.message;
    }
    // The only extension is tasks. All other capabilities are about questions.
    let data = error.data.as_deref().map(RawValue::get);
    let data: Value = serde_json::from_str(data.unwrap_or_default()).unwrap_or_default();
    Cow::Borrowed(match data["requiredCapabilities"]["extensions"].is_null() {
        true => "the tool asks something, which nobody can answer here",
        false => "the tool runs in the background only",
    })
}

/// Sends the questions to the client now, one after the other.
async fn ask(session: &Session, context: &Context, question: Question) -> Result<Answers, Failure> {
    let mut responses = InputResponses::new();
    for (key, request) in question.requests {
        if !session
            .capabilities
            .covers(&request.required_capabilities())
        {
            let method = request.method.name();
            return Err(Failure::NoResult(format!(
                "the client does not support `{method}`"
            )));
        }
        let request = request.with_elicitation_id(id::random());
        let request = match session.version.has_rich_forms() {
            true => request,
            false => request.with_plain_form().ok_or_else(|| {
                let reason = "the client does not support questions with several choices";
                Failure::NoResult(reason.to_owned())
            })?,
        };
        let response = match session.questions.ask(&context.side.outbox, &request).await {
            Ok(response) => response,
            Err(Unanswered::Declined(error)) => declined(&request, &error)?,
            Err(Unanswered::NotAsked(reason)) => return Err(failed(request.method, &reason)),
        };
        check_response(&key, &response, Some(request.method))
            .map_err(|error| Failure::NoResult(error.message.into_owned()))?;
        responses.insert(key, response);
    }
    Ok(Answers {
        responses: Some(responses),
        state: question.state,
    })
}

/// Treats a person's refusal as an answer; a client's inability is a failure.
fn declined(request: &InputRequest, error: &ErrorObject) -> Result<Box<RawValue>, Failure> {
    let cancelled = RawValue::from_string(r#"{"action":"cancel"}"#.to_owned());
    match (request.method, cancelled) {
        (InputMethod::ElicitationCreate, Ok(cancelled)) => Ok(cancelled),
        (method, _) => Err(failed(method, error)),
    }
}

fn failed(method: InputMethod, error: &dyn Display) -> Failure {
    Failure::NoResult(format!("`{}` failed: {error}", method.name()))
}
