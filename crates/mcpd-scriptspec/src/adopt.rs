//! Adoption: command lines of ordinary programs, read from their own texts (`--help`, a manual
//! page, completions, tasks of a project), and drafts of sidecars for them.
//!
//! A draft is for review. Nothing here decides what a served tool does, and nothing guesses
//! effects of a program: annotations stay unknown.

use std::ops::Range;

mod bash;
mod entries;
mod fig;
mod fish;
mod hints;
mod line;
mod sidecar;
mod style;
mod tasks;
mod term;
mod usage_line;

pub use sidecar::Sidecar;
pub use tasks::{Task, TaskFile};

/// Form of a text about a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// Output of `--help` in any style, or a rendered manual page.
    Help,
    /// Completions for the fish shell.
    Fish,
    /// Completions for bash.
    Bash,
    /// A completion spec in the form of Fig, as JSON.
    Fig,
    /// Source of a manual page, which has no meaning before `man` has rendered it as
    /// [`Form::Help`].
    Manual,
}

impl Form {
    /// The form of a file, by its name or else by its text.
    ///
    /// ```
    /// use mcpd_scriptspec::adopt::Form;
    ///
    /// assert_eq!(Form::of("jq.fish", b""), Form::Fish);
    /// assert_eq!(Form::of("jq", b"complete -F _jq jq"), Form::Bash);
    /// assert_eq!(Form::of("jq.1.gz", b"\x1f\x8b"), Form::Manual);
    /// assert_eq!(Form::of("-", b"usage: jq [options]"), Form::Help);
    /// ```
    #[must_use]
    pub fn of(name: &str, text: &[u8]) -> Self {
        let name = name.strip_suffix(".gz").unwrap_or(name);
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        let is_section =
            extension.starts_with(|first: char| first.is_ascii_digit()) && extension.len() < 4;
        let text = String::from_utf8_lossy(text);
        let has_line = |starts: &[&str]| {
            let mut lines = text.lines().map(str::trim_start);
            lines.any(|line| starts.iter().any(|start| line.starts_with(start)))
        };
        match extension {
            "fish" => Self::Fish,
            "bash" => Self::Bash,
            "json" => Self::Fig,
            _ if is_section || has_line(&[".TH ", ".Dd "]) => Self::Manual,
            _ if has_line(&["complete -c "]) => Self::Fish,
            _ if has_line(&["complete -", "COMPREPLY="]) => Self::Bash,
            _ if text.trim_start().starts_with('{') => Self::Fig,
            _ => Self::Help,
        }
    }
}

/// Command line of a program, as a text describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandLine {
    /// Purpose of the program.
    pub description: Option<String>,
    /// Flags, in the order of the text.
    pub flags: Vec<Flag>,
    /// Arguments without a flag, in their order.
    pub operands: Vec<Operand>,
    /// Sub-commands, in the order of the text.
    pub commands: Vec<Command>,
    /// Spellings of flags that stand behind the arguments, such as the tests and actions of find.
    pub predicates: Vec<String>,
    /// Parts of the text without a meaning for the reader.
    pub unread: Vec<Unread>,
}

/// A flag with all its spellings.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Flag {
    /// Spellings such as `-u` and `--user`, in the order of the text.
    pub spellings: Vec<String>,
    /// Spelling that switches the flag off, such as `--no-color`.
    pub negation: Option<String>,
    /// Its value; none for a switch.
    pub value: Option<FlagValue>,
    /// Meaning of the flag.
    pub description: String,
    /// Default in the words of the text; it is never put on a command line.
    pub default: Option<String>,
    /// Every call must give it.
    pub required: bool,
    /// It may stand several times.
    pub repeats: bool,
    /// Place in the text, in bytes.
    pub span: Range<usize>,
}

/// Value of a flag.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlagValue {
    /// Name in the text, such as `FILE`; empty if it has none.
    pub name: String,
    /// Position of the value.
    pub position: Position,
    /// The flag may stand without it.
    pub optional: bool,
    /// Number of words: more than one for a value such as `NAME VALUE`, and 0 for any number.
    pub words: usize,
    /// Type of the value.
    pub kind: ValueKind,
}

/// Position of a value after its flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a value has no other place")]
pub enum Position {
    /// After `=`, in one word.
    Joined,
    /// In the next word.
    Separate,
    /// Directly after the flag, as in `-O2`.
    Glued,
}

/// Type of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueKind {
    /// Any text.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// One of these words.
    Choice(Vec<String>),
}

/// An argument without a flag.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Operand {
    /// Name in the text, such as `FILE`.
    pub name: String,
    /// Meaning of the argument; empty if the text has none.
    pub description: String,
    /// Every call must give it.
    pub required: bool,
    /// It takes several words.
    pub repeats: bool,
    /// Words it may be; empty for any.
    pub choices: Vec<String>,
    /// Place in the text, in bytes.
    pub span: Range<usize>,
}

/// A sub-command.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Command {
    /// Word that selects it.
    pub name: String,
    /// Purpose of the sub-command; empty if the text has none.
    pub description: String,
    /// Place in the text, in bytes.
    pub span: Range<usize>,
}

/// A part of a text without a meaning for the reader.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unread {
    /// Place in the text, in bytes.
    pub span: Range<usize>,
    /// Reason: a fragment in lower case without a full stop.
    pub message: String,
}

impl CommandLine {
    /// Reads a text. Bytes that are not UTF-8 are replaced; reading never fails, and a text
    /// without flags, arguments and sub-commands gives none.
    ///
    /// ```
    /// use mcpd_scriptspec::adopt::{CommandLine, Form};
    ///
    /// let help = b"usage: greet [-h] [--times N] name\n\noptions:\n  --times N  How often\n";
    /// let read = CommandLine::read(Form::Help, help);
    /// assert_eq!(read.flags[0].spellings, ["--times"]);
    /// assert_eq!(read.operands[0].name, "name");
    /// ```
    #[must_use]
    pub fn read(form: Form, text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        match form {
            Form::Help => entries::read(&text),
            Form::Fish => fish::read(&text),
            Form::Bash => bash::read(&text),
            Form::Fig => fig::read(&text),
            Form::Manual => Self {
                unread: vec![Unread {
                    span: 0..0,
                    message: "the source of a manual page has to be rendered first".to_owned(),
                }],
                ..Self::default()
            },
        }
    }

    /// Returns whether the text had nothing of a command line.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.flags.is_empty() && self.operands.is_empty() && self.commands.is_empty()
    }

    /// Adds a flag, or what is new about a known one.
    fn add(&mut self, flag: Flag) {
        let is_same = |known: &&mut Flag| {
            let mut spellings = known.spellings.iter();
            spellings.any(|spelling| flag.spellings.contains(spelling))
        };
        let Some(known) = self.flags.iter_mut().find(is_same) else {
            self.flags.push(flag);
            return;
        };
        for spelling in flag.spellings {
            if !known.spellings.contains(&spelling) {
                known.spellings.push(spelling);
            }
        }
        known.negation = known.negation.take().or(flag.negation);
        known.value = known.value.take().or(flag.value);
        if known.description.is_empty() {
            known.description = flag.description;
        }
    }
}

impl Flag {
    /// Name for an option: the first long spelling, or else the first one, without dashes.
    #[must_use]
    pub fn name(&self) -> String {
        let is_long = |spelling: &&String| spelling.starts_with("--");
        let long = self.spellings.iter().find(is_long);
        let by_length = || self.spellings.iter().max_by_key(|spelling| spelling.len());
        let spelling = long.or_else(by_length).map_or("", String::as_str);
        option_name(spelling)
    }

    /// Returns whether the flag prints help or the version instead of doing the work.
    #[must_use]
    pub fn is_about_program(&self) -> bool {
        let mut spellings = self.spellings.iter();
        spellings.any(|spelling| style::ABOUT_PROGRAM.contains(&spelling.as_str()))
    }
}

/// Spelling of a name for an option: letters, digits and underscores.
fn option_name(text: &str) -> String {
    let text = text.trim_matches(|char: char| !char.is_ascii_alphanumeric());
    let plain = text.chars().map(|char| match char {
        char if char.is_ascii_alphanumeric() => char.to_ascii_lowercase(),
        _ => '_',
    });
    let mut name: String = plain.take(64).collect();
    while name.contains("__") {
        name = name.replace("__", "_");
    }
    name
}
