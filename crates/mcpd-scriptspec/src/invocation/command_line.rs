//! Command line of a script, built from values. No shell parses it, and no value in
//! it is mistaken for a flag.

use std::borrow::Cow;

use super::ArgumentFault;
use crate::{
    json,
    spec::{Argument, ScriptOption, ValueType},
    text,
    value::{self, Accepted},
};

/// Maximum length of an argument, in bytes: the limit of Linux.
const MAX_ARGUMENT: usize = 128 * 1024 - 1;

/// Maximum length of all arguments, in bytes, including the overhead of
/// each: its NUL and its pointer.
const MAX_ARGUMENTS: usize = 256 * 1024;
const PER_ARGUMENT: usize = 1 + size_of::<usize>();

/// Builder of the command line, option by option in declared order.
pub(super) struct CommandLine<'s> {
    flags: Vec<String>,
    positionals: Vec<String>,
    plain: Vec<String>,
    /// `--` always stands before the positionals.
    is_separated: bool,
    /// The first omitted positional: later ones would take its place.
    left_out: Option<&'s ScriptOption>,
    /// Remaining bytes for arguments.
    room: usize,
}

impl Default for CommandLine<'_> {
    fn default() -> Self {
        Self {
            flags: Vec::new(),
            positionals: Vec::new(),
            plain: Vec::new(),
            is_separated: false,
            left_out: None,
            room: MAX_ARGUMENTS,
        }
    }
}

impl<'s> CommandLine<'s> {
    /// Adds the value of an option; does nothing without a value.
    pub(super) fn pass(
        &mut self,
        option: &'s ScriptOption,
        accepted: Option<&Accepted<'_>>,
    ) -> Result<(), ArgumentFault> {
        let Some(argument) = &option.argument else {
            return Ok(());
        };
        let texts = match accepted {
            None => Vec::new(),
            Some(accepted) => texts(option, accepted).ok_or_else(|| too_long(option))?,
        };
        if texts.iter().any(|text| text.contains('\0')) {
            let expected = "text without a NUL character, because it is passed on the command line";
            return Err(fault(option, expected, "one"));
        }
        match argument {
            Argument::Flag(flag) if matches!(option.value_type, ValueType::Boolean) => {
                let is_set = texts.iter().any(|text| text == "true");
                self.add(option, |line| &mut line.flags, is_set.then(|| flag.clone()))
            }
            Argument::Flag(flag) => {
                let words = texts.iter().flat_map(|text| words(flag, text));
                self.add(option, |line| &mut line.flags, words)
            }
            Argument::Positional | Argument::Operand => {
                self.is_separated |= matches!(argument, Argument::Positional);
                self.check_gap(option, texts.is_empty())?;
                let texts = texts.into_iter().map(Cow::into_owned);
                self.add(option, |line| &mut line.positionals, texts)
            }
            // An empty word keeps the place of an absent value; a list has
            // as many words as elements.
            Argument::Plain | Argument::PlainPercentEncoded
                if texts.is_empty() && !matches!(option.value_type, ValueType::Array { .. }) =>
            {
                self.add(option, |line| &mut line.plain, [String::new()])
            }
            Argument::Plain => {
                let texts = texts.into_iter().map(Cow::into_owned);
                self.add(option, |line| &mut line.plain, texts)
            }
            Argument::PlainPercentEncoded => {
                let texts = texts.iter().map(|text| percent_encode(text));
                self.add(option, |line| &mut line.plain, texts)
            }
        }
    }

    fn check_gap(
        &mut self,
        option: &'s ScriptOption,
        is_left_out: bool,
    ) -> Result<(), ArgumentFault> {
        match self.left_out {
            Some(gap) if !is_left_out => {
                let expected = format!(
                    "{} if option {} is given, which follows it on the command line",
                    value::expectation(&gap.value_type),
                    text::name(&option.name),
                );
                return Err(fault(gap, &expected, "nothing"));
            }
            None if is_left_out => self.left_out = Some(option),
            _ => {}
        }
        Ok(())
    }

    fn add(
        &mut self,
        option: &ScriptOption,
        part: fn(&mut Self) -> &mut Vec<String>,
        words: impl IntoIterator<Item = String>,
    ) -> Result<(), ArgumentFault> {
        for word in words {
            let room = self.room.checked_sub(word.len() + PER_ARGUMENT);
            match room.filter(|_| word.len() <= MAX_ARGUMENT) {
                Some(room) => self.room = room,
                None => return Err(too_long(option)),
            }
            part(self).push(word);
        }
        Ok(())
    }

    /// Returns the words of the command line: subcommand, flags, `--` so that no positional is
    /// mistaken for a flag, and positionals.
    pub(super) fn finish(self, subcommand: &[String]) -> Vec<String> {
        let mut words = subcommand.to_vec();
        words.extend(self.flags);
        let is_flag_like = |word: &String| word.starts_with(['-', '+']);
        let is_separated = self.is_separated && !self.positionals.is_empty();
        if is_separated || self.positionals.iter().any(is_flag_like) {
            words.push("--".to_owned());
        }
        words.extend(self.positionals);
        words.extend(self.plain);
        words
    }
}

/// The elements of a list, or the single text of another value; `None` if
/// it would exceed the limit.
pub(super) fn texts<'a>(
    option: &ScriptOption,
    accepted: &'a Accepted<'_>,
) -> Option<Vec<Cow<'a, str>>> {
    if !matches!(option.value_type, ValueType::Array { .. }) {
        return Some(vec![Cow::Borrowed(accepted.text.as_deref()?)]);
    }
    let document = json::read(&accepted.json, 0).ok()?;
    let mut room = MAX_ARGUMENTS;
    let texts = document.root.elements().map(|element| {
        let text = value::as_it_is(element).text?;
        // Numbers with an exponent become longer here, so the total is limited.
        room = room.checked_sub(text.len() + PER_ARGUMENT)?;
        Some(text)
    });
    texts.collect()
}

/// A flag and its value: two words for a short flag, because not every script accepts one word,
/// unless the value looks like a flag itself.
fn words(flag: &str, text: &str) -> Vec<String> {
    if flag.starts_with("--") {
        vec![format!("{flag}={text}")]
    } else if text.starts_with('-') {
        vec![format!("{flag}{text}")]
    } else {
        vec![flag.to_owned(), text.to_owned()]
    }
}

fn too_long(option: &ScriptOption) -> ArgumentFault {
    let expected = format!(
        "at most {MAX_ARGUMENT} bytes, and {MAX_ARGUMENTS} for all arguments together, because it is passed on the command line"
    );
    fault(option, &expected, "more")
}

fn fault(option: &ScriptOption, expected: &str, got: &str) -> ArgumentFault {
    ArgumentFault {
        option: Some(option.name.clone()),
        expected: expected.to_owned(),
        got: got.to_owned(),
    }
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
