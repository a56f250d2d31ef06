//! argc: comments `# @describe`, `# @option`, `# @flag`, `# @arg` and `# @cmd` in a shell script that asks `argc` to read its arguments.
//!
//! A script with commands is one tool for each of them. What a function of the script would say is left unknown: nothing is run.

use super::draft::{Draft, Literal, Node, span_of};
use crate::{json::Span, rules::Code, suggest::suggest};

mod param;

use param::{Param, Tag, Text};

const TAGS: &[&str] = &[
    "describe", "version", "meta", "cmd", "alias", "option", "flag", "arg", "env",
];

/// One tool: the words that choose it, none for the script as a whole, and what is said of it.
pub(super) type Command = (Vec<String>, Draft);

/// Whether a text asks `argc` to read its arguments, or contains what `argc` made to read them.
pub(super) fn is_in(text: &[u8]) -> bool {
    let contains = |part: &[u8]| text.windows(part.len()).any(|window| window == part);
    contains(b"--argc-eval") || contains(b"ARGC-BUILD")
}

pub(super) fn read(source: &str) -> Vec<Command> {
    let mut reader = Reader {
        source,
        at: 0,
        command: Draft::new(0..source.lines().next().map_or(0, str::len)),
        state: State::Open,
        commands: Vec::new(),
        whole: None,
    };
    while let Some(line) = reader.line() {
        match (tag(line), function(line)) {
            (Some((name, rest)), _) => reader.tag(name, rest),
            (None, Some(name)) => reader.function(name),
            (None, None) => {}
        }
    }
    reader.finish()
}

/// The name of a tag and what follows it.
fn tag(line: &str) -> Option<(&str, &str)> {
    let comment = line.strip_prefix('#')?.trim_start_matches('#');
    let tag = comment.trim_start().strip_prefix('@')?;
    let is_name = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '.');
    let end = tag.find(|char| !is_name(char)).unwrap_or(tag.len());
    (end > 0).then(|| tag.split_at(end))
}

/// The text of a comment that is no tag, indented as it is: `\@` begins it with an `@`.
fn comment(line: &str) -> Option<&str> {
    let comment = line.strip_prefix('#')?.trim_start_matches('#').trim_end();
    let text = comment.strip_prefix([' ', '\t']).unwrap_or(comment);
    if text.trim_start().starts_with('@') {
        return None;
    }
    Some(
        text.strip_prefix('\\')
            .filter(|rest| rest.starts_with('@'))
            .unwrap_or(text),
    )
}

/// The name of the function that a line defines.
fn function(line: &str) -> Option<&str> {
    let (line, has_keyword) = match line.strip_prefix("function ") {
        Some(rest) => (rest.trim_start(), true),
        None => (line, false),
    };
    let ends_name = |char: char| char.is_whitespace() || "\"'`()[]{}<>$&\\;|".contains(char);
    let end = line.find(ends_name).unwrap_or(line.len());
    let (name, after) = line.split_at(end);
    let has_parentheses = after
        .trim_start()
        .strip_prefix('(')
        .is_some_and(|after| after.trim_start().starts_with(')'));
    (!name.is_empty() && (has_keyword || has_parentheses)).then_some(name)
}

/// What a tag belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The script, or the command whose function is still to come.
    Open,
    /// Nothing: a function has ended what was described before it.
    Closed,
}

struct Reader<'a> {
    source: &'a str,
    at: usize,
    command: Draft,
    state: State,
    commands: Vec<Command>,
    /// The script, once it has commands.
    whole: Option<Draft>,
}

impl<'a> Reader<'a> {
    fn line(&mut self) -> Option<&'a str> {
        let rest = &self.source[self.at..];
        let length = rest.find('\n').map_or(rest.len(), |end| end + 1);
        self.at += length;
        (length > 0).then(|| rest[..length].trim_end())
    }

    fn tag(&mut self, name: &'a str, rest: &'a str) {
        let (span, text) = (self.span(name), rest.trim());
        let value = Node::string(self.span(text), text);
        match name {
            "cmd" => self.begin(span, text),
            _ if !TAGS.contains(&name) => {
                let fault = self.command.fault(
                    Code::SourceSyntax,
                    span,
                    format!("argc has no tag `@{name}`"),
                );
                fault.help = suggest(name, TAGS.iter().copied())
                    .map(|near| format!("did you mean `@{near}`?"));
            }
            _ if self.state == State::Closed => {
                let message = format!("`@{name}` belongs to nothing: a function stands before it");
                let fault = self.command.fault(Code::SourceSyntax, span, message);
                fault.help = Some("begin a command with `@cmd`".to_owned());
            }
            "describe" => {
                let description = self.description(text);
                self.command.metadata.add("description", span, description);
            }
            "version" => self.command.metadata.add("version", span, value),
            "meta" => self.meta(text),
            "option" => self.param(Tag::Option, rest),
            "flag" => self.param(Tag::Flag, rest),
            "arg" => self.param(Tag::Arg, rest),
            "env"
                if text
                    .split_whitespace()
                    .next()
                    .is_some_and(|name| name.contains('!')) =>
            {
                let message = "the variable must be set by whoever runs the server: callers can't";
                self.command
                    .fault(Code::SourceUnsupported, value.span, message);
            }
            _ => {}
        }
    }

    fn meta(&mut self, text: &'a str) {
        let (key, value) = text
            .split_once(char::is_whitespace)
            .unwrap_or(text.split_at(text.len()));
        let value = value.trim();
        let key_span = self.span(key);
        match key {
            "version" if value.is_empty() => {
                let message = "the version is missing";
                self.command.fault(Code::SourceSyntax, key_span, message);
            }
            "version" => {
                let version = Node::string(self.span(value), value);
                self.command.metadata.add("version", key_span, version);
            }
            "symbol" | "external-subcommands" | "inherit-flag-options" => {
                let message = format!("callers can't give what `{key}` adds");
                self.command
                    .fault(Code::SourceUnsupported, key_span, message);
            }
            _ => {}
        }
    }

    /// Begins a command.
    fn begin(&mut self, span: Span, text: &'a str) {
        let mut command = Draft::new(span.clone());
        std::mem::swap(&mut command, &mut self.command);
        if self.whole.is_none() {
            self.whole = Some(command);
        } else if self.state == State::Open {
            self.command.fault(
                Code::SourceSyntax,
                span.clone(),
                "the command before has no function",
            );
        }
        self.state = State::Open;
        let description = self.description(text);
        if !matches!(&description.value, Literal::String(text) if text.is_empty()) {
            self.command.metadata.add("description", span, description);
        }
    }

    fn function(&mut self, name: &'a str) {
        if self.state == State::Open && self.whole.is_some() {
            let words = name
                .split("::")
                .map(|word| word.trim_end_matches('_').to_owned());
            let next = Draft::new(self.span(name));
            let command = std::mem::replace(&mut self.command, next);
            self.commands.push((words.collect(), command));
        }
        self.state = State::Closed;
    }

    /// A text that goes on in the comments below it.
    fn description(&mut self, text: &'a str) -> Node {
        let span = self.span(text);
        let mut description = text.to_owned();
        loop {
            let at = self.at;
            let Some(more) = self.line().and_then(comment) else {
                self.at = at;
                break;
            };
            description.push('\n');
            description.push_str(more);
        }
        Node::string(span, description.trim())
    }

    fn param(&mut self, tag: Tag, rest: &'a str) {
        match param::read(self.source, self.span(rest), tag) {
            Ok(param) => {
                let description = self.description(param.description);
                add(&mut self.command, tag, &param, description);
            }
            Err(error) => {
                self.command
                    .fault(Code::SourceSyntax, error.span, error.message);
            }
        }
    }

    fn finish(mut self) -> Vec<Command> {
        let Some(mut whole) = self.whole else {
            return vec![(Vec::new(), self.command)];
        };
        if let Literal::Object(options) = &whole.options.value
            && let Some(first) = options.first()
        {
            let span = first.key_span.clone();
            let message = "callers can't give the options of the whole to a command";
            whole.fault(Code::SourceUnsupported, span, message);
        }
        if self.state == State::Open {
            let span = self.command.metadata.span.clone();
            self.command
                .fault(Code::SourceSyntax, span, "the command has no function");
        }
        if self.commands.is_empty() {
            self.commands.push((Vec::new(), self.command));
        } else {
            self.commands[0]
                .1
                .diagnostics
                .extend(self.command.diagnostics);
        }
        // What is wrong with the whole is said with the first command.
        self.commands[0].1.diagnostics.extend(whole.diagnostics);
        self.commands
    }

    fn span(&self, part: &str) -> Span {
        span_of(part, self.source)
    }
}

/// Adds an option, unless no command line that mcpd writes could give it.
fn add(draft: &mut Draft, tag: Tag, param: &Param<'_>, description: Node) {
    let span = &param.name_span;
    let (name, is_prefix) = name(tag, param);
    let flag = flag(tag, param, name).filter(|_| !is_prefix && param.notations.len() < 2);
    let takes_more = param
        .notations
        .iter()
        .any(|notation| notation.ends_with(['*', '+', '?']));
    let Some(flag) = flag.filter(|_| !takes_more) else {
        let message =
            format!("callers can't give `{name}`: its words can't be written as `--name=value`");
        draft.fault(Code::SourceUnsupported, span.clone(), message);
        return;
    };
    let mut option = Node::object(span.clone());
    let mut set = |key: &str, value: Node| option.add(key, span.clone(), value);
    set("argument", Node::string(span.clone(), flag));
    if !matches!(&description.value, Literal::String(text) if text.is_empty()) {
        set("description", description);
    }
    let is_required = param.is_required && param.default.is_none();
    set("required", Node::boolean(span.clone(), is_required));
    if tag == Tag::Flag {
        if param.is_multiple {
            let message = format!("`{name}` can be given once, and is not counted");
            draft.fault(Code::SourceUnsupported, span.clone(), message);
        }
        set("value_type", Node::string(span.clone(), "boolean"));
    } else {
        value(param, &mut option);
    }
    draft.options.add(name, span.clone(), option);
}

/// The name without the marks of `--name:`, which wants `=` before its value, and `-name-`, of which the value is a part.
fn name<'a>(tag: Tag, param: &Param<'a>) -> (&'a str, bool) {
    if tag == Tag::Arg {
        return (param.name, false);
    }
    let name = param.name.strip_suffix(':').unwrap_or(param.name);
    match name.strip_suffix('-') {
        Some(name) => (name, true),
        None => (name, false),
    }
}

/// Where an option stands: a long flag best of all.
fn flag(tag: Tag, param: &Param<'_>, name: &str) -> Option<String> {
    match (tag, param.prefix, param.short) {
        (Tag::Arg, ..) => Some("positional".to_owned()),
        (_, "--", _) => Some(format!("--{name}")),
        (_, "-", _) if name.len() == 1 => Some(format!("-{name}")),
        (_, _, Some(short)) if short.starts_with('-') => Some(short.to_owned()),
        _ => None,
    }
}

/// What the values of an option must be.
fn value(param: &Param<'_>, option: &mut Node) {
    let span = &param.name_span;
    let text = |text: &Text| Node::string(text.span.clone(), text.text.clone());
    let value_type = match &param.choices {
        None => Node::string(span.clone(), "string"),
        Some(choices) => {
            let choices = Node::new(
                span.clone(),
                Literal::Array(choices.iter().map(text).collect()),
            );
            let mut value_type = Node::object(span.clone());
            value_type.add("enum", span.clone(), choices);
            value_type
        }
    };
    let mut set = |key: &str, value: Node| option.add(key, span.clone(), value);
    // What a variable may give is not the default yet.
    let default = param.default.as_ref().filter(|_| !param.is_bound).map(text);
    if !param.is_multiple {
        set("value_type", value_type);
        if let Some(default) = default {
            set("default_value", default);
        }
        return;
    }
    set("value_type", Node::string(span.clone(), "array"));
    let mut items = Node::object(span.clone());
    items.add("value_type", span.clone(), value_type);
    if let Some(separator) = param.separator.filter(|_| param.choices.is_none()) {
        let pattern = Node::string(span.clone(), format!("^[^{separator}]*$"));
        items.add("pattern", span.clone(), pattern);
    }
    set("items", items);
    if let Some(default) = default {
        let list = Node::new(default.span.clone(), Literal::Array(vec![default]));
        set("default_value", list);
    }
    if param.is_required {
        let mut size = Node::object(span.clone());
        let one = Node::new(span.clone(), Literal::Number("1".to_owned()));
        size.add("min", span.clone(), one);
        set("size", size);
    }
}
