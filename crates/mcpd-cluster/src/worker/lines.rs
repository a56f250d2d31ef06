//! Lines of a run on their way to its front: batches, and a window of bytes that the front has not
//! acknowledged (backpressure). Beyond it lines are dropped and counted, so no script waits.

use std::sync::{Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use mcpd_exec::Line;

use crate::wire::push_line;

/// Size from which a batch is full, in bytes.
const BATCH: usize = 32 * 1024;
/// Bytes that may be sent without an acknowledgement.
const WINDOW: u64 = 256 * 1024;
/// Bytes that wait for the window.
const MAX_WAITING: usize = 64 * 1024;

/// Lines of one run.
#[derive(Debug, Default)]
pub(super) struct LineWindow(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    batch: BytesMut,
    dropped: u64,
    sent: u64,
    acknowledged: u64,
}

impl LineWindow {
    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line. Returns whether nothing waited before.
    pub(super) fn push(&self, line: &Line<'_>) -> bool {
        let mut waiting = self.lock();
        if waiting.batch.len() + line.bytes.len() > MAX_WAITING {
            waiting.dropped += 1;
            return false;
        }
        let was_empty = waiting.batch.is_empty();
        push_line(&mut waiting.batch, line);
        was_empty
    }

    /// Takes lines to send, with the number of those that were dropped before.
    pub(super) fn take_batch(&self) -> Option<(u64, Bytes)> {
        let mut waiting = self.lock();
        let unacknowledged = waiting.sent.saturating_sub(waiting.acknowledged);
        if waiting.batch.is_empty() || unacknowledged >= WINDOW {
            return None;
        }
        let end = end_of_batch(&waiting.batch);
        let batch = waiting.batch.split_to(end).freeze();
        waiting.sent += u64::try_from(batch.len()).unwrap_or_default();
        Some((std::mem::take(&mut waiting.dropped), batch))
    }

    /// Another front receives the lines, and counts from here.
    pub(super) fn restart(&self) {
        let mut waiting = self.lock();
        (waiting.sent, waiting.acknowledged) = (0, 0);
    }

    /// The front has received this many bytes in all.
    pub(super) fn acknowledge(&self, bytes: u64) {
        let mut waiting = self.lock();
        waiting.acknowledged = waiting.acknowledged.max(bytes.min(waiting.sent));
    }
}

/// Returns the end of the last whole line within a batch, or of the first.
fn end_of_batch(lines: &[u8]) -> usize {
    let mut end = 0;
    while let Some([_, a, b, c, d]) = lines.get(end..end + 5) {
        let length = u32::from_le_bytes([*a, *b, *c, *d]);
        let next = end + 5 + usize::try_from(length).unwrap_or_default();
        if end > 0 && next > BATCH {
            break;
        }
        end = next;
    }
    end.min(lines.len())
}

#[cfg(test)]
mod tests {
    use mcpd_exec::Stream;

    use super::*;
    use crate::wire::read_lines;

    #[test]
    fn slow_front_loses_lines_and_learns_how_many() {
        let lines = LineWindow::default();
        let text = [b'x'; 1000];
        let line = Line::new(Stream::Stdout, &text, false);
        let (mut received, mut told) = (0, 0);
        let mut count = |lines: &LineWindow| {
            while let Some((dropped, batch)) = lines.take_batch() {
                assert!(batch.len() <= BATCH, "{}", batch.len());
                told += dropped;
                read_lines(&batch, |_| received += 1);
            }
            (received, told)
        };
        for _ in 0..1000 {
            lines.push(&line);
            count(&lines);
        }
        let (before, _) = count(&lines);
        assert!((250..300).contains(&before), "{before}");
        lines.acknowledge(u64::MAX);
        let (waiting, told) = count(&lines);
        assert_eq!(waiting, before + 65);
        assert_eq!(told, 1000 - waiting);
    }
}
