//! Bounded capture of one output stream: its head, its tail and its exact length.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::limits::Limits;
use crate::spill::SpillFile;

/// One output stream of a finished run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Captured {
    /// The first bytes, up to [`Limits::capture_head`].
    #[cfg_attr(feature = "serde", serde(with = "crate::encoding::base64_bytes"))]
    pub head: Bytes,
    /// The last bytes after the head, up to [`Limits::capture_tail`].
    #[cfg_attr(feature = "serde", serde(with = "crate::encoding::base64_bytes"))]
    pub tail: Bytes,
    /// Number of bytes the process wrote, kept or not.
    pub total_bytes: u64,
    /// Number of them, between head and tail, that were not kept.
    pub omitted_bytes: u64,
    /// The first bytes, up to [`Limits::keep`], if the stream is longer than head and tail.
    /// `None` as well if the disk did not take them. It is not serialized.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub file: Option<SpillFile>,
    /// Size of [`file`](Self::file) in bytes; also of one that is on another machine.
    pub kept_bytes: u64,
    /// The text that a terminal would show, if it differs. See
    /// [`terminal_view`](Self::terminal_view).
    pub terminal: Option<Box<Self>>,
}

impl Captured {
    /// Returns the whole stream, or `None` if a part of it was not kept.
    pub fn whole(&self) -> Option<Bytes> {
        if self.omitted_bytes > 0 {
            None
        } else if self.tail.is_empty() {
            Some(self.head.clone())
        } else {
            Some([&self.head[..], &self.tail[..]].concat().into())
        }
    }

    /// Returns what a terminal would show of the stream: without escape sequences, and without
    /// text that was overwritten or erased. Ordinary output is returned unchanged.
    #[must_use]
    pub fn terminal_view(&self) -> &Self {
        self.terminal.as_deref().unwrap_or(self)
    }

    /// Returns the stream as text: head, a note of what was left out, tail.
    ///
    /// No character is cut. Bytes that are not UTF-8 become U+FFFD; see
    /// [`is_utf8`](Self::is_utf8).
    pub fn to_text_lossy(&self) -> String {
        if let Some(whole) = self.whole() {
            return String::from_utf8_lossy(&whole).into_owned();
        }
        let (head, tail) = self.at_char_boundaries();
        let cut = self.head.len() - head.len() + self.tail.len() - tail.len();
        let left_out = self.omitted_bytes + cut as u64;
        let head = String::from_utf8_lossy(head);
        let tail = String::from_utf8_lossy(tail);
        format!("{head}\n… {left_out} bytes left out …\n{tail}")
    }

    /// Returns whether [`to_text_lossy`](Self::to_text_lossy) replaces nothing.
    pub fn is_utf8(&self) -> bool {
        if let Some(whole) = self.whole() {
            return std::str::from_utf8(&whole).is_ok();
        }
        let (head, tail) = self.at_char_boundaries();
        std::str::from_utf8(head).is_ok() && std::str::from_utf8(tail).is_ok()
    }

    fn at_char_boundaries(&self) -> (&[u8], &[u8]) {
        (without_cut_end(&self.head), without_cut_start(&self.tail))
    }
}

/// Returns `bytes` without an incomplete character at the end.
pub(crate) fn without_cut_end(bytes: &[u8]) -> &[u8] {
    match bytes.utf8_chunks().last().map(|chunk| chunk.invalid()) {
        Some(cut) if is_unfinished_char(cut) => &bytes[..bytes.len() - cut.len()],
        _ => bytes,
    }
}

fn is_unfinished_char(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// Returns `bytes` without the at most three bytes at the start that continue a character.
fn without_cut_start(bytes: &[u8]) -> &[u8] {
    let continues = |byte: &&u8| (0x80..0xC0).contains(*byte);
    &bytes[bytes.iter().take(3).take_while(continues).count()..]
}

/// A [`Captured`] that still grows.
#[derive(Debug, Clone)]
pub(crate) struct Capture {
    head: Vec<u8>,
    head_limit: usize,
    tail: VecDeque<u8>,
    tail_limit: usize,
    total_bytes: u64,
}

impl Capture {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            head: Vec::new(),
            head_limit: limits.capture_head,
            tail: VecDeque::new(),
            tail_limit: limits.capture_tail,
            total_bytes: 0,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total_bytes += bytes.len() as u64;
        let room = self.head_limit - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);

        let rest = &rest[rest.len().saturating_sub(self.tail_limit)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.tail_limit);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// Removes and returns the last line if it has no end yet, unless it is longer than
    /// `max_length` bytes.
    pub(crate) fn take_unfinished_line(&mut self, max_length: usize) -> Vec<u8> {
        let text = match self.tail.is_empty() {
            true => &self.head[..],
            false => self.tail.make_contiguous(),
        };
        let start = memchr::memrchr(b'\n', text).map_or(0, |newline| newline + 1);
        if text.len() - start > max_length {
            return Vec::new();
        }
        let line = match self.tail.is_empty() {
            true => self.head.split_off(start),
            false => self.tail.split_off(start).into(),
        };
        self.total_bytes -= line.len() as u64;
        line
    }

    pub(crate) fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Returns whether `more` bytes would exceed head and tail, so that some are left out.
    pub(crate) fn is_exceeded_by(&self, more: usize) -> bool {
        let room = self.head_limit.saturating_add(self.tail_limit) as u64;
        self.total_bytes + more as u64 > room
    }

    /// The captured bytes in order. They are the whole stream until some are left out.
    pub(crate) fn pieces(&self) -> [&[u8]; 3] {
        let (tail, rest) = self.tail.as_slices();
        [&self.head, tail, rest]
    }

    pub(crate) fn finish(self) -> Captured {
        let kept = self.head.len() + self.tail.len();
        Captured {
            omitted_bytes: self.total_bytes - kept as u64,
            head: self.head.into(),
            tail: Vec::from(self.tail).into(),
            total_bytes: self.total_bytes,
            file: None,
            kept_bytes: 0,
            terminal: None,
        }
    }
}

#[cfg(test)]
mod tests;
