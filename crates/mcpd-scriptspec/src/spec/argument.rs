//! Form and place of the values of options on a script's command line.

/// Position of an option's value on a script's command line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Argument {
    /// After a flag such as `--user` or `-u`, with its dashes; a boolean is
    /// the flag alone, or absent.
    Flag(String),
    /// At its position after `--`.
    Positional,
    /// At its position after the flags, with `--` before the first only if one of
    /// them begins with `-` or `+`.
    Operand,
    /// At its position, in a script without flags; an empty word if there is no value.
    Plain,
    /// The value percent-encoded but for letters, digits and `-._~`, for a script
    /// that inserts it into a URL.
    PlainPercentEncoded,
    /// Among fixed words, such as `-name {}`; one that begins with the value is an operand.
    Template(Template),
    /// Fixed words for a boolean, such as `-name`, or `--color/--no-color`.
    #[non_exhaustive]
    Switch {
        /// Words for `true`.
        on: Vec<String>,
        /// Words for `false`, often none.
        off: Vec<String>,
    },
}

impl Argument {
    /// Returns whether the value stands at a position, without fixed text before it: only a `--`
    /// or its first character keeps it from being a flag.
    pub(crate) fn is_operand(&self) -> bool {
        match self {
            Self::Positional | Self::Operand => true,
            Self::Template(template) => template.before.is_empty() && template.prefix.is_empty(),
            _ => false,
        }
    }
}

/// Words with one placeholder for a value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Template {
    /// Words before the one with the value.
    pub before: Vec<String>,
    /// Text before the value, in the same word.
    pub prefix: String,
    /// Text after the value, in the same word.
    pub suffix: String,
    /// Words after the one with the value.
    pub after: Vec<String>,
    /// Form of a list.
    pub list: ListForm,
}

/// Form of a list on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListForm {
    /// All words once for each element.
    Repeated,
    /// The elements in one word, with a separator between them that none of them contains.
    Joined(char),
    /// One word for each element, between the fixed words; none of them begins with `-`.
    Spread,
}

/// A part of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommandWord {
    /// A word of each run.
    Fixed(String),
    /// The words of the option with this name.
    Option(String),
    /// The words of all options without a place of their own: flags, then operands.
    Rest,
}
