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

use mcpd_protocol::ClientCapabilities;
use mcpd_protocol::content::Role;
use mcpd_protocol::jsonrpc::{ErrorCode, ErrorObject};
use mcpd_protocol::method::{
    CallToolResult, InputMethod, InputRequest, InputRequests, InputRequiredResult, InputResponses,
    Interactive,
};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::client::questions::Unanswered;
use crate::client::request::context::Context;
use crate::client::session::Session;
pub(crate) use crate::execution::seal::{Binding, Seal};
use crate::support::random_id;

/// Maximum number of rounds of one call where the client does not limit them: on the stateful
/// wire, and in a task.
pub(crate) const MAX_ROUNDS: usize = 32;

/// Result of one run.
#[derive(Debug)]
pub(crate) enum RunResult<R> {
    /// Final result.
    Complete(R),
    /// Questions.
    Ask(InputQuestions),
    /// Rejection by the script, as an error of the protocol.
    Refused(ErrorObject),
}

/// Questions of a script, and the state that it wants back with the answers.
#[derive(Debug)]
pub(crate) struct InputQuestions {
    pub(crate) requests: InputRequests,
    pub(crate) state: Option<Box<RawValue>>,
}

/// Input of a run from the rounds before it.
#[derive(Debug, Clone, Default)]
pub(crate) struct RoundInput {
    pub(crate) responses: Option<InputResponses>,
    pub(crate) state: Option<Box<RawValue>>,
}

/// Part of a request that resumes earlier rounds, not yet validated.
#[derive(Debug, Default)]
pub(crate) struct Resumption {
    pub(crate) responses: Option<InputResponses>,
    pub(crate) state: Option<String>,
}

impl Resumption {
    /// Returns whether nothing is resumed.
    pub(crate) fn is_empty(&self) -> bool {
        self.responses.is_none() && self.state.is_none()
    }
}

/// Reason for a missing result.
#[derive(Debug)]
pub(crate) enum CallFailure {
    /// Error in response to the request.
    Error(ErrorObject),
    /// The script did not run, or its questions were not answered; a tool reports this in a
    /// result.
    NoResult(String),
    /// The script may have run, and its end is not known; a tool reports this in a result.
    Unknown(String),
    /// Nothing was run, as another version of the script has replaced it; a tool reports this in a
    /// result.
    Replaced(String),
}

/// Member of a result's `_meta` for a call that another version of the tool may take.
pub(crate) const REPLACED: &str = "mcpd/replaced";
/// Member of a result's `_meta` for a call that may have run, or not.
const UNKNOWN: &str = "mcpd/unknown";

impl CallFailure {
    /// Converts the failure to the result of a tool, or to an error in its place.
    pub(crate) fn into_tool_result(self) -> Result<CallToolResult, ErrorObject> {
        match self {
            Self::Error(error) => Err(error),
            Self::NoResult(reason) => Ok(CallToolResult::error(reason)),
            Self::Unknown(reason) => {
                let mut result = CallToolResult::error(reason);
                result.meta.other.insert(UNKNOWN.to_owned(), true.into());
                Ok(result)
            }
            Self::Replaced(reason) => {
                let mut result = CallToolResult::error(reason);
                result.meta.other.insert(REPLACED.to_owned(), true.into());
                Ok(result)
            }
        }
    }
}

/// Conversion for methods whose results cannot express a failure.
impl From<CallFailure> for ErrorObject {
    fn from(failure: CallFailure) -> Self {
        match failure {
            CallFailure::Error(error) => error,
            CallFailure::NoResult(reason) => Self::internal_error(reason),
            CallFailure::Unknown(reason) => {
                Self::internal_error(reason).with_data(&serde_json::json!({ UNKNOWN: true }))
            }
            CallFailure::Replaced(reason) => {
                Self::internal_error(reason).with_data(&serde_json::json!({ REPLACED: true }))
            }
        }
    }
}

impl From<ErrorObject> for CallFailure {
    fn from(error: ErrorObject) -> Self {
        Self::Error(error)
    }
}

/// Runs until there is a result, or questions for a client that repeats the request with answers.
///
/// # Errors
///
/// See [`CallFailure`].
pub(crate) async fn run_rounds<R, F>(
    seal: &Seal,
    context: &Context,
    binding: Binding<'_>,
    resumption: Resumption,
    run: impl Fn(RoundInput) -> F,
) -> Result<Interactive<R>, CallFailure>
where
    F: Future<Output = Result<RunResult<R>, CallFailure>>,
{
    let mut input = validate_resumption(seal, binding, resumption)?;
    for _ in 0..MAX_ROUNDS {
        let questions = match run(input).await? {
            RunResult::Complete(result) => return Ok(Interactive::Complete(result)),
            RunResult::Refused(error) => return Err(error.into()),
            RunResult::Ask(questions) => questions,
        };
        let Some(session) = &context.session else {
            return build_question_result(seal, context, binding, questions)
                .map(Interactive::InputRequired);
        };
        input = ask_client(session, context, questions).await?;
    }
    Err(CallFailure::NoResult(format!(
        "the script asked for input more than {MAX_ROUNDS} times"
    )))
}

/// Validates the answers and the state from the client.
fn validate_resumption(
    seal: &Seal,
    binding: Binding<'_>,
    resumption: Resumption,
) -> Result<RoundInput, ErrorObject> {
    for (key, response) in resumption.responses.iter().flatten() {
        check_response(key, response, None)?;
    }
    let state = resumption
        .state
        .map(|state| seal.unseal(&state, binding))
        .transpose()?;
    Ok(RoundInput {
        responses: resumption.responses,
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
            is::<ElicitResult> as fn(&RawValue) -> bool,
            "an `action` that is `accept`, `decline` or `cancel`, with an object as optional `content`",
        ),
        (
            InputMethod::RootsList,
            is::<RootsResult>,
            "`roots`, each with a `uri`",
        ),
        (
            InputMethod::SamplingCreateMessage,
            is::<SamplingResult>,
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

type AnyObject = BTreeMap<String, IgnoredAny>;

/// Answer of a person.
#[derive(Deserialize)]
#[expect(dead_code, reason = "only that it is there, and what it is, matters")]
struct ElicitResult {
    action: ElicitAction,
    content: Option<AnyObject>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum ElicitAction {
    Accept,
    Decline,
    Cancel,
}

/// Directories that the client works in.
#[derive(Deserialize)]
#[expect(dead_code, reason = "only that it is there, and what it is, matters")]
struct RootsResult {
    roots: Vec<AnyRoot>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only that it is there, and what it is, matters")]
struct AnyRoot {
    uri: String,
}

/// Answer of a model.
#[derive(Deserialize)]
#[expect(dead_code, reason = "only that it is there, and what it is, matters")]
struct SamplingResult {
    role: Role,
    content: OneOrMany,
    model: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
#[expect(dead_code, reason = "only that it is there, and what it is, matters")]
enum OneOrMany {
    One(AnyObject),
    More(Vec<AnyObject>),
}

/// Builds the result with the questions, for a client that supports them.
fn build_question_result(
    seal: &Seal,
    context: &Context,
    binding: Binding<'_>,
    questions: InputQuestions,
) -> Result<InputRequiredResult, CallFailure> {
    // "Servers MUST NOT send an `inputRequests` that the client has not declared support for"
    // -- 2026-07-28/basic/patterns/mrtr
    let mut required = ClientCapabilities::default();
    for request in questions.requests.values() {
        request.require(&mut required);
    }
    require_capabilities(&context.capabilities, &required)?;
    let mut result = InputRequiredResult::new(questions.requests);
    result.input_requests = result.input_requests.filter(|asked| !asked.is_empty());
    result.request_state = questions
        .state
        .map(|state| seal.seal_state(state, binding))
        .transpose()?;
    Ok(result)
}

/// Checks that the client has declared `required`.
///
/// # Errors
///
/// `-32021` with the missing capabilities.
pub(crate) fn require_capabilities(
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
pub(crate) fn message_without_capabilities(error: ErrorObject) -> Cow<'static, str> {
    if error.code != ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY {
        return error.message;
    }
    // The only extension is tasks. All other capabilities are about questions.
    let data = error.data.as_deref().map(RawValue::get);
    let data: Value = serde_json::from_str(data.unwrap_or_default()).unwrap_or_default();
    Cow::Borrowed(match data["requiredCapabilities"]["extensions"].is_null() {
        true => "the tool asks for input, which this caller cannot give",
        false => "the tool runs only as a task",
    })
}

/// Sends the questions to the client now, one after the other.
async fn ask_client(
    session: &Session,
    context: &Context,
    questions: InputQuestions,
) -> Result<RoundInput, CallFailure> {
    let mut responses = InputResponses::new();
    for (key, request) in questions.requests {
        if !session
            .capabilities
            .covers(&request.required_capabilities())
        {
            let method = request.method.name();
            return Err(CallFailure::NoResult(format!(
                "the client does not support `{method}`"
            )));
        }
        let request = adapt_to_session(session, request).ok_or_else(|| {
            let reason = "the client does not support multiple-choice questions";
            CallFailure::NoResult(reason.to_owned())
        })?;
        let response = match session.questions.ask(&context.peer.outbox, &request).await {
            Ok(response) => response,
            Err(Unanswered::Declined(error)) => declined_response(&request, &error)?,
            Err(Unanswered::TimedOut(limit)) => {
                let reason = format!("the client did not answer within {limit:?}");
                declined_response(&request, &ErrorObject::internal_error(reason))?
            }
            Err(Unanswered::NotAsked(reason)) => {
                return Err(unanswered_failure(request.method, &reason));
            }
        };
        check_response(&key, &response, Some(request.method))
            .map_err(|error| CallFailure::NoResult(error.message.into_owned()))?;
        responses.insert(key, response);
    }
    Ok(RoundInput {
        responses: Some(responses),
        state: questions.state,
    })
}

/// Converts a question to the revision of a session; `None` for one that the revision cannot
/// express.
pub(crate) fn adapt_to_session(session: &Session, request: InputRequest) -> Option<InputRequest> {
    let request = request.with_elicitation_id(random_id::new());
    match session.version.has_rich_forms() {
        true => Some(request),
        false => request.with_plain_form(),
    }
}

/// Treats a person's refusal as an answer; a client's inability is a failure.
fn declined_response(
    request: &InputRequest,
    error: &ErrorObject,
) -> Result<Box<RawValue>, CallFailure> {
    let cancelled = RawValue::from_string(r#"{"action":"cancel"}"#.to_owned());
    match (request.method, cancelled) {
        (InputMethod::ElicitationCreate, Ok(cancelled)) => Ok(cancelled),
        (method, _) => Err(unanswered_failure(method, error)),
    }
}

fn unanswered_failure(method: InputMethod, error: &dyn Display) -> CallFailure {
    CallFailure::NoResult(format!("`{}` failed: {error}", method.name()))
}
