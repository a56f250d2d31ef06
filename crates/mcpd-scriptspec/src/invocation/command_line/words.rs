//! Words of one option: its value in the declared form. A value that would change the meaning of a
//! word beside it is refused.

use std::borrow::Cow;

use super::{ArgumentFault, fault};
use crate::{
    spec::{Argument, ListForm, ScriptOption, Template, ValueType},
    text,
};

/// Returns the words that pass the texts of an option: one text, or those of the elements of a
/// list.
pub(super) fn of(
    option: &ScriptOption,
    argument: &Argument,
    texts: &[Cow<'_, str>],
) -> Result<Vec<String>, ArgumentFault> {
    let is_true = texts.iter().any(|text| text == "true");
    let words = match argument {
        Argument::Flag(flag) if matches!(option.value_type, ValueType::Boolean) => {
            is_true.then(|| flag.clone()).into_iter().collect()
        }
        Argument::Flag(flag) => texts
            .iter()
            .flat_map(|text| flag_words(flag, text))
            .collect(),
        Argument::Switch { on, .. } if is_true => on.clone(),
        Argument::Switch { .. } if texts.is_empty() => Vec::new(),
        Argument::Switch { off, .. } => off.clone(),
        Argument::Positional | Argument::Operand => {
            texts.iter().map(|text| (**text).to_owned()).collect()
        }
        // An empty word keeps the place of an absent value; a list has
        // as many words as elements.
        Argument::Plain | Argument::PlainPercentEncoded
            if texts.is_empty() && !matches!(option.value_type, ValueType::Array { .. }) =>
        {
            vec![String::new()]
        }
        Argument::Plain => texts.iter().map(|text| (**text).to_owned()).collect(),
        Argument::PlainPercentEncoded => texts.iter().map(|text| percent_encode(text)).collect(),
        Argument::Template(template) => template_words(option, template, texts)?,
    };
    Ok(words)
}

/// A flag and its value: two words for a short flag, because not every script accepts one word,
/// unless the value looks like a flag itself.
fn flag_words(flag: &str, text: &str) -> Vec<String> {
    if flag.starts_with("--") {
        vec![format!("{flag}={text}")]
    } else if text.starts_with('-') {
        vec![format!("{flag}{text}")]
    } else {
        vec![flag.to_owned(), text.to_owned()]
    }
}

/// Inserts the texts into the words of a template.
fn template_words(
    option: &ScriptOption,
    template: &Template,
    texts: &[Cow<'_, str>],
) -> Result<Vec<String>, ArgumentFault> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    match template.list {
        ListForm::Repeated => {
            let mut words = Vec::new();
            for text in texts {
                words.extend(around(option, template, [&**text])?);
            }
            Ok(words)
        }
        ListForm::Joined(separator) => {
            if texts.iter().any(|text| text.contains(separator)) {
                let expected = format!("elements without `{separator}`, which separates them");
                return Err(fault(option, &expected, "one with it"));
            }
            let joined = texts.join(&*String::from(separator));
            around(option, template, [&*joined])
        }
        ListForm::Spread => {
            if texts.iter().any(|text| text.starts_with('-')) {
                let expected = "elements that do not begin with `-`, because one that does would be a flag on the command line";
                return Err(fault(option, expected, "one that does"));
            }
            around(option, template, texts.iter().map(|text| &**text))
        }
    }
}

/// Returns the words of a template around texts, each of which is in a word of its own.
fn around<'t>(
    option: &ScriptOption,
    template: &Template,
    texts: impl IntoIterator<Item = &'t str>,
) -> Result<Vec<String>, ArgumentFault> {
    let Template {
        before,
        prefix,
        suffix,
        after,
        ..
    } = template;
    let mut words = before.clone();
    for text in texts {
        // With `-{}`, `-5` would be another flag.
        let is_bare =
            before.is_empty() && !prefix.is_empty() && prefix.bytes().all(|byte| byte == b'-');
        if is_bare && text.starts_with('-') {
            let expected = "a value that does not begin with `-`, because it directly follows one";
            return Err(fault(option, expected, "one that does"));
        }
        // A program that finds `-o` without a value takes the next word for it.
        let is_glued = prefix.starts_with('-') && !prefix.ends_with('=') && suffix.is_empty();
        if is_glued && before.is_empty() && text.is_empty() {
            let expected = format!(
                "text that is not empty, because it follows {} in one word",
                text::name(prefix)
            );
            return Err(fault(option, &expected, "an empty one"));
        }
        words.push(format!("{prefix}{text}{suffix}"));
    }
    words.extend(after.iter().cloned());
    Ok(words)
}

/// Percent-encodes text for a URL: all bytes but the unreserved characters of RFC 3986.
fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => encoded += &format!("%{byte:02X}"),
        }
    }
    encoded
}
