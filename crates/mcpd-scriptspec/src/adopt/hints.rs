//! Remarks in names and descriptions: types, choices, defaults, and whether a flag repeats.

use std::sync::LazyLock;

use regex::Regex;

use super::{Flag, FlagValue, ValueKind, style};

/// Pattern that is compiled once.
type Pattern = LazyLock<Regex>;

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is valid")
}

static DEFAULT: Pattern = LazyLock::new(|| {
    pattern(r#"(?i)[\[(; ]default(?: value)?(?:: | is |=| )\s*"?([^\])"]+?)"?\s*[;\])]"#)
});
static CHOICES: Pattern = LazyLock::new(|| {
    pattern(r"(?is)[\[(](?:possible values|choices|choose from|allowed values): ?([^\])]*)")
});
static LISTED: Pattern =
    LazyLock::new(|| pattern(r"(?s)Possible values:\s((?:\s*- [\w.-]+:?[^\n]*\n?)+)"));
static LISTED_ITEM: Pattern = LazyLock::new(|| pattern(r"(?m)^\s*- ([\w.+-]+)(?::|$)"));

/// Name of a value without its brackets and dots.
pub(super) fn value_name(text: &str) -> String {
    let text = text.trim_start_matches("[=").trim_start_matches('=');
    let text = text
        .split(' ')
        .next()
        .filter(|first| !first.contains('<'))
        .unwrap_or(text);
    let text = text.trim_end_matches("...");
    let bare = text.trim_matches(['<', '>', '"', '\'']);
    let bare = match bare.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').unwrap_or(bare),
        None if text.starts_with("[=") => bare.trim_end_matches(']'),
        None => bare,
    };
    bare.trim_end_matches("...")
        .trim_matches(['<', '>'])
        .to_owned()
}

/// Type of a value by its name.
pub(super) fn kind_of_name(name: &str) -> ValueKind {
    let lower = name.to_lowercase();
    let inner = name.trim_matches(['{', '}', '(', ')', '[', ']']);
    for separator in ['|', ','] {
        let is_list = inner.contains(separator)
            && (separator == '|' || name.starts_with('{'))
            && inner.split(separator).all(is_choice);
        if is_list {
            return choice(inner.split(separator));
        }
    }
    match &*lower {
        lower if style::INTEGERS.contains(&lower) => ValueKind::Integer,
        lower if style::NUMBERS.contains(&lower) => ValueKind::Number,
        _ => ValueKind::Text,
    }
}

fn is_choice(word: &str) -> bool {
    let word = word.trim();
    // A name of another value in capitals is no choice: `FILE|DIR`.
    !word.is_empty()
        && word
            .chars()
            .all(|char| char.is_ascii_alphanumeric() || "._+-".contains(char))
        && word
            .chars()
            .any(|char| char.is_ascii_lowercase() || char.is_ascii_digit())
}

fn choice<'t>(words: impl Iterator<Item = &'t str>) -> ValueKind {
    let mut choices: Vec<String> = Vec::new();
    for word in words {
        let word = word.trim().trim_matches(['"', '\'', '`']).to_owned();
        if !word.is_empty() && !choices.contains(&word) {
            choices.push(word);
        }
    }
    if choices.is_empty() {
        ValueKind::Text
    } else {
        ValueKind::Choice(choices)
    }
}

/// Returns whether the name of a value means several ones.
pub(super) fn is_list(name: &str) -> bool {
    style::LISTS.contains(&&*name.to_lowercase())
}

/// Adds what the description of a flag says about it. `whole` is the description with its lines.
pub(super) fn apply(flag: &mut Flag, whole: &str) {
    let line = whole.split_whitespace().collect::<Vec<_>>().join(" ");
    let lower = line.to_lowercase();
    flag.repeats |= style::REPEATED.iter().any(|phrase| lower.contains(phrase));
    flag.required |= ["[required]", "(required)", "; required]", "required)"]
        .iter()
        .any(|mark| lower.ends_with(mark) || lower.contains(&mark.replace(')', ").")));
    let bracketed = style::BRACKETED
        .iter()
        .find(|(word, _)| lower.contains(word));
    if let Some((word, true)) = bracketed
        && flag.value.is_none()
    {
        let kind = if *word == "[number]" {
            ValueKind::Number
        } else {
            ValueKind::Text
        };
        flag.value = Some(FlagValue::unnamed(kind));
    }
    let choices = choices(&line, whole);
    if let ValueKind::Choice(_) = choices {
        let value = flag
            .value
            .get_or_insert_with(|| FlagValue::unnamed(ValueKind::Text));
        value.kind = choices;
    }
    if let Some(found) = DEFAULT.captures(&line) {
        flag.default = Some(found[1].trim_matches(['\'', '`']).to_owned());
    }
    // A default that is no number, or not among the choices, shows that the type is another.
    if let (Some(default), Some(value)) = (&flag.default, &mut flag.value) {
        let fits = match &value.kind {
            ValueKind::Integer => default.parse::<i64>().is_ok(),
            ValueKind::Number => default.parse::<f64>().is_ok(),
            ValueKind::Choice(_) | ValueKind::Text => true,
        };
        if !fits {
            value.kind = ValueKind::Text;
        }
    }
}

fn choices(line: &str, whole: &str) -> ValueKind {
    if let Some(found) = LISTED.captures(whole) {
        let items = LISTED_ITEM.captures_iter(found.get(1).map_or("", |list| list.as_str()));
        let items: Vec<_> = items
            .filter_map(|item| Some(item.get(1)?.as_str()))
            .collect();
        return choice(items.into_iter());
    }
    let Some(found) = CHOICES.captures(line) else {
        return ValueKind::Text;
    };
    // commander: `(choices: "a", "b", default: "a")`.
    let list = found.get(1).map_or("", |list| list.as_str());
    let list = list.split("default:").next().unwrap_or(list);
    let is_plain = |word: &str| is_choice(word.trim().trim_matches(['"', '\'', '`']));
    let words = || list.split(',').filter(|word| !word.trim().is_empty());
    if words().all(is_plain) {
        choice(words())
    } else {
        ValueKind::Text
    }
}
