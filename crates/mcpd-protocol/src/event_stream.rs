//! Server-sent events, the stream in which a response over HTTP carries several messages: an
//! incremental parser. An event is collected in one buffer, so that a large message is in memory
//! once.
//!
//! Specification: [server-sent events] of HTML; `basic/transports/streamable-http` of MCP.
//!
//! [server-sent events]: https://html.spec.whatwg.org/multipage/server-sent-events.html
//!
//! ```
//! use mcpd_protocol::event_stream::Parser;
//!
//! let mut parser = Parser::new(1 << 20);
//! let mut bytes = &b": comment\ndata: {\"id\":1}\n\ndata: {}"[..];
//! let event = parser.parse(&mut bytes)?.expect("is complete");
//! assert_eq!(event.data, br#"{"id":1}"#);
//! assert_eq!(parser.parse(&mut bytes)?, None);
//! assert_eq!(parser.finish().expect("is whole").data, b"{}");
//! # Ok::<(), mcpd_protocol::event_stream::TooLarge>(())
//! ```

use memchr::memchr2;
use serde::de::IgnoredAny;
use thiserror::Error;

/// Maximum length of a line that is no data, in bytes.
const MAX_FIELD: usize = 64 << 10;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// Type of the event, which is `message` for a client if it is empty.
    pub name: String,
    /// Its lines of data, joined by line feeds.
    pub data: Vec<u8>,
    /// Place in the stream, for resumption.
    pub id: Option<String>,
    /// Time to wait before a new connection, in milliseconds.
    pub retry: Option<u64>,
}

/// Place of a byte within its line.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Name of a field, or a comment. It is collected in `line`.
    #[default]
    Field,
    /// First byte of the value of `data`, where one space is dropped.
    DataStart,
    /// Value of `data`.
    Data,
}

/// Incremental parser. A meaningless line is skipped.
#[derive(Debug)]
pub struct Parser {
    /// Beginning of the current line, unless it is data.
    line: Vec<u8>,
    place: Place,
    event: Event,
    has_fields: bool,
    has_data: bool,
    /// The line end before was `\r`, so that a `\n` belongs to it.
    is_after_return: bool,
    is_first_line: bool,
    max_size: usize,
}

/// Event that is larger than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
#[error("a message has more than {max_size} bytes")]
pub struct TooLarge {
    /// Maximum size, in bytes.
    pub max_size: usize,
}

impl Parser {
    /// Creates a parser of a new stream, whose events have at most `max_size` bytes of data.
    pub fn new(max_size: usize) -> Self {
        Self {
            line: Vec::new(),
            place: Place::Field,
            event: Event::default(),
            has_fields: false,
            has_data: false,
            is_after_return: false,
            is_first_line: true,
            max_size,
        }
    }

    /// Reads bytes up to the end of the next event, and removes them from `bytes`. Returns the
    /// event if its end is among them.
    ///
    /// # Errors
    ///
    /// Fails if the event is too large. The stream is of no use then.
    pub fn parse(&mut self, bytes: &mut &[u8]) -> Result<Option<Event>, TooLarge> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.is_after_return) && bytes[0] == b'\n' {
                *bytes = &bytes[1..];
                continue;
            }
            let end = memchr2(b'\n', b'\r', bytes);
            let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            self.extend_line(part)?;
            *bytes = rest;
            if let Some((end, rest)) = rest.split_first() {
                self.is_after_return = *end == b'\r';
                *bytes = rest;
                if let Some(event) = self.end_line() {
                    return Ok(Some(event));
                }
            }
        }
        Ok(None)
    }

    /// Returns the last event of a stream that ended without an empty line, unless it is torn.
    pub fn finish(&mut self) -> Option<Event> {
        let event = self.end_line().or_else(|| self.end_line())?;
        let is_whole = serde_json::from_slice::<IgnoredAny>(&event.data).is_ok();
        is_whole.then_some(event)
    }

    fn extend_line(&mut self, mut part: &[u8]) -> Result<(), TooLarge> {
        if self.place == Place::Field {
            // Only the beginning of the line decides; the rest of a comment is not kept.
            let room = (MAX_FIELD + 1).saturating_sub(self.line.len());
            let name_length = self.data_prefix_length(part);
            let taken = name_length.unwrap_or(part.len());
            self.line.extend_from_slice(&part[..taken.min(room)]);
            if name_length.is_none() {
                return Ok(());
            }
            part = &part[taken..];
            self.line.clear();
            self.is_first_line = false;
            self.place = Place::DataStart;
            if self.has_data {
                self.event.data.push(b'\n');
            }
            self.has_data = true;
        }
        if self.place == Place::DataStart && !part.is_empty() {
            part = part.strip_prefix(b" ").unwrap_or(part);
            self.place = Place::Data;
        }
        if self.event.data.len() + part.len() > self.max_size {
            return Err(TooLarge {
                max_size: self.max_size,
            });
        }
        self.event.data.extend_from_slice(part);
        Ok(())
    }

    /// Returns the number of bytes of `part` that complete `data:` at the beginning of the line.
    fn data_prefix_length(&self, part: &[u8]) -> Option<usize> {
        const NAME: &[u8] = b"data:";
        let mark = match self.is_first_line {
            true => BYTE_ORDER_MARK.len(),
            false => 0,
        };
        let before = self.line.len();
        if before >= NAME.len() + mark {
            return None;
        }
        let mut start = self.line.clone();
        start.extend_from_slice(&part[..part.len().min(NAME.len() + mark - before)]);
        let name = match self.is_first_line {
            true => start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&start),
            false => &start,
        };
        let removed = start.len() - name.len();
        let is_data = name.starts_with(NAME);
        is_data.then(|| removed + NAME.len() - before)
    }

    /// Ends a line. Returns the event that ends with it.
    fn end_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        let is_first = std::mem::take(&mut self.is_first_line);
        if std::mem::take(&mut self.place) != Place::Field {
            self.has_fields = true;
            return None;
        }
        let line = match is_first {
            true => line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line),
            false => &line,
        };
        if line.is_empty() {
            self.has_data = false;
            let has_fields = std::mem::take(&mut self.has_fields);
            return has_fields.then(|| std::mem::take(&mut self.event));
        }
        self.read_field(&String::from_utf8_lossy(line));
        None
    }

    fn read_field(&mut self, line: &str) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            _ if line.len() > MAX_FIELD => return,
            "event" => value.clone_into(&mut self.event.name),
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            "retry" => self.event.retry = value.parse().ok(),
            // A field `data` without a colon is an empty line of data.
            "data" => {
                if self.has_data && self.event.data.len() < self.max_size {
                    self.event.data.push(b'\n');
                }
                self.has_data = true;
            }
            // A comment, or an unknown field.
            _ => return,
        }
        self.has_fields = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the events of a stream for every split into chunks.
    #[track_caller]
    fn check(stream: &[u8], expected: &[Event]) {
        for size in 1..=stream.len() {
            let mut parser = Parser::new(1000);
            let mut events = Vec::new();
            for mut chunk in stream.chunks(size) {
                while let Some(event) = parser.parse(&mut chunk).unwrap() {
                    events.push(event);
                }
            }
            events.extend(parser.finish());
            assert_eq!(events, expected, "in chunks of {size}");
        }
    }

    fn data(data: &str) -> Event {
        Event {
            data: data.into(),
            ..Event::default()
        }
    }

    #[test]
    fn lines_end_in_three_ways() {
        check(
            b"data: a\n\ndata:b\r\rdata: c\r\ndata:  d\r\n\r\n",
            &[data("a"), data("b"), data("c\n d")],
        );
    }

    #[test]
    fn comments_and_unknown_fields_are_skipped() {
        check(
            b": hello\n\ndata: a\n:\nsince: now\ndataset: x\n\nretry: 7\n\n",
            &[
                data("a"),
                Event {
                    retry: Some(7),
                    ..Event::default()
                },
            ],
        );
    }

    #[test]
    fn byte_order_mark_is_skipped_once() {
        check(
            b"\xEF\xBB\xBFdata: a\n\n\xEF\xBB\xBFdata: b\n\n",
            &[data("a")],
        );
        check(
            b"\xEF\xBB\xBFevent: ping\ndata\ndata\n\n",
            &[Event {
                name: "ping".to_owned(),
                ..data("\n")
            }],
        );
    }

    #[test]
    fn id_and_name_belong_to_their_event() {
        let first = Event {
            id: Some("7".to_owned()),
            ..data("")
        };
        let second = Event {
            name: "message".to_owned(),
            ..data("{\"a\": \"caf\u{e9}: x\"}")
        };
        let stream = "id: 7\ndata:\n\nevent: message\ndata: {\"a\": \"caf\u{e9}: x\"}\n\n";
        check(stream.as_bytes(), &[first, second]);
    }

    #[test]
    fn last_event_needs_no_end_if_it_is_whole() {
        check(b"data: {}", &[data("{}")]);
        check(b"data: {}\n\n: bye", &[data("{}")]);
        check(b"data: {\"a", &[]);
    }

    #[test]
    fn event_is_bounded() {
        for long in [&b"data: 01234567890"[..], b"data: 0123456\ndata: 789a\n"] {
            let mut parser = Parser::new(10);
            assert_eq!(parser.parse(&mut &*long), Err(TooLarge { max_size: 10 }));
        }
        let mut parser = Parser::new(10);
        let comment = [b':'; 3 * MAX_FIELD];
        assert_eq!(parser.parse(&mut &comment[..]), Ok(None));
        assert!(parser.line.len() <= MAX_FIELD + 1);
    }
}
