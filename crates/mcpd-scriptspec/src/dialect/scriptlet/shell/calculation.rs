//! Lines in which Bash and Zsh read values as more than texts although no brackets say so. Commands that take the name of a
//! variable are not known here: they calculate only if that name has a subscript.

use super::Shell;

const COMPARISONS: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
/// What may stand before a command.
const KEYWORDS: &[&str] = &[
    "!",
    "builtin",
    "command",
    "coproc",
    "do",
    "elif",
    "else",
    "if",
    "nocorrect",
    "noglob",
    "then",
    "time",
    "until",
    "while",
];
const DECLARATIONS: &[&str] = &[
    "declare", "export", "local", "private", "readonly", "typeset",
];
/// Variables that take numbers only without being declared.
const INTEGERS: &[&str] = &[
    "COLUMNS", "HISTCMD", "LINES", "OPTIND", "RANDOM", "SECONDS", "SRANDOM",
];
/// Commands that calculate in Zsh alone.
const ZSH_COMMANDS: &[&str] = &["break", "continue", "exit", "repeat", "return", "shift"];
/// Stands for `{{`, for braces end commands.
const PLACEHOLDER: char = '\0';

/// Whether variables are declared somewhere that take numbers only.
pub(super) fn declares_integers(code: &str) -> bool {
    let code = joined(code);
    commands(&code).any(|words| is_declaration(&words, &['i', 'E', 'F']))
}

/// Whether something in a line may calculate with a value that stands in it.
pub(super) fn calculates(line: &str, shell: Shell) -> bool {
    let line = joined(line);
    let mut words = line.split_whitespace();
    // In single brackets Zsh calculates, and Bash does not.
    let is_test = match shell {
        Shell::Plain => line.contains("[["),
        _ => line.contains('[') || words.clone().any(|word| word == "test"),
    };
    is_test && words.any(|word| COMPARISONS.contains(&word))
        || commands(&line).any(|words| {
            words.first().is_some_and(|first| unquoted(first) == "let")
                || is_declaration(&words, &['i', 'E', 'F'])
        })
        || line.split_whitespace().any(sets_integer)
        || shell == Shell::Zsh && zsh_calculates(&line)
}

/// Whether a list is declared as what a value says, which Bash reads as it reads code.
pub(super) fn declares_list(line: &str) -> bool {
    let line = joined(line);
    commands(&line).any(|words| {
        // Behind a quote the value may stand in brackets that are none.
        let has_value = |word: &&str| word.contains([PLACEHOLDER, '"', '\'']);
        is_declaration(&words, &['a', 'A']) && words.iter().any(has_value)
    })
}

fn zsh_calculates(line: &str) -> bool {
    let is_index = |(place, _): (usize, &str)| line[..place].ends_with(is_part);
    let index = line.match_indices('[').find(|found| is_index(*found));
    let indexed = index.and_then(|(start, _)| line.get(start..line.rfind(']')?));
    indexed.is_some_and(|indexed| indexed.contains(PLACEHOLDER))
        || line.contains("printf") && line.split('%').skip(1).any(is_numeric_format)
        || commands(line).any(|words| {
            words
                .first()
                .is_some_and(|first| ZSH_COMMANDS.contains(first))
                && words[1..].iter().any(|word| word.contains(PLACEHOLDER))
        })
}

/// Whether what follows `%` in a format makes it one for a number.
fn is_numeric_format(text: &str) -> bool {
    let kind =
        text.trim_start_matches(|char: char| "-+ #'.*$".contains(char) || char.is_ascii_digit());
    kind.starts_with(|char: char| "cdeEfFgGiouxX".contains(char))
}

/// Without line ends that `\` takes away.
fn joined(line: &str) -> String {
    line.replace("\\\n", "")
        .replace("{{", &PLACEHOLDER.to_string())
}

/// The words of each command, by signs that may as well stand between quotes.
fn commands(line: &str) -> impl Iterator<Item = Vec<&str>> {
    let commands = line.split([';', '&', '|', '(', ')', '{', '}', '`', '\n']);
    commands.map(|command| {
        let words = command.split_whitespace();
        words.skip_while(|word| may_lead(word)).collect()
    })
}

/// Whether a command may follow this word.
fn may_lead(word: &str) -> bool {
    KEYWORDS.contains(&word)
        || is_assignment(word)
        || word.starts_with('-')
        || word.contains(['<', '>'])
}

/// Whether it declares variables with one of these letters, such as `i` in `declare -i`.
fn is_declaration(words: &[&str], letters: &[char]) -> bool {
    let Some((first, rest)) = words.split_first() else {
        return false;
    };
    match unquoted(first) {
        "integer" | "float" => letters.contains(&'i'),
        first if DECLARATIONS.contains(&first) => rest
            .iter()
            .map(|word| unquoted(word))
            .take_while(|word| word.starts_with(['-', '+']))
            .any(|word| word.contains(letters)),
        _ => false,
    }
}

fn unquoted(word: &str) -> &str {
    word.trim_matches(['\\', '"', '\''])
}

fn sets_integer(word: &str) -> bool {
    let name = word.split(['=', '+']).next().unwrap_or_default();
    name.len() < word.len() && INTEGERS.contains(&unquoted(name))
}

fn is_assignment(word: &str) -> bool {
    let name = word.split(['=', '+', '[']).next().unwrap_or_default();
    name.len() < word.len() && !name.is_empty() && name.chars().all(is_part)
}

fn is_part(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_'
}
