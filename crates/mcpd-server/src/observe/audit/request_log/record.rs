//! Records of a request: of its beginning, of each run of it that is lost, and of its end.

use std::time::Instant;

use mcpd_audit::{Details, Record, RecordKind, RecordedCaller};

use super::{Arguments, AuditedRequest, INVALID_ARGUMENTS, Moment, Notes};
use crate::observe::audit::outcomes;
use crate::support::sync::lock;

impl AuditedRequest {
    /// Makes the record of a moment, and passes it on.
    pub(super) fn with_record<T>(&self, moment: Moment, pass: impl FnOnce(&Record<'_>) -> T) -> T {
        let mut params = lock(&self.params);
        let params = params.record(self.recorder());
        let notes = lock(&self.notes);
        let (event, is_over) = match moment {
            Moment::Begin => (RecordKind::Begin, false),
            Moment::RunLost | Moment::End => (RecordKind::End, true),
        };
        let client = self.client.as_deref().map(|client| {
            let client = format!("{} {}", client.name, client.version);
            self.recorder().message(&client)
        });
        let outcome = match moment {
            Moment::RunLost => "lost",
            Moment::Begin | Moment::End => notes.outcome(),
        };
        debug_assert!(
            outcomes().any(|known| known == outcome),
            "`{outcome}` is none of them"
        );
        let error = match moment {
            Moment::Begin => Some("it has only begun".to_owned()),
            Moment::RunLost => Some(outcome.to_owned()),
            Moment::End => self.error(&notes, outcome),
        };
        let (principal, transport) = (self.principal.name(), self.transport.name());
        let mut caller = RecordedCaller::new(principal, transport, self.version.as_str());
        caller.client = client.as_deref();
        let mut details = Details::default();
        details.tool = notes.item.path.as_deref();
        details.call_id = notes.call_id.as_deref();
        details.trace_id = self.trace_id.as_deref();
        details.node = self.auditor.node.as_deref();
        details.worker = notes.worker.as_deref();
        details.run_id = notes.run_id.as_deref();
        details.digest = notes.digest.as_deref();
        details.approval = notes.approval;
        details.outcome = is_over.then_some(outcome);
        details.result_bytes = notes.result_bytes;
        details.run = notes.run.as_ref();
        details.connections = &notes.connections;
        details.connections_omitted = notes.connections_omitted;
        let record = Record::new(event, self.method, params)
            .error(error.as_deref())
            .caller(caller)
            .details(details);
        pass(&match is_over {
            true => {
                let ended_at = self.ended_at.unwrap_or_else(Instant::now);
                record.duration(ended_at.duration_since(self.began_at))
            }
            false => record.timestamp(self.began),
        })
    }

    /// Returns the error for the record. The output of a script is not repeated.
    fn error(&self, notes: &Notes, outcome: &str) -> Option<String> {
        let message = match &notes.answer {
            Some(Ok(())) => return None,
            Some(Err(message)) => message,
            None => return Some(outcome.to_owned()),
        };
        Some(match notes.exit_code() {
            Some(code) => format!("exit code {code} ({outcome})"),
            None if self.options.arguments == Arguments::Full => self.recorder().message(message),
            // The message may repeat an argument.
            None => outcome.to_owned(),
        })
    }

    /// Returns the outcome of a request whose message of failure may repeat an argument that is
    /// not recorded. Output of a script is none.
    pub(super) fn withheld_message(&self) -> Option<&'static str> {
        let notes = lock(&self.notes);
        let is_message = matches!(notes.answer, Some(Err(_))) && notes.exit_code().is_none();
        (is_message && self.options.arguments != Arguments::Full).then(|| notes.outcome())
    }
}

impl Notes {
    /// Exit code of the last run, if there was one.
    pub(super) fn exit_code(&self) -> Option<i32> {
        self.run.as_ref().and_then(|run| run.exit_code)
    }

    pub(super) fn outcome(&self) -> &'static str {
        match (&self.answer, self.outcome) {
            (None, _) => "cancelled",
            (Some(Ok(())), noted) => noted.unwrap_or("success"),
            // The script succeeded, but its output was not what it had declared.
            (Some(Err(_)), Some("success")) => "invalid-output",
            (Some(Err(_)), Some(noted)) => noted,
            (Some(Err(message)), None) if message.starts_with(INVALID_ARGUMENTS) => {
                "invalid-arguments"
            }
            (Some(Err(_)), None) => "failed",
        }
    }
}
