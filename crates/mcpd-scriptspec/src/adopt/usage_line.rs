//! Reader of the usage line: arguments, their order, and what every call must give.

use std::ops::Range;

use super::{Command, CommandLine, Flag, FlagValue, Operand, Position, ValueKind, hints, style};

/// Applies the usage lines, each with its indentation, to what the entries said.
pub(super) fn apply(read: &mut CommandLine, lines: &[(usize, &str)], span: &Range<usize>) {
    let line = first_form(lines);
    let all = words(&line);
    let own = all.iter().take_while(|word| is_plain(word)).count();
    // Without flags or brackets there is no telling where the name ends.
    let skip = if own == all.len() {
        own.min(1)
    } else {
        own.max(1)
    };
    if add_commands(read, lines, &all[..own], span) {
        return;
    }
    let listed: Vec<Operand> = std::mem::take(&mut read.operands);
    let has_flags = !read.flags.is_empty();
    let mut found: Vec<Operand> = Vec::new();
    let mut rest = all.get(skip..).unwrap_or_default().iter().peekable();
    while let Some(word) = rest.next() {
        if let Some(spelling) = flag_spelling(word) {
            let (spelling, joined) = spelling
                .split_once('=')
                .map_or((spelling, false), |(flag, _)| (flag, true));
            let known = read.flags.iter_mut();
            let known = known
                .into_iter()
                .find(|flag| flag.spellings.iter().any(|one| one == spelling));
            let is_required = !word.starts_with(['[', '(']);
            match known {
                Some(flag) => {
                    flag.required |= is_required && flag.value.is_some();
                    if is_required && flag.value.is_some() && !joined {
                        rest.next();
                    }
                }
                None if !has_flags && word.starts_with('[') => {
                    read.flags.extend(of_usage(word, span))
                }
                None => {
                    // Its value would look like an argument.
                    rest.next_if(|next| !next.starts_with(['[', '-']) && is_required && !joined);
                }
            }
            continue;
        }
        if *word == "--" || word.starts_with("[--") {
            continue;
        }
        if let Some(operand) = operand(word, String::new(), span.clone()) {
            let is_known = |known: &Operand| known.name == operand.name;
            match found.iter_mut().find(|known| is_known(known)) {
                // argparse: `name [name ...]`.
                Some(known) => known.repeats |= operand.repeats,
                None if operand.name.is_empty() => {}
                None => found.push(operand),
            }
        }
        if rest.next_if(|next| **next == "...").is_some()
            && let Some(last) = found.last_mut()
        {
            last.repeats = true;
        }
    }
    read.operands = merge(found, listed, !read.commands.is_empty());
}

/// Adds the sub-commands of forms such as `notes [options] add <name>`, and returns whether there
/// are any: arguments are in brackets there, so that a bare word is itself. The arguments are
/// those of the sub-commands.
fn add_commands(
    read: &mut CommandLine,
    lines: &[(usize, &str)],
    name: &[&str],
    span: &Range<usize>,
) -> bool {
    let has_brackets = lines.iter().any(|(_, line)| line.contains('<'));
    let mut found = Vec::new();
    for (_, line) in lines {
        let all = words(line);
        let bare = all
            .iter()
            .skip(name.len())
            .find(|word| !word.starts_with(['[', '-', '(']));
        let command = bare.filter(|word| all.starts_with(name) && is_plain(word));
        found.extend(command.map(|word| (*word).to_owned()));
    }
    // One form with a bare word may have an argument of that name.
    if !has_brackets || found.len() < 2 || found.len() * 2 < lines.len() {
        return false;
    }
    read.operands.clear();
    for name in found {
        if !read.commands.iter().any(|known| known.name == name) {
            read.commands.push(Command {
                name,
                description: String::new(),
                span: span.clone(),
            });
        }
    }
    true
}

/// The first of several forms: lines that are no deeper than the first begin another one.
fn first_form(lines: &[(usize, &str)]) -> String {
    let first = lines.first().map_or("", |(_, text)| text);
    let name = first.split(' ').next().unwrap_or_default();
    let begins_other = |text: &str| {
        let text = text
            .trim_start_matches("or:")
            .trim_start_matches("or ")
            .trim();
        text.split(' ').next() == Some(name) || text.starts_with("or ")
    };
    let others = lines
        .iter()
        .skip(1)
        .take_while(|(_, text)| !begins_other(text) && !text.starts_with("or:"));
    let texts = std::iter::once(first).chain(others.map(|(_, text)| *text));
    texts.collect::<Vec<_>>().join(" ")
}

/// Usage line and list of arguments together: the order of the line, with the
/// descriptions of the list.
fn merge(found: Vec<Operand>, listed: Vec<Operand>, has_commands: bool) -> Vec<Operand> {
    if found.is_empty() || found.len() < listed.len() {
        return listed;
    }
    if has_commands && listed.is_empty() {
        return Vec::new();
    }
    let with_description = |mut operand: Operand| {
        let key = |name: &str| name.to_lowercase();
        let same = listed
            .iter()
            .find(|one| key(&one.name) == key(&operand.name));
        if let Some(same) = same {
            operand.description.clone_from(&same.description);
            operand.span = same.span.clone();
            if operand.choices.is_empty() {
                operand.choices.clone_from(&same.choices);
            }
        }
        operand
    };
    found.into_iter().map(with_description).collect()
}

/// Words of the line: a bracket with all that is in it is one.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut depth, mut start) = (0_usize, None);
    for (place, char) in line.char_indices() {
        match char {
            ' ' | '\t' if depth == 0 => {
                words.extend(start.take().map(|start| &line[start..place]));
                continue;
            }
            '[' | '<' | '(' | '{' => depth += 1,
            ']' | '>' | ')' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        start.get_or_insert(place);
    }
    words.extend(start.map(|start| &line[start..]));
    words
}

/// Returns whether a word may be a part of the program's name.
fn is_plain(word: &str) -> bool {
    let has_capital = word.chars().any(|char| char.is_ascii_lowercase());
    has_capital && !word.starts_with(['[', '<', '(', '{', '-']) && !word.ends_with("...")
}

/// The first flag in a word such as `[-u USER | --all]`.
fn flag_spelling(word: &str) -> Option<&str> {
    let inner = word.trim_start_matches(['[', '(', '{']);
    let spelling = inner.split([' ', ']', ')', '|', ',', '[']).next()?;
    (spelling.starts_with('-') && !spelling.trim_matches('-').is_empty()).then_some(spelling)
}

/// Flags that only the usage line has: `[-u USER]`, or the switches of `[-abc]`.
fn of_usage(word: &str, span: &Range<usize>) -> Vec<Flag> {
    let inner = word
        .trim_end_matches("...")
        .trim_start_matches('[')
        .trim_end_matches(']');
    let flag = |spellings: Vec<String>, value| Flag {
        spellings,
        negation: None,
        value,
        description: String::new(),
        default: None,
        required: false,
        repeats: word.ends_with("..."),
        span: span.clone(),
    };
    let is_cluster = !inner.starts_with("--") && inner[1..].chars().all(char::is_alphanumeric);
    if is_cluster {
        let letters = inner[1..].chars();
        return letters
            .map(|letter| flag(vec![format!("-{letter}")], None))
            .collect();
    }
    let mut found = Vec::new();
    for part in inner.split('|').map(str::trim) {
        let (spelling, value) = part.split_once([' ', '=']).unwrap_or((part, ""));
        let is_flag = spelling.starts_with('-')
            && spelling
                .trim_start_matches('-')
                .chars()
                .all(|char| char.is_alphanumeric() || char == '-');
        if !is_flag || spelling.trim_matches('-').is_empty() {
            continue;
        }
        let value = (!value.is_empty()).then(|| FlagValue {
            position: if part.contains('=') {
                Position::Joined
            } else {
                Position::Separate
            },
            name: hints::value_name(value),
            kind: hints::kind_of_name(&hints::value_name(value)),
            ..FlagValue::unnamed(ValueKind::Text)
        });
        found.push(flag(vec![spelling.to_owned()], value));
    }
    found
}

/// Reads an argument such as `<FILE>...` or `[name ...]`; none for a word that stands for flags.
/// The list of sub-commands `{a,b}` has no name.
pub(super) fn operand(word: &str, description: String, span: Range<usize>) -> Option<Operand> {
    let repeats = word.contains("...");
    let required = !word.starts_with('[');
    let trimmed = word.replace("...", "");
    let inner = trimmed
        .trim()
        .trim_start_matches(['[', '('])
        .trim_end_matches([']', ')', ',']);
    let mut inner = inner.trim().trim_matches(['<', '>']).trim();
    if inner.starts_with('-') || inner.contains(" -") {
        return None;
    }
    let choices = match hints::kind_of_name(inner) {
        ValueKind::Choice(choices) => choices,
        _ => Vec::new(),
    };
    let is_list = inner.starts_with('{');
    if is_list {
        inner = "";
    } else if word.starts_with('<') && word.ends_with('>') {
        // Such a name may have several words: `<jq filter>`.
        inner = inner.split(['[', '|']).next().unwrap_or(inner);
    } else {
        inner = inner
            .split(['[', ' ', '|'])
            .next()
            .unwrap_or(inner)
            .trim_matches(['<', '>', ']']);
    }
    let lower = inner.to_lowercase();
    let is_name = inner.is_empty() || super::option_name(inner).chars().any(char::is_alphanumeric);
    if style::PLACEHOLDERS.contains(&&*lower) || !is_name || inner.is_empty() && !is_list {
        return None;
    }
    Some(Operand {
        name: inner.to_owned(),
        description,
        required,
        repeats,
        choices,
        span,
    })
}
