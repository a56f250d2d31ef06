//! One call through a server in this process, with the messages that any client sends, and
//! answers to the questions of the script. A prompt is got and a resource is read instead.

use std::time::{Duration, Instant};

use mcpd_protocol::jsonrpc::Message;
use mcpd_protocol::method::{InputMethod, InputRequiredResult, InputResponses, Interactive};
use mcpd_protocol::{ProtocolVersion, meta};
use mcpd_server::{Connection, Principal, Reply, Server, ToolNames};
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::ending::{Ending, Observed};
use crate::subject::{Subject, SubjectKind};

/// Maximum number of rounds of questions.
const MAX_ROUNDS: usize = 32;

/// One call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    /// Path of the tool, prompt or resource.
    pub(crate) tool: &'a str,
    pub(crate) subject: &'a Subject,
    pub(crate) arguments: &'a Map<String, Value>,
    pub(crate) answers: &'a Map<String, Value>,
    pub(crate) timeout: Option<Duration>,
}

impl Call<'_> {
    /// Calls the tool, and waits for its result within the time limit.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the call and ends its script.
    pub(crate) async fn send(self, server: &Server) -> Observed {
        let started = Instant::now();
        let rounds = self.rounds(server);
        let observed = match self.timeout {
            None => rounds.await,
            Some(limit) => match tokio::time::timeout(limit, rounds).await {
                Ok(observed) => observed,
                Err(_) => Observed::without_result(Ending::TimedOut(limit)),
            },
        };
        Observed {
            elapsed: started.elapsed(),
            ..observed
        }
    }

    async fn rounds(self, server: &Server) -> Observed {
        let (mut responses, mut state) = (None, None);
        for _ in 0..MAX_ROUNDS {
            let asked = match self.round(server, responses.take(), state.take()).await {
                Ok(Interactive::Complete(observed)) => return observed,
                Ok(Interactive::InputRequired(asked)) => asked,
                Ok(_) => {
                    let why = "it became a task, which a test cannot follow".to_owned();
                    return Observed::without_result(Ending::Failed(why));
                }
                Err(observed) => return observed,
            };
            match self.answer(&asked) {
                Ok(answers) => responses = Some(answers),
                Err(why) => return Observed::without_result(Ending::Unanswered(why)),
            }
            state = asked.request_state;
        }
        let why = format!("the script asked more than {MAX_ROUNDS} times");
        Observed::without_result(Ending::Unanswered(why))
    }

    /// Sends one request, and returns its result.
    async fn round(
        self,
        server: &Server,
        responses: Option<InputResponses>,
        state: Option<String>,
    ) -> Result<Interactive<Observed>, Observed> {
        let failed = |why: String| Observed::without_result(Ending::Failed(why));
        let message = self
            .subject
            .request(self.tool, self.arguments, envelope(), responses, state)
            .map_err(Observed::without_result)?;
        let connection = Connection::open_with(Principal::local(), server, ToolNames::Path, |_| {});
        let answer = match connection.receive(&message) {
            Reply::Ready(answer) => Some(answer),
            Reply::Pending(answer) => answer.await,
            Reply::Nothing => None,
        };
        let answer = answer.ok_or_else(|| failed("there is no response".to_owned()))?;
        let Ok(Message::Response(response)) = Message::decode(&answer) else {
            return Err(failed("the response cannot be read".to_owned()));
        };
        let result = response
            .outcome
            .map_err(|error| Observed::of_error(&error))?;
        let read = match self.subject.kind {
            SubjectKind::Tool => decode(result, Observed::of_result),
            SubjectKind::Prompt => decode(result, Observed::of_prompt),
            SubjectKind::Resource(_) | SubjectKind::Template(_) => {
                decode(result, Observed::of_resource)
            }
        };
        read.map_err(Observed::without_result)
    }

    /// Answers the questions of a script.
    ///
    /// # Errors
    ///
    /// The question that the case does not answer.
    fn answer(self, asked: &InputRequiredResult) -> Result<InputResponses, String> {
        let mut responses = InputResponses::new();
        for (name, question) in asked.input_requests.iter().flatten() {
            let Some(answer) = self.answers.get(name) else {
                let params = question.params.as_deref().map_or("", RawValue::get);
                let params: Value = serde_json::from_str(params).unwrap_or_default();
                let text = params["message"].as_str().unwrap_or_default();
                return Err(format!(
                    "the script asked `{name}` ({text:?}); add `answers.{name}` to the case"
                ));
            };
            let response = response(question.method, answer);
            let response = to_raw_value(&response).map_err(|error| error.to_string())?;
            responses.insert(name.clone(), response);
        }
        Ok(responses)
    }
}

/// Reads the result of a method.
fn decode<R: DeserializeOwned>(
    result: &RawValue,
    observe: impl FnOnce(&R) -> Observed,
) -> Result<Interactive<Observed>, Ending>
where
    Interactive<R>: DeserializeOwned,
{
    match serde_json::from_str(result.get()) {
        Ok(Interactive::Complete(result)) => Ok(Interactive::Complete(observe(&result))),
        Ok(Interactive::InputRequired(asked)) => Ok(Interactive::InputRequired(asked)),
        Ok(Interactive::Task(task)) => Ok(Interactive::Task(task)),
        Ok(_) => Err(Ending::Failed(
            "the result is of an unknown kind".to_owned(),
        )),
        Err(error) => Err(Ending::Failed(error.to_string())),
    }
}

/// Converts an answer of a case to the result of the question.
fn response(method: InputMethod, answer: &Value) -> Value {
    match (method, answer) {
        (InputMethod::ElicitationCreate, Value::Object(_)) => {
            json!({"action": "accept", "content": answer})
        }
        (InputMethod::ElicitationCreate, _) => json!({"action": answer}),
        (InputMethod::SamplingCreateMessage, Value::String(_)) => {
            json!({"role": "assistant", "model": "mcpd test", "content": {"type": "text", "text": answer}})
        }
        (InputMethod::RootsList, Value::Array(uris)) => {
            let roots: Vec<_> = uris.iter().map(|uri| json!({"uri": uri})).collect();
            json!({"roots": roots})
        }
        _ => answer.clone(),
    }
}

/// The `_meta` of a request of a client that answers every kind of question.
fn envelope() -> Box<RawValue> {
    let meta = json!({
        meta::PROTOCOL_VERSION: ProtocolVersion::LATEST.as_str(),
        meta::CLIENT_CAPABILITIES: {
            "elicitation": {"form": {}, "url": {}},
            "sampling": {},
            "roots": {},
        },
        meta::CLIENT_INFO: {"name": "mcpd test", "version": env!("CARGO_PKG_VERSION")},
    });
    to_raw_value(&meta).expect("a JSON value has string keys only")
}
