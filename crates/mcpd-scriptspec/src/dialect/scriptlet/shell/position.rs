//! Positions in commands: whether a word names the command that runs, or is only given to it.
//!
//! Where a word names the command its value would choose what runs. The tracker follows separators, assignments,
//! redirections, keywords, patterns of `case` and lists; it sees code outside of quotes character by character.

/// Words behind which another command begins.
const BEFORE_COMMANDS: &[&str] = &[
    "!", "and", "begin", "builtin", "command", "coproc", "do", "elif", "else", "env", "eval",
    "exec", "if", "nice", "nohup", "not", "or", "setsid", "sudo", "then", "time", "until", "while",
    "{",
];

/// Position of the code at hand in a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// Before the first word of a command.
    Start,
    /// In the first word, which begins at this byte.
    Name(usize),
    /// Behind the first word; a `case` has its patterns behind `in`, and the byte is where the word at hand begins.
    Arguments { is_case: bool, word: Option<usize> },
    /// In the file of a redirection before the first word, or before it.
    Target { is_begun: bool },
    /// In a pattern of `case`, at whose byte the word begins.
    Pattern(Option<usize>),
    /// In a list, or in a test, where nothing runs.
    Elements,
}

const ARGUMENTS: Position = Position::Arguments {
    is_case: false,
    word: None,
};

impl Position {
    /// Position behind the character at `at`, which stands outside of quotes.
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
            // The second of `;;`.
            b';' | b'&' if self == Self::Pattern(None) => self,
            b'&' if code[..at].ends_with(['<', '>']) || rest.starts_with("&>") => self,
            b'|' if matches!(self, Self::Pattern(_)) => Self::Pattern(None),
            b';' | b'&' | b'|' => Self::Start,
            b')' => Self::Start,
            b'<' | b'>' => self.redirected(code, at),
            b'{' if self.is_between_words() && is_brace_alone(rest) => Self::Start,
            _ => self.in_word(at),
        }
    }

    /// Position inside of a word that begins or goes on at `at`.
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

    fn redirected(self, code: &str, at: usize) -> Self {
        match self {
            Self::Start => Self::Target { is_begun: false },
            // `2>` has the number of a file before it.
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

/// Returns whether a word begins as an assignment does.
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
