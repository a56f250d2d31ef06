//! Lines in which Bash and Zsh evaluate values without brackets around them. Commands that take
//! the name of a variable are not covered: they evaluate it only if the name has a subscript.

use super::Shell;

const COMPARISONS: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
/// Words that may stand before a command.
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
/// Variables that accept only numbers without a declaration.
const INTEGERS: &[&str] = &[
    "COLUMNS", "HISTCMD", "LINES", "OPTIND", "RANDOM", "SECONDS", "SRANDOM",
];
/// Commands that evaluate arithmetic in Zsh alone.
const ZSH_COMMANDS: &[&str] = &["break", "continue", "exit", "repeat", "return", "shift"];
/// Placeholder for `{{`, because braces end commands.
const PLACEHOLDER: char = '\0';

/// Returns whether the code declares integer variables.
pub(super) fn declares_integers(code: &str) -> bool {
    let code = join_lines(code);
    commands(&code).any(|words| is_declaration(&words, &['i', 'E', 'F']))
}

/// Returns whether a part of a line may evaluate a value in it as arithmetic.
pub(super) fn may_evaluate(line: &str, shell: Shell) -> bool {
    let line = join_lines(line);
    let mut words = line.split_whitespace();
    // In single brackets Zsh evaluates arithmetic, and Bash does not.
    let is_test = match shell {
        Shell::Plain => line.contains("[["),
        _ => line.contains('[') || words.clone().any(|word| word == "test"),
    };
    is_test && words.any(|word| COMPARISONS.contains(&word))
        || commands(&line).any(|words| {
            words
                .first()
                .is_some_and(|first| strip_quotes(first) == "let")
                || is_declaration(&words, &['i', 'E', 'F'])
        })
        || line.split_whitespace().any(sets_integer)
        || shell == Shell::Zsh && zsh_calculates(&line)
}

/// Returns whether a list is declared from a value, which Bash evaluates as code.
pub(super) fn declares_list(line: &str) -> bool {
    let line = join_lines(line);
    commands(&line).any(|words| {
        // After a quote, the value may contain brackets that look like a list.
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

/// Returns whether the text after `%` in a format makes it numeric.
fn is_numeric_format(text: &str) -> bool {
    let kind =
        text.trim_start_matches(|char: char| "-+ #'.*$".contains(char) || char.is_ascii_digit());
    kind.starts_with(|char: char| "cdeEfFgGiouxX".contains(char))
}

/// Removes line continuations.
fn join_lines(line: &str) -> String {
    line.replace("\\\n", "")
        .replace("{{", &PLACEHOLDER.to_string())
}

/// The words of each command, split at symbols even inside quotes.
fn commands(line: &str) -> impl Iterator<Item = Vec<&str>> {
    let commands = line.split([';', '&', '|', '(', ')', '{', '}', '`', '\n']);
    commands.map(|command| {
        let words = command.split_whitespace();
        words.skip_while(|word| may_lead(word)).collect()
    })
}

/// Returns whether a command may follow this word.
fn may_lead(word: &str) -> bool {
    KEYWORDS.contains(&word)
        || is_assignment(word)
        || word.starts_with('-')
        || word.contains(['<', '>'])
}

/// Returns whether the words declare variables with one of these letters, such as `i` in `declare
/// -i`.
fn is_declaration(words: &[&str], letters: &[char]) -> bool {
    let Some((first, rest)) = words.split_first() else {
        return false;
    };
    match strip_quotes(first) {
        "integer" | "float" => letters.contains(&'i'),
        first if DECLARATIONS.contains(&first) => rest
            .iter()
            .map(|word| strip_quotes(word))
            .take_while(|word| word.starts_with(['-', '+']))
            .any(|word| word.contains(letters)),
        _ => false,
    }
}

fn strip_quotes(word: &str) -> &str {
    word.trim_matches(['\\', '"', '\''])
}

fn sets_integer(word: &str) -> bool {
    let name = word.split(['=', '+']).next().unwrap_or_default();
    name.len() < word.len() && INTEGERS.contains(&strip_quotes(name))
}

fn is_assignment(word: &str) -> bool {
    let name = word.split(['=', '+', '[']).next().unwrap_or_default();
    name.len() < word.len() && !name.is_empty() && name.chars().all(is_part)
}

fn is_part(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_'
}
