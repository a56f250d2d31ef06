//! Server-sent events: decoding of a response body into events of bounded size. A meaningless line
//! is skipped.

use futures_util::stream::{self, Stream};
use reqwest::Response;
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::Sse;

/// Incremental decoder of an event stream.
#[derive(Debug, Default)]
struct Decoder {
    /// Bytes of lines that are incomplete or not read yet.
    buffer: Vec<u8>,
    /// Length of the prefix known to contain no line end.
    searched: usize,
    event: Sse,
    has_fields: bool,
    max_size: usize,
}

/// Returns the events in the body of a response, each of at most `max_size` bytes.
pub(super) fn decode(
    response: Response,
    max_size: usize,
) -> impl Stream<Item = Result<Sse, SseError>> {
    let decoder = Decoder {
        max_size,
        ..Decoder::default()
    };
    stream::try_unfold(
        (Some(response), decoder),
        |(mut body, mut decoder)| async move {
            loop {
                if let Some(event) = decoder.next_event(body.is_none())? {
                    return Ok(Some((event, (body, decoder))));
                }
                let Some(response) = &mut body else {
                    return Ok(None);
                };
                match response.chunk().await {
                    Ok(Some(chunk)) => decoder.buffer.extend_from_slice(&chunk),
                    Ok(None) => body = None,
                    Err(error) => return Err(SseError::Body(Box::new(error.without_url()))),
                }
            }
        },
    )
}

impl Decoder {
    /// Returns the next event whose end has arrived, or the last one of a finished stream.
    fn next_event(&mut self, has_ended: bool) -> Result<Option<Sse>, SseError> {
        let mut start = 0;
        let mut event = None;
        while event.is_none() {
            let from = start.max(self.searched);
            let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
            let Some(end) = self.buffer[from..].iter().position(is_end) else {
                self.searched = self.buffer.len();
                break;
            };
            let end = from + end;
            let mut next = end + 1;
            if self.buffer[end] == b'\r' {
                match self.buffer.get(next) {
                    Some(b'\n') => next += 1,
                    Some(_) => {}
                    // The `\n` of a `\r\n` may not have arrived yet.
                    None if !has_ended => {
                        self.searched = end;
                        break;
                    }
                    None => {}
                }
            }
            let line = self.buffer[start..end].to_vec();
            start = next;
            self.searched = next;
            event = self.read_line(&line);
        }
        self.buffer.drain(..start);
        self.searched -= start.min(self.searched);
        if event.is_none() && has_ended {
            let line = std::mem::take(&mut self.buffer);
            self.searched = 0;
            event = self.read_line(&line).or_else(|| self.read_line(b""));
        }
        let size = self.event.data.as_ref().map_or(0, String::len) + self.buffer.len();
        if event.is_none() && size > self.max_size {
            let why = format!("an event has more than {} bytes", self.max_size);
            return Err(SseError::Body(why.into()));
        }
        Ok(event)
    }

    /// Reads a line. Returns the event that ends with it.
    fn read_line(&mut self, line: &[u8]) -> Option<Sse> {
        if line.is_empty() {
            let has_fields = std::mem::take(&mut self.has_fields);
            return has_fields.then(|| std::mem::take(&mut self.event));
        }
        let line = String::from_utf8_lossy(line);
        let line = line.strip_prefix('\u{feff}').unwrap_or(&line);
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => match &mut self.event.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.event.data = Some(value.to_owned()),
            },
            "event" => self.event.event = Some(value.to_owned()),
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            "retry" => self.event.retry = value.trim().parse().ok(),
            // A comment, or an unknown field.
            _ => return None,
        }
        self.has_fields = true;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoder(max_size: usize) -> Decoder {
        Decoder {
            max_size,
            ..Decoder::default()
        }
    }

    /// Checks the events of a stream for every split into chunks.
    #[track_caller]
    fn check(bytes: &[u8], expected: &[Sse]) {
        for size in 1..=bytes.len() {
            let mut decoder = decoder(1000);
            let mut events = Vec::new();
            for chunk in bytes.chunks(size) {
                decoder.buffer.extend_from_slice(chunk);
                while let Some(event) = decoder.next_event(false).unwrap() {
                    events.push(event);
                }
            }
            while let Some(event) = decoder.next_event(true).unwrap() {
                events.push(event);
            }
            assert_eq!(events, expected, "in chunks of {size}");
        }
    }

    fn data(data: &str) -> Sse {
        Sse::default().data(data)
    }

    #[test]
    fn lines_end_in_three_ways() {
        check(
            b"data: a\n\ndata:b\r\rdata: c\r\ndata: d\r\n\r\n",
            &[data("a"), data("b"), data("c\nd")],
        );
    }

    #[test]
    fn meaningless_line_is_skipped() {
        check(
            b"\xEF\xBB\xBFdata: a\n: comment\nsince: now\nping\nretry: soon\n\ndata: caf\xE9\nid: 7\n\n",
            &[data("a"), data("caf\u{fffd}").id("7")],
        );
    }

    #[test]
    fn last_event_needs_no_end() {
        check(b"event: message\ndata: a", &[data("a").event("message")]);
        check(b"data: a\n\n: bye\n\n", &[data("a")]);
    }

    #[test]
    fn event_is_bounded() {
        for long in [&b"data: 01234567890"[..], b"data: 0123456\ndata: 789\n"] {
            let mut decoder = decoder(10);
            decoder.buffer.extend_from_slice(long);
            assert!(decoder.next_event(false).is_err());
        }
    }
}
