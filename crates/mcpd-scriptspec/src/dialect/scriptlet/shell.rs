//! Placeholders in shell code, replaced by variables and quoted so that
//! every value stays one word.
//!
//! A shell does not evaluate the expansion of a variable as code again, except in arithmetic,
//! where only numbers are accepted. A placeholder is a fault where a shell would not expand a
//! variable, or where its quoting is uncertain.

use std::collections::VecDeque;

use super::{
    language::variable,
    placeholder::{self, Placeholder, placeholders},
};
use crate::shell::HereDocument;

mod arithmetic;
mod context;
mod document;
mod position;

use arithmetic::{declares_integers, declares_list, may_evaluate};
use context::{ShellContext, line_length, starts_with_word};
use document::has_commands;
use position::Position;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shell {
    /// A POSIX shell. It may be Bash all the same, as on macOS.
    Plain,
    Bash,
    Zsh,
    Fish,
}

const SINGLE_QUOTES: &str = "nothing is expanded between single quotes";
const QUOTED_DOCUMENT: &str = "nothing is expanded in a here-document whose delimiter is quoted";
const DOCUMENT_WITH_COMMANDS: &str =
    "in a here-document with commands the quoting of the value is unknown";
pub(super) const ARITHMETIC: &str =
    "arithmetic evaluates strings as code, so only an `integer` or a `number` is allowed in it";
pub(super) const LIST: &str =
    "Bash evaluates strings as code in a list that is declared with `-a` or `-A`";
const EXPANSION: &str = "a value is not allowed inside of `${ }`";
const ESCAPED: &str = "nothing is expanded after a backslash";
pub(super) const COMMAND: &str = "a value cannot be the name of a command or a part of it, because the caller would choose what runs";
const UNCLEAR: &str = "the quoting of the value is unknown here";

/// Replaces the placeholders in the code by variables.
pub(super) fn fill(
    code: &str,
    shell: Shell,
    is_number: &dyn Fn(&str) -> bool,
) -> (String, Vec<Placeholder>) {
    let mut filler = ShellFiller {
        code,
        shell,
        is_number,
        at: 0,
        output: String::with_capacity(code.len()),
        placeholders: Vec::new(),
        around: Vec::new(),
        positions: vec![Position::Start],
        documents: VecDeque::new(),
        quotes: 0,
        expansions: 0,
        line: (0, 0),
        calculations: 0,
        is_unclear: false,
    };
    while filler.at < code.len() {
        filler.step();
    }
    filler.look_at_line();
    if shell != Shell::Fish && declares_integers(code) {
        filler.forbid_texts(0, ARITHMETIC);
    }
    (filler.output, filler.placeholders)
}

struct ShellFiller<'a> {
    code: &'a str,
    shell: Shell,
    is_number: &'a dyn Fn(&str) -> bool,
    at: usize,
    output: String,
    placeholders: Vec<Placeholder>,
    around: Vec<ShellContext>,
    /// Position in the current command, and in the commands around each of the open brackets.
    positions: Vec<Position>,
    /// Numbers of open quotes, of expansions, and of arithmetic or subscripts.
    quotes: usize,
    expansions: usize,
    calculations: usize,
    documents: VecDeque<HereDocument>,
    /// Start of the current line, which may continue over line ends in brackets and quotes, and
    /// the number of placeholders before it.
    line: (usize, usize),
    /// A construct was found after which this reader may be wrong about quotes.
    is_unclear: bool,
}

impl ShellFiller<'_> {
    fn rest(&self) -> &str {
        &self.code[self.at..]
    }

    /// Copies a few characters unchanged.
    fn copy(&mut self, length: usize) {
        self.output.push_str(&self.code[self.at..self.at + length]);
        self.at += length;
    }

    fn enter(&mut self, around: ShellContext, length: usize) {
        if around.has_commands() {
            let position = self.position();
            self.positions.push(match around {
                ShellContext::Test => Position::Elements,
                // Without a `$` they may be those of a list, except in fish.
                _ if self.rest().starts_with('(') && self.shell != Shell::Fish => {
                    position.in_brackets(self.code, self.at)
                }
                _ => Position::Start,
            });
        }
        self.around.push(around);
        self.quotes += usize::from(around == ShellContext::Quotes);
        self.expansions += usize::from(around == ShellContext::Expansion);
        self.calculations += usize::from(around.evaluates_arithmetic());
        self.copy(length);
    }

    fn leave(&mut self, length: usize) {
        let left = self.around.pop();
        if left.is_some_and(ShellContext::has_commands) {
            self.positions.pop();
        }
        self.quotes -= usize::from(left == Some(ShellContext::Quotes));
        self.expansions -= usize::from(left == Some(ShellContext::Expansion));
        self.calculations -= usize::from(left.is_some_and(ShellContext::evaluates_arithmetic));
        self.copy(length);
    }

    fn position(&self) -> Position {
        self.positions.last().copied().unwrap_or(Position::Start)
    }

    /// Updates the position in the current command for the next character.
    fn track_command(&mut self) {
        let (code, at) = (self.code, self.at);
        let is_plain = self
            .around
            .last()
            .is_none_or(|around| around.has_commands());
        let is_end = match self.around.last() {
            Some(ShellContext::Brackets) => code[at..].starts_with(')'),
            Some(ShellContext::Backticks) => code[at..].starts_with('`'),
            _ => false,
        };
        if let Some(position) = self.positions.last_mut().filter(|_| !is_end) {
            *position = if is_plain {
                position.after(code, at)
            } else {
                position.in_word(at)
            };
        }
    }

    fn step(&mut self) {
        if let Some((name, length)) = placeholder::first(self.rest()) {
            let name = name.to_owned();
            return self.placeholder(name, length);
        }
        self.track_command();
        match self.around.last() {
            Some(ShellContext::Quotes) => self.read_quoted(),
            Some(ShellContext::Expansion) => self.expansion(),
            Some(ShellContext::Arithmetic(open)) => self.arithmetic(*open),
            Some(ShellContext::Subscript) => self.subscript(),
            Some(ShellContext::Brackets | ShellContext::Backticks | ShellContext::Test) | None => {
                self.plain()
            }
        }
    }

    /// Reads code outside of quotes.
    fn plain(&mut self) {
        let starts_word = self.starts_word();
        let rest = self.rest();
        let is_fish = self.shell == Shell::Fish;
        let is_test = self.around.last() == Some(&ShellContext::Test);
        match rest.as_bytes()[0] {
            b'\'' => self.single_quoted(1, is_fish),
            b'$' if rest.starts_with("$'") && !is_fish => {
                // Only some shells have escapes in it.
                self.is_unclear |= self.shell == Shell::Plain;
                self.single_quoted(2, true);
            }
            b'"' => self.enter(ShellContext::Quotes, 1),
            b'#' if starts_word => self.copy(line_length(rest)),
            b'\n' => self.line_end(),
            b'(' if rest.starts_with("((") && !is_test && !is_fish => {
                self.enter(ShellContext::Arithmetic(0), 2);
            }
            b'(' => self.enter(ShellContext::Brackets, 1),
            b')' if self.around.last() == Some(&ShellContext::Brackets) => self.leave(1),
            b')' if is_test => {
                // The closing bracket had no partner.
                self.is_unclear = true;
                self.leave(0);
            }
            b'[' if starts_word && starts_with_word(rest, "[[") && !is_fish => {
                self.enter(ShellContext::Test, 2);
            }
            b']' if starts_word && is_test && rest.starts_with("]]") => self.leave(2),
            b'[' if self.starts_subscript() => self.enter(ShellContext::Subscript, 1),
            b'<' if rest.starts_with("<<<") => self.copy(3),
            b'<' if rest.starts_with("<<") && !is_fish => self.document(),
            b'c' if starts_word && starts_with_word(rest, "case") => {
                // The brackets of its patterns have no partners.
                self.is_unclear |= !self.around.is_empty();
                self.copy(4);
            }
            _ => self.read_common(),
        }
    }

    fn read_quoted(&mut self) {
        match self.rest().as_bytes()[0] {
            b'"' => self.leave(1),
            _ => self.read_common(),
        }
    }

    fn expansion(&mut self) {
        match self.rest().as_bytes()[0] {
            b'}' => self.leave(1),
            b'"' => self.enter(ShellContext::Quotes, 1),
            b'\'' if self.quotes == 0 => self.single_quoted(1, false),
            _ => self.read_common(),
        }
    }

    fn subscript(&mut self) {
        match self.rest().as_bytes()[0] {
            b']' => self.leave(1),
            b'[' => self.enter(ShellContext::Subscript, 1),
            b'"' => self.enter(ShellContext::Quotes, 1),
            b'\'' => self.single_quoted(1, false),
            b'\n' => {
                // It was no subscript.
                self.is_unclear = true;
                self.leave(0);
            }
            _ => self.read_common(),
        }
    }

    fn arithmetic(&mut self, open: usize) {
        let is_end = self.rest().starts_with("))");
        match self.rest().as_bytes()[0] {
            b'(' => self.arithmetic_bracket(open + 1),
            b')' if open > 0 => self.arithmetic_bracket(open - 1),
            b')' if is_end => self.leave(2),
            b')' => {
                // It was no arithmetic.
                self.is_unclear = true;
                self.leave(1);
            }
            _ => self.read_common(),
        }
    }

    fn arithmetic_bracket(&mut self, open: usize) {
        self.leave(0);
        self.enter(ShellContext::Arithmetic(open), 1);
    }

    /// Reads code that has the same meaning inside and outside of double quotes.
    fn read_common(&mut self) {
        let rest = self.rest();
        let first = rest.chars().next().map_or(1, char::len_utf8);
        let is_fish = self.shell == Shell::Fish;
        match rest.as_bytes()[0] {
            b'\\' if let Some((_, length)) = placeholder::first(&rest[1..]) => {
                self.copy_unexpanded(1 + length, Some(ESCAPED));
            }
            b'\\' if rest.starts_with("\\\n") && !is_fish => {
                self.is_unclear |= self.joins_signs();
                self.copy(2);
            }
            b'\\' => {
                // The shell removes some backslashes in backticks before it reads the rest.
                let is_removed = rest[1..].starts_with(['\\', '$', '`']);
                let escaped = rest[1..].chars().next().map_or(0, char::len_utf8);
                self.is_unclear |= is_removed && self.around.contains(&ShellContext::Backticks);
                self.copy(1 + escaped);
            }
            b'$' if rest.starts_with("$$") => {
                let next = &rest[2..];
                // Bash takes the second sign for the start of an expansion when it looks for the
                // end of quotes.
                let is_bracket = next.starts_with(['(', '{', '[']);
                self.is_unclear |= is_bracket && placeholder::first(next).is_none();
                self.copy(2);
            }
            b'$' if placeholder::first(&rest[1..]).is_some() => {
                // A literal `$` before the value, rather than `$$` before a name in braces.
                self.output.push_str("\\$");
                self.at += 1;
            }
            b'$' if rest.starts_with("$((") && !is_fish => {
                self.enter(ShellContext::Arithmetic(0), 3)
            }
            b'$' if rest.starts_with("$(") => self.enter(ShellContext::Brackets, 2),
            b'$' if rest.starts_with("${") && !rest.starts_with("${{") && !is_fish => {
                self.enter(ShellContext::Expansion, 2)
            }
            b'$' if rest.starts_with("$[") && !is_fish => {
                self.is_unclear = true;
                self.copy(2);
            }
            b'`' if self.around.last() == Some(&ShellContext::Backticks) => self.leave(1),
            b'`' if !is_fish => {
                self.is_unclear |= self.quotes > 0;
                self.enter(ShellContext::Backticks, 1);
            }
            _ => self.copy(first),
        }
    }

    fn placeholder(&mut self, name: String, length: usize) {
        let variable = variable(&name);
        let is_number = (self.is_number)(&name);
        let is_arithmetic = matches!(self.around.last(), Some(ShellContext::Arithmetic(_)));
        let is_fish = self.shell == Shell::Fish;
        let is_quoted = self.around.last() == Some(&ShellContext::Quotes);
        let fault = if self.is_unclear {
            Some(UNCLEAR)
        } else if self.expansions > 0 {
            Some(EXPANSION)
        } else if self.calculations == 0 && self.position().names_command(self.code, self.at) {
            Some(COMMAND)
        } else if !is_number && (self.calculations > 0 || self.is_index()) {
            Some(ARITHMETIC)
        } else {
            None
        };
        let text = match (is_fish, is_quoted || is_arithmetic) {
            (true, true) => format!("\"\"${variable}\"\""),
            (true, false) => format!("\"${variable}\""),
            (false, true) => format!("${{{variable}}}"),
            (false, false) => format!("\"${{{variable}}}\""),
        };
        self.output.push_str(&text);
        self.add_placeholder(name, self.at, length, fault);
        if let Some(position) = self.positions.last_mut() {
            *position = position.in_word(self.at);
        }
        self.at += length;
    }

    /// Returns whether the value may be a quoted index.
    fn is_index(&self) -> bool {
        matches!(self.shell, Shell::Bash | Shell::Zsh) && self.code[..self.at].ends_with('[')
    }

    /// Returns whether a line continuation stands within a word or among symbols, which may have
    /// another meaning when joined.
    fn joins_signs(&self) -> bool {
        let (before, after) = (&self.code[..self.at], &self.code[self.at + 2..]);
        if self.around.last() == Some(&ShellContext::Quotes) {
            return before.ends_with('$');
        }
        let is_apart = |char: char| char.is_whitespace() || ";&|".contains(char);
        !before.is_empty() && !before.ends_with(is_apart) && !after.starts_with(is_apart)
    }

    /// Checks how the line that ends here uses its values.
    fn look_at_line(&mut self) {
        let (start, first) = self.line;
        let line = &self.code[start..self.at];
        if self.shell == Shell::Fish || self.placeholders.len() == first {
            return;
        }
        if declares_list(line) {
            self.forbid_texts(first, LIST);
        }
        if may_evaluate(line, self.shell) {
            self.forbid_texts(first, ARITHMETIC);
        }
    }

    /// Sets this fault for texts among the placeholders from `first` on, unless they have another.
    fn forbid_texts(&mut self, first: usize, fault: &'static str) {
        for found in &mut self.placeholders[first..] {
            if !(self.is_number)(&found.name) {
                found.fault.get_or_insert(fault);
            }
        }
    }

    /// Returns whether a `[` begins a subscript or a pattern, rather than `[[` or the command `[`.
    /// In shells without known subscripts, a `[` after a name counts as one.
    fn starts_subscript(&self) -> bool {
        let before = self.code[..self.at].chars().next_back();
        let is_after_name = before.is_some_and(|char| char.is_alphanumeric() || char == '_');
        let is_command = self.rest()[1..].starts_with(['[', ' ', '\t', '\n']);
        match self.shell {
            Shell::Plain => is_after_name,
            Shell::Bash | Shell::Zsh => is_after_name || before != Some('[') && !is_command,
            Shell::Fish => false,
        }
    }

    fn add_placeholder(
        &mut self,
        name: String,
        start: usize,
        length: usize,
        fault: Option<&'static str>,
    ) {
        self.placeholders.push(Placeholder {
            name,
            span: start..start + length,
            fault,
        });
    }

    /// Reads text between single quotes, whose opening part is `opening` characters long.
    fn single_quoted(&mut self, opening: usize, has_escapes: bool) {
        let mut chars = self.rest()[opening..].char_indices();
        let mut length = self.rest().len();
        while let Some((place, char)) = chars.next() {
            if char == '\'' {
                length = opening + place + 1;
                break;
            }
            if char == '\\' && has_escapes {
                chars.next();
            }
        }
        self.copy_unexpanded(length, Some(SINGLE_QUOTES));
    }

    /// Copies text unchanged; placeholders in it get this fault.
    fn copy_unexpanded(&mut self, length: usize, fault: Option<&'static str>) {
        let text = &self.code[self.at..self.at + length];
        let start = self.at;
        for (name, span) in placeholders(text) {
            self.add_placeholder(name.to_owned(), start + span.start, span.len(), fault);
        }
        self.copy(length);
    }

    /// Reads the end of a line, and the here-documents that begin after it.
    fn line_end(&mut self) {
        let is_end = self.around.is_empty();
        if is_end {
            self.look_at_line();
        }
        self.copy(1);
        while let Some(document) = self.documents.pop_front() {
            let (body, length) = document.read(self.rest());
            let fault = if document.is_quoted {
                Some(QUOTED_DOCUMENT)
            } else if has_commands(&body) {
                Some(DOCUMENT_WITH_COMMANDS)
            } else {
                self.is_unclear.then_some(UNCLEAR)
            };
            if fault.is_some() {
                self.copy_unexpanded(length, fault);
            } else {
                self.copy_expanded(length);
            }
        }
        if is_end {
            self.line = (self.at, self.placeholders.len());
        }
    }

    fn starts_word(&self) -> bool {
        let before = self.code[..self.at].chars().next_back();
        before.is_none_or(|char| char.is_whitespace() || ";&|()`".contains(char))
    }
}
