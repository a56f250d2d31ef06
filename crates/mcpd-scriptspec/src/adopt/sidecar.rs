//! Drafts of sidecars: TOML that describes a program to mcpd, with each option in the form in
//! which the program takes it. Every draft is a valid description; what would make it invalid is
//! left out and reported.

use std::{collections::BTreeSet, fmt::Write as _, ops::Range};

use super::{CommandLine, Flag, FlagValue, Operand, Position, Unread, ValueKind, option_name};
use crate::{Dialect, Severity};

/// Writing into a string can't fail.
const STRING: &str = "a string takes everything";

/// Draft of a sidecar.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sidecar {
    /// Text of the file `NAME.mcpd.toml`.
    pub text: String,
    /// Parts of the command line that no sidecar can express.
    pub left_out: Vec<Unread>,
}

/// One option of the draft.
struct Entry {
    name: String,
    toml: String,
}

impl Sidecar {
    /// Drafts the sidecar of the program `name`, or of its sub-command if there are words of one.
    ///
    /// ```
    /// use mcpd_scriptspec::adopt::{CommandLine, Form, Sidecar};
    ///
    /// let read = CommandLine::read(Form::Help, b"  -n, --count=N  number of lines\n");
    /// let draft = Sidecar::draft("head", &[], &read);
    /// assert!(draft.text.contains("[options.count]"));
    /// assert!(draft.text.contains("argument = \"--count\""));
    /// ```
    #[must_use]
    pub fn draft(name: &str, subcommand: &[&str], read: &CommandLine) -> Self {
        let mut draft = Self::with_head(name, subcommand, read);
        let head = draft.text.len();
        let mut names = BTreeSet::new();
        let is_predicate = |flag: &&Flag| read.predicates.contains(&flag.spellings[0]);
        let (predicates, flags): (Vec<_>, Vec<_>) = read.flags.iter().partition(is_predicate);
        draft.add_flags(flags, &mut names);
        // The expression that find has last consists of the predicates.
        let is_operand = |operand: &&Operand| predicates.is_empty() || operand.name != "expression";
        for operand in read.operands.iter().filter(is_operand) {
            draft.add(&operand_entry(operand), &operand.span, &mut names);
        }
        if !predicates.is_empty() {
            draft.place_options(head);
            draft.add_flags(predicates, &mut names);
        }
        draft
    }

    /// Drafts one sidecar for a program and its sub-commands, which are a choice before its
    /// arguments. It has the flags of the program, and none of those of the sub-commands.
    ///
    /// ```
    /// use mcpd_scriptspec::adopt::{CommandLine, Form, Sidecar};
    ///
    /// let help = b"Usage: ctl [options] COMMAND\n\nCommands:\n  up    Start\n  down  Stop\n";
    /// let read = CommandLine::read(Form::Help, help);
    /// let draft = Sidecar::draft_with_choice("ctl", &[], &read);
    /// assert!(draft.text.contains(r#"enum = ["up", "down"]"#));
    /// ```
    #[must_use]
    pub fn draft_with_choice(name: &str, subcommand: &[&str], read: &CommandLine) -> Self {
        let mut draft = Self::with_head(name, subcommand, read);
        let head = draft.text.len();
        let mut names = BTreeSet::from(["command".to_owned(), "arguments".to_owned()]);
        let is_list = |flag: &&Flag| flag.value.as_ref().is_some_and(|value| value.words != 1);
        let (lists, flags): (Vec<_>, Vec<_>) = read.flags.iter().partition(is_list);
        draft.add_flags(flags, &mut names);
        draft.left_out.extend(lists.into_iter().map(|flag| Unread {
            span: flag.span.clone(),
            message: "left out: the sub-command would be one of its words".to_owned(),
        }));
        let span = read
            .commands
            .first()
            .map_or(0..0, |command| command.span.clone());
        let mut names = BTreeSet::new();
        draft.add(&choice_entry(read), &span, &mut names);
        // Programs read their own flags before the sub-command only.
        draft.place_options(head);
        let arguments = Operand {
            name: "arguments".to_owned(),
            description: "Arguments of the sub-command".to_owned(),
            required: false,
            repeats: true,
            choices: Vec::new(),
            span: span.clone(),
        };
        draft.add(&operand_entry(&arguments), &span, &mut names);
        draft
    }

    /// Gives the options so far their places on the command line, before those that follow.
    fn place_options(&mut self, head: usize) {
        let names = self.text.lines().filter_map(|line| {
            let name = line.strip_prefix("[options.")?.strip_suffix(']')?;
            Some(quoted(&format!("{{{name}}}")))
        });
        let words: Vec<_> = names.chain([quoted("{}")]).collect();
        let line = format!("command_line = [{}]\n", words.join(", "));
        self.text.insert_str(head, &line);
    }

    /// The keys before the options.
    fn with_head(name: &str, subcommand: &[&str], read: &CommandLine) -> Self {
        let mut draft = Self::default();
        let mut called = vec![name];
        called.extend(subcommand);
        let called = called.join(" ");
        let description = read
            .description
            .clone()
            .unwrap_or_else(|| format!("Runs {called}"));
        writeln!(draft.text, "description = {}", quoted(&description)).expect(STRING);
        if !subcommand.is_empty() {
            let words: Vec<_> = subcommand.iter().map(|word| quoted(word)).collect();
            writeln!(draft.text, "subcommand = [{}]", words.join(", ")).expect(STRING);
        }
        draft
    }

    fn add_flags<'f>(
        &mut self,
        flags: impl IntoIterator<Item = &'f Flag>,
        names: &mut BTreeSet<String>,
    ) {
        let flags = flags.into_iter();
        for flag in flags.filter(|flag| !flag.is_about_program()) {
            self.add(&flag_entry(flag), &flag.span, names);
        }
    }

    /// Adds an option, or notes why it can't be one.
    fn add(&mut self, entry: &Entry, span: &Range<usize>, names: &mut BTreeSet<String>) {
        let text = render(entry, names);
        match fault(&text) {
            None => self.text += &text,
            Some(message) => self.left_out.push(Unread {
                span: span.clone(),
                message: format!("left out: {message}"),
            }),
        }
    }
}

/// Text of the option, under a name that no other option has.
fn render(entry: &Entry, names: &mut BTreeSet<String>) -> String {
    let base = Some(&entry.name).filter(|name| !name.is_empty());
    let base = base.map_or("value", String::as_str);
    let mut name = base.to_owned();
    let mut number = 2;
    while !names.insert(name.clone()) {
        name = format!("{base}_{number}");
        number += 1;
    }
    let toml = entry
        .toml
        .replace("[options.?", &format!("[options.{name}"));
    format!("\n{toml}")
}

/// The first error of a description with this option alone.
fn fault(option: &str) -> Option<String> {
    let text = format!("description = \"\"\n{option}");
    let described = Dialect::Sidecar.read("program.mcpd.toml", text.as_bytes());
    let mut faults = described
        .into_iter()
        .flat_map(|tool| tool.parsed.diagnostics);
    let fault = faults.find(|fault| fault.severity == Severity::Error)?;
    Some(fault.message)
}

fn flag_entry(flag: &Flag) -> Entry {
    let mut toml = String::from("[options.?]\n");
    let mut description = flag.description.clone();
    if let Some(default) = &flag.default
        && !description.contains(default.as_str())
    {
        write!(description, " (default: {default})").expect(STRING);
    }
    let name = flag.value.as_ref().map_or("", |value| &value.name);
    if description.is_empty() {
        description = match name {
            "" => flag.spellings.join(", "),
            name => format!("{} {name}", flag.spellings.join(", ")),
        };
    }
    writeln!(toml, "description = {}", quoted(&description)).expect(STRING);
    if flag.required {
        toml += "required = true\n";
    }
    match &flag.value {
        None => toml += "value_type = \"boolean\"\n",
        Some(value) => {
            toml += &value_type(&value.kind, flag.repeats || value.words != 1, value.words)
        }
    }
    writeln!(toml, "argument = {}", quoted(&argument(flag))).expect(STRING);
    if let Some(value) = &flag.value
        && (flag.repeats || value.words != 1)
    {
        toml += &items(&value.kind);
    }
    Entry {
        name: flag.name(),
        toml,
    }
}

/// The sub-commands, each with its purpose.
fn choice_entry(read: &CommandLine) -> Entry {
    let names = read.commands.iter().map(|command| command.name.clone());
    let purposes = read
        .commands
        .iter()
        .map(|command| match &*command.description {
            "" => command.name.clone(),
            purpose => format!("{}: {purpose}", command.name),
        });
    let purposes: Vec<_> = purposes.collect();
    let kind = ValueKind::Choice(names.collect());
    let mut toml = String::from("[options.?]\n");
    let description = format!("Sub-command ({})", purposes.join("; "));
    writeln!(toml, "description = {}", quoted(&description)).expect(STRING);
    toml += "required = true\n";
    toml += &value_type(&kind, false, 1);
    toml += "argument = \"operand\"\n";
    Entry {
        name: "command".to_owned(),
        toml,
    }
}

fn operand_entry(operand: &Operand) -> Entry {
    let kind = match operand.choices.is_empty() {
        true => ValueKind::Text,
        false => ValueKind::Choice(operand.choices.clone()),
    };
    let mut toml = String::from("[options.?]\n");
    let description = match operand.description.is_empty() {
        true => &operand.name,
        false => &operand.description,
    };
    writeln!(toml, "description = {}", quoted(description)).expect(STRING);
    if operand.required {
        toml += "required = true\n";
    }
    toml += &value_type(&kind, operand.repeats, 0);
    toml += "argument = \"operand\"\n";
    if operand.repeats {
        toml += &items(&kind);
    }
    Entry {
        name: option_name(&operand.name),
        toml,
    }
}

/// The type, of a list if the value `repeats`.
fn value_type(kind: &ValueKind, repeats: bool, words: usize) -> String {
    if !repeats {
        return format!("value_type = {}\n", type_name(kind));
    }
    let size = match words {
        0 | 1 => String::new(),
        words => format!("size = {{ min = {words}, max = {words} }}\n"),
    };
    format!("value_type = \"array\"\n{size}")
}

fn items(kind: &ValueKind) -> String {
    format!("items = {{ value_type = {} }}\n", type_name(kind))
}

fn type_name(kind: &ValueKind) -> String {
    match kind {
        ValueKind::Text => quoted("string"),
        ValueKind::Integer => quoted("integer"),
        ValueKind::Number => quoted("float"),
        ValueKind::Choice(choices) => {
            let choices: Vec<_> = choices.iter().map(|choice| quoted(choice)).collect();
            format!("{{ enum = [{}] }}", choices.join(", "))
        }
    }
}

/// Words of the flag on the command line, in the form of `argument`.
fn argument(flag: &Flag) -> String {
    let long = flag
        .spellings
        .iter()
        .find(|spelling| spelling.starts_with("--"));
    let spelling = long.or(flag.spellings.first()).map_or("", String::as_str);
    let Some(value) = &flag.value else {
        return match &flag.negation {
            Some(negation) => format!("{spelling}/{negation}"),
            None => spelling.to_owned(),
        };
    };
    value_argument(spelling, long.is_some(), value)
}

fn value_argument(spelling: &str, is_long: bool, value: &FlagValue) -> String {
    let is_letter = spelling.chars().count() == 2;
    match value.position {
        _ if value.words != 1 => format!("{spelling} {{...}}"),
        Position::Joined if is_long => spelling.to_owned(),
        Position::Joined if !is_letter => format!("{spelling}={{}}"),
        Position::Glued => format!("{spelling}{{}}"),
        // The next word would not be the value if it looks like a flag.
        Position::Separate if value.optional && is_letter => format!("{spelling}{{}}"),
        Position::Separate if value.optional => format!("{spelling}={{}}"),
        // A value that begins with a dash is glued to a single letter.
        Position::Separate | Position::Joined if is_letter => spelling.to_owned(),
        Position::Separate | Position::Joined => format!("{spelling} {{}}"),
    }
}

/// A string in TOML.
fn quoted(text: &str) -> String {
    // A basic string has the escapes of JSON.
    let visible: String = text.chars().filter(|char| !char.is_control()).collect();
    serde_json::to_string(&visible).expect("a string is valid JSON")
}
