//! Session of an author: what happens on a server while scripts are written, and the last call,
//! which is made again when its script is saved.
//!
//! ```text
//! requests ──► RequestEvent ──► Timeline ──► shown
//! catalog  ──► changes, faults ────┘  │ last call
//! files    ──► saved ──► call again ◄─┘
//! keys     ──► again, inspector, end
//! ```

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::future::pending;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use mcpd_check::Finding;
use mcpd_protocol::method::LoggingLevel;
use mcpd_server::transport::local;
use mcpd_server::{Principal, Server, ServerBuilder};
use tokio::sync::mpsc;
use tokio::time::sleep;

pub use self::inspector::Inspector;
use self::saved_files::SavedFiles;
use self::timeline::{LastCall, Timeline};

mod changes;
mod inspector;
mod saved_files;
mod timeline;

/// Interval between two looks at the catalog and at the files of the last call.
const POLL_INTERVAL: Duration = Duration::from_millis(150);

/// Characters of one line that are shown.
const MAX_COLUMNS: usize = 200;

/// Kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a program has a sign for each")]
pub enum Sign {
    /// An entry of the catalog is new.
    Added,
    /// An entry of the catalog is gone.
    Removed,
    /// An entry of the catalog has changed.
    Changed,
    /// A request has begun.
    Called,
    /// A script has printed a line.
    Line,
    /// A request has a result.
    Returned,
    /// A request has failed.
    Failed,
    /// A remark of the session itself.
    Note,
}

/// Part of what happens, to be shown.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_enums, reason = "a program shows each")]
pub enum Shown<'a> {
    /// A text with its kind; further lines are indented. It has texts of scripts and clients.
    Line(Sign, &'a str),
    /// New faults, and the number of scripts in all.
    Faults(&'a [Finding<'a>], usize),
}

/// Command of the author.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a program has a key for each")]
pub enum Key {
    /// Make the last call again.
    Again,
    /// Open the MCP Inspector.
    Inspector,
    /// End the session.
    End,
}

/// Receiver of what a session shows.
#[derive(Clone)]
struct Display(Arc<dyn Fn(Shown<'_>) + Send + Sync>);

impl fmt::Debug for Display {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Display").finish_non_exhaustive()
    }
}

impl Display {
    /// Shows a text, whose first line is cut.
    fn line(&self, sign: Sign, text: &str) {
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        let mut text = cut(first).into_owned();
        if !rest.is_empty() {
            text.push('\n');
            text += rest;
        }
        (self.0)(Shown::Line(sign, &text));
    }

    fn note(&self, text: &str) {
        self.line(Sign::Note, text);
    }
}

/// Session of an author: what was shown, and what can be called again.
#[derive(Debug)]
pub struct Session {
    display: Display,
    timeline: Arc<Timeline>,
}

impl Session {
    /// Session that passes what happens to `show`.
    #[must_use]
    pub fn new(show: impl Fn(Shown<'_>) + Send + Sync + 'static) -> Self {
        let display = Display(Arc::new(show));
        Self {
            timeline: Arc::new(Timeline::new(display.clone())),
            display,
        }
    }

    /// Shows all requests of the server.
    pub fn observe(&self, server: ServerBuilder) -> ServerBuilder {
        let timeline = Arc::clone(&self.timeline);
        server.observe_requests(move |number, event| timeline.add(number, &event))
    }

    /// Follows changes and keys until the author ends the session. Without keys, it goes on for
    /// ever.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the session, and with it a call that is made again.
    pub async fn follow(&self, server: &Server, keys: mpsc::Receiver<Key>, inspector: Inspector) {
        server.catalog_ready().await;
        tokio::select! {
            never = self.follow_changes(server) => match never {},
            () = self.handle_keys(server, keys, &inspector) => {}
        }
    }

    async fn follow_changes(&self, server: &Server) -> Infallible {
        let mut shown = server.catalog();
        changes::show_faults(None, &shown, &self.display);
        let mut files = SavedFiles::default();
        files.find_changed(&shown);
        loop {
            sleep(POLL_INTERVAL).await;
            let catalog = server.catalog();
            if !Arc::ptr_eq(&shown, &catalog) {
                changes::show(&shown, &catalog, &self.display);
                changes::show_faults(Some(&shown), &catalog, &self.display);
                shown = catalog;
            }
            let changed = files.find_changed(&shown);
            if let Some(call) = self.timeline.last_call()
                && changed.contains(&call.tool)
            {
                self.call_again(server, call).await;
            }
        }
    }

    async fn handle_keys(
        &self,
        server: &Server,
        mut keys: mpsc::Receiver<Key>,
        inspector: &Inspector,
    ) {
        let mut inspecting = pin!(None);
        loop {
            let key = tokio::select! {
                key = keys.recv() => key,
                () = if_any(inspecting.as_mut()) => {
                    inspecting.set(None);
                    continue;
                }
            };
            match key {
                Some(Key::Again) => match self.timeline.last_call() {
                    Some(call) => self.call_again(server, call).await,
                    None => self.display.note("there was no call yet"),
                },
                Some(Key::Inspector) => {
                    inspecting.set(Some(inspector.run(server.executor(), &self.display)));
                }
                Some(Key::End) => return,
                None => pending().await,
            }
        }
    }

    /// Makes a call again; its events are shown as those of any other.
    async fn call_again(&self, server: &Server, call: LastCall) {
        let mut params = call.params;
        let version = env!("CARGO_PKG_VERSION");
        params.meta = Some(local::envelope_with_approval(
            "mcpd",
            version,
            LoggingLevel::Debug,
        ));
        // The author at the keyboard wants the call.
        let approve = |_: &str| true;
        let call = local::call(server, Principal::local(), &params, |_| {}, approve);
        if let Err(error) = call.await {
            let error = anyhow::Error::from(error);
            self.display.note(&format!("failed to {error:#}"));
        }
    }
}

fn cut(line: &str) -> Cow<'_, str> {
    match line.char_indices().nth(MAX_COLUMNS) {
        Some((end, _)) => Cow::Owned(format!("{}…", &line[..end])),
        None => Cow::Borrowed(line),
    }
}

/// Waits for a future that may be there; without one, waits forever.
async fn if_any<F: Future<Output = ()>>(future: Pin<&mut Option<F>>) {
    match future.as_pin_mut() {
        Some(future) => future.await,
        None => pending().await,
    }
}
