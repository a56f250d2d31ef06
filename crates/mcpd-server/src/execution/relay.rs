//! Relay of a run's messages to its caller while it runs: log, progress and printed lines.
//! Rate-limited and bounded in length; the result has the complete output.
//!
//! ```text
//!  printed line ─► queue (last 20) ─► sent: none in the first 250 ms, then at most 20 a second;
//!                                     a skipped line is counted in the next one
//!  progress     ─► sent if it is higher than the last
//!  10 s without progress sent ─► heartbeat
//! ```

use std::borrow::Cow;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::mem;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Poll, ready};
use std::time::Duration;

use mcpd_exec::{Line, Stream};
use mcpd_protocol::Method as _;
use mcpd_protocol::meta::Meta;
use mcpd_protocol::method::{CallToolRequest, LoggingLevel};
use mcpd_scriptspec::log_line::{LogLevel, log_line, progress_line};
use mcpd_scriptspec::{OutputFormat, ScriptPath};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::client::request::side_stream::SideStream;
use crate::policy::{EffectivePolicy, Redactor};
use crate::script::Script;
use crate::support::sync::lock;

/// Delay after the first printed line before any is sent: a run that ends within it sends only
/// its result.
const FIRST_LINES_DELAY: Duration = Duration::from_millis(250);
/// Maximum number of printed lines sent in a [`WINDOW`]; of more, the last.
const MAX_LINES_PER_WINDOW: usize = 20;
const WINDOW: Duration = Duration::from_secs(1);
/// Maximum length of a line that is sent, in bytes.
const MAX_LINE_LENGTH: usize = 1024;
/// Longest time without progress for a caller that wants it. Many give up after 60 s of silence.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);
/// Progress per line of a script: so small that numbers of the script still increase after a
/// million lines.
const SCRIPT_STEP: f64 = 1e-6;

/// Kind of program whose output is relayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramKind {
    /// Script: a line of stderr is a log message or progress; stdout is meaningful only as a
    /// whole.
    Script,
    /// Script whose lines of stdout are meaningful.
    TextScript,
    /// Any program: a line is a line.
    Command,
}

impl ProgramKind {
    /// Returns the kind of a script that runs for `method`.
    pub(crate) fn of_script(script: &Script, method: &str) -> Self {
        match script.spec.output {
            OutputFormat::Text if method == CallToolRequest::NAME => Self::TextScript,
            _ => Self::Script,
        }
    }

    /// Returns whether the lines of a stream are relayed.
    pub(crate) fn relays(self, stream: Stream) -> bool {
        self != Self::Script || stream == Stream::Stderr
    }
}

/// Relay from one run to its caller.
#[derive(Debug)]
pub(crate) struct Relay<'a> {
    kind: ProgramKind,
    logger: &'a str,
    redactor: Option<&'a Arc<Redactor>>,
    keeps_escapes: bool,
    is_wanted: bool,
    state: Mutex<RelayState>,
}

#[derive(Debug)]
struct RelayState {
    side: SideStream,
    began: Instant,
    /// Time from which printed lines may be sent, once there has been one.
    quiet_until: Option<Instant>,
    /// The last line of stdout, and that of stderr, was the first part of a longer line.
    continued: [bool; 2],
    /// Printed lines not yet sent.
    queue: VecDeque<QueuedLine>,
    /// Number of lines dropped before these.
    dropped_lines: u64,
    /// Times at which the last lines were sent.
    sent: VecDeque<Instant>,
    /// Time of the last progress.
    last_progress: Instant,
    /// Last progress reported by the script itself, if any.
    script_progress: Option<ScriptProgress>,
}

#[derive(Debug)]
struct ScriptProgress {
    total: Option<f64>,
    text: Option<String>,
}

/// Beginning of a line.
#[derive(Debug)]
struct QueuedLine {
    stream: Stream,
    bytes: Vec<u8>,
    is_cut: bool,
}

impl<'a> Relay<'a> {
    pub(crate) fn new(
        kind: ProgramKind,
        path: &'a ScriptPath,
        policy: &'a EffectivePolicy,
        side: SideStream,
    ) -> Self {
        Self {
            keeps_escapes: policy.keeps_escapes(),
            ..Self::with_redactor(kind, path.as_str(), policy.redactor(), side)
        }
    }

    fn with_redactor(
        kind: ProgramKind,
        logger: &'a str,
        redactor: Option<&'a Arc<Redactor>>,
        side: SideStream,
    ) -> Self {
        let now = Instant::now();
        Self {
            kind,
            logger,
            redactor,
            keeps_escapes: false,
            is_wanted: side.is_wanted(),
            state: Mutex::new(RelayState {
                side,
                began: now,
                quiet_until: None,
                continued: [false; 2],
                queue: VecDeque::new(),
                dropped_lines: 0,
                sent: VecDeque::new(),
                last_progress: now,
                script_progress: None,
            }),
        }
    }

    /// Accepts a line that the run has written.
    pub(crate) fn accept_line(&self, line: Line<'_>) {
        if self.is_wanted {
            self.relay_line(line.stream, line.bytes, line.continues);
        }
    }

    fn relay_line(&self, stream: Stream, bytes: &[u8], continues: bool) {
        let shown = match self.keeps_escapes {
            true => Cow::Borrowed(bytes),
            false => mcpd_exec::terminal_text(bytes),
        };
        let bytes = &*shown;
        let mut state = lock(&self.state);
        let place = &mut state.continued[usize::from(stream == Stream::Stderr)];
        let continued = mem::replace(place, continues);
        match (self.kind, stream) {
            (ProgramKind::Script | ProgramKind::TextScript, Stream::Stderr) => {
                let bytes = match self.redactor {
                    Some(redactor) => redactor.redact_piece(bytes, continued, continues),
                    None => Cow::Borrowed(bytes),
                };
                let text = String::from_utf8_lossy(&bytes);
                // The beginning of a line stands for all of it.
                if continues && !continued {
                    // The last character may be incomplete.
                    let whole = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
                    self.relay_stderr(&mut state, &format!("{whole}…"));
                } else if !continued {
                    self.relay_stderr(&mut state, &text);
                }
            }
            (ProgramKind::Script, Stream::Stdout) => {}
            (ProgramKind::TextScript | ProgramKind::Command, _) => {
                // The beginning of a line stands for all of it.
                if !continued && !bytes.trim_ascii().is_empty() {
                    state.enqueue(stream, bytes, continues);
                }
            }
        }
    }

    /// Relays a line of stderr: progress or a log message.
    fn relay_stderr(&self, state: &mut RelayState, text: &str) {
        if let Some(line) = progress_line(text) {
            // A number that is not higher than the last is not sent, and does not count as a sign
            // of life.
            if state.side.progress(line.progress, line.total, line.text) {
                state.last_progress = Instant::now();
            }
            state.script_progress = Some(ScriptProgress {
                total: line.total,
                text: line.text.map(str::to_owned),
            });
        } else {
            let line = log_line(text);
            let level = logging_level(line.level);
            state.side.log(level, self.logger, line.text);
        }
    }

    /// Waits for the end of a run, and relays its messages meanwhile.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the run.
    pub(crate) async fn relay_while<T>(&self, mut run: Pin<&mut impl Future<Output = T>>) -> T {
        if !self.is_wanted {
            return run.await;
        }
        let mut timer = pin!(sleep_until(Instant::now() + HEARTBEAT_INTERVAL));
        poll_fn(|cx| {
            if let Poll::Ready(ended) = run.as_mut().poll(cx) {
                self.send_due();
                return Poll::Ready(ended);
            }
            // Lines arrive while the run is polled, so the deadline may have become earlier.
            loop {
                let due = lock(&self.state).due();
                let Some(due) = due else {
                    return Poll::Pending;
                };
                if timer.deadline() != due {
                    timer.as_mut().reset(due);
                }
                ready!(timer.as_mut().poll(cx));
                self.send_due();
            }
        })
        .await
    }

    /// Sends everything that is due.
    fn send_due(&self) {
        let now = Instant::now();
        let mut state = lock(&self.state);
        if state.lines_due().is_some_and(|due| due <= now) {
            self.send_lines(&mut state, now);
        }
        if state.heartbeat_due().is_some_and(|due| due <= now) {
            self.send_heartbeat(&mut state, now);
        }
    }

    /// Sends as many of the last lines as the rate allows, with the number of lines dropped
    /// before them.
    fn send_lines(&self, state: &mut RelayState, now: Instant) {
        state.sent.retain(|at| now < *at + WINDOW);
        let places = MAX_LINES_PER_WINDOW - state.sent.len();
        while state.queue.len() > places {
            state.queue.pop_front();
            state.dropped_lines += 1;
        }
        for line in mem::take(&mut state.queue) {
            let text = line.text(self.redactor, mem::take(&mut state.dropped_lines));
            let meta = meta_with("mcpd/stream", stream_name(line.stream).into());
            state
                .side
                .log_with(LoggingLevel::Info, self.logger, &text, Some(&meta));
            // Progress of the script itself is not mixed with that of its lines.
            if state.script_progress.is_none() {
                state
                    .side
                    .advance(self.progress_step(), None, Some(&text), &meta);
                state.last_progress = now;
            }
            state.sent.push_back(now);
        }
    }

    /// Sends the heartbeat.
    fn send_heartbeat(&self, state: &mut RelayState, now: Instant) {
        let meta = meta_with("mcpd/heartbeat", json!(true));
        match &state.script_progress {
            Some(script_progress) => {
                let text = script_progress.text.as_deref();
                state
                    .side
                    .advance(self.progress_step(), script_progress.total, text, &meta);
            }
            None => {
                let text = format!("still running after {} s", (now - state.began).as_secs());
                state
                    .side
                    .advance(self.progress_step(), None, Some(&text), &meta);
            }
        }
        state.last_progress = now;
    }

    fn progress_step(&self) -> f64 {
        match self.kind {
            ProgramKind::Command => 1.0,
            ProgramKind::Script | ProgramKind::TextScript => SCRIPT_STEP,
        }
    }
}

impl RelayState {
    fn enqueue(&mut self, stream: Stream, bytes: &[u8], continues: bool) {
        self.quiet_until
            .get_or_insert_with(|| Instant::now() + FIRST_LINES_DELAY);
        if self.queue.len() == MAX_LINES_PER_WINDOW {
            self.queue.pop_front();
            self.dropped_lines += 1;
        }
        let kept = &bytes[..bytes.len().min(MAX_LINE_LENGTH)];
        self.queue.push_back(QueuedLine {
            stream,
            bytes: kept.to_vec(),
            is_cut: continues || kept.len() < bytes.len(),
        });
    }

    /// Time of the next message.
    fn due(&self) -> Option<Instant> {
        [self.lines_due(), self.heartbeat_due()]
            .into_iter()
            .flatten()
            .min()
    }

    fn lines_due(&self) -> Option<Instant> {
        let quiet = self.quiet_until.filter(|_| !self.queue.is_empty())?;
        let is_full = self.sent.len() == MAX_LINES_PER_WINDOW;
        let place = self.sent.front().filter(|_| is_full).map(|at| *at + WINDOW);
        Some(place.map_or(quiet, |place| place.max(quiet)))
    }

    fn heartbeat_due(&self) -> Option<Instant> {
        self.side
            .wants_progress()
            .then(|| self.last_progress + HEARTBEAT_INTERVAL)
    }
}

impl QueuedLine {
    /// Text sent for the line, without secrets, after `dropped_lines` dropped lines.
    fn text(&self, redactor: Option<&Arc<Redactor>>, dropped_lines: u64) -> String {
        let bytes = match redactor {
            Some(redactor) => redactor.redact_piece(&self.bytes, false, self.is_cut),
            None => Cow::Borrowed(&self.bytes[..]),
        };
        let line = String::from_utf8_lossy(&bytes);
        let line = line.trim_end_matches(['\r', char::REPLACEMENT_CHARACTER]);
        let end = if self.is_cut { "…" } else { "" };
        match dropped_lines {
            0 => format!("{line}{end}"),
            _ => format!("[… {dropped_lines} lines] {line}{end}"),
        }
    }
}

fn meta_with(key: &str, value: Value) -> Meta {
    let mut meta = Meta::new();
    meta.insert(key.to_owned(), value);
    meta
}

/// Returns the name of an output in messages and in URIs.
pub(crate) fn stream_name(stream: Stream) -> &'static str {
    match stream {
        Stream::Stdout => "stdout",
        Stream::Stderr => "stderr",
    }
}

fn logging_level(level: LogLevel) -> LoggingLevel {
    match level {
        LogLevel::Error => LoggingLevel::Error,
        LogLevel::Warning => LoggingLevel::Warning,
        LogLevel::Info => LoggingLevel::Info,
        // MCP has no level below debug.
        LogLevel::Debug | LogLevel::Trace => LoggingLevel::Debug,
    }
}

#[cfg(test)]
mod tests;
