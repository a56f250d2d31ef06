//! Words and operators of the grammar of POSIX shells.

use super::Word;

/// Keywords before a command.
pub(super) const PREFIXES: [&str; 9] = [
    "if", "then", "elif", "else", "while", "until", "do", "{", "!",
];

/// Keywords at the end of a construct.
pub(super) const SUFFIXES: [&str; 4] = ["fi", "done", "esac", "}"];

/// Keywords at the beginning of a construct that contains other words than commands.
pub(super) const CONSTRUCTS: [&str; 4] = ["for", "case", "select", "function"];

/// Redirection operators.
pub(super) const REDIRECTIONS: [&str; 10] =
    ["<", ">", "<<", ">>", "<<<", "<<-", "<>", "<&", ">&", ">|"];

/// Characters other than a blank that end a word.
pub(super) fn is_operator_of_list(char: char) -> bool {
    "\n;&|()<>".contains(char)
}

pub(super) fn is_grammar(word: &str) -> bool {
    PREFIXES.contains(&word) || SUFFIXES.contains(&word) || CONSTRUCTS.contains(&word)
}

pub(super) fn is_construct(command: &[Word]) -> bool {
    matches!(command.first(), Some(Word::Known(word)) if CONSTRUCTS.contains(&&**word))
}

pub(super) fn without_options(arguments: &[Word]) -> &[Word] {
    let options = arguments.iter().take_while(|word| word.is_option());
    &arguments[options.count()..]
}

/// Returns whether a word is `NAME=VALUE` or `NAME+=VALUE`.
pub(super) fn is_assignment(word: &Word) -> bool {
    let Some((name, _)) = word.text().split_once('=') else {
        return false;
    };
    let name = name.strip_suffix('+').unwrap_or(name);
    let is_name = |char: char| char.is_ascii_alphanumeric() || char == '_';
    !name.is_empty()
        && name.chars().all(is_name)
        && !name.starts_with(|char: char| char.is_ascii_digit())
}
