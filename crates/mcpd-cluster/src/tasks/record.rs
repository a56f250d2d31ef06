//! Record of a task in the bucket, and its changes. A text that is too long for it is in parts of
//! its own, which are written before the record that names them and never change.

use mcpd_protocol::method::{InputRequests, InputResponses, TaskStatus};
use mcpd_server::tasks::{StoredTask, TaskRequest};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::wire::RunId;

/// Maximum size of a text within a record, in bytes.
pub(super) const MAX_INLINE: usize = 64 * 1024;

/// Where the run of a task is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "at", rename_all = "kebab-case")]
pub(crate) enum Location {
    /// It was not sent anywhere. Before it is, the record says where.
    Unsent,
    /// It may be with this worker.
    Worker {
        node: String,
        epoch: u64,
        run: RunId,
    },
}

impl Location {
    pub(crate) fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(crate) fn from_text(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

/// Text of any length.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Text {
    #[default]
    None,
    Here(String),
    Parts {
        /// Part of their keys, unguessable.
        name: String,
        count: u32,
    },
}

/// Record of a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) v: u32,
    /// The task, without its texts.
    pub(super) task: StoredTask,
    #[serde(default)]
    pub(super) detail: Text,
    #[serde(default)]
    pub(super) continuation: Text,
    /// Its owner wants it to be cancelled.
    #[serde(default)]
    pub(super) cancel: bool,
    /// Answers to its questions, until a run with them has a location.
    #[serde(default)]
    pub(super) answers: Option<InputResponses>,
}

/// Returns the token of an owner in keys.
pub(super) fn owner_token(owner: &str) -> String {
    let digest = Sha256::digest(owner.as_bytes());
    let hex = digest.iter().take(16).map(|byte| format!("{byte:02x}"));
    hex.collect()
}

/// Returns whether an id, which may come from a client, is a token of a key.
pub(super) fn is_token(id: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=64).contains(&id.len()) && id.bytes().all(is_allowed)
}

impl Record {
    /// Returns whether it has not ended.
    pub(super) fn is_open(&self) -> bool {
        !self.task.status.is_terminal()
    }

    pub(super) fn is_expired(&self, now: i64) -> bool {
        self.task.expires_at <= now
    }

    /// Returns whether `runner` may change it.
    pub(super) fn is_of(&self, runner: &str) -> bool {
        self.is_open() && self.task.runner == runner
    }

    fn set_status(&mut self, status: TaskStatus, now: i64) {
        self.task.status = status;
        self.task.updated_at = now;
    }

    /// Sets its questions, whose text is `detail`.
    pub(super) fn ask(&mut self, detail: Text, continuation: Text, now: i64) {
        (self.detail, self.continuation) = (detail, continuation);
        self.answers = None;
        self.task.location = None;
        self.set_status(TaskStatus::InputRequired, now);
    }

    /// Takes answers to the `open` questions. Returns those that are still open.
    pub(super) fn answer(
        &mut self,
        mut open: InputRequests,
        responses: &InputResponses,
        now: i64,
    ) -> InputRequests {
        let answers = self.answers.get_or_insert_default();
        for (key, response) in responses {
            if open.remove(key).is_some() {
                answers.insert(key.clone(), response.clone());
            }
        }
        if open.is_empty() {
            self.detail = Text::None;
            self.set_status(TaskStatus::Working, now);
        }
        open
    }

    /// Ends it.
    pub(super) fn end(&mut self, status: TaskStatus, detail: Text, now: i64) {
        self.detail = detail;
        self.continuation = Text::None;
        self.answers = None;
        self.task.location = None;
        self.set_status(status, now);
    }

    /// Says where its run is.
    pub(super) fn locate(&mut self, location: &Location) {
        self.task.location = Some(location.to_text());
        self.answers = None;
    }

    /// Returns what its owner wants of its runner.
    pub(super) fn request(&self) -> Option<TaskRequest> {
        if self.cancel {
            return Some(TaskRequest::Cancel);
        }
        let answers = self.answers.as_ref();
        let answers = answers.filter(|_| self.task.status == TaskStatus::Working);
        answers.map(|answers| TaskRequest::Answers(answers.clone()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record() -> Record {
        let task = json!({"id": "1", "owner": "ada", "tool": "t", "runner": "a.1", "status": "working",
            "created_at": 1, "updated_at": 1, "expires_at": 9});
        serde_json::from_value(json!({"v": 1, "task": task})).unwrap()
    }

    #[test]
    fn answers_are_kept_until_their_run_has_a_location() {
        let mut record = record();
        record.locate(&Location::Unsent);
        record.ask(Text::Here("…".to_owned()), Text::None, 2);
        assert_eq!(record.task.location, None);
        let question = json!({"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}});
        let open = |keys: &[&str]| -> InputRequests {
            let all = keys.iter().map(|key| {
                let request = serde_json::from_value(question.clone()).unwrap();
                ((*key).to_owned(), request)
            });
            all.collect()
        };
        let answer = |key: &str| -> InputResponses {
            serde_json::from_value(json!({ key: {"action": "accept"} })).unwrap()
        };
        let rest = record.answer(open(&["a", "b"]), &answer("a"), 3);
        assert_eq!(rest.len(), 1);
        assert!(record.request().is_none());
        let rest = record.answer(rest, &answer("b"), 4);
        assert!(rest.is_empty());
        assert!(matches!(record.request(), Some(TaskRequest::Answers(all)) if all.len() == 2));
        record.locate(&Location::Unsent);
        assert!(record.request().is_none());
        record.cancel = true;
        assert!(matches!(record.request(), Some(TaskRequest::Cancel)));
    }

    #[test]
    fn ids_of_clients_are_tokens_or_nothing() {
        for id in ["", "*", ">", "a.b", "a b", "ü", &"x".repeat(65)] {
            assert!(!is_token(id), "{id}");
        }
        assert!(is_token("00ff-_Z"));
        assert_eq!(owner_token("ada").len(), 32);
        assert_ne!(owner_token("ada"), owner_token("bob"));
    }

    #[test]
    fn location_is_the_same_as_text() {
        let run = RunId { id: 7, attempt: 2 };
        let node = "w1".to_owned();
        for location in [
            Location::Unsent,
            Location::Worker {
                node,
                epoch: 3,
                run,
            },
        ] {
            let text = location.to_text();
            assert_eq!(Location::from_text(&text), Some(location));
        }
    }
}
