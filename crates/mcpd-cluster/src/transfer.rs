//! Transfer of what a run needs and gives: its input with the request or in parts, its outcome
//! with the event or in parts, parts of its kept outputs.

use std::iter;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use mcpd_exec::Outcome;
use mcpd_server::remote::{InputFile, NotRun, OutputPart, Request};
use serde::{Deserialize, Serialize};

use crate::node::{Node, RequestError};
use crate::wire::{
    self, Control, Frame, PROTOCOL_VERSION, Part, PartRequest, RunId, Stream, heads,
};

/// Size of a part, and of what is sent without being asked for, in bytes.
pub(crate) const PART: u64 = 512 * 1024;
/// Number of parts that are fetched at the same time.
const PARALLEL: usize = 4;
/// Most memory that is reserved on the word of another node, in bytes.
const MAX_CAPACITY: u64 = 16 << 20;
/// Maximum size of an input or an outcome.
const MAX_TRANSFER: u64 = 256 << 20;

/// Result of a run at its worker.
pub(crate) type Ended = Result<Outcome, NotRun>;

/// Request for a run, as it crosses. A front only borrows the request `R`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RunHead<R = Request> {
    v: u32,
    pub(crate) run: RunId,
    /// Start of the worker that is meant.
    pub(crate) epoch: u64,
    /// Start of the front.
    pub(crate) front: String,
    /// Time for which the worker keeps what it knows of the run after its end, in seconds.
    pub(crate) hold_s: u64,
    pub(crate) request: R,
    /// Length of the arguments in the input.
    arguments: u64,
    /// Files after the arguments in the input: variable and length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files: Vec<(String, u64)>,
    /// The input is not in the body, and has to be fetched from the front.
    #[serde(default)]
    pub(crate) fetch: bool,
    /// It belongs to a task: it outlives its front.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) keep: bool,
}

heads!(RunHead);

fn length(bytes: &Bytes) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

impl<'a> RunHead<&'a Request> {
    /// Returns the head for a request, and its input.
    pub(crate) fn new(
        request: &'a Request,
        run: RunId,
        epoch: u64,
        front: String,
        hold_s: u64,
    ) -> (Self, Bytes) {
        let files = request.files.iter();
        let lengths = files.map(|file| (file.variable.clone(), length(&file.content)));
        let input = match &request.files[..] {
            [] => request.arguments.clone(),
            files => {
                let contents = files.iter().map(|file| &file.content[..]);
                let parts: Vec<_> = iter::once(&request.arguments[..]).chain(contents).collect();
                parts.concat().into()
            }
        };
        let head = Self {
            v: PROTOCOL_VERSION,
            run,
            epoch,
            front,
            hold_s,
            request,
            arguments: length(&request.arguments),
            files: lengths.collect(),
            fetch: length(&input) > PART,
            keep: request.task.is_some(),
        };
        (head, input)
    }
}

impl RunHead {
    /// Returns the size of the input; `None` if that is too large.
    pub(crate) fn input_size(&self) -> Option<u64> {
        let lengths = self.files.iter().map(|(_, length)| *length);
        let sum = lengths.fold(self.arguments, u64::saturating_add);
        (sum <= MAX_TRANSFER).then_some(sum)
    }

    /// Returns the request with its input.
    ///
    /// # Errors
    ///
    /// The input is shorter than the request says.
    pub(crate) fn into_request(self, mut input: Bytes) -> Result<Request, NotRun> {
        let mut take = |length: u64| {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let has = length <= input.len();
            has.then(|| input.split_to(length)).ok_or(NotRun::Version)
        };
        let mut request = self.request;
        request.run = self.run.to_string();
        request.arguments = take(self.arguments)?;
        for (variable, length) in self.files {
            request.files.push(InputFile::new(variable, take(length)?));
        }
        Ok(request)
    }
}

/// Encodes the result of a run.
pub(crate) fn encode_ended(ended: &Ended) -> Bytes {
    serde_json::to_vec(ended).unwrap_or_default().into()
}

/// Decodes the result of a run.
pub(crate) fn decode_ended(bytes: &[u8]) -> Ended {
    serde_json::from_slice(bytes)
        .unwrap_or_else(|error| Err(NotRun::lost(format!("its outcome can't be read: {error}"))))
}

/// Returns the answer to a request for a part of `whole`.
pub(crate) fn part_of(whole: Option<&Bytes>, offset: u64, length: u64) -> Frame<Part> {
    let Some(whole) = whole else {
        return missing("it is not there any more");
    };
    let start = usize::try_from(offset)
        .unwrap_or(usize::MAX)
        .min(whole.len());
    let length = usize::try_from(length.min(PART)).unwrap_or(usize::MAX);
    let end = start.saturating_add(length).min(whole.len());
    part(OutputPart::new(whole.slice(start..end), 0, 0))
}

/// Returns the answer with a part.
pub(crate) fn part(part: OutputPart) -> Frame<Part> {
    let head = Part {
        v: PROTOCOL_VERSION,
        missing: None,
        size: part.size,
        omitted: part.omitted_bytes,
    };
    Frame::new(head, part.bytes)
}

/// Returns the answer that there is no part.
pub(crate) fn missing(reason: &str) -> Frame<Part> {
    let head = Part {
        v: PROTOCOL_VERSION,
        missing: Some(reason.to_owned()),
        size: 0,
        omitted: 0,
    };
    Frame::new(head, Bytes::new())
}

/// Reason for which something can't be fetched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The node says that it does not have it.
    #[error("{0}")]
    Missing(String),
    #[error("{0} bytes are too many")]
    TooLarge(u64),
    /// A part, or all of it, has another size than was announced or asked for.
    #[error("it has another size than expected")]
    Size,
}

/// Fetches one part.
///
/// # Errors
///
/// Says why it can't be had.
pub(crate) async fn fetch_part(
    node: &Node,
    subject: &str,
    part: PartRequest,
) -> Result<Frame<Part>, FetchError> {
    let control = Control::new(&node.identity(), wire::Request::Part(part));
    let question = Frame::new(control, Bytes::new());
    let answer: Frame<Part> = node.request(subject.to_owned(), &question).await?;
    match answer.head.missing {
        Some(reason) => Err(FetchError::Missing(reason)),
        None => Ok(answer),
    }
}

/// Fetches everything of this size, some parts at the same time.
///
/// # Errors
///
/// Says why it can't be had.
pub(crate) async fn fetch(
    node: &Node,
    subject: &str,
    (run, stream): (RunId, Stream),
    size: u64,
) -> Result<Bytes, FetchError> {
    if size > MAX_TRANSFER {
        return Err(FetchError::TooLarge(size));
    }
    let template = PartRequest {
        run,
        stream,
        offset: 0,
        length: size,
        principal: String::new(),
    };
    let whole = fetch_range(node, subject, &template, 0..size).await?.body;
    match length(&whole) == size {
        true => Ok(whole),
        false => Err(FetchError::Size),
    }
}

/// Splits a range into parts.
fn split(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let count = (range.end.saturating_sub(range.start)).div_ceil(PART);
    (0..count).map(move |number| {
        let start = range.start + number * PART;
        start..range.end.min(start + PART)
    })
}

/// Fetches a range of a kept output, with the head of its first part. The result is shorter if
/// the output is.
///
/// # Errors
///
/// Says why it can't be had.
pub(crate) async fn fetch_range(
    node: &Node,
    subject: &str,
    template: &PartRequest,
    range: Range<u64>,
) -> Result<Frame<Part>, FetchError> {
    let capacity = range.end.saturating_sub(range.start).min(MAX_CAPACITY);
    let fetches = split(range).map(|range| {
        let part = PartRequest {
            offset: range.start,
            length: range.end - range.start,
            ..template.clone()
        };
        async move {
            let asked = part.length;
            let part = fetch_part(node, subject, part).await;
            part.map(|part| (asked, part))
        }
    });
    let mut parts = stream::iter(fetches).buffered(PARALLEL);
    let mut whole = BytesMut::with_capacity(usize::try_from(capacity).unwrap_or_default());
    let mut is_over = false;
    let mut first = None;
    while let Some((asked, part)) = parts.try_next().await? {
        let size = length(&part.body);
        if size > asked || (is_over && size > 0) {
            return Err(FetchError::Size);
        }
        is_over = size < asked;
        whole.extend_from_slice(&part.body);
        first.get_or_insert(part.head);
    }
    let head = first.unwrap_or_else(|| part(OutputPart::new(Bytes::new(), 0, 0)).head);
    Ok(Frame::new(head, whole.freeze()))
}
