//! Parser of argument templates: fixed words of an option on the command line, with one
//! placeholder for its value. No shell reads them, so text that only a shell could read is a fault.

use crate::{
    spec::{Argument, CommandWord, ListForm, Template, ValueType},
    text,
};

/// Help for a template without a meaning.
const FORMS: &str = "use a flag such as `--user` or `-u`, words with `{}` for the value such as `-name {}` or `if={}`, `positional`, `operand`, or `plain` for a script without flags";

/// A fault in a template: a message and its help.
#[derive(Debug)]
pub(super) struct TemplateFault {
    pub(super) message: String,
    pub(super) help: String,
}

impl TemplateFault {
    pub(super) fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            help: help.into(),
        }
    }
}

/// Reads the words of an option of this type.
pub(super) fn read(words: &str, value_type: &ValueType) -> Result<Argument, TemplateFault> {
    if words.chars().any(char::is_control) {
        let message = "an argument contains a control character";
        return Err(TemplateFault::new(message, "separate words by one space"));
    }
    let is_boolean = matches!(value_type, ValueType::Boolean);
    if is_boolean && !words.contains('{') {
        return read_switch(words);
    }
    if !words.contains(['{', '}']) {
        let name = text::name(words);
        return Err(match is_fixed(words) {
            true => TemplateFault::new(
                format!("{name} has no place for the value"),
                format!("write `{words} {{}}` for two words, or `{words}{{}}` for one"),
            ),
            false => TemplateFault::new(format!("{name} is not a kind of argument"), FORMS),
        });
    }
    let template = read_template(words, value_type)?;
    let starts_option = |word: &String| word.bytes().all(|byte| byte == b'-');
    let is_free = matches!(
        value_type,
        ValueType::String { .. }
            | ValueType::Any { .. }
            | ValueType::Array { .. }
            | ValueType::Object { .. }
    );
    let is_flag = template.before.is_empty() && !template.prefix.is_empty();
    if is_flag && starts_option(&template.prefix) && is_free {
        return Err(TemplateFault::new(
            format!("{} makes a flag of any value", text::name(words)),
            "declare the possible flags as an enum",
        ));
    }
    if template.before.first().is_some_and(starts_option) {
        return Err(TemplateFault::new(
            format!("{} does not begin with a flag", text::name(words)),
            "for a value after `--`, use `positional`",
        ));
    }
    Ok(Argument::Template(template))
}

/// Returns whether text looks like fixed words: it begins with a flag, or with a name and `=`.
fn is_fixed(words: &str) -> bool {
    let first = words.split(' ').next().unwrap_or_default();
    let name = first.trim_start_matches(['-', '+']);
    !name.is_empty() && (name.len() < first.len() || first.contains('='))
}

/// Reads the fixed words of a boolean, for `true` and after a `/` those for `false`.
fn read_switch(words: &str) -> Result<Argument, TemplateFault> {
    let (on, off) = two_forms(words);
    let forms = [Some(on), off].into_iter().flatten();
    if let Some(form) = forms.clone().find(|form| !is_fixed(form)) {
        return Err(TemplateFault::new(
            format!("{} is not a flag", text::name(form)),
            "use a flag such as `--color`, `-name` or `+x`, or both of `--color/--no-color`",
        ));
    }
    let mut forms = forms.map(|form| fixed_words(form, form));
    Ok(Argument::Switch {
        on: forms.next().unwrap_or_else(|| Ok(Vec::new()))?,
        off: forms.next().unwrap_or_else(|| Ok(Vec::new()))?,
    })
}

/// Splits `--color/--no-color` into the flags for `true` and for `false`.
fn two_forms(words: &str) -> (&str, Option<&str>) {
    let is_flag = |word: &str| word.starts_with(['-', '+']);
    match words.split_once('/') {
        Some((on, off)) if is_flag(on) && is_flag(off) => (on, Some(off)),
        _ => (words, None),
    }
}

/// Returns the flags of an argument, for a comparison with those of others.
pub(super) fn flags(words: &str) -> impl Iterator<Item = &str> {
    let (first, second) = match words.split_once('{') {
        Some((fixed, _)) => (fixed.trim_end_matches([' ', '=']), None),
        None => two_forms(words),
    };
    let flags = [Some(first), second].into_iter().flatten();
    flags.filter(move |flag| {
        flag.starts_with(['-', '+']) || (words.contains('{') && !flag.is_empty())
    })
}

/// Splits fixed text into words.
fn fixed_words(fixed: &str, whole: &str) -> Result<Vec<String>, TemplateFault> {
    fixed
        .split(' ')
        .map(|word| match word {
            "" => Err(TemplateFault::new(
                format!("{} has an empty word", text::name(whole)),
                "separate words by one space",
            )),
            _ => check_shell(word).map(|()| word.to_owned()),
        })
        .collect()
}

/// Refuses quotes, expansions and operators of a shell.
fn check_shell(word: &str) -> Result<(), TemplateFault> {
    const HELP: &str = "no shell reads the command line: write each word as the program gets it";
    if let Some(char) = word.chars().find(|char| "'\"`$\\".contains(*char)) {
        let message = format!(
            "{} contains `{char}`, which is for shells",
            text::name(word)
        );
        return Err(TemplateFault::new(message, HELP));
    }
    check_operator(word)
}

/// Refuses a word that is an operator of a shell.
fn check_operator(word: &str) -> Result<(), TemplateFault> {
    let is_operator = matches!(
        word,
        "|" | "||" | "&" | "&&" | "2>&1" | "<" | ">" | ">>" | "<<"
    );
    match is_operator {
        true => Err(TemplateFault::new(
            format!("{} is an operator of shells", text::name(word)),
            "no shell reads the command line: use a script that runs the programs",
        )),
        false => Ok(()),
    }
}

/// Reads words with one placeholder.
fn read_template(words: &str, value_type: &ValueType) -> Result<Template, TemplateFault> {
    let pieces = pieces(words)?;
    let mut template = Template {
        before: Vec::new(),
        prefix: String::new(),
        suffix: String::new(),
        after: Vec::new(),
        list: ListForm::Repeated,
    };
    let Some(place) = pieces.iter().position(|piece| piece.1.is_some()) else {
        return Err(TemplateFault::new(
            format!("{} has no place for the value", text::name(words)),
            "write `{}` where the value stands",
        ));
    };
    let (before, form) = &pieces[place];
    let after: String = pieces[place + 1..]
        .iter()
        .map(|piece| piece.0.as_str())
        .collect();
    if pieces[place + 1..].iter().any(|piece| piece.1.is_some()) {
        return Err(TemplateFault::new(
            format!("{} has two places for one value", text::name(words)),
            "write `{}` once",
        ));
    }
    if let Some(form) = form {
        template.list = *form;
    }
    if let Some((fixed, prefix)) = before.rsplit_once(' ') {
        template.before = fixed_words(fixed, words)?;
        template.prefix = prefix.to_owned();
    } else {
        template.prefix.clone_from(before);
    }
    if let Some((suffix, fixed)) = after.split_once(' ') {
        template.after = fixed_words(fixed, words)?;
        template.suffix = suffix.to_owned();
    } else {
        template.suffix = after;
    }
    check_shell(&template.prefix)?;
    check_shell(&template.suffix)?;
    check_list(&template, value_type)?;
    Ok(template)
}

/// Checks the form of a list against the type and the words around it.
fn check_list(template: &Template, value_type: &ValueType) -> Result<(), TemplateFault> {
    let is_list = matches!(value_type, ValueType::Array { .. });
    let is_whole = template.prefix.is_empty() && template.suffix.is_empty();
    match template.list {
        ListForm::Repeated => Ok(()),
        _ if !is_list => Err(TemplateFault::new(
            "only a list has several values",
            "write `{}`, or declare the option as an array",
        )),
        ListForm::Spread if !is_whole || template.before.is_empty() => Err(TemplateFault::new(
            "`{...}` is not a word of its own after a flag",
            "write it as in `--names {...}`; `{}` alone is one word for each element",
        )),
        ListForm::Joined(_) | ListForm::Spread => Ok(()),
    }
}

/// Pieces of a text: each is fixed text, and the placeholder after it, if there is one.
fn pieces(words: &str) -> Result<Vec<(String, Option<ListForm>)>, TemplateFault> {
    let unbalanced = || {
        TemplateFault::new(
            format!("{} has a brace without its pair", text::name(words)),
            "write `{}` for the value, and `{{` or `}}` for a brace",
        )
    };
    let (mut pieces, mut fixed, mut rest) = (Vec::new(), String::new(), words);
    while let Some(at) = rest.find(['{', '}']) {
        let (before, brace) = rest.split_at(at);
        fixed += before;
        if let Some(after) = brace
            .strip_prefix("{{")
            .or_else(|| brace.strip_prefix("}}"))
        {
            fixed.push_str(&brace[..1]);
            rest = after;
            continue;
        }
        let (form, after) = brace
            .strip_prefix('{')
            .and_then(|inside| inside.split_once('}'))
            .ok_or_else(unbalanced)?;
        pieces.push((std::mem::take(&mut fixed), Some(list_form(form)?)));
        rest = after;
    }
    pieces.push((fixed + rest, None));
    Ok(pieces)
}

/// Reads the text between the braces of a placeholder.
fn list_form(form: &str) -> Result<ListForm, TemplateFault> {
    let mut chars = form.chars();
    match (form, chars.next(), chars.next()) {
        ("", ..) => Ok(ListForm::Repeated),
        ("...", ..) => Ok(ListForm::Spread),
        (_, Some(char), None) if char.is_ascii_punctuation() => Ok(ListForm::Joined(char)),
        _ => Err(TemplateFault::new(
            format!("`{{{form}}}` is not a placeholder"),
            "write `{}` for the value, `{,}` for a list with commas, `{...}` for a list of words, and `{{` for a brace",
        )),
    }
}

/// Reads a word of the command line: fixed text, `{NAME}` or `{}`.
pub(super) fn command_word(word: &str) -> Result<CommandWord, TemplateFault> {
    let name = word
        .strip_prefix('{')
        .and_then(|word| word.strip_suffix('}'));
    match name.filter(|name| !name.contains(['{', '}'])) {
        Some("") => return Ok(CommandWord::Rest),
        Some(name) => return Ok(CommandWord::Option(name.to_owned())),
        None => check_operator(word)?,
    }
    if word.is_empty() || word.contains(char::is_control) {
        return Err(TemplateFault::new(
            "a word of the command line is empty, or has a control character",
            "write each word as the program gets it",
        ));
    }
    let unescaped = word.replace("{{", "").replace("}}", "");
    if unescaped.contains(['{', '}']) {
        return Err(TemplateFault::new(
            format!("{} is neither fixed nor one option", text::name(word)),
            "write the text around a value in the `argument` of its option, and `{{` or `}}` for a brace",
        ));
    }
    let fixed = word.replace("{{", "{").replace("}}", "}");
    Ok(CommandWord::Fixed(fixed))
}
