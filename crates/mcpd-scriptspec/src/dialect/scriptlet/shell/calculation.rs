//! Lines on which Bash and Zsh calculate with values although no brackets say so. Commands that take the name of a variable
//! are not known here: they calculate only if that name has a subscript.

use std::ops::Range;

use super::Shell;

const COMPARISONS: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
/// What may stand before a command.
const KEYWORDS: &[&str] = &[
    "!", "builtin", "command", "do", "elif", "else", "if", "then", "time", "until", "while",
];
const DECLARATIONS: &[&str] = &["declare", "export", "local", "readonly", "typeset"];

/// The line at a place of the code, with those that `\` at the end of one adds to it.
pub(super) fn line_around(code: &str, at: usize) -> Range<usize> {
    let mut start = at;
    loop {
        start = code[..start].rfind('\n').map_or(0, |end| end + 1);
        match code[..start].strip_suffix("\\\n") {
            Some(before) => start = before.len(),
            None => break,
        }
    }
    let mut end = at;
    loop {
        end += code[end..].find('\n').unwrap_or(code.len() - end);
        if end == code.len() || !code[..end].ends_with('\\') {
            return start..end;
        }
        end += 1;
    }
}

/// Whether variables are declared somewhere that take numbers only.
pub(super) fn declares_integers(code: &str) -> bool {
    let mut at = 0;
    while at < code.len() {
        let line = line_around(code, at);
        if commands(&code[line.clone()]).any(|words| is_declaration(&words)) {
            return true;
        }
        at = line.end + 1;
    }
    false
}

/// Whether a command on the line may calculate with its words.
pub(super) fn calculates(line: &str, shell: Shell, has_integers: bool) -> bool {
    let mut words = line.split_whitespace();
    // In single brackets Zsh calculates, and Bash does not.
    let is_test = match shell {
        Shell::Plain => line.contains("[["),
        _ => line.contains('[') || words.clone().any(|word| word == "test"),
    };
    is_test && words.any(|word| COMPARISONS.contains(&word))
        || commands(line).any(|words| {
            let first = words.first();
            first == Some(&"let")
                || is_declaration(&words)
                || has_integers && first.is_some_and(|word| is_assignment(word))
        })
}

/// The words of each command of a line, by signs that may as well stand between quotes.
fn commands(line: &str) -> impl Iterator<Item = Vec<&str>> {
    let commands = line.split([';', '&', '|', '(', ')', '{', '}', '`']);
    commands.map(|command| {
        let words = command.split_whitespace().filter(|word| *word != "\\");
        words.skip_while(|word| KEYWORDS.contains(word)).collect()
    })
}

/// Whether it declares variables that take numbers only, such as `declare -i`.
fn is_declaration(words: &[&str]) -> bool {
    match words.split_first() {
        Some((&("integer" | "float"), _)) => true,
        Some((first, rest)) if DECLARATIONS.contains(first) => rest
            .iter()
            .take_while(|word| word.starts_with('-'))
            .any(|word| word.contains(['i', 'E', 'F'])),
        _ => false,
    }
}

fn is_assignment(word: &str) -> bool {
    let name = word.split(['=', '+', '[']).next().unwrap_or_default();
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
    name.len() < word.len() && !name.is_empty() && name.chars().all(is_part)
}
