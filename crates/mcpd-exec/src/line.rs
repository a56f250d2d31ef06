//! Line splitter for output as it arrives, with bounded memory: a line longer than the limit is
//! delivered in pieces.

/// One of the two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
#[expect(clippy::exhaustive_enums, reason = "a process has two output streams")]
pub enum Stream {
    /// File descriptor 1.
    Stdout,
    /// File descriptor 2.
    Stderr,
}

/// One line of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line<'a> {
    /// The stream it was written to.
    pub stream: Stream,
    /// The bytes without the newline, unchanged: any encoding, possibly with a carriage return.
    pub bytes: &'a [u8],
    /// The line was longer than the limit, and the next one of this stream continues it.
    pub continues: bool,
}

impl<'a> Line<'a> {
    /// Creates a line that a process elsewhere has written.
    #[must_use]
    pub fn new(stream: Stream, bytes: &'a [u8], continues: bool) -> Self {
        Self {
            stream,
            bytes,
            continues,
        }
    }
}

/// Callback that receives every line.
pub(crate) type OnLine<'a> = dyn FnMut(Line<'_>) + Send + 'a;

/// Splits one stream into lines. It holds at most one unfinished line.
#[derive(Debug)]
pub(crate) struct Lines {
    stream: Stream,
    limit: usize,
    unfinished: Vec<u8>,
}

impl Lines {
    pub(crate) fn new(stream: Stream, limit: usize) -> Self {
        Self {
            stream,
            limit: limit.max(1),
            unfinished: Vec::new(),
        }
    }

    /// Delivers every line that ends in `bytes`.
    pub(crate) fn push(&mut self, bytes: &[u8], on_line: &mut OnLine<'_>) {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.piece(&rest[..end], on_line);
            self.emit(false, on_line);
            rest = &rest[end + 1..];
        }
        self.piece(rest, on_line);
    }

    /// Delivers the text after the last newline.
    pub(crate) fn finish(&mut self, on_line: &mut OnLine<'_>) {
        if !self.unfinished.is_empty() {
            self.emit(false, on_line);
        }
    }

    fn piece(&mut self, mut bytes: &[u8], on_line: &mut OnLine<'_>) {
        while self.unfinished.len() + bytes.len() > self.limit {
            let (now, later) = bytes.split_at(self.limit - self.unfinished.len());
            self.unfinished.extend_from_slice(now);
            self.emit(true, on_line);
            bytes = later;
        }
        self.unfinished.extend_from_slice(bytes);
    }

    fn emit(&mut self, continues: bool, on_line: &mut OnLine<'_>) {
        on_line(Line {
            stream: self.stream,
            bytes: &self.unfinished,
            continues,
        });
        self.unfinished.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(limit: usize, chunks: &[&str], expected: &[&str]) {
        let mut lines = Lines::new(Stream::Stdout, limit);
        let mut seen = Vec::new();
        let mut on_line = |line: Line<'_>| {
            let text = std::str::from_utf8(line.bytes).unwrap();
            seen.push(format!("{text}{}", if line.continues { "…" } else { "" }));
        };
        for chunk in chunks {
            lines.push(chunk.as_bytes(), &mut on_line);
        }
        lines.finish(&mut on_line);
        assert_eq!(seen, expected);
    }

    #[test]
    fn lines_are_put_together_across_chunks() {
        check(10, &["a", "b\nc", "\n", "d"], &["ab", "c", "d"]);
    }

    #[test]
    fn empty_lines_count() {
        check(10, &["\n\na\n"], &["", "", "a"]);
    }

    #[test]
    fn long_line_comes_in_flagged_pieces() {
        check(3, &["abcdefg\n", "hij\n"], &["abc…", "def…", "g", "hij"]);
    }
}
