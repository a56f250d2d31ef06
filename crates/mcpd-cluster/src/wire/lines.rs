//! Lines of a run in the body of an event: stream and continuation, length, bytes, again and again.

use bytes::{BufMut as _, Bytes, BytesMut};
use mcpd_exec::{Line, Stream};

const STDERR: u8 = 1;
const CONTINUES: u8 = 2;

/// Appends a line to a body.
pub(crate) fn push_line(body: &mut BytesMut, line: &Line<'_>) {
    let stream = if line.stream == Stream::Stderr {
        STDERR
    } else {
        0
    };
    let continues = if line.continues { CONTINUES } else { 0 };
    body.put_u8(stream | continues);
    // The splitter of the executor bounds a line far below this.
    body.put_u32_le(u32::try_from(line.bytes.len()).unwrap_or(u32::MAX));
    body.put_slice(line.bytes);
}

/// Reads the lines of a body up to its first fault.
pub(crate) fn read_lines(body: &Bytes, mut on_line: impl FnMut(Line<'_>)) {
    let mut rest = &body[..];
    while let Some(([kind, a, b, c, d], after)) = rest.split_first_chunk() {
        let length = u32::from_le_bytes([*a, *b, *c, *d]);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let Some((bytes, after)) = after.split_at_checked(length) else {
            return;
        };
        let stream = match kind & STDERR {
            0 => Stream::Stdout,
            _ => Stream::Stderr,
        };
        on_line(Line::new(stream, bytes, kind & CONTINUES != 0));
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_round_trip() {
        let mut body = BytesMut::new();
        push_line(&mut body, &Line::new(Stream::Stdout, b"one", false));
        push_line(&mut body, &Line::new(Stream::Stderr, b"", true));
        let mut lines = Vec::new();
        read_lines(&body.freeze(), |line| {
            lines.push((line.stream, line.bytes.to_vec(), line.continues));
        });
        let expected = [
            (Stream::Stdout, b"one".to_vec(), false),
            (Stream::Stderr, Vec::new(), true),
        ];
        assert_eq!(lines, expected);
    }

    proptest! {
        #[test]
        fn hostile_lines_end_at_their_first_fault(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let mut total = 0;
            read_lines(&bytes.clone().into(), |line| total += 5 + line.bytes.len());
            prop_assert!(total <= bytes.len());
        }
    }
}
