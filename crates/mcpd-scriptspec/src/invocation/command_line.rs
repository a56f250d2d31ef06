//! Command line of a script, built from values. No shell parses it, and no value in
//! it is mistaken for a flag.

use std::{borrow::Cow, collections::BTreeMap};

use super::ArgumentFault;
use crate::{
    json,
    spec::{Argument, CommandWord, ListForm, ScriptOption, ScriptSpec, ValueType},
    text,
    value::{self, Accepted},
};

mod words;

/// Maximum length of an argument, in bytes: the limit of Linux.
const MAX_ARGUMENT: usize = 128 * 1024 - 1;

/// Maximum length of all arguments, in bytes, including the overhead of
/// each: its NUL and its pointer.
const MAX_ARGUMENTS: usize = 256 * 1024;
const PER_ARGUMENT: usize = 1 + size_of::<usize>();

/// Builder of the command line, option by option in declared order.
pub(super) struct CommandLine<'s> {
    spec: &'s ScriptSpec,
    flags: Vec<String>,
    positionals: Vec<String>,
    plain: Vec<String>,
    /// Words of options with a place of their own, by name.
    placed: BTreeMap<&'s str, Vec<String>>,
    /// `--` always stands before the positionals.
    is_separated: bool,
    /// The first omitted positional: later ones would take its place.
    left_out: Option<&'s ScriptOption>,
    /// The first given positional.
    given: Option<&'s ScriptOption>,
    /// Remaining bytes for arguments.
    room: usize,
}

/// Group of words on the command line.
#[derive(Clone, Copy)]
enum Group {
    Flags,
    Positionals,
    Plain,
}

impl<'s> CommandLine<'s> {
    pub(super) fn new(spec: &'s ScriptSpec) -> Self {
        Self {
            spec,
            flags: Vec::new(),
            positionals: Vec::new(),
            plain: Vec::new(),
            placed: BTreeMap::new(),
            is_separated: false,
            left_out: None,
            given: None,
            room: MAX_ARGUMENTS,
        }
    }

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
        let words = words::of(option, argument, &texts)?;
        let group = match argument {
            Argument::Plain | Argument::PlainPercentEncoded => Group::Plain,
            _ if argument.is_operand() => Group::Positionals,
            _ => Group::Flags,
        };
        if self.has_place(option) {
            self.check_protection(option, &words)?;
        } else {
            // The words of such a list end at the next flag, or here.
            let is_open = matches!(argument, Argument::Template(template) if template.list == ListForm::Spread);
            self.is_separated |= is_open || matches!(argument, Argument::Positional);
            if matches!(group, Group::Positionals) {
                check_gap(&mut self.left_out, option, words.is_empty())?;
                self.given = self.given.or((!words.is_empty()).then_some(option));
            }
        }
        self.add(option, group, words)
    }

    fn has_place(&self, option: &ScriptOption) -> bool {
        self.place_of(option).is_some()
    }

    /// Returns the index of the option's word in the declared command line.
    fn place_of(&self, option: &ScriptOption) -> Option<usize> {
        let is_word =
            |word: &CommandWord| matches!(word, CommandWord::Option(name) if *name == option.name);
        self.spec.command_line.iter().position(is_word)
    }

    /// Checks that no word of an operand among flags is taken for one of them.
    fn check_protection(
        &self,
        option: &ScriptOption,
        words: &[String],
    ) -> Result<(), ArgumentFault> {
        let before = &self.spec.command_line[..self.place_of(option).unwrap_or_default()];
        let is_end = |word: &CommandWord| matches!(word, CommandWord::Fixed(word) if word == "--");
        if is_operand(option)
            && !before.iter().any(is_end)
            && words.iter().any(|word| is_flag_like(word))
        {
            let expected =
                "text that does not begin with `-` or `+`, because flags can stand at its place";
            return Err(fault(option, expected, "one that does"));
        }
        Ok(())
    }

    fn add(
        &mut self,
        option: &'s ScriptOption,
        group: Group,
        words: Vec<String>,
    ) -> Result<(), ArgumentFault> {
        for word in &words {
            let room = self.room.checked_sub(word.len() + PER_ARGUMENT);
            match room.filter(|_| word.len() <= MAX_ARGUMENT) {
                Some(room) => self.room = room,
                None => return Err(too_long(option)),
            }
        }
        if self.has_place(option) {
            self.placed.insert(&option.name, words);
            return Ok(());
        }
        let group = match group {
            Group::Flags => &mut self.flags,
            Group::Positionals => &mut self.positionals,
            Group::Plain => &mut self.plain,
        };
        group.extend(words);
        Ok(())
    }

    /// Returns the words of the command line: subcommand, and then the declared command line.
    pub(super) fn finish(mut self) -> Result<Vec<String>, ArgumentFault> {
        let mut words = self.spec.subcommand.clone();
        let mut left_out = None;
        let mut has_rest = false;
        for word in &self.spec.command_line {
            match word {
                CommandWord::Fixed(word) => {
                    left_out = None;
                    words.push(word.clone());
                }
                CommandWord::Option(name) => {
                    let placed = self.placed.remove(name.as_str()).unwrap_or_default();
                    let option = self.spec.options.iter().find(|option| option.name == *name);
                    match option.filter(|option| is_operand(option)) {
                        Some(option) => check_gap(&mut left_out, option, placed.is_empty())?,
                        None if placed.is_empty() => {}
                        None => left_out = None,
                    }
                    words.extend(placed);
                }
                CommandWord::Rest => {
                    has_rest = true;
                    if let Some(given) = self.given {
                        check_gap(&mut left_out, given, false)?;
                    }
                    self.append_rest(&mut words);
                }
            }
        }
        if !has_rest {
            self.append_rest(&mut words);
        }
        Ok(words)
    }

    /// Appends the words of options without a place of their own: flags, `--` so that no
    /// positional is mistaken for a flag, and positionals.
    fn append_rest(&mut self, words: &mut Vec<String>) {
        words.append(&mut self.flags);
        let is_separated = self.is_separated && !self.positionals.is_empty();
        if is_separated || self.positionals.iter().any(|word| is_flag_like(word)) {
            words.push("--".to_owned());
        }
        words.append(&mut self.positionals);
        words.append(&mut self.plain);
    }
}

fn is_operand(option: &ScriptOption) -> bool {
    option.argument.as_ref().is_some_and(Argument::is_operand)
}

fn is_flag_like(word: &str) -> bool {
    word.starts_with(['-', '+'])
}

/// Checks that an operand does not take the place of an omitted one before it.
fn check_gap<'s>(
    left_out: &mut Option<&'s ScriptOption>,
    option: &'s ScriptOption,
    is_left_out: bool,
) -> Result<(), ArgumentFault> {
    match *left_out {
        Some(gap) if !is_left_out => {
            let expected = format!(
                "{} if option {} is given, which follows it on the command line",
                value::expectation(&gap.value_type),
                text::name(&option.name),
            );
            return Err(fault(gap, &expected, "nothing"));
        }
        None if is_left_out => *left_out = Some(option),
        _ => {}
    }
    Ok(())
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
