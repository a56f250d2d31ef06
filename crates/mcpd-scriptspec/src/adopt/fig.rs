//! Reader of completion specs in the form of Fig, as JSON: `{"name": "tool", "options": [{"name":
//! ["-v", "--verbose"]}]}`. Generators are code, which JSON does not have, so what they complete
//! is text.

use super::{Command, CommandLine, Flag, FlagValue, Operand, Position, Unread, ValueKind};
use crate::json::{self, Kind, Value};

/// Reads the spec of a program. Its sub-commands are named, and their options not read.
pub(super) fn read(text: &str) -> CommandLine {
    let mut read = CommandLine::default();
    let root = match json::read(text, 0) {
        Ok(document) => document.root,
        Err(error) => {
            read.unread.push(Unread {
                message: format!("this is no JSON: {}", error.message),
                span: error.span,
            });
            return read;
        }
    };
    read.description = string(root, "description");
    for option in list(root, "options") {
        match flag(option) {
            Some(flag) => read.add(flag),
            None => read.unread.push(Unread {
                span: option.span(),
                message: "this option has no name that begins with `-` or `+`".to_owned(),
            }),
        }
    }
    read.operands = list(root, "args").map(operand).collect();
    read.commands = list(root, "subcommands").filter_map(command).collect();
    read
}

fn flag(option: Value<'_>) -> Option<Flag> {
    let spellings = list(option, "name").filter_map(|name| name.string());
    let spellings: Vec<String> = spellings
        .filter(|name| name.starts_with(['-', '+']))
        .map(String::from)
        .collect();
    if spellings.is_empty() {
        return None;
    }
    let arguments: Vec<_> = list(option, "args").collect();
    let is_joined = ["requiresSeparator", "requiresEquals"]
        .iter()
        .any(|key| member(option, key).is_some_and(|value| value.text() != "false"));
    let value = arguments.first().map(|first| FlagValue {
        name: string(*first, "name").unwrap_or_default(),
        position: match is_joined {
            true => Position::Joined,
            false => Position::Separate,
        },
        optional: is_true(*first, "isOptional"),
        words: match is_true(*first, "isVariadic") {
            true => 0,
            false => arguments.len(),
        },
        kind: kind(*first),
    });
    Some(Flag {
        spellings,
        negation: None,
        value,
        description: string(option, "description").unwrap_or_default(),
        default: arguments
            .first()
            .and_then(|first| string(*first, "default")),
        required: is_true(option, "isRequired"),
        // A number is how often at most.
        repeats: member(option, "isRepeatable")
            .is_some_and(|value| value.boolean() == Some(true) || value.kind() == Kind::Number),
        span: option.span(),
    })
}

fn operand(argument: Value<'_>) -> Operand {
    Operand {
        name: string(argument, "name").unwrap_or_else(|| "argument".to_owned()),
        description: string(argument, "description").unwrap_or_default(),
        required: !is_true(argument, "isOptional"),
        repeats: is_true(argument, "isVariadic"),
        choices: match kind(argument) {
            ValueKind::Choice(choices) => choices,
            _ => Vec::new(),
        },
        span: argument.span(),
    }
}

fn command(command: Value<'_>) -> Option<Command> {
    let name = list(command, "name").find_map(|name| name.string())?;
    Some(Command {
        name: name.into_owned(),
        description: string(command, "description").unwrap_or_default(),
        span: command.span(),
    })
}

/// The suggestions of an argument, unless it takes other text as well.
fn kind(argument: Value<'_>) -> ValueKind {
    let takes_more = ["generators", "template"]
        .iter()
        .any(|key| member(argument, key).is_some());
    let suggestions = list(argument, "suggestions").filter_map(|suggestion| {
        let name = list(suggestion, "name").find_map(|name| name.string());
        Some(suggestion.string().or(name)?.into_owned())
    });
    let suggestions: Vec<_> = suggestions.collect();
    match suggestions.is_empty() || takes_more {
        true => ValueKind::Text,
        false => ValueKind::Choice(suggestions),
    }
}

fn member<'a>(value: Value<'a>, key: &str) -> Option<Value<'a>> {
    let mut members = value.members();
    Some(members.find(|member| member.key == key)?.value)
}

/// The elements of a list, or the one value that stands in its place.
fn list<'a>(value: Value<'a>, key: &str) -> impl Iterator<Item = Value<'a>> {
    let found = member(value, key);
    let one = found.filter(|value| !matches!(value.kind(), Kind::Array | Kind::Null));
    one.into_iter()
        .chain(found.into_iter().flat_map(|value| value.elements()))
}

fn string(value: Value<'_>, key: &str) -> Option<String> {
    Some(member(value, key)?.string()?.into_owned())
}

fn is_true(value: Value<'_>, key: &str) -> bool {
    member(value, key).and_then(|value| value.boolean()) == Some(true)
}
