//! Synopsis of a script's command line, in the notation of man pages.

use crate::spec::{Argument, CommandWord, ListForm, ScriptOption, ScriptSpec, Template, ValueType};

impl ScriptSpec {
    /// Returns the command line of the script in the notation of man pages, with the options as
    /// `{name}`, optional parts in brackets, and `...` after a part that may be repeated; empty if
    /// nothing stands there.
    ///
    /// ```
    /// use mcpd_scriptspec::{HelpOutput, parse};
    ///
    /// let parsed = parse(HelpOutput {
    ///     stdout: br#"{"description": "Finds", "command_line": ["{path}", "{}"]}"#,
    ///     stderr: br#"{"path": {"required": true, "argument": "{}"},
    ///                  "name": {"argument": "-name {}"}}"#,
    /// });
    /// assert_eq!(parsed.spec.unwrap().synopsis(), "{path} [-name {name}]");
    /// ```
    #[must_use]
    pub fn synopsis(&self) -> String {
        let mut parts = self.subcommand.clone();
        for word in &self.command_line {
            match word {
                CommandWord::Fixed(word) => parts.push(word.clone()),
                CommandWord::Option(name) => {
                    let option = self.options.iter().find(|option| option.name == *name);
                    parts.extend(option.and_then(part));
                }
                CommandWord::Rest => self.push_rest(&mut parts),
            }
        }
        if !self.command_line.contains(&CommandWord::Rest) {
            self.push_rest(&mut parts);
        }
        parts.join(" ")
    }

    /// Appends the options without a place of their own: flags, then operands.
    fn push_rest(&self, parts: &mut Vec<String>) {
        let has_place = |option: &ScriptOption| {
            let is_place = |word: &CommandWord| matches!(word, CommandWord::Option(name) if *name == option.name);
            self.command_line.iter().any(is_place)
        };
        let rest = self.options.iter().filter(|option| !has_place(option));
        let is_operand = |option: &&ScriptOption| {
            let argument = option.argument.as_ref();
            argument.is_some_and(Argument::is_operand)
        };
        let (operands, flags): (Vec<_>, Vec<_>) = rest.partition(is_operand);
        parts.extend(flags.into_iter().filter_map(part));
        let is_separated = |option: &&ScriptOption| option.argument == Some(Argument::Positional);
        if operands.iter().any(is_separated) {
            parts.push("--".to_owned());
        }
        parts.extend(operands.into_iter().filter_map(part));
    }
}

/// Returns the part of an option, if it stands on the command line.
fn part(option: &ScriptOption) -> Option<String> {
    let name = format!("{{{}}}", option.name);
    let is_boolean = matches!(option.value_type, ValueType::Boolean);
    let is_list = matches!(option.value_type, ValueType::Array { .. });
    let (words, is_repeated) = match option.argument.as_ref()? {
        Argument::Flag(flag) if is_boolean => (flag.clone(), false),
        Argument::Flag(flag) if flag.starts_with("--") => (format!("{flag}={name}"), is_list),
        Argument::Flag(flag) => (format!("{flag} {name}"), is_list),
        Argument::Switch { on, off } if off.is_empty() => (on.join(" "), false),
        Argument::Switch { on, off } => (format!("{}|{}", on.join(" "), off.join(" ")), false),
        Argument::Template(template) => (
            with_name(template, &name),
            is_list && template.list == ListForm::Repeated,
        ),
        Argument::Positional
        | Argument::Operand
        | Argument::Plain
        | Argument::PlainPercentEncoded => (name, is_list),
    };
    let repetition = if is_repeated { "..." } else { "" };
    let is_always = option.required && !is_boolean;
    Some(match (is_always, repetition) {
        (true, "") => words,
        (true, _) if !words.contains(' ') => words + repetition,
        (true, _) => format!("({words}){repetition}"),
        (false, _) => format!("[{words}]{repetition}"),
    })
}

fn with_name(template: &Template, name: &str) -> String {
    let list = match template.list {
        ListForm::Repeated => String::new(),
        ListForm::Joined(separator) => format!("{separator}..."),
        ListForm::Spread => "...".to_owned(),
    };
    let value = format!("{}{name}{list}{}", template.prefix, template.suffix);
    let before = template.before.iter().map(String::as_str);
    let words = before.chain([&*value]);
    let words = words.chain(template.after.iter().map(String::as_str));
    words.collect::<Vec<_>>().join(" ")
}
