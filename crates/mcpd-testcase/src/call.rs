//! One call through a server in this process, with the messages that any client sends, and
//! answers to the questions of the script.

use std::time::{Duration, Instant};

use mcpd_protocol::jsonrpc::{self, ErrorCode, Message, RequestId};
use mcpd_protocol::method::{
    CallToolRequest, CallToolRequestParams, CallToolResult, InputMethod, InputRequiredResult,
    InputResponses, Interactive,
};
use mcpd_protocol::{Method as _, ProtocolVersion, meta};
use mcpd_server::{Connection, Principal, Reply, Server, ToolNames};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::ending::{Ending, Observed};

/// Maximum number of rounds of questions.
const MAX_ROUNDS: usize = 32;

/// One call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) tool: &'a str,
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
                Ok(Interactive::Complete(result)) => return Observed::of_result(&result),
                Ok(Interactive::InputRequired(asked)) => asked,
                Ok(_) => {
                    let why = "it became a task, which a test cannot follow".to_owned();
                    return Observed::without_result(Ending::Failed(why));
                }
                Err(ending) => return Observed::without_result(ending),
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
    ) -> Result<Interactive<CallToolResult>, Ending> {
        let failed = |error: serde_json::Error| Ending::Failed(error.to_string());
        let mut params = CallToolRequestParams::new(self.tool)
            .with_arguments(to_raw_value(self.arguments).map_err(failed)?);
        params.meta = Some(envelope());
        params.input_responses = responses;
        params.request_state = state;
        let id = RequestId::from(1);
        let message = jsonrpc::request(&id, CallToolRequest::NAME, &params).map_err(failed)?;
        let connection = Connection::open_with(Principal::local(), server, ToolNames::Path, |_| {});
        let answer = match connection.receive(&message) {
            Reply::Ready(answer) => Some(answer),
            Reply::Pending(answer) => answer.await,
            Reply::Nothing => None,
        };
        let answer = answer.ok_or_else(|| Ending::Failed("there is no response".to_owned()))?;
        let Ok(Message::Response(response)) = Message::decode(&answer) else {
            return Err(Ending::Failed("the response cannot be read".to_owned()));
        };
        let result = response.outcome.map_err(|error| {
            let text = error.message.into_owned();
            match error.code {
                ErrorCode::INVALID_PARAMS => Ending::Refused(text),
                _ => Ending::Failed(text),
            }
        })?;
        serde_json::from_str(result.get()).map_err(failed)
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
