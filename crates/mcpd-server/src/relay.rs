//! What a run says on its way to whoever called: its log, its progress, and the lines it prints while it runs. Bounded
//! in number and in length; all of what was printed is in the result.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::mem;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Poll, ready};
use std::time::Duration;

use mcpd_exec::{Line, Stream};
use mcpd_protocol::LoggingLevel;
use mcpd_protocol::meta::Meta;
use mcpd_scriptspec::{LogLevel, ScriptPath, log_line, progress_line};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::context::SideStream;
use crate::policy::{Redactor, Terms};
use crate::sync::lock;

/// How long after the first printed line none is told: a run that is over so soon is its own news.
const QUIET: Duration = Duration::from_millis(250);
/// How many printed lines are told in a [`WINDOW`]; of more, the last.
const LINES: usize = 20;
const WINDOW: Duration = Duration::from_secs(1);
/// How much of a line is told, in bytes.
const LENGTH: usize = 1024;
/// How long a caller that wants progress hears nothing at most. Many give up after 60 s of silence.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// How far a line of a script is from the next as progress: so little that numbers of its own still count up after a
/// million lines.
const SCRIPT_STEP: f64 = 1e-6;

/// Who is heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// A script: a line of stderr is a log message or progress, and stdout makes sense as a whole only.
    Script,
    /// A script whose lines of stdout make sense.
    TextScript,
    /// Any program: a line is a line.
    Command,
}

/// The way of one run's words to its caller.
#[derive(Debug)]
pub(crate) struct Relay<'a> {
    speaker: Speaker,
    logger: &'a str,
    redactor: Option<&'a Arc<Redactor>>,
    keeps_escapes: bool,
    is_wanted: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    side: SideStream,
    began: Instant,
    /// When printed lines may be told, once there has been one.
    quiet_until: Option<Instant>,
    /// The last line of stdout and that of stderr were the first parts of lines.
    continued: [bool; 2],
    /// Printed lines that have not been told.
    queue: VecDeque<Printed>,
    /// How many more there were before these.
    left_out: u64,
    /// When the last lines were told.
    told: VecDeque<Instant>,
    /// When the caller last heard of progress.
    heard: Instant,
    /// The last the script itself said of its progress, once it has.
    own: Option<Own>,
}

#[derive(Debug)]
struct Own {
    total: Option<f64>,
    text: Option<String>,
}

/// The beginning of a line.
#[derive(Debug)]
struct Printed {
    stream: Stream,
    bytes: Vec<u8>,
    is_cut: bool,
}

impl<'a> Relay<'a> {
    pub(crate) fn new(
        speaker: Speaker,
        path: &'a ScriptPath,
        terms: &'a Terms,
        side: SideStream,
    ) -> Self {
        Self {
            keeps_escapes: terms.keeps_escapes(),
            ..Self::with_redactor(speaker, path.as_str(), terms.redactor(), side)
        }
    }

    fn with_redactor(
        speaker: Speaker,
        logger: &'a str,
        redactor: Option<&'a Arc<Redactor>>,
        side: SideStream,
    ) -> Self {
        let now = Instant::now();
        Self {
            speaker,
            logger,
            redactor,
            keeps_escapes: false,
            is_wanted: side.is_wanted(),
            state: Mutex::new(State {
                side,
                began: now,
                quiet_until: None,
                continued: [false; 2],
                queue: VecDeque::new(),
                left_out: 0,
                told: VecDeque::new(),
                heard: now,
                own: None,
            }),
        }
    }

    /// Takes a line that the run has written.
    pub(crate) fn line(&self, line: Line<'_>) {
        if self.is_wanted {
            self.hear(line.stream, line.bytes, line.continues);
        }
    }

    fn hear(&self, stream: Stream, bytes: &[u8], continues: bool) {
        let shown = match self.keeps_escapes {
            true => Cow::Borrowed(bytes),
            false => mcpd_exec::shown(bytes),
        };
        let bytes = &*shown;
        let mut state = lock(&self.state);
        let place = &mut state.continued[usize::from(stream == Stream::Stderr)];
        let continued = mem::replace(place, continues);
        match (self.speaker, stream) {
            (Speaker::Script | Speaker::TextScript, Stream::Stderr) => {
                let bytes = match self.redactor {
                    Some(redactor) => redactor.piece(bytes, continued, continues),
                    None => Cow::Borrowed(bytes),
                };
                let text = String::from_utf8_lossy(&bytes);
                // The beginning of a line stands for all of it.
                if continues && !continued {
                    // A character may be cut.
                    let whole = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
                    self.said(&mut state, &format!("{whole}…"));
                } else if !continued {
                    self.said(&mut state, &text);
                }
            }
            (Speaker::Script, Stream::Stdout) => {}
            (Speaker::TextScript | Speaker::Command, _) => {
                // The beginning of a line stands for all of it.
                if !continued && !bytes.trim_ascii().is_empty() {
                    state.print(stream, bytes, continues);
                }
            }
        }
    }

    /// A line by which a script says how it is doing.
    fn said(&self, state: &mut State, text: &str) {
        if let Some(line) = progress_line(text) {
            // A number that is no higher than the last is not sent, and breaks no silence.
            if state.side.progress(line.progress, line.total, line.text) {
                state.heard = Instant::now();
            }
            state.own = Some(Own {
                total: line.total,
                text: line.text.map(str::to_owned),
            });
        } else {
            let line = log_line(text);
            let level = logging_level(line.level);
            state.side.log(level, self.logger, line.text);
        }
    }

    /// Waits for the end of a run, and tells its caller meanwhile what there is to tell.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the run.
    pub(crate) async fn during<T>(&self, mut run: Pin<&mut impl Future<Output = T>>) -> T {
        if !self.is_wanted {
            return run.await;
        }
        let mut timer = pin!(sleep_until(Instant::now() + HEARTBEAT));
        poll_fn(|cx| {
            if let Poll::Ready(ended) = run.as_mut().poll(cx) {
                self.tell();
                return Poll::Ready(ended);
            }
            // Lines come while the run is polled, so there may be something to tell earlier than a moment ago.
            loop {
                let due = lock(&self.state).due();
                let Some(due) = due else {
                    return Poll::Pending;
                };
                if timer.deadline() != due {
                    timer.as_mut().reset(due);
                }
                ready!(timer.as_mut().poll(cx));
                self.tell();
            }
        })
        .await
    }

    /// Tells what may be told by now.
    fn tell(&self) {
        let now = Instant::now();
        let mut state = lock(&self.state);
        if state.lines_due().is_some_and(|due| due <= now) {
            self.tell_lines(&mut state, now);
        }
        if state.heartbeat_due().is_some_and(|due| due <= now) {
            self.beat(&mut state, now);
        }
    }

    /// Tells as many of the last lines as may be told now, and how many there were before them.
    fn tell_lines(&self, state: &mut State, now: Instant) {
        state.told.retain(|at| now < *at + WINDOW);
        let places = LINES - state.told.len();
        while state.queue.len() > places {
            state.queue.pop_front();
            state.left_out += 1;
        }
        for line in mem::take(&mut state.queue) {
            let text = line.text(self.redactor, mem::take(&mut state.left_out));
            let meta = beside("mcpd/stream", name(line.stream));
            state
                .side
                .log_with(LoggingLevel::Info, self.logger, &text, Some(&meta));
            // Who counts for itself is not interrupted.
            if state.own.is_none() {
                state.side.advance(self.step(), None, Some(&text), &meta);
                state.heard = now;
            }
            state.told.push_back(now);
        }
    }

    /// Says that the run still runs.
    fn beat(&self, state: &mut State, now: Instant) {
        let meta = beside("mcpd/heartbeat", json!(true));
        match &state.own {
            Some(own) => {
                let text = own.text.as_deref();
                state.side.advance(self.step(), own.total, text, &meta);
            }
            None => {
                let text = format!("still running after {} s", (now - state.began).as_secs());
                state.side.advance(self.step(), None, Some(&text), &meta);
            }
        }
        state.heard = now;
    }

    fn step(&self) -> f64 {
        match self.speaker {
            Speaker::Command => 1.0,
            Speaker::Script | Speaker::TextScript => SCRIPT_STEP,
        }
    }
}

impl State {
    fn print(&mut self, stream: Stream, bytes: &[u8], continues: bool) {
        self.quiet_until
            .get_or_insert_with(|| Instant::now() + QUIET);
        if self.queue.len() == LINES {
            self.queue.pop_front();
            self.left_out += 1;
        }
        let kept = &bytes[..bytes.len().min(LENGTH)];
        self.queue.push_back(Printed {
            stream,
            bytes: kept.to_vec(),
            is_cut: continues || kept.len() < bytes.len(),
        });
    }

    /// When there will be something to tell.
    fn due(&self) -> Option<Instant> {
        [self.lines_due(), self.heartbeat_due()]
            .into_iter()
            .flatten()
            .min()
    }

    fn lines_due(&self) -> Option<Instant> {
        let quiet = self.quiet_until.filter(|_| !self.queue.is_empty())?;
        let is_full = self.told.len() == LINES;
        let place = self.told.front().filter(|_| is_full).map(|at| *at + WINDOW);
        Some(place.map_or(quiet, |place| place.max(quiet)))
    }

    fn heartbeat_due(&self) -> Option<Instant> {
        self.side.wants_progress().then(|| self.heard + HEARTBEAT)
    }
}

impl Printed {
    /// What is told of the line, without secrets, `left_out` others before it.
    fn text(&self, redactor: Option<&Arc<Redactor>>, left_out: u64) -> String {
        let bytes = match redactor {
            Some(redactor) => redactor.piece(&self.bytes, false, self.is_cut),
            None => Cow::Borrowed(&self.bytes[..]),
        };
        let line = String::from_utf8_lossy(&bytes);
        let line = line.trim_end_matches(['\r', char::REPLACEMENT_CHARACTER]);
        let end = if self.is_cut { "…" } else { "" };
        match left_out {
            0 => format!("{line}{end}"),
            _ => format!("[… {left_out} lines] {line}{end}"),
        }
    }
}

fn beside(key: &str, value: Value) -> Meta {
    let mut meta = Meta::new();
    meta.insert(key.to_owned(), value);
    meta
}

fn name(stream: Stream) -> Value {
    match stream {
        Stream::Stdout => json!("stdout"),
        Stream::Stderr => json!("stderr"),
    }
}

fn logging_level(level: LogLevel) -> LoggingLevel {
    match level {
        LogLevel::Error => LoggingLevel::Error,
        LogLevel::Warning => LoggingLevel::Warning,
        LogLevel::Info => LoggingLevel::Info,
        // MCP has nothing below debug.
        LogLevel::Debug | LogLevel::Trace => LoggingLevel::Debug,
    }
}

#[cfg(test)]
mod tests;
