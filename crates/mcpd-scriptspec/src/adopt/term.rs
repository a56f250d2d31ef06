//! Grammar of the left column: spellings of a flag and its value, as in `-u, --user <NAME>`.

use super::{FlagValue, Position, ValueKind, hints};

/// Length of the longest word in small letters that is one of several values, in bytes.
const MAX_SMALL_WORD: usize = 5;

/// A parsed left column.
#[derive(Debug, Default)]
pub(super) struct Term {
    pub(super) spellings: Vec<String>,
    pub(super) negation: Option<String>,
    pub(super) value: Option<FlagValue>,
    pub(super) repeats: bool,
    /// Length of the column in bytes, without the spaces after it.
    pub(super) len: usize,
}

/// Parses the start of `line`, which begins with a dash; none if that is not a flag.
/// `is_description` tells whether descriptions begin at an offset in the line.
pub(super) fn parse(line: &str, is_description: impl Fn(usize) -> bool) -> Option<Term> {
    let mut term = Term::default();
    let mut at = 0;
    loop {
        at += spelling(&line[at..], &mut term)?;
        at += value(line, at, &mut term, &is_description);
        term.len = at;
        let rest = &line[at..];
        match separator(rest) {
            // A column of spaces may end before a description that begins with a dash.
            Some(len) if !is_spelling(&rest[len..]) => break,
            Some(len) if rest.trim_start().starts_with('-') && is_description(at + len) => break,
            Some(len) => at += len,
            None => break,
        }
    }
    if &line[term.len..] == "," {
        // The next line continues the list of spellings.
        term.len += 1;
    }
    let rest = &line[term.len..];
    // Something else directly after it, such as the comma of a sentence, is no column.
    (rest.is_empty() || rest.starts_with([' ', '\t', ':'])).then_some(term)
}

/// Flags of a line that lists several, such as `-delete -printf FORMAT` of find, each with its
/// place; no flag if one of them has another form, and none for another line.
pub(super) fn row(line: &str) -> Option<Vec<(Term, usize)>> {
    let mut terms: Vec<(Term, usize)> = Vec::new();
    let mut at = 0;
    while at < line.len() {
        let len = token(&line[at..]);
        let word = &line[at..at + len];
        let is_value = is_capital(word.split('[').next().unwrap_or(word)) || word.starts_with('[');
        match terms.last_mut() {
            _ if is_single_dash_word(word) => {
                let mut term = Term::default();
                term.spellings.push(word.to_owned());
                terms.push((term, at));
            }
            Some((term, _)) if is_value => {
                let value = term.value.get_or_insert_with(|| FlagValue {
                    name: hints::value_name(word),
                    words: 0,
                    ..FlagValue::unnamed(hints::kind_of_name(&hints::value_name(word)))
                });
                value.words += 1;
            }
            // Such as `-exec COMMAND ; -ok COMMAND ;`.
            _ => {
                let rest = line[at..].split("  ").next().unwrap_or_default();
                let is_row = !terms.is_empty() && rest.split(' ').any(is_single_dash_word);
                return is_row.then(Vec::new);
            }
        }
        at += len;
        at += usize::from(at < line.len());
        if line[at..].starts_with(' ') {
            return None;
        }
    }
    (terms.len() > 1).then_some(terms)
}

/// Returns whether a word is a flag such as `-delete`.
fn is_single_dash_word(word: &str) -> bool {
    let is_letter = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit();
    let name = word.strip_prefix('-').unwrap_or_default();
    name.len() > 1
        && name.starts_with(is_letter)
        && name
            .chars()
            .all(|char| is_letter(char) || "-_".contains(char))
}

/// Length of what stands between two spellings.
fn separator(rest: &str) -> Option<usize> {
    let spaces = rest.len() - rest.trim_start_matches(' ').len();
    let behind = &rest[spaces..];
    for mark in [", ", ",", "| ", "|", "/ ", "/", "or "] {
        if spaces <= 1 && behind.starts_with(mark) {
            let len = spaces + mark.len();
            return Some(len + rest[len..].len() - rest[len..].trim_start().len());
        }
    }
    // Two words with one dash each, such as `-print -delete`, are two flags.
    let is_word = behind.starts_with('-')
        && !behind.starts_with("--")
        && behind[1..]
            .find([' ', ',', '[', '='])
            .unwrap_or(behind.len() - 1)
            > 1;
    let is_next = spaces == 1 && !is_word || spaces > 1 && behind.starts_with("--");
    (is_next && behind.starts_with('-')).then_some(spaces)
}

fn is_spelling(text: &str) -> bool {
    spelling(text, &mut Term::default()).is_some()
}

fn is_name(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.' | ':' | '+' | '@' | '#' | '?')
}

/// Reads one spelling and returns its length.
fn spelling(text: &str, term: &mut Term) -> Option<usize> {
    let dashes = match text {
        _ if text.starts_with("--") => "--",
        _ if text.starts_with('-') => "-",
        _ => return None,
    };
    let mut at = dashes.len();
    let negated = ["[no-]", "[no]", "(no-)"];
    let prefix = negated
        .iter()
        .find(|prefix| text[at..].starts_with(**prefix));
    at += prefix.map_or(0, |prefix| prefix.len());
    let name: &str = text[at..].split(|char| !is_name(char)).next()?;
    // A number itself, as in `-NUM`.
    if dashes == "-" && matches!(name, "NUM" | "NUMBER" | "DIGITS") {
        return None;
    }
    let name = match name.len() {
        0 | 1 => name,
        _ => name.trim_end_matches(['.', ':']),
    };
    let first = name.chars().next()?;
    if !(first.is_ascii_alphanumeric() || matches!(first, '?' | '#' | '@' | ':')) && dashes == "--"
        || first == '-'
    {
        return None;
    }
    let name = match dashes {
        "-" => short(name),
        _ => name,
    };
    at += name.len();
    let spelling = format!("{dashes}{name}");
    if let Some(prefix) = prefix {
        let no = prefix.trim_matches(['[', ']', '(', ')']);
        term.negation = Some(format!("{dashes}{no}{name}"));
    } else if dashes == "--" && term.is_negation(name) {
        term.negation = Some(spelling);
        return Some(at);
    }
    if !term.spellings.contains(&spelling) {
        term.spellings.push(spelling);
    }
    Some(at)
}

impl Term {
    /// Returns whether `name` switches off an earlier spelling.
    fn is_negation(&self, name: &str) -> bool {
        let positive = name.strip_prefix("no-");
        positive.is_some_and(|positive| {
            let mut spellings = self.spellings.iter();
            spellings.any(|spelling| spelling.trim_start_matches('-') == positive)
        })
    }
}

/// The flag in a spelling with one dash: the whole of `-name`, and the letter of `-nNUM`.
fn short(name: &str) -> &str {
    let first = name.chars().next().map_or(0, char::len_utf8);
    let rest = &name[first..];
    let is_value = rest.len() >= 2 && rest.chars().all(|char| char.is_ascii_uppercase());
    let is_lower = name.starts_with(|char: char| char.is_ascii_lowercase());
    if is_value && is_lower {
        &name[..first]
    } else {
        name
    }
}

/// Reads the value at `at`, if there is one, and returns its length.
fn value(line: &str, at: usize, term: &mut Term, is_description: impl Fn(usize) -> bool) -> usize {
    let rest = &line[at..];
    if let Some(dots) = rest.strip_prefix("...") {
        term.repeats = true;
        return rest.len() - dots.len();
    }
    if let Some(len) = small_words(rest, |offset| is_description(at + offset)) {
        let name = rest[1..len].to_owned();
        term.value = Some(FlagValue {
            words: name.split(' ').count(),
            name,
            ..FlagValue::unnamed(ValueKind::Text)
        });
        return len;
    }
    let Some((position, optional, skip)) = value_form(line, at, &is_description) else {
        return 0;
    };
    let mut end = skip + token(&rest[skip..]);
    let mut name = rest[skip..end].to_owned();
    let (mut words, mut is_list) = (1, first_is_list(&name));
    let first = rest[skip..end].to_owned();
    while let Some(next) = rest[end..].strip_prefix(' ')
        && position == Position::Separate
        && !is_description(at + end + 1)
    {
        let dots = next.starts_with("...");
        let len = if dots { 3 } else { further(next, &first) };
        if len == 0 {
            break;
        }
        let more = &next[..len];
        term.repeats |= more.ends_with("...");
        words += usize::from(!dots && !more.starts_with(['[', '|']));
        is_list |= more.starts_with('[') && more.contains("...");
        name = format!("{name} {more}");
        end += 1 + len;
    }
    term.repeats |= !is_list && name.trim_end_matches([']', '>']).ends_with("...");
    if is_list {
        words = 0;
    }
    // A short spelling says less: `-u, --user[=NAME]`.
    if term.value.is_none() || position == Position::Joined {
        let name = hints::value_name(&name);
        let kind = hints::kind_of_name(&name);
        term.repeats |= hints::is_list(&name);
        term.value = Some(FlagValue {
            name,
            position,
            optional,
            words,
            kind,
        });
    }
    end
}

/// Length of two values in small letters before the column of descriptions, as in `--arg a v`.
fn small_words(rest: &str, is_description: impl Fn(usize) -> bool) -> Option<usize> {
    let column = rest.find("  ")?;
    let names = rest[..column].strip_prefix(' ')?;
    let is_value = |word: &str| {
        word.len() <= MAX_SMALL_WORD && word.chars().all(|char| char.is_ascii_lowercase())
    };
    let is_pair = names.split(' ').count() == 2 && names.split(' ').all(is_value);
    let behind = rest[column..].trim_start();
    let is_column = is_description(rest.len() - behind.len());
    (is_pair && is_column).then_some(column)
}

/// Position of the value at `at`, whether it may be left out, and what stands before it; none if
/// there is no value.
fn value_form(
    line: &str,
    at: usize,
    is_description: impl Fn(usize) -> bool,
) -> Option<(Position, bool, usize)> {
    let rest = &line[at..];
    let form = match rest {
        _ if rest.starts_with("[=") => (Position::Joined, true, 0),
        _ if rest.starts_with("=[") && token(&rest[1..]) == bracket_len(&rest[1..]) => {
            (Position::Joined, true, 1)
        }
        _ if rest.starts_with('=') => (Position::Joined, false, 1),
        _ if rest.starts_with('[') => (Position::Glued, true, 0),
        _ if rest.starts_with(['<', '{']) || is_glued(line, at) => (Position::Glued, false, 0),
        _ if rest.starts_with(' ') && !rest.starts_with("  ") => {
            match separate(&rest[1..], is_description(at + 1)) {
                Some(len) => {
                    let word = &rest[1..=len];
                    let optional = bracket_len(word) == word.len() && word.starts_with('[');
                    (Position::Separate, optional, 1)
                }
                None => return None,
            }
        }
        _ => return None,
    };
    Some(form)
}

/// Returns whether capitals follow a letter with one dash, as in `-nNUM`.
fn is_glued(line: &str, at: usize) -> bool {
    let before = line[..at].chars().next_back();
    let next = line[at..].chars().next();
    before.is_some_and(|char| char.is_ascii_lowercase())
        && next.is_some_and(|char| char.is_ascii_uppercase())
}

/// Returns whether a value is any number of words: `[FILE ...]`.
fn first_is_list(name: &str) -> bool {
    name.starts_with('[') && name.ends_with(" ...]")
}

/// Length of a further word of a value: in capitals or brackets, another one like the `first`, or
/// an alternative behind `|`.
fn further(text: &str, first: &str) -> usize {
    if let Some(other) = text.strip_prefix("| ") {
        let len = token(other);
        return if is_capital(&other[..len]) {
            2 + len
        } else {
            0
        };
    }
    let len = token(text);
    let word = &text[..len];
    let is_next = word == first
        || word.starts_with('<')
        || word.starts_with('[') && !word.contains(": ") && !word[1..].starts_with('-')
        || is_capital(word);
    let behind = &text[len..];
    let is_end = behind.is_empty() || behind.starts_with([',', '\t']) || behind.starts_with("  ");
    // A bracket behind a single space may be the begin of a description.
    let is_end = is_end
        || [" [", " <", " ..."]
            .iter()
            .any(|next| behind.starts_with(next));
    if is_next && is_end { len } else { 0 }
}

/// Length of a value that stands in a word of its own, if `text` begins with one. In the column
/// of descriptions, only what can't be one is a value.
fn separate(text: &str, in_column: bool) -> Option<usize> {
    let len = token(text);
    let word = &text[..len];
    let behind = &text[len..];
    if in_column && !(word.starts_with('<') || is_capital(word) && behind.is_empty()) {
        return None;
    }
    let is_end = behind.is_empty() || behind.starts_with("  ") || behind.starts_with(['\t', ',']);
    let is_before_flag = behind.starts_with(" -") || behind.starts_with(" |");
    let is_repeated =
        behind.starts_with(&format!(" {word}")) || behind.starts_with(&format!(" [{word}"));
    let is_before_flag = is_before_flag || is_repeated;
    let is_value = match word.chars().next()? {
        '<' | '{' => bracket_len(word) > 1,
        '[' => bracket_len(word) > 1 && !word.contains(": "),
        '(' => bracket_len(word) > 1 && word.contains('|'),
        '"' | '\'' => is_end,
        _ if is_capital(word) => {
            let is_before_word = || behind.get(1..).is_some_and(|next| further(next, word) > 0);
            word.len() > 1 || is_end || is_before_flag || is_before_word()
        }
        '-' => false,
        char if char.is_ascii_alphanumeric() || matches!(char, '+' | '@' | '#' | '*') => {
            is_end || is_before_flag
        }
        _ => false,
    };
    is_value.then_some(len)
}

/// Returns whether a word has capitals and no small letters.
fn is_capital(word: &str) -> bool {
    let word = word.trim_end_matches("(s)");
    word.starts_with(|char: char| char.is_ascii_uppercase())
        && !word.chars().any(|char| char.is_ascii_lowercase())
        && !word.ends_with([':', '.', ';']) | word.ends_with("...")
}

/// Length of a word: up to a space or a comma outside of brackets.
fn token(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut quote = None;
    for (place, char) in text.char_indices() {
        match char {
            _ if quote == Some(char) => quote = None,
            _ if quote.is_some() => {}
            '"' if depth == 0 => quote = Some(char),
            '<' | '[' | '{' | '(' => depth += 1,
            '>' | ']' | '}' | ')' => depth = depth.saturating_sub(1),
            ' ' | '\t' | ',' if depth == 0 => return place,
            _ => {}
        }
    }
    // A bracket that never closes is no bracket.
    match depth {
        0 if quote.is_none() => text.len(),
        _ => text.find([' ', '\t', ',']).unwrap_or(text.len()),
    }
}

/// Length of the bracket at the start of `text`; 0 without one.
fn bracket_len(text: &str) -> usize {
    let mut depth = 0_usize;
    for (place, char) in text.char_indices() {
        match char {
            '<' | '[' | '{' | '(' => depth += 1,
            '>' | ']' | '}' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return if place == 0 { 0 } else { place + 1 };
        }
    }
    0
}

impl FlagValue {
    /// A value without a name, in the next word.
    pub(super) fn unnamed(kind: ValueKind) -> Self {
        Self {
            name: String::new(),
            position: Position::Separate,
            optional: false,
            words: 1,
            kind,
        }
    }
}
