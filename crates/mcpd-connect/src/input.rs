//! Lines of standard input, read on a thread of their own: a read can't be interrupted, and must
//! not keep the runtime from ending.

use std::io::{self, BufRead as _, BufReader, Read};

use bytes::Bytes;
use tokio::sync::mpsc::{self, Receiver};
use tokio_util::sync::CancellationToken;

/// Maximum number of lines read ahead.
const MAX_QUEUED_LINES: usize = 64;
const BUFFER_SIZE: usize = 64 << 10;

/// One line without its end.
#[derive(Debug)]
pub(crate) enum Line {
    Text(Bytes),
    /// More bytes than a message may have. The line was skipped.
    TooLong,
}

/// Starts the thread, which calls `on_line` for each line. `ended` is cancelled at the end of the
/// input, or when it can't be read.
pub(crate) fn start(
    input: impl Read + Send + 'static,
    max_size: usize,
    on_line: impl Fn() + Send + 'static,
    ended: CancellationToken,
) -> io::Result<Receiver<Line>> {
    let (sender, lines) = mpsc::channel(MAX_QUEUED_LINES);
    let read = move || {
        let send = |line| {
            on_line();
            sender.blocking_send(line).is_ok()
        };
        if let Err(error) = read_lines(input, max_size, send) {
            tracing::warn!("failed to read standard input: {error}");
        }
        ended.cancel();
    };
    let thread = std::thread::Builder::new().name("mcpd-input".to_owned());
    thread.spawn(read)?;
    Ok(lines)
}

/// Passes on lines until the input ends, or `send` returns false.
fn read_lines(input: impl Read, max_size: usize, send: impl Fn(Line) -> bool) -> io::Result<()> {
    let mut input = BufReader::with_capacity(BUFFER_SIZE, input);
    let limit = u64::try_from(max_size)
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    loop {
        let mut text = Vec::new();
        let length = input.by_ref().take(limit).read_until(b'\n', &mut text)?;
        if length == 0 {
            return Ok(());
        }
        let is_complete = text.pop_if(|last| *last == b'\n').is_some();
        let line = match !is_complete && text.len() > max_size {
            true => {
                skip_line(&mut input)?;
                Line::TooLong
            }
            false if text.trim_ascii().is_empty() => continue,
            false => Line::Text(text.into()),
        };
        if !send(line) {
            return Ok(());
        }
    }
}

fn skip_line(input: &mut BufReader<impl Read>) -> io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(buffer.len(), |end| end + 1);
        let is_end = buffer.is_empty() || end.is_some();
        input.consume(used);
        if is_end {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn line_beyond_the_limit_is_skipped_alone() {
        let ended = CancellationToken::new();
        let input = io::Cursor::new(b"abcde\n\nabcdef\n \r\nabcdefg\nab".to_vec());
        let mut lines = start(input, 5, || {}, ended.clone()).unwrap();
        let mut read = Vec::new();
        while let Some(line) = lines.recv().await {
            read.push(match line {
                Line::Text(text) => String::from_utf8(text.to_vec()).unwrap(),
                Line::TooLong => "-".to_owned(),
            });
        }
        assert_eq!(read, ["abcde", "-", "-", "ab"]);
        ended.cancelled().await;
    }
}
