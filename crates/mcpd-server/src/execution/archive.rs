//! Archive of outputs that were too long for their results: the caller of the run can read them
//! as resources for a while. Bounded in number, in bytes and in time; the oldest is evicted
//! first.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;
use std::{io, mem};

use bytes::Bytes;
use mcpd_exec::{Captured, Outcome, SpillFile, Stream};
use tokio::time::{Instant, sleep_until};

use crate::client::request::context::Context;
use crate::client::session::Session;
use crate::execution::elsewhere::KeptAt;
use crate::execution::output::{self, is_text};
use crate::execution::relay::stream_name;
use crate::policy::principal::Principal;
use crate::policy::{EffectivePolicy, Redactor};
use crate::remote::KeptOutput;
use crate::script::Script;
use crate::support::sync::lock;

/// Time for which an output can be read.
pub(crate) const OUTPUT_LIFETIME: Duration = Duration::from_secs(15 * 60);
/// Maximum number of outputs.
const MAX_OUTPUTS: usize = 64;
/// Maximum size of all outputs together, in bytes.
pub(crate) const MAX_BYTES: u64 = 256 << 20;
/// Beginning of the URI of every output.
const URI_PREFIX: &str = "mcpd://runs/";

/// Outputs of all calls.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    state: Mutex<ArchiveState>,
}

#[derive(Debug, Default)]
struct ArchiveState {
    /// Entries, the oldest first.
    entries: VecDeque<ArchiveEntry>,
    /// A task is scheduled to remove the oldest entry when it expires.
    is_cleanup_scheduled: bool,
}

#[derive(Debug)]
struct ArchiveEntry {
    uri: String,
    reader: OutputReader,
    output: ArchivedOutput,
    expires: Instant,
}

/// Reader of an output: the caller of the run, who must also know the URI.
#[derive(Debug, Clone)]
struct OutputReader {
    principal: Principal,
    /// The only session that may read it, if the call was made in one.
    session: Option<Weak<Session>>,
}

impl Archive {
    /// Adds an output. Must be called on a tokio runtime.
    fn put(self: &Arc<Self>, uri: String, reader: OutputReader, output: ArchivedOutput) {
        let mut state = lock(&self.state);
        state.entries.push_back(ArchiveEntry {
            uri,
            reader,
            output,
            expires: Instant::now() + OUTPUT_LIFETIME,
        });
        state.remove_stale();
        if !mem::replace(&mut state.is_cleanup_scheduled, true) {
            tokio::spawn(remove_stale(Arc::downgrade(self)));
        }
    }

    /// Returns the output at `uri`, if `principal` may read it in this session, or without one.
    pub(crate) fn find(
        &self,
        uri: &str,
        principal: &Principal,
        session: Option<&Arc<Session>>,
    ) -> Option<ArchivedOutput> {
        let mut state = lock(&self.state);
        state.remove_stale();
        let entry = state.entries.iter().find(|entry| entry.uri == uri)?;
        let is_theirs = entry.reader.matches(principal, session);
        is_theirs.then(|| entry.output.clone())
    }
}

/// Removes outputs when they expire, as long as there are any.
async fn remove_stale(archive: Weak<Archive>) {
    let next = || {
        let archive = archive.upgrade()?;
        let mut state = lock(&archive.state);
        state.remove_stale();
        let oldest = state.entries.front().map(|entry| entry.expires);
        state.is_cleanup_scheduled = oldest.is_some();
        oldest
    };
    while let Some(oldest) = next() {
        sleep_until(oldest).await;
    }
}

impl ArchiveState {
    /// Removes entries that are expired, beyond the limits, or without a living reader.
    fn remove_stale(&mut self) {
        let now = Instant::now();
        self.entries
            .retain(|entry| now < entry.expires && !entry.reader.is_gone());
        let size = |entry: &ArchiveEntry| entry.output.size();
        let mut bytes: u64 = self.entries.iter().map(size).sum();
        while self.entries.len() > MAX_OUTPUTS || bytes > MAX_BYTES {
            bytes -= self.entries.pop_front().as_ref().map_or(bytes, size);
        }
    }
}

impl OutputReader {
    fn new(principal: &Principal, session: Option<&Arc<Session>>) -> Self {
        Self {
            principal: principal.clone(),
            session: session.map(Arc::downgrade),
        }
    }

    fn matches(&self, principal: &Principal, session: Option<&Arc<Session>>) -> bool {
        let is_session = |own: &Weak<Session>| {
            session.is_some_and(|session| own.as_ptr() == Arc::as_ptr(session))
        };
        self.principal == *principal && self.session.as_ref().is_none_or(is_session)
    }

    /// Returns whether the session of the reader is over.
    fn is_gone(&self) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|session| session.strong_count() == 0)
    }
}

/// Output that can be read.
#[derive(Debug, Clone)]
pub(crate) struct ArchivedOutput {
    body: OutputBody,
    /// Removes the secrets.
    redactor: Option<Arc<Redactor>>,
    keeps_escapes: bool,
    /// Readers see the bytes as they are.
    is_verbatim: bool,
    /// Copy of the bytes that readers see, made at the first read of a part, if they differ.
    shown: Arc<OnceLock<Mutex<File>>>,
}

#[derive(Debug, Clone)]
enum OutputBody {
    Memory(Bytes),
    Disk(SpillFile),
}

impl ArchivedOutput {
    fn new(captured: &Captured, policy: &EffectivePolicy) -> Option<Self> {
        let body = match captured.whole() {
            Some(whole) => OutputBody::Memory(whole),
            None => OutputBody::Disk(captured.file.clone()?),
        };
        let keeps_escapes = policy.keeps_escapes();
        let is_shown_alike = keeps_escapes || captured.terminal.is_none();
        Some(Self {
            body,
            redactor: policy.redactor().cloned(),
            keeps_escapes,
            is_verbatim: is_shown_alike && policy.redactor().is_none(),
            shown: Arc::default(),
        })
    }

    /// Number of kept bytes.
    pub(crate) fn size(&self) -> u64 {
        match &self.body {
            OutputBody::Memory(bytes) => bytes.len() as u64,
            OutputBody::Disk(spill) => spill.size(),
        }
    }

    /// Number of bytes after these, which are lost.
    pub(crate) fn omitted_bytes(&self) -> u64 {
        match &self.body {
            OutputBody::Memory(_) => 0,
            OutputBody::Disk(spill) => spill.omitted_bytes(),
        }
    }

    /// Reads the bytes, without secrets; of a text the characters that a terminal would show.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub(crate) async fn read(self) -> io::Result<Vec<u8>> {
        let read = tokio::task::spawn_blocking(move || self.read_here());
        read.await.map_err(io::Error::other).flatten()
    }

    /// Reads a part of these bytes; one that is shorter than `range` is the last. Blocks. If
    /// readers see the bytes as they are, it takes no more memory than the part.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub(crate) fn read_part(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let length = range.end.saturating_sub(range.start).min(MAX_BYTES);
        if let OutputBody::Disk(spill) = &self.body
            && self.is_verbatim
        {
            return spill.read_range(range.start..range.start.saturating_add(length));
        }
        let shown = match self.shown.get() {
            Some(shown) => shown,
            None => {
                let mut file = tempfile::tempfile()?;
                file.write_all(&self.read_here()?)?;
                self.shown.get_or_init(|| Mutex::new(file))
            }
        };
        let mut file = lock(shown);
        file.seek(SeekFrom::Start(range.start))?;
        let mut part = Vec::new();
        (&mut *file).take(length).read_to_end(&mut part)?;
        Ok(part)
    }

    fn read_here(&self) -> io::Result<Vec<u8>> {
        let (bytes, is_redacted) = match &self.body {
            OutputBody::Memory(bytes) => (bytes.to_vec(), true),
            OutputBody::Disk(spill) => (spill.read()?, false),
        };
        let is_shown = !self.keeps_escapes && is_text(&bytes);
        let (bytes, is_redacted) = match mcpd_exec::terminal_text(&bytes) {
            Cow::Owned(shown) if is_shown => (shown, false),
            _ => (bytes, is_redacted),
        };
        Ok(match &self.redactor {
            Some(redactor) if !is_redacted => {
                redactor.redact_bytes(bytes, self.omitted_bytes() > 0)
            }
            _ => bytes,
        })
    }
}

/// Returns the URI of an output.
pub(crate) fn uri(id: &str, stream: &str) -> String {
    format!("{URI_PREFIX}{id}/{stream}")
}

/// Returns the output that a URI names if a worker keeps it, for this caller.
pub(crate) fn kept_elsewhere(uri: &str, principal: &Principal) -> Option<KeptOutput> {
    let (id, stream) = uri.strip_prefix(URI_PREFIX)?.split_once('/')?;
    let (worker, run) = id.split_once('.')?;
    let streams = [Stream::Stdout, Stream::Stderr];
    let stream = streams
        .into_iter()
        .find(|one| stream_name(*one) == stream)?;
    Some(KeptOutput::new(worker, run, stream, principal.name()))
}

/// Keeps the outputs of a run for fronts: those that are longer than its outcome, and of a failed
/// one also the stderr that its result shows only the end of. Must be called on a tokio runtime.
pub(crate) fn keep_for_front(
    archive: &Arc<Archive>,
    run: &str,
    principal: &Principal,
    script: &Script,
    outcome: &Outcome,
) {
    for (stream, captured) in [("stdout", &outcome.stdout), ("stderr", &outcome.stderr)] {
        let is_linked = stream == "stderr" && output::links_stderr(outcome);
        if (captured.file.is_some() || is_linked)
            && let Some(output) = ArchivedOutput::new(captured, &script.policy)
        {
            archive.put(uri(run, stream), OutputReader::new(principal, None), output);
        }
    }
}

/// Place in the archive for the outputs of one call whose result shows only a part of them.
#[derive(Debug, Clone)]
pub(crate) struct CallArchive {
    archive: Arc<Archive>,
    reader: OutputReader,
    /// Policy of the called tool.
    policy: Arc<EffectivePolicy>,
    /// Part of the URIs that cannot be guessed.
    call_id: String,
    /// Attempt of which a worker keeps the outputs, if that is not done here.
    kept_at: Option<KeptAt>,
    /// The result can contain links.
    pub(crate) links: bool,
}

impl CallArchive {
    /// Creates the archive handle of one call in this request, whose tool runs under `terms`.
    pub(crate) fn new(
        archive: &Arc<Archive>,
        context: &Context,
        policy: &Arc<EffectivePolicy>,
        call_id: String,
    ) -> Self {
        Self {
            archive: Arc::clone(archive),
            reader: OutputReader::new(&context.peer.principal, context.introduced_session()),
            policy: Arc::clone(policy),
            call_id,
            kept_at: None,
            links: context.version.has_resource_links(),
        }
    }

    /// Sets the attempt of which a worker keeps the outputs, if that is not done here.
    pub(crate) fn kept_at(mut self, kept_at: Option<KeptAt>) -> Self {
        self.kept_at = kept_at;
        self
    }

    /// Keeps an output, or leaves that to its worker. `None` if outputs are not kept, or this one
    /// could not be.
    ///
    /// Must be called on a tokio runtime.
    pub(crate) fn keep(&self, stream: Stream, captured: &Captured) -> Option<Kept> {
        if self.policy.limits().keep == 0 {
            return None;
        }
        let kept = match &self.kept_at {
            Some(kept_at) if captured.omitted_bytes > 0 => {
                let uri = uri(&kept_at.to_string(), stream_name(stream));
                (captured.kept_bytes > 0).then(|| Kept::by_worker(uri, captured))
            }
            _ => self.keep_here(stream, captured),
        };
        if kept.is_none() {
            tracing::warn!(
                call = self.call_id,
                stream = stream_name(stream),
                "failed to write a long output to disk"
            );
        }
        kept
    }

    /// Keeps an output of this machine, or one that is as a whole in the outcome of a worker.
    fn keep_here(&self, stream: Stream, captured: &Captured) -> Option<Kept> {
        let output = ArchivedOutput::new(captured, &self.policy)?;
        let id = self.kept_at.as_ref().map(ToString::to_string);
        let uri = uri(id.as_ref().unwrap_or(&self.call_id), stream_name(stream));
        let kept = Kept {
            uri: uri.clone(),
            size: output.size(),
            omitted_bytes: output.omitted_bytes(),
        };
        self.archive.put(uri, self.reader.clone(), output);
        Some(kept)
    }
}

/// Output that can be read for a while.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) uri: String,
    /// Number of kept bytes.
    pub(crate) size: u64,
    /// Number of bytes after these, which are lost.
    pub(crate) omitted_bytes: u64,
}

impl Kept {
    fn by_worker(uri: String, captured: &Captured) -> Self {
        Self {
            uri,
            size: captured.kept_bytes,
            omitted_bytes: captured.total_bytes.saturating_sub(captured.kept_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use mcpd_protocol::ProtocolVersion;

    use super::*;
    use crate::client::session::Introduction;
    use crate::client::subscribers::Subscribers;

    fn session() -> Arc<Session> {
        let introduction = Introduction::none(ProtocolVersion::LATEST_STATEFUL);
        Arc::new(Session::new(
            introduction,
            &Principal::new("ada"),
            &Arc::new(Subscribers::default()),
        ))
    }

    fn put(archive: &Arc<Archive>, uri: &str, session: Option<&Arc<Session>>, bytes: &Bytes) {
        let output = ArchivedOutput {
            body: OutputBody::Memory(bytes.clone()),
            redactor: None,
            keeps_escapes: false,
            is_verbatim: true,
            shown: Arc::default(),
        };
        let reader = OutputReader::new(&Principal::new("ada"), session);
        archive.put(uri.to_owned(), reader, output);
    }

    /// Returns those of the outputs `0`, `1`, … that the caller can read in this session.
    fn find_outputs(archive: &Archive, session: Option<&Arc<Session>>) -> Vec<usize> {
        find_outputs_of(archive, &Principal::new("ada"), session)
    }

    fn find_outputs_of(
        archive: &Archive,
        principal: &Principal,
        session: Option<&Arc<Session>>,
    ) -> Vec<usize> {
        let find = |uri: &usize| archive.find(&uri.to_string(), principal, session);
        (0..100).filter(|uri| find(uri).is_some()).collect()
    }

    #[tokio::test]
    async fn archived_output_is_readable_by_its_caller_only() {
        let archive = Arc::new(Archive::default());
        let session = session();
        put(&archive, "0", Some(&session), &Bytes::new());
        put(&archive, "1", None, &Bytes::new());
        let found_by = |name| find_outputs_of(&archive, &Principal::new(name), Some(&session));
        assert_eq!(found_by("ada"), [0, 1]);
        assert!(found_by("grace").is_empty());
    }

    #[tokio::test]
    async fn archived_output_ends_with_its_session() {
        let archive = Arc::new(Archive::default());
        let (owner, other) = (session(), session());
        put(&archive, "0", Some(&owner), &Bytes::new());
        put(&archive, "1", None, &Bytes::new());
        assert_eq!(find_outputs(&archive, Some(&owner)), [0, 1]);
        assert_eq!(find_outputs(&archive, Some(&other)), [1]);
        assert_eq!(find_outputs(&archive, None), [1]);
        drop(owner);
        assert_eq!(find_outputs(&archive, None), [1]);
        assert_eq!(lock(&archive.state).entries.len(), 1);
    }

    #[tokio::test]
    async fn oldest_outputs_are_evicted_by_number() {
        let archive = Arc::new(Archive::default());
        for uri in 0..MAX_OUTPUTS + 2 {
            put(&archive, &uri.to_string(), None, &Bytes::new());
        }
        let newest: Vec<_> = (2..MAX_OUTPUTS + 2).collect();
        assert_eq!(find_outputs(&archive, None), newest);
    }

    #[tokio::test]
    async fn oldest_outputs_are_evicted_by_size() {
        let archive = Arc::new(Archive::default());
        let quarter = Bytes::from(vec![0; MAX_BYTES as usize / 4]);
        for uri in 0..4 {
            put(&archive, &uri.to_string(), None, &quarter);
        }
        assert_eq!(find_outputs(&archive, None), [0, 1, 2, 3]);
        put(&archive, "4", None, &Bytes::from_static(b"x"));
        assert_eq!(find_outputs(&archive, None), [1, 2, 3, 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn outputs_expire_without_an_access() {
        let archive = Arc::new(Archive::default());
        let len = || lock(&archive.state).entries.len();
        put(&archive, "0", None, &Bytes::new());
        tokio::time::sleep(OUTPUT_LIFETIME / 2).await;
        put(&archive, "1", None, &Bytes::new());
        assert_eq!(len(), 2);
        tokio::time::sleep(OUTPUT_LIFETIME / 2 + Duration::from_millis(1)).await;
        assert_eq!(len(), 1);
        tokio::time::sleep(OUTPUT_LIFETIME / 2).await;
        assert_eq!(len(), 0);
        // The task starts again with the next entry.
        put(&archive, "2", None, &Bytes::new());
        tokio::time::sleep(OUTPUT_LIFETIME + Duration::from_millis(1)).await;
        assert_eq!(len(), 0);
    }
}
