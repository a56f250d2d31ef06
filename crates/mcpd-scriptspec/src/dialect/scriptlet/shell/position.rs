//! Positions in commands: whether a word is the name of the command, or an argument of it.
//!
//! A value in the name of a command would choose the program to run. The tracker follows
//! separators, assignments, redirections, keywords, patterns of `case` and lists; its input is
//! code outside of quotes, character by character.
//!
//! ```text
//! Start      a word ──► Name                    < or > ──► Target
//! Name       a space ──► Arguments              after a keyword or an assignment ──► Start
//! Target     a space after the file ──► Start
//! Arguments  ; & | or a newline ──► Start       `in` of a `case` ──► Pattern
//! Pattern    ) ──► Start, of its command        `esac` ──► Arguments
//! any        ;; ──► Pattern                     brackets of a list ──► Elements, until closed
//! ```

/// Words before another command.
const BEFORE_COMMANDS: &[&str] = &[
    "!", "and", "begin", "builtin", "command", "coproc", "do", "elif", "else", "env", "eval",
    "exec", "if", "nice", "nohup", "not", "or", "setsid", "sudo", "then", "time", "until", "while",
    "{",
];

/// Position of the current character in a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// Before the first word of a command.
    Start,
    /// In the first word, which begins at this byte.
    Name(usize),
    /// After the first word; in a `case` the patterns follow `in`, and the byte is the start of
    /// the current word.
    Arguments { is_case: bool, word: Option<usize> },
    /// In or before the file of a redirection that precedes the first word.
    Target { is_begun: bool },
    /// In a pattern of `case`; the byte is the start of its word.
    Pattern(Option<usize>),
    /// In a list, or in a test, which runs nothing.
    Elements,
}

const ARGUMENTS: Position = Position::Arguments {
    is_case: false,
    word: None,
};

impl Position {
    /// Position after the character at `at`, which is outside of quotes.
    pub(super) fn after(self, code: &str, at: usize) -> Self {
        let rest = &code[at..];
        let sign = rest.as_bytes()[0];
        if self == Self::Elements || rest.starts_with("\\\n") {
            return self;
        }
        match sign {
            b' ' | b'\t' | b'\r' => self.after_word(code, at),
            b'\n' => match self.after_word(code, at) {
                pattern @ Self::Pattern(_) => pattern,
                _ => Self::Start,
            },
            b';' if rest.starts_with(";;") || rest.starts_with(";&") => Self::Pattern(None),
            // The second character of `;;`.
            b';' | b'&' if self == Self::Pattern(None) => self,
            b'&' if code[..at].ends_with(['<', '>']) || rest.starts_with("&>") => self,
            b'|' if matches!(self, Self::Pattern(_)) => Self::Pattern(None),
            b';' | b'&' | b'|' => Self::Start,
            b')' => Self::Start,
            b'<' | b'>' => self.after_redirection(code, at),
            b'{' if self.is_between_words() && is_brace_alone(rest) => Self::Start,
            _ => self.in_word(at),
        }
    }

    /// Position inside a word that begins or continues at `at`.
    pub(super) fn in_word(self, at: usize) -> Self {
        match self {
            Self::Start => Self::Name(at),
            Self::Target { .. } => Self::Target { is_begun: true },
            Self::Pattern(None) => Self::Pattern(Some(at)),
            Self::Arguments {
                is_case,
                word: None,
            } => Self::Arguments {
                is_case,
                word: Some(at),
            },
            _ => self,
        }
    }

    /// Position in the brackets that begin at `at` without a `$`.
    pub(super) fn in_brackets(self, code: &str, at: usize) -> Self {
        match self {
            Self::Name(start) if code[..at].ends_with('=') && is_assignment(&code[start..at]) => {
                Self::Elements
            }
            Self::Arguments { .. } if code[..at].ends_with('=') => Self::Elements,
            Self::Pattern(_) | Self::Elements => Self::Elements,
            _ => Self::Start,
        }
    }

    /// Returns whether a value at `at` would be the name of a command, or a part of it.
    pub(super) fn names_command(self, code: &str, at: usize) -> bool {
        match self {
            Self::Start => true,
            Self::Name(start) => !is_assignment(&code[start..at]),
            _ => false,
        }
    }

    fn after_word(self, code: &str, at: usize) -> Self {
        match self {
            Self::Name(start) => match &code[start..at] {
                "case" => Self::Arguments {
                    is_case: true,
                    word: None,
                },
                word if is_assignment(word) || BEFORE_COMMANDS.contains(&word) => Self::Start,
                _ => ARGUMENTS,
            },
            Self::Arguments {
                is_case: true,
                word: Some(start),
            } if &code[start..at] == "in" => Self::Pattern(None),
            Self::Arguments { is_case, .. } => Self::Arguments {
                is_case,
                word: None,
            },
            Self::Target { is_begun: true } => Self::Start,
            Self::Pattern(Some(start)) if &code[start..at] == "esac" => ARGUMENTS,
            Self::Pattern(_) => Self::Pattern(None),
            _ => self,
        }
    }

    fn after_redirection(self, code: &str, at: usize) -> Self {
        match self {
            Self::Start => Self::Target { is_begun: false },
            // In `2>`, the number of a file descriptor comes first.
            Self::Name(start) if code[start..at].bytes().all(|byte| byte.is_ascii_digit()) => {
                Self::Target { is_begun: false }
            }
            Self::Name(start) if !is_assignment(&code[start..at]) => ARGUMENTS,
            _ => self,
        }
    }

    fn is_between_words(self) -> bool {
        matches!(self, Self::Start | Self::Arguments { word: None, .. })
    }
}

/// Returns whether a text begins with a brace that is a word of its own.
fn is_brace_alone(text: &str) -> bool {
    text[1..].starts_with([' ', '\t', '\n'])
}

/// Returns whether a word begins like an assignment.
fn is_assignment(word: &str) -> bool {
    let name_end = word.find(|char: char| !char.is_ascii_alphanumeric() && char != '_');
    let Some((name, rest)) = name_end.map(|end| word.split_at(end)) else {
        return false;
    };
    let index_end = rest.strip_prefix('[').and_then(|inside| inside.find(']'));
    let rest = index_end.map_or(rest, |end| &rest[end + 2..]);
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    is_name && (rest.starts_with('=') || rest.starts_with("+="))
}
