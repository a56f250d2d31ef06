//! Terminal emulation, as far as it decides what can be read of an output in the end: a carriage
//! return overwrites, cursor movements and erasures are obeyed, and colours, titles and links
//! leave no trace. Output without an escape sequence or a lone carriage return is not touched,
//! and costs a search.
//!
//! Rows are held until nothing can change them any more. Their number and their length are
//! bounded, and so is an escape sequence. Lines do not wrap at any width.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::mem;

use anstyle_parse::{Params, Parser, Perform};
use memchr::{memchr2_iter, memrchr};

use crate::capture::{Capture, Captured, without_cut_end};

const ESCAPE: u8 = 0x1b;
const BACKSPACE: u8 = 0x08;
const BELL: u8 = 0x07;

/// Rows that the cursor can go back to. Programs assume smaller terminals.
const MAX_ROWS: usize = 100;
/// Characters of a row that can still change. The beginning of a longer row is settled.
const MAX_ROW_LENGTH: usize = 4096;
/// Farthest column that the cursor can be sent to beyond the end of a row.
const MAX_COLUMN: usize = 200;
/// Length of an escape sequence, in bytes. A longer one is broken, and would swallow all that
/// follows.
const MAX_SEQUENCE: usize = 1 << 20;

/// Returns what a terminal would show of a whole text.
#[must_use]
pub fn terminal_text(text: &[u8]) -> Cow<'_, [u8]> {
    let start = first_control(text).or_else(|| text.ends_with(b"\r").then(|| text.len() - 1));
    let Some(start) = start else {
        return Cow::Borrowed(text);
    };
    let (before, rest) = text.split_at(line_start(&text[..start]));
    let mut screen = Screen::default();
    screen.advance(rest);
    Cow::Owned([before, &screen.finish()].concat())
}

/// Returns the position of the first escape sequence or lone carriage return. A carriage return
/// at the end of `bytes` does not count, since a newline may follow.
fn first_control(bytes: &[u8]) -> Option<usize> {
    memchr2_iter(ESCAPE, b'\r', bytes).find(|&at| match bytes.get(at + 1) {
        _ if bytes[at] == ESCAPE => true,
        Some(next) => *next != b'\n',
        None => false,
    })
}

fn line_start(before: &[u8]) -> usize {
    memrchr(b'\n', before).map_or(0, |newline| newline + 1)
}

/// Second capture of a stream, with what a terminal would show. There is none as long as both are
/// equal.
#[derive(Debug, Default)]
pub(crate) struct TerminalCapture {
    reduced: Option<Box<(Screen, Capture)>>,
    /// The last byte was a carriage return, which may be a lone one.
    has_return: bool,
}

impl TerminalCapture {
    /// Takes the next bytes of the stream. `captured` holds the bytes before them.
    pub(crate) fn push(&mut self, mut bytes: &[u8], captured: &Capture) {
        if self.reduced.is_none() {
            let is_lone = self.has_return && bytes.first().is_some_and(|next| *next != b'\n');
            let start = if is_lone {
                Some(0)
            } else {
                first_control(bytes)
            };
            let Some(start) = start else {
                self.has_return = bytes.ends_with(b"\r");
                return;
            };
            let (before, rest) = bytes.split_at(line_start(&bytes[..start]));
            self.open(before, captured);
            bytes = rest;
        }
        if let Some(reduced) = &mut self.reduced {
            let (screen, capture) = &mut **reduced;
            screen.advance(bytes);
            capture.push(&mem::take(&mut screen.grid.settled));
        }
    }

    /// Opens the second capture with all that was captured and `before`. The unfinished line goes
    /// on the screen.
    fn open(&mut self, before: &[u8], captured: &Capture) {
        let mut screen = Screen::default();
        let mut capture = captured.clone();
        if before.is_empty() {
            screen.advance(&capture.take_unfinished_line(MAX_ROW_LENGTH));
        } else {
            capture.push(before);
        }
        self.reduced = Some(Box::new((screen, capture)));
    }

    /// Returns what a terminal would show, if it differs from what was `captured`.
    pub(crate) fn finish(mut self, captured: &Capture) -> Option<Box<Captured>> {
        if self.reduced.is_none() && self.has_return {
            self.open(&[], captured);
        }
        let (screen, mut capture) = *self.reduced?;
        capture.push(&screen.finish());
        let mut shown = capture.finish();
        shown.total_bytes = captured.total_bytes();
        Some(Box::new(shown))
    }
}

/// Screen with the parser in front of it.
#[derive(Debug, Default)]
struct Screen {
    parser: Parser,
    grid: Grid,
    /// Beginning of a character that the next bytes continue.
    unfinished: Vec<u8>,
    /// Bytes since the parser last sent something to the grid.
    pending: usize,
}

impl Screen {
    fn advance(&mut self, bytes: &[u8]) {
        let mut bytes = Cow::Borrowed(bytes);
        if !self.unfinished.is_empty() {
            let unfinished = mem::take(&mut self.unfinished);
            bytes = Cow::Owned([&unfinished, &*bytes].concat());
        }
        let whole = without_cut_end(&bytes);
        self.unfinished = bytes[whole.len()..].to_vec();
        // The parser swallows the byte after an invalid one, so it gets valid UTF-8 only.
        for byte in String::from_utf8_lossy(whole).bytes() {
            self.parser.advance(&mut self.grid, byte);
            self.pending += 1;
            if mem::take(&mut self.grid.is_told) {
                self.pending = 0;
            } else if byte == b'\n' || self.pending > MAX_SEQUENCE {
                // A sequence does not extend over a newline: its end is missing.
                self.parser = Parser::default();
                self.pending = 0;
                if byte == b'\n' {
                    self.grid.feed_line();
                }
            }
        }
    }

    fn finish(mut self) -> Vec<u8> {
        for char in String::from_utf8_lossy(&self.unfinished).chars() {
            self.grid.put(char);
        }
        self.grid.settle(self.grid.rows.len());
        self.grid.settled
    }
}

/// Rows that may still change, and the text of those before them.
#[derive(Debug)]
struct Grid {
    /// At least one.
    rows: VecDeque<Row>,
    /// Row and column of the cursor.
    row: usize,
    column: usize,
    has_return: bool,
    /// The parser has sent something to the grid.
    is_told: bool,
    settled: Vec<u8>,
}

#[derive(Debug, Default)]
struct Row {
    cells: Vec<char>,
    /// Line end, unless it is the last row.
    end: &'static str,
    /// Spaces at its end come from overwriting or erasing.
    is_edited: bool,
}

impl Default for Grid {
    fn default() -> Self {
        Self {
            rows: VecDeque::from([Row::default()]),
            row: 0,
            column: 0,
            has_return: false,
            is_told: false,
            settled: Vec::new(),
        }
    }
}

impl Grid {
    fn current(&mut self) -> &mut Row {
        &mut self.rows[self.row]
    }

    fn put(&mut self, char: char) {
        let column = self.column;
        let row = self.current();
        if column < row.cells.len() {
            row.cells[column] = char;
            row.is_edited = true;
        } else {
            row.cells.resize(column, ' ');
            row.cells.push(char);
        }
        self.column += 1;
        if self.column >= MAX_ROW_LENGTH {
            let is_last = self.row + 1 == self.rows.len();
            self.settle(self.row + 1);
            if is_last {
                self.rows.push_back(Row::default());
            }
            (self.row, self.column) = (0, 0);
        }
    }

    fn feed_line(&mut self) {
        self.current().end = if self.has_return { "\r\n" } else { "\n" };
        self.move_to_row(self.row + 1);
        self.column = 0;
    }

    /// Moves the cursor to a row, and adds the rows up to it.
    fn move_to_row(&mut self, row: usize) {
        while self.rows.len() <= row {
            if let Some(last) = self.rows.back_mut().filter(|last| last.end.is_empty()) {
                last.end = "\n";
            }
            self.rows.push_back(Row::default());
        }
        self.row = row;
        if let Some(excess) = self.rows.len().checked_sub(MAX_ROWS) {
            self.settle(excess.min(self.row));
        }
    }

    /// Settles the text of the first rows.
    fn settle(&mut self, rows: usize) {
        for row in self.rows.drain(..rows) {
            let text: String = row.cells.iter().collect();
            let text = if row.is_edited {
                text.trim_end_matches(' ')
            } else {
                &text
            };
            self.settled.extend_from_slice(text.as_bytes());
            self.settled.extend_from_slice(row.end.as_bytes());
        }
        self.row = self.row.saturating_sub(rows);
    }

    /// Erases a part of the current row by `mode`: 0 after the cursor, 1 up to it, else all.
    fn erase_in_row(&mut self, mode: u16) {
        let column = self.column;
        let row = self.current();
        row.is_edited = true;
        match mode {
            0 => row.cells.truncate(column),
            1 => row
                .cells
                .iter_mut()
                .take(column + 1)
                .for_each(|cell| *cell = ' '),
            _ => row.cells.clear(),
        }
    }

    /// Erases a part of all rows by `mode`, as in a row.
    fn erase(&mut self, mode: u16) {
        match mode {
            0 => {
                self.erase_in_row(0);
                self.rows.truncate(self.row + 1);
            }
            1 => {
                self.erase_in_row(1);
                self.rows
                    .range_mut(..self.row)
                    .for_each(|row| row.cells.clear());
            }
            _ => {
                self.rows = VecDeque::from([Row::default()]);
                (self.row, self.column) = (0, 0);
            }
        }
    }

    /// Moves the cursor to a column, if need be beyond the end of the row.
    fn move_to_column(&mut self, column: usize) {
        let length = self.current().cells.len();
        self.column = column.min(length.max(MAX_COLUMN));
    }
}

impl Perform for Grid {
    fn print(&mut self, char: char) {
        (self.is_told, self.has_return) = (true, false);
        self.put(char);
    }

    fn execute(&mut self, byte: u8) {
        self.is_told = true;
        match byte {
            b'\n' => self.feed_line(),
            b'\r' => self.column = 0,
            BACKSPACE => self.column = self.column.saturating_sub(1),
            BELL => {}
            byte => self.put(char::from(byte)),
        }
        self.has_return = byte == b'\r';
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], is_cut: bool, action: u8) {
        (self.is_told, self.has_return) = (true, false);
        if is_cut || !intermediates.is_empty() {
            return;
        }
        let mut numbers = params
            .iter()
            .map(|param| param.first().copied().unwrap_or_default());
        let mode = numbers.next().unwrap_or_default();
        let count = usize::from(mode.max(1));
        match action {
            b'A' | b'F' => self.row = self.row.saturating_sub(count),
            b'B' | b'E' => self.row = (self.row + count).min(self.rows.len() - 1),
            b'C' => self.move_to_column(self.column + count),
            b'D' => self.column = self.column.saturating_sub(count),
            b'G' => self.move_to_column(count - 1),
            b'H' | b'f' => {
                self.move_to_row((count - 1).min(MAX_ROWS - 1));
                self.move_to_column(usize::from(numbers.next().unwrap_or(1).max(1)) - 1);
            }
            b'J' => self.erase(mode),
            b'K' => self.erase_in_row(mode),
            _ => {}
        }
        if matches!(action, b'E' | b'F') {
            self.column = 0;
        }
    }

    fn esc_dispatch(&mut self, _: &[u8], _: bool, _: u8) {
        self.is_told = true;
    }

    fn osc_dispatch(&mut self, _: &[&[u8]], _: bool) {
        self.is_told = true;
    }
}

#[cfg(test)]
mod tests;
