//! Reader of help texts: one grammar of columns for all styles. An entry is a line whose left
//! column is a flag, an argument or a sub-command; deeper lines and the right column describe it.

use std::ops::Range;

use super::{
    Command, CommandLine, Flag, Operand, Position, Unread, hints,
    line::{self, Line},
    option_name, style,
    term::{self, Term},
    usage_line,
};

/// Maximum length of a description, in characters.
const MAX_DESCRIPTION: usize = 600;

/// Maximum indentation of a flag directly below the usage line; a deeper one continues that line.
const MAX_INDENT: usize = 6;

/// The left column of an entry.
enum Left {
    Flag(Term),
    Operand(String),
    Command(String),
}

/// An entry that is still being read.
struct Entry<'t> {
    left: Left,
    indent: usize,
    /// Offset of the description in its line, if it begins there.
    column: Option<usize>,
    lines: Vec<&'t str>,
    span: Range<usize>,
}

/// Kind of the section that a heading begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Prose,
    Operands,
    Commands,
    Examples,
}

struct Reader<'t> {
    text: &'t str,
    columns: Vec<usize>,
    is_click: bool,
    /// In a manual page a flag begins a paragraph.
    is_manual: bool,
    in_paragraph: bool,
    section: Section,
    entry: Option<Entry<'t>>,
    after_blank: bool,
    usage: Vec<Line<'t>>,
    in_usage: bool,
    prose: Vec<&'t str>,
    prose_ended: bool,
    read: CommandLine,
}

/// Reads a help text.
pub(super) fn read(text: &str) -> CommandLine {
    let text = &*line::without_bullets(text);
    let lines = line::split(text);
    let mut reader = Reader {
        text,
        columns: line::description_columns(&lines),
        is_click: text.contains(style::CLICK),
        is_manual: lines.iter().any(|line| line.is_page_header()),
        in_paragraph: false,
        section: Section::Prose,
        entry: None,
        after_blank: false,
        usage: Vec::new(),
        in_usage: false,
        prose: Vec::new(),
        prose_ended: false,
        read: CommandLine::default(),
    };
    for line in lines {
        reader.line(line);
    }
    reader.finish()
}

impl<'t> Reader<'t> {
    fn line(&mut self, line: Line<'t>) {
        let text = line.trimmed();
        if text.is_empty() {
            self.blank();
            return;
        }
        if self.begins_usage(line) {
            return;
        }
        if self.in_usage {
            let is_flag =
                text.starts_with('-') && (self.after_blank || line.indent() <= MAX_INDENT);
            if line.indent() > 0 && !is_flag {
                self.usage.push(line);
                return;
            }
            self.in_usage = false;
        }
        if self.is_continuation(line) {
            if let Some(entry) = &mut self.entry {
                if self.after_blank {
                    entry.lines.push("");
                }
                entry.column.get_or_insert(line.indent());
                entry.lines.push(text);
            }
            self.after_blank = false;
            return;
        }
        self.after_blank = false;
        let is_prose = self.in_paragraph && self.is_manual || self.section == Section::Examples;
        if text.starts_with('-') && !is_prose && self.flag(line) {
            return;
        }
        self.flush();
        if self.heading(line) || self.word(line) {
            return;
        }
        self.in_paragraph = true;
        if !self.prose_ended {
            self.prose.push(text);
        }
    }

    fn blank(&mut self) {
        self.after_blank = true;
        self.in_paragraph = false;
        self.in_usage &= self.usage.is_empty();
        // A paragraph with the version and the author says nothing of the purpose.
        match self.prose.first() {
            Some(first) if is_version(first) => self.prose.clear(),
            Some(_) => self.prose_ended = true,
            None => {}
        }
    }

    fn begins_usage(&mut self, line: Line<'t>) -> bool {
        let text = line.trimmed();
        let head = text.split([':', ' ', '\t']).next().unwrap_or_default();
        let is_head = head.eq_ignore_ascii_case("usage") || head == "SYNOPSIS";
        let is_alone = text.len() == head.len() || text[head.len()..].starts_with(':');
        if !is_head || !is_alone || !self.usage.is_empty() {
            return false;
        }
        self.flush();
        self.in_usage = true;
        let rest = text[head.len()..].trim_start_matches(':').trim();
        if !rest.is_empty() {
            let start = line.start + line.text.len() - rest.len();
            self.usage.push(Line { text: rest, start });
        }
        true
    }

    fn is_continuation(&self, line: Line<'_>) -> bool {
        let Some(entry) = &self.entry else {
            return false;
        };
        let indent = line.indent();
        if !line.trimmed().starts_with('-') {
            return indent > entry.indent && !self.is_sub_parser(line);
        }
        // A wrapped description may begin with a dash, as may an item of a list.
        let is_item = line.trimmed().starts_with("- ");
        match entry.column {
            Some(column) => indent >= column || is_item && indent > entry.indent,
            None => is_item,
        }
    }

    /// Returns whether the line is a sub-command below the `{a,b}` of argparse.
    fn is_sub_parser(&self, line: Line<'_>) -> bool {
        let Some(Entry {
            left: Left::Operand(name),
            indent,
            ..
        }) = &self.entry
        else {
            return false;
        };
        let first = line.trimmed().split(' ').next().unwrap_or_default();
        let mut choices = name.trim_matches(['{', '}']).split(',');
        name.starts_with('{')
            && line.indent() <= indent + 4
            && choices.any(|choice| choice == first)
    }

    fn flag(&mut self, line: Line<'t>) -> bool {
        let indent = line.indent();
        let body = &line.text[indent..];
        let columns = &self.columns;
        if let Some(row) = term::row(body) {
            self.flush();
            if row.is_empty() {
                self.read.unread.push(Unread {
                    span: line.span(),
                    message: "one of these flags has an unknown form".to_owned(),
                });
            }
            for (term, place) in row {
                let start = line.start + indent + place;
                let span = start..start + term.spellings[0].len();
                self.read.predicates.extend(term.spellings.clone());
                self.read.add(flag_of(term, String::new(), span));
            }
            return true;
        }
        let parsed = term::parse(body, |offset| columns.contains(&(indent + offset)));
        let Some(term) = parsed else {
            let looks_like_flag = body[1..].starts_with(|char: char| char.is_ascii_alphanumeric());
            if looks_like_flag || body.starts_with("--") && body.len() > 2 && !is_rule(body) {
                self.read.unread.push(Unread {
                    span: line.span(),
                    message: "the form of this flag is unknown".to_owned(),
                });
            }
            return false;
        };
        self.flush();
        let rest = body[term.len..].trim_start_matches([' ', '\t', ':']);
        let column = (!rest.is_empty()).then_some(line.text.len() - rest.len());
        self.entry = Some(Entry {
            left: Left::Flag(term),
            indent,
            column,
            lines: Some(rest)
                .filter(|rest| !rest.is_empty())
                .into_iter()
                .collect(),
            span: line.span(),
        });
        self.prose_ended |= !self.prose.is_empty();
        true
    }

    fn heading(&mut self, line: Line<'_>) -> bool {
        let text = line.trimmed();
        let is_capital = line.indent() == 0 && !text.chars().any(|char| char.is_ascii_lowercase());
        // In a manual page a colon ends many a sentence.
        let is_heading = text.ends_with(':') && !self.is_manual || is_capital && text.len() > 2;
        if !is_heading || text.len() > 80 {
            return false;
        }
        let title = text.trim_end_matches(':').to_lowercase();
        if title == "name" {
            // The purpose stands below this heading of a manual page, and the page's name above.
            self.prose.clear();
            self.prose_ended = false;
        }
        self.section = match () {
            () if style::OPERAND_HEADINGS.contains(&&*title) => Section::Operands,
            () if title.contains("option") || title.contains("flag") => Section::Prose,
            () if title.contains(style::COMMAND_HEADING) => Section::Commands,
            () if title.contains("example") => Section::Examples,
            () => Section::Prose,
        };
        self.prose_ended |= !self.prose.is_empty();
        true
    }

    /// Reads an argument or a sub-command.
    fn word(&mut self, line: Line<'t>) -> bool {
        let text = line.trimmed();
        let len = text
            .find("  ")
            .or_else(|| text.find('\t'))
            .unwrap_or(text.len());
        let (left, right) = text.split_at(len);
        let is_parser = left.starts_with('{') && left.ends_with('}');
        if line.indent() == 0 || self.section == Section::Examples {
            return false;
        }
        let left = match self.section {
            Section::Commands if !is_parser => match command_name(left) {
                Some(name) => Left::Command(name.to_owned()),
                None => return false,
            },
            Section::Operands | Section::Commands => Left::Operand(left.to_owned()),
            Section::Prose | Section::Examples => return false,
        };
        let right = right.trim();
        self.entry = Some(Entry {
            left,
            indent: line.indent(),
            column: (!right.is_empty()).then_some(line.text.len() - right.len()),
            lines: Some(right)
                .filter(|right| !right.is_empty())
                .into_iter()
                .collect(),
            span: line.span(),
        });
        true
    }

    /// Ends the current entry.
    fn flush(&mut self) {
        let Some(entry) = self.entry.take() else {
            return;
        };
        let description = first_paragraph(&entry.lines);
        match entry.left {
            Left::Flag(term) => {
                let mut flag = flag_of(term, description, entry.span);
                if self.is_click {
                    take_several_words(&mut flag);
                }
                hints::apply(&mut flag, &entry.lines.join("\n"));
                self.read.add(flag);
            }
            Left::Operand(name) => {
                let operand = usage_line::operand(&name, description, entry.span);
                self.read.operands.extend(operand);
            }
            Left::Command(name) => {
                let is_known = |known: &Command| known.name == name;
                if !self.read.commands.iter().any(is_known) {
                    self.read.commands.push(Command {
                        name,
                        description,
                        span: entry.span,
                    });
                }
            }
        }
    }

    fn finish(mut self) -> CommandLine {
        self.flush();
        let joins = style::JOINING
            .iter()
            .any(|phrase| self.text.contains(phrase))
            || self.read.flags.iter().any(is_joined);
        let mut read = self.read;
        if joins {
            read.flags.iter_mut().for_each(join);
        }
        let prose: Vec<_> = self
            .prose
            .iter()
            .copied()
            .take_while(|line| !line.is_empty())
            .collect();
        let prose = first_paragraph(&prose);
        let prose = prose.split_once(" - ").map_or(&*prose, |(name, purpose)| {
            if name.contains(' ') { &*prose } else { purpose }
        });
        read.description = Some(prose.to_owned()).filter(|prose| !prose.is_empty());
        split_sub_parsers(&mut read);
        if let (Some(first), Some(last)) = (self.usage.first(), self.usage.last()) {
            let span = first.span().start..last.span().end;
            let lines: Vec<_> = self
                .usage
                .iter()
                .map(|line| (line.indent(), line.trimmed()))
                .collect();
            usage_line::apply(&mut read, &lines, &span);
        }
        read
    }
}

fn flag_of(term: Term, description: String, span: Range<usize>) -> Flag {
    Flag {
        spellings: term.spellings,
        negation: term.negation,
        value: term.value,
        description,
        default: None,
        required: false,
        repeats: term.repeats,
        span,
    }
}

/// Returns whether a flag shows that long flags have their values after `=`.
fn is_joined(flag: &Flag) -> bool {
    let is_long = flag
        .spellings
        .iter()
        .any(|spelling| spelling.starts_with("--"));
    let value = flag.value.as_ref();
    is_long && value.is_some_and(|value| value.position == Position::Joined && !value.optional)
}

fn join(flag: &mut Flag) {
    let is_long = flag
        .spellings
        .iter()
        .any(|spelling| spelling.starts_with("--"));
    if let Some(value) = flag
        .value
        .as_mut()
        .filter(|value| is_long && value.words == 1)
    {
        value.position = Position::Joined;
    }
}

/// In click, `TEXT...` is a value of several words, however many, and not a flag that repeats.
fn take_several_words(flag: &mut Flag) {
    if let Some(value) = flag.value.as_mut().filter(|_| flag.repeats) {
        value.words = 0;
        value.position = Position::Separate;
        flag.repeats = false;
    }
}

/// Replaces the `{a,b}` of argparse by the sub-commands it lists.
fn split_sub_parsers(read: &mut CommandLine) {
    let mut commands = Vec::new();
    read.operands.retain(|operand: &Operand| {
        let is_list = operand.name.is_empty();
        if is_list {
            commands.extend(operand.choices.iter().map(|name| Command {
                name: name.clone(),
                description: String::new(),
                span: operand.span.clone(),
            }));
        }
        !is_list
    });
    for command in commands {
        match read
            .operands
            .iter()
            .position(|operand| operand.name == command.name)
        {
            Some(place) => {
                let described = read.operands.remove(place);
                read.commands.push(Command {
                    description: described.description,
                    ..command
                });
            }
            None if read.commands.iter().any(|known| known.name == command.name) => {}
            None => read.commands.push(command),
        }
    }
}

/// Name of a sub-command in the left column, such as `add` of `add, a <NAME>`.
fn command_name(left: &str) -> Option<&str> {
    let name = left
        .split([' ', ',', '|', '<', '[', '(', '*'])
        .next()?
        .trim_end_matches(':');
    let is_name = name.starts_with(|char: char| char.is_ascii_lowercase() || char.is_ascii_digit())
        && name
            .chars()
            .all(|char| char.is_ascii_alphanumeric() || "-_.:".contains(char));
    let behind = left[name.len()..].trim_start_matches(':').trim_start();
    let is_column = behind.is_empty()
        || behind.starts_with(['<', '[', '(', ',', '|', '*'])
        || behind.chars().all(|char| !char.is_ascii_lowercase());
    (is_name && is_column).then_some(name)
}

fn is_version(line: &str) -> bool {
    let mut words = line.split(' ');
    let number = |word: &str| {
        word.trim_start_matches('v')
            .starts_with(|char: char| char.is_ascii_digit())
    };
    words
        .next()
        .is_some_and(|first| !option_name(first).is_empty())
        && words.next().is_some_and(number)
}

fn is_rule(line: &str) -> bool {
    line.bytes().all(|byte| byte == b'-' || byte == b' ')
}

/// The first paragraph on one line, without hidden characters.
fn first_paragraph(lines: &[&str]) -> String {
    let paragraph = lines.iter().skip_while(|line| line.is_empty());
    let lines: Vec<_> = paragraph
        .take_while(|line| !line.is_empty())
        .copied()
        .collect();
    let text = lines.join(" ");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let visible = text.chars().filter(|char| !crate::text::is_hidden(*char));
    visible.take(MAX_DESCRIPTION).collect()
}
