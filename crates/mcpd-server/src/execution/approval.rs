//! Approval of a call by a person before anything runs (human in the loop). The question is an
//! elicitation; the answer reaches the call in one of these ways:
//!
//! ```text
//! call ──► sealed state: approved ─────────────────────────────► run
//!   ├────► sealed state: asked, with an answer ──┬─ accept ────► run
//!   ├────► remembered answer ───────────────────────────────────► run
//!   ├────► stateful: the client is asked now ────┼─ accept ────► run
//!   │                                            └─ any other ─► error for the model
//!   ├────► stateless: question to the client, with sealed state: asked
//!   └────► client that cannot ask ──► error for the model, or run if the operator says so
//! ```
//!
//! A script that asks questions of its own gets its rounds after that: its state travels inside
//! the sealed state of the approval, so that no round asks again. A state belongs to one caller,
//! tool and set of arguments, and counts once.

mod question;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use mcpd_protocol::Wire;
use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::method::{
    CallToolResult, InputMethod, InputRequest, InputRequests, InputRequiredResult, Interactive,
};
use mcpd_scriptspec::{ScriptPath, ScriptSpec};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use sha2::{Digest as _, Sha256};

use crate::client::approvals::{ApprovedCalls, RememberedApprovals, UsedAnswers};
use crate::client::questions::Unanswered;
use crate::client::request::context::Context;
use crate::client::session::Session;
use crate::execution::engine::Engine;
use crate::execution::input_rounds::{self, Binding, Resumption};
use crate::execution::seal::now;
use crate::message::arguments::arguments_text;
use crate::message::call::{CallEnding, CallFuture};
use crate::observe::approval::ApprovalStep;
use crate::policy::Policy;
use crate::policy::approval::{Approval, ApprovalRules, Remember, WithoutPerson};
use crate::support::random_id;
use crate::support::sync::unless_cancelled;
use question::{Answer, Choices};

/// Approvals of one server.
#[derive(Debug, Default)]
pub(crate) struct Approvals {
    rules: ArcSwap<ApprovalRules>,
    remembered: RememberedApprovals,
    used: UsedAnswers,
}

impl Approvals {
    /// Replaces the rules by those of `policy`.
    pub(crate) fn reload(&self, policy: &Policy) {
        self.rules.store(Arc::new(ApprovalRules::new(policy)));
    }

    /// Current rules.
    pub(crate) fn rules(&self) -> Arc<ApprovalRules> {
        self.rules.load_full()
    }
}

/// Call that a person must approve, as the question describes it.
#[derive(Debug)]
pub(crate) struct CallToApprove {
    pub(crate) path: ScriptPath,
    /// Title for people.
    pub(crate) title: Option<String>,
    /// Declaration of a script, with its secrets.
    pub(crate) spec: Option<Arc<ScriptSpec>>,
    pub(crate) arguments: Option<Box<RawValue>>,
}

/// Gate in front of a call: opens when the call is approved.
#[derive(Debug)]
pub(crate) struct ApprovalGate {
    engine: Arc<Engine>,
    context: Context,
    settings: Approval,
    call: CallToApprove,
    /// Path in the request, and its arguments in canonical form: they may name another call.
    requested: (ScriptPath, Vec<u8>),
    presented: Presented,
}

/// Answer that came with the request, not yet judged.
#[derive(Debug)]
enum Presented {
    Nothing,
    /// Answer to a question, by a deadline in seconds since the epoch.
    Answer {
        id: String,
        deadline: u64,
        answer: Box<RawValue>,
    },
    /// Approval of an earlier round.
    Approval {
        id: String,
    },
}

/// State that a client of the stateless wire carries.
#[derive(Serialize, Deserialize)]
struct ApprovalState {
    id: String,
    /// Time limit for the answer, in seconds since the epoch; `None` if the call is approved.
    deadline: Option<u64>,
    /// State of the script, sealed for itself.
    state: Option<String>,
}

impl ApprovalState {
    fn new(deadline: Option<u64>, state: Option<String>) -> Self {
        Self {
            id: random_id::new(),
            deadline,
            state,
        }
    }
}

impl ApprovalGate {
    /// Sets up the gate before `call`, and returns the part of the resumption that is the
    /// script's. `requested` are the path and arguments of the request.
    ///
    /// # Errors
    ///
    /// `-32602` for a state of another request, or a malformed answer.
    pub(crate) fn new(
        engine: &Arc<Engine>,
        context: &Context,
        call: CallToApprove,
        (path, arguments): (&ScriptPath, Option<&RawValue>),
        resumption: Resumption,
    ) -> Result<(Self, Resumption), ErrorObject> {
        let mut gate = Self {
            engine: Arc::clone(engine),
            context: context.clone(),
            settings: engine.approvals.rules().settings.clone(),
            call,
            requested: (path.clone(), canonical(arguments)),
            presented: Presented::Nothing,
        };
        let rest = gate.read_resumption(resumption)?;
        Ok((gate, rest))
    }

    fn read_resumption(&mut self, resumption: Resumption) -> Result<Resumption, ErrorObject> {
        let Resumption {
            mut responses,
            state: Some(state),
        } = resumption
        else {
            // A state belongs to every round of a call that needs approval.
            return Ok(Resumption::default());
        };
        let state = self.engine.seal.unseal(&state, self.binding())?;
        let invalid = |_| ErrorObject::internal_error("the state of an approval is unreadable");
        let state: ApprovalState = serde_json::from_str(state.get()).map_err(invalid)?;
        let Some(deadline) = state.deadline else {
            self.presented = Presented::Approval { id: state.id };
            return Ok(Resumption {
                responses,
                state: state.state,
            });
        };
        let answer = responses
            .as_mut()
            .and_then(|all| all.remove(Approval::QUESTION_KEY));
        if let Some(answer) = answer {
            check_answer(&answer)?;
            self.presented = Presented::Answer {
                id: state.id,
                deadline,
                answer,
            };
        }
        Ok(Resumption::default())
    }

    /// Runs the call if it is approved.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future withdraws the question, or ends the run.
    pub(crate) async fn run(self, run: CallFuture) -> CallEnding {
        let step = self.decide().await;
        self.record(&step);
        match step {
            Decision::Run(_) => match run.await? {
                Interactive::InputRequired(asked) => {
                    let state = ApprovalState::new(None, asked.request_state.clone());
                    self.with_state(asked, &state)
                }
                ended => Ok(ended),
            },
            Decision::Ask(question) => {
                let deadline = now().saturating_add(self.settings.timeout.as_secs().max(1));
                let requests = InputRequests::from([(Approval::QUESTION_KEY.to_owned(), question)]);
                let state = ApprovalState::new(Some(deadline), None);
                self.with_state(InputRequiredResult::new(requests), &state)
            }
            Decision::Refuse(step, reason) => Ok(self.refusal(step, &reason).into()),
        }
    }

    async fn decide(&self) -> Decision {
        let used = &self.engine.approvals.used;
        match &self.presented {
            Presented::Approval { id } if used.mark_used(id) => {
                return Decision::Run(ApprovalStep::Granted);
            }
            Presented::Answer { deadline, .. } if *deadline < now() => {
                return Decision::timed_out(self.settings.timeout);
            }
            Presented::Answer { id, answer, .. } if used.mark_used(id) => {
                return self.apply_answer(answer);
            }
            // An answer that was used before counts no more.
            _ => {}
        }
        if self.is_remembered() {
            return Decision::Run(ApprovalStep::Remembered);
        }
        let question = self.question();
        let required = question.required_capabilities();
        if !self.context.capabilities.covers(&required) {
            return self.step_without_person();
        }
        match (&self.context.session, self.context.version.wire()) {
            (Some(session), _) => self.ask_now(session, question).await,
            (None, Wire::Stateless) => Decision::Ask(question),
            (None, Wire::Stateful) => self.step_without_person(),
        }
    }

    fn step_without_person(&self) -> Decision {
        match self.settings.without {
            WithoutPerson::Refuse => Decision::Refuse(ApprovalStep::Refused, String::new()),
            WithoutPerson::Allow => Decision::Run(ApprovalStep::Unasked),
        }
    }

    /// Asks the client of a session, and waits for the answer.
    async fn ask_now(&self, session: &Session, question: InputRequest) -> Decision {
        let Some(question) = input_rounds::adapt_to_session(session, question) else {
            return self.step_without_person();
        };
        let limit = self.settings.timeout;
        let outbox = &self.context.peer.outbox;
        let asked = session.questions.ask_within(outbox, &question, limit);
        let failed = |reason: String| Decision::Refuse(ApprovalStep::Failed, reason);
        // A client that has closed its channel sends no answer.
        match unless_cancelled(&self.context.peer.closing, asked).await {
            Some(Ok(answer)) => match check_answer(&answer) {
                Ok(()) => self.apply_answer(&answer),
                Err(error) => failed(error.message.into_owned()),
            },
            Some(Err(Unanswered::TimedOut(limit))) => Decision::timed_out(limit),
            Some(Err(Unanswered::Declined(error))) => failed(error.message.into_owned()),
            Some(Err(Unanswered::NotAsked(reason))) => failed(reason.to_owned()),
            None => failed("the client is disconnected".to_owned()),
        }
    }

    /// Interprets an answer, and remembers it if the person says so.
    fn apply_answer(&self, answer: &RawValue) -> Decision {
        let answer = Answer::read(answer);
        let arguments = match answer {
            Answer::Declined => return Decision::Refuse(ApprovalStep::Declined, String::new()),
            Answer::Cancelled => return Decision::Refuse(ApprovalStep::Cancelled, String::new()),
            Answer::Once => return Decision::Run(ApprovalStep::Granted),
            Answer::ForArguments => Some(self.digest()),
            Answer::ForTool => None,
        };
        let Some((approvals, _)) = self.memory() else {
            return Decision::Run(ApprovalStep::Granted);
        };
        approvals.remember(self.calls(arguments));
        Decision::Run(match answer {
            Answer::ForTool => ApprovalStep::GrantedForTool,
            _ => ApprovalStep::GrantedForArguments,
        })
    }

    fn question(&self) -> InputRequest {
        let choices = match (self.memory(), self.settings.remember) {
            (None, _) => Choices::None,
            (Some(_), Remember::For(lifetime)) => Choices::For(lifetime),
            (Some(_), _) => Choices::Session,
        };
        question::question(&self.call, choices)
    }

    /// Returns where answers are remembered, and for how long.
    fn memory(&self) -> Option<(&RememberedApprovals, Option<Duration>)> {
        match self.settings.remember {
            Remember::Never => None,
            // A session without `initialize` may be over after one request.
            Remember::Session => {
                let session = self.context.introduced_session()?;
                Some((&session.approvals, None))
            }
            Remember::For(lifetime) => Some((&self.engine.approvals.remembered, Some(lifetime))),
        }
    }

    fn is_remembered(&self) -> bool {
        let Some((approvals, lifetime)) = self.memory() else {
            return false;
        };
        approvals.cover(&self.calls(None), lifetime)
            || approvals.cover(&self.calls(Some(self.digest())), lifetime)
    }

    fn calls(&self, arguments: Option<[u8; 32]>) -> ApprovedCalls {
        ApprovedCalls {
            caller: self.context.peer.principal.name().to_owned(),
            tool: self.call.path.to_string(),
            arguments,
        }
    }

    fn digest(&self) -> [u8; 32] {
        Sha256::digest(canonical(self.call.arguments.as_deref())).into()
    }

    fn binding(&self) -> Binding<'_> {
        Binding {
            principal: self.context.peer.principal.name(),
            // No state of a script passes for one of an approval.
            method: "approval",
            name: self.requested.0.as_str(),
            arguments: &self.requested.1,
        }
    }

    fn with_state(&self, mut asked: InputRequiredResult, state: &ApprovalState) -> CallEnding {
        let state = to_raw_value(state).map_err(|_| {
            ErrorObject::internal_error("the state of an approval could not be encoded")
        })?;
        let sealed = self.engine.seal.seal_state(state, self.binding())?;
        asked.request_state = Some(sealed);
        Ok(Interactive::InputRequired(asked))
    }

    fn record(&self, step: &Decision) {
        let step = match step {
            Decision::Run(step) | Decision::Refuse(step, _) => *step,
            Decision::Ask(_) => ApprovalStep::Asked,
        };
        self.context.record.set_approval(step);
        self.engine.observers.metrics.count_approval(step);
    }

    /// Result for the model of a call that did not run.
    fn refusal(&self, step: ApprovalStep, reason: &str) -> CallToolResult {
        let path = &self.call.path;
        let why = match step {
            ApprovalStep::Declined => {
                "a person was asked to approve it and declined. Do not call it again unless the user asks for it".to_owned()
            }
            ApprovalStep::Cancelled => {
                "the question to a person whether it may run was dismissed without an answer".to_owned()
            }
            ApprovalStep::TimedOut => format!("a person was asked to approve it, and {reason}"),
            ApprovalStep::Failed => {
                format!("it needs the approval of a person, and the client could not ask: {reason}")
            }
            _ => format!(
                "it needs the approval of a person, and this client cannot ask for it. The operator can let it run without approval by `match = \"{path}\"` and `approval = \"never\"` in a `[[tool]]` of mcpd.toml"
            ),
        };
        CallToolResult::error(format!("`{path}` was not called: {why}."))
    }
}

/// Decision about a call.
#[derive(Debug)]
enum Decision {
    Run(ApprovalStep),
    /// Question for a client of the stateless wire.
    Ask(InputRequest),
    /// Refusal, with details for its message.
    Refuse(ApprovalStep, String),
}

impl Decision {
    fn timed_out(limit: Duration) -> Self {
        let reason = format!("there was no answer within {limit:?}");
        Self::Refuse(ApprovalStep::TimedOut, reason)
    }
}

fn check_answer(answer: &RawValue) -> Result<(), ErrorObject> {
    input_rounds::check_response(
        Approval::QUESTION_KEY,
        answer,
        Some(InputMethod::ElicitationCreate),
    )
}

/// Returns the arguments of a call independent of the order and spacing of its members; values
/// stay as they were written.
fn canonical(arguments: Option<&RawValue>) -> Vec<u8> {
    let Ok(mut members) = mcpd_scriptspec::members(arguments) else {
        // They are faulty, and reach no tool that reads them otherwise.
        return arguments_text(arguments).as_bytes().to_vec();
    };
    members.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut canonical = Vec::new();
    for (name, value) in members {
        for part in [name.as_bytes(), value.get().as_bytes()] {
            canonical.extend((part.len() as u64).to_le_bytes());
            canonical.extend(part);
        }
    }
    canonical
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn canonical_arguments_ignore_order_and_spacing_only() {
        let canonical = |json: &str| canonical(Some(&raw(json)));
        let one = canonical(r#"{"a": 1, "b": "x"}"#);
        assert_eq!(one, canonical(r#"{ "b":"x","a":1 }"#));
        for other in [
            r#"{"a": 1.0, "b": "x"}"#,
            r#"{"a": 1, "b": "y"}"#,
            r#"{"a": 1}"#,
            r#"{"a": 1, "bx": ""}"#,
            r#"{"a": 1, "a": 2, "b": "x"}"#,
        ] {
            assert_ne!(one, canonical(other), "{other}");
        }
        assert_eq!(super::canonical(None), canonical("{}"));
    }
}
