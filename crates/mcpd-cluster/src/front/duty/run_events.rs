//! Events of runs at workers: lines, outcomes that are fetched, and ends.

use bytes::Bytes;
use mcpd_server::remote::NotRun;
use tokio::task::spawn_blocking;

use super::{Call, Duty, News, OutcomeFetch, RETRY_AFTER_MS};
use crate::delivery::{Answer, CallId};
use crate::front::place::CallEvent;
use crate::transfer::{self, Ended, FetchError, decode_ended};
use crate::wire::{self, Event, Frame, FrameError, Refusal, Stream, Word};

/// Number of failures to fetch an outcome after which it counts as lost.
const MAX_FETCHES: u32 = 3;

impl Duty {
    pub(super) fn hear_event(&mut self, payload: &Bytes) -> Result<(), FrameError> {
        let Frame { head: event, body } = Frame::<Event>::decode(payload)?;
        match event.word {
            Word::End {
                size: Some(size), ..
            } => self.fetch_outcome(event, size),
            Word::End { .. } => self.end(&event, decode_ended(&body)),
            Word::Lines { dropped } => self.pass_lines(&event, dropped, body),
            Word::Accepted => {
                self.delivery.hear_event(self.node.now(), &event);
                if let Some(call) = self.call_of(&event) {
                    call.events.tell_sent();
                }
            }
            _ => self.delivery.hear_event(self.node.now(), &event),
        }
        Ok(())
    }

    /// Returns the call that an event is for, if it is from its present attempt.
    fn call_of(&mut self, event: &Event) -> Option<&mut Call> {
        let call = self.delivery.call_of(event.run, &event.node)?;
        self.calls.get_mut(&call)
    }

    pub(super) fn pass_lines(&mut self, event: &Event, dropped: u64, body: Bytes) {
        self.delivery.hear_event(self.node.now(), event);
        let Some(call) = self.call_of(event) else {
            return;
        };
        if call.lines.0 != Some(event.run) {
            call.lines = (Some(event.run), 0);
        }
        call.lines.1 += u64::try_from(body.len()).unwrap_or_default();
        let bytes = call.lines.1;
        if dropped > 0 {
            tracing::debug!(dropped, "lines of a run were dropped");
        }
        call.events.tell(CallEvent::Lines(body));
        let run = event.run;
        let request = wire::Request::Lines { run, bytes };
        self.node.send_control(&event.node, request, None);
    }

    /// Fetches an outcome that did not fit into its event.
    pub(super) fn fetch_outcome(&mut self, event: Event, size: u64) {
        let run = event.run;
        let Some(call) = self.call_of(&event) else {
            return self.delivery.hear_event(self.node.now(), &event);
        };
        if call.outcome.run != Some(run) {
            call.outcome = OutcomeFetch {
                run: Some(run),
                ..OutcomeFetch::default()
            };
        }
        let is_underway = std::mem::replace(&mut call.outcome.is_underway, true);
        let alive = Event {
            word: Word::Accepted,
            ..event.clone()
        };
        self.delivery.hear_event(self.node.now(), &alive);
        if is_underway {
            return;
        }
        let (node, news) = (self.node.clone(), self.news.clone());
        self.aside.spawn(async move {
            let subject = node.subject("ctl", &event.node);
            let fetched = transfer::fetch(&node, &subject, (run, Stream::Outcome), size).await;
            let fetched = match fetched {
                // It is large.
                Ok(outcome) => {
                    let decoded = spawn_blocking(move || decode_ended(&outcome)).await;
                    let lost = |_| Err(NotRun::lost("its outcome can't be read"));
                    Ok(Box::new(decoded.unwrap_or_else(lost)))
                }
                Err(error) => Err(error),
            };
            // Without the front's task no caller waits.
            news.send(News::Outcome { event, fetched }).ok();
        });
    }

    /// Takes an outcome that was fetched, or the failure. The worker repeats its event, but not for
    /// ever: what it has promised may not be there.
    pub(super) fn take_outcome(&mut self, event: &Event, fetched: Result<Box<Ended>, FetchError>) {
        let error = match fetched {
            Ok(ended) => return self.end(event, *ended),
            Err(error) => error,
        };
        tracing::warn!(worker = event.node, %error, "failed to fetch an outcome");
        let Some(call) = self.call_of(event) else {
            return;
        };
        call.outcome.is_underway = false;
        call.outcome.failures += 1;
        let is_hopeless = matches!(error, FetchError::TooLarge(_));
        if is_hopeless || call.outcome.failures >= MAX_FETCHES {
            let why = format!("its outcome can't be fetched: {error}");
            self.end(event, Err(NotRun::lost(why)));
        }
    }

    /// Handles the end of a run, or the news that nothing was run after all.
    pub(super) fn end(&mut self, event: &Event, ended: Ended) {
        let now = self.node.now();
        let reason = match &ended {
            Err(NotRun::Busy { .. }) => Some(Refusal::Busy),
            Err(NotRun::Digest) => Some(Refusal::Digest),
            Err(NotRun::Unknown) => Some(Refusal::Unknown),
            Err(NotRun::Draining) => Some(Refusal::Draining),
            Err(NotRun::Level) => Some(Refusal::Level),
            Err(NotRun::Version) => Some(Refusal::Version),
            _ => None,
        };
        self.ended = Some(ended);
        if let Some(reason) = reason {
            let (run, text) = (event.run, String::new());
            self.delivery.acknowledge(run, &event.node);
            let word = Word::Refused { reason, text };
            let refused = Event {
                word,
                ..event.clone()
            };
            self.delivery.hear_event(now, &refused);
        } else {
            self.delivery.hear_event(now, event);
        }
        self.act();
        self.ended = None;
    }

    /// Says that the run of a call is made again.
    pub(super) fn report_rerun(&self, call: CallId, lost: &str) {
        let Some(call) = self.calls.get(&call) else {
            return;
        };
        let script = &*call.request.path;
        tracing::warn!(
            script,
            worker = lost,
            "a worker is lost; its run is made again"
        );
        call.events.tell(CallEvent::Lost);
    }

    /// Answers a call.
    pub(super) fn finish(&mut self, call: CallId, answer: Answer) {
        let Some(call) = self.calls.remove(&call) else {
            return;
        };
        let retry_after_ms = RETRY_AFTER_MS;
        let ended = match answer {
            Answer::Ended => {
                let unreadable = || Err(NotRun::lost("its outcome is missing"));
                self.ended.take().unwrap_or_else(unreadable)
            }
            Answer::Lost { node } => Err(NotRun::lost(format!("the worker `{node}` was lost"))),
            Answer::Busy => Err(NotRun::Busy { retry_after_ms }),
            Answer::Unavailable => Err(NotRun::Unreachable { retry_after_ms }),
            Answer::Refused { reason, text } => Err(refusal(reason, text)),
        };
        call.events.tell(CallEvent::Finished(Box::new(ended)));
    }
}

fn refusal(reason: Refusal, why: String) -> NotRun {
    match reason {
        Refusal::Digest => NotRun::Digest,
        Refusal::Level => NotRun::Level,
        Refusal::Version => NotRun::Version,
        Refusal::Unknown => NotRun::Unknown,
        Refusal::Draining => NotRun::Draining,
        _ => NotRun::Denied { why },
    }
}
