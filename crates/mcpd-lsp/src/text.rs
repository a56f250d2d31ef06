//! Texts of open documents, and the positions in them as the protocol counts them.

use std::ops::Range;

use lsp_types::{Position, PositionEncodingKind, TextDocumentContentChangeEvent};

/// Unit in which an editor counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Utf16,
}

impl Encoding {
    /// UTF-8 if the editor offers it, because it takes no counting; else UTF-16, which every
    /// editor has.
    pub(crate) fn negotiate(offered: Option<&[PositionEncodingKind]>) -> Self {
        let offers_utf8 = offered.is_some_and(|kinds| kinds.contains(&PositionEncodingKind::UTF8));
        if offers_utf8 { Self::Utf8 } else { Self::Utf16 }
    }

    pub(crate) fn kind(self) -> PositionEncodingKind {
        match self {
            Self::Utf8 => PositionEncodingKind::UTF8,
            Self::Utf16 => PositionEncodingKind::UTF16,
        }
    }

    /// Byte of a position; one behind the end of its line or of the text means that end.
    pub(crate) fn offset(self, text: &str, position: Position) -> usize {
        let mut start = 0;
        for _ in 0..position.line {
            match text[start..].find('\n') {
                Some(end) => start += end + 1,
                None => return text.len(),
            }
        }
        let rest = &text[start..];
        let line = &rest[..rest.find('\n').unwrap_or(rest.len())];
        let line = line.strip_suffix('\r').unwrap_or(line);
        let wanted = usize::try_from(position.character).unwrap_or(usize::MAX);
        let mut units = 0;
        for (at, char) in line.char_indices() {
            units += self.units(char);
            // A position within a character is its beginning.
            if units > wanted {
                return start + at;
            }
        }
        start + line.len()
    }

    pub(crate) fn position(self, text: &str, offset: usize) -> Position {
        let before = &text[..text.floor_char_boundary(offset)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.bytes().filter(|byte| *byte == b'\n').count();
        let character: usize = before[line_start..]
            .chars()
            .map(|char| self.units(char))
            .sum();
        Position {
            line: u32::try_from(line).unwrap_or(u32::MAX),
            character: u32::try_from(character).unwrap_or(u32::MAX),
        }
    }

    pub(crate) fn range(self, text: &str, span: &Range<usize>) -> lsp_types::Range {
        lsp_types::Range {
            start: self.position(text, span.start),
            end: self.position(text, span.end),
        }
    }

    fn units(self, char: char) -> usize {
        match self {
            Self::Utf8 => char.len_utf8(),
            Self::Utf16 => char.len_utf16(),
        }
    }

    /// Applies changes in their order, each to the text that the ones before have left.
    pub(crate) fn apply(self, text: &mut String, changes: Vec<TextDocumentContentChangeEvent>) {
        for change in changes {
            let Some(range) = change.range else {
                *text = change.text;
                continue;
            };
            let start = self.offset(text, range.start);
            let end = self.offset(text, range.end).max(start);
            text.replace_range(start..end, &change.text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(encoding: Encoding, text: &str, line: u32, character: u32, offset: usize) {
        let position = Position { line, character };
        assert_eq!(encoding.offset(text, position), offset);
        assert_eq!(encoding.position(text, offset), position);
    }

    #[test]
    fn position_counts_in_the_units_of_the_encoding() {
        let text = "a\r\nü😀b\n";
        check(Encoding::Utf16, text, 0, 1, 1);
        check(Encoding::Utf16, text, 1, 3, 9);
        check(Encoding::Utf8, text, 1, 6, 9);
        check(Encoding::Utf16, text, 2, 0, 11);
        check(Encoding::Utf8, "", 0, 0, 0);
    }

    #[test]
    fn position_outside_of_the_text_is_its_nearest_end() {
        let offset =
            |line, character| Encoding::Utf16.offset("a\r\n😀\n", Position { line, character });
        assert_eq!(offset(0, 9), 1);
        assert_eq!(offset(1, 1), 3);
        assert_eq!(offset(9, 9), 8);
        assert_eq!(offset(1, u32::MAX), 7);
    }
}
