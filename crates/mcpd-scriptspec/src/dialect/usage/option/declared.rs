//! Declaration of one option, translated to the fields of a spec.

use super::UsageFields;
use crate::dialect::draft::{Draft, Literal};
use crate::dialect::usage::{Node, Text};
use crate::json::Span;
use crate::rules::Code;

/// Name and position of an option.
pub(super) struct Declared {
    pub(super) name: String,
    pub(super) argument: String,
    pub(super) is_required: bool,
    pub(super) span: Span,
}

impl Declared {
    /// Adds a flag without a value.
    pub(super) fn switch(mut self, fields: UsageFields<'_>, draft: &mut Draft) {
        let is_on = fields.default.iter().any(|default| default.text == "true");
        let mut description = fields.long.or(fields.short);
        let mut variable = variable(&self.name);
        let mut env = fields.env;
        if is_on || self.argument.is_empty() {
            let Some(negation) = fields.negation else {
                let message = format!(
                    "callers cannot pass `{}`, because no flag turns it off",
                    self.name
                );
                draft.fault(Code::SourceUnsupported, self.span, message);
                return;
            };
            negation
                .text
                .trim_start_matches('-')
                .clone_into(&mut self.name);
            self.argument = negation.text;
            variable = None;
            env = None;
            if let Some((
                _,
                Node {
                    value: Literal::String(text),
                    ..
                },
            )) = &mut description
            {
                text.insert_str(0, "Turn off: ");
            }
        }
        if fields.is_counted || fields.is_var {
            let message = format!(
                "callers can pass `{}` only once; occurrences are not counted",
                self.name
            );
            draft.fault(Code::SourceUnsupported, self.span.clone(), message);
        }
        let mut option = self.option(description, variable, env);
        let value_type = Node::string(self.span.clone(), "boolean");
        option.add("value_type", self.span.clone(), value_type);
        draft.options.add(self.name, self.span, option);
    }

    /// Adds a flag with a value, or an argument.
    pub(super) fn value(self, fields: UsageFields<'_>, draft: &mut Draft) {
        let at = || self.span.clone();
        let mut defaults: Vec<_> = fields.default.into_iter().map(Node::from).collect();
        let description = fields.long.or(fields.short);
        let item = match fields.choices {
            Some(choices) => choices.value_type(&self.span),
            None => vec![("value_type", Node::string(at(), "string"))],
        };
        let mut option = self.option(description, variable(&self.name), fields.env);
        if fields.is_var {
            option.add("value_type", at(), Node::string(at(), "array"));
            let mut items = Node::object(at());
            for (key, value) in item {
                items.add(key, at(), value);
            }
            if let Some(delimiter) = fields.delimiter {
                let pattern = format!("^[^{}]*$", escape_class(&delimiter.text));
                let pattern = Node::string(delimiter.span.clone(), pattern);
                items.add("pattern", delimiter.span, pattern);
            }
            option.add("items", at(), items);
            let min = fields.min.or(self.is_required.then_some(1));
            if let Some(size) = size(min, fields.max, &self.span) {
                option.add("size", at(), size);
            }
            if !defaults.is_empty() {
                let defaults = Node::new(at(), Literal::Array(defaults));
                option.add("default_value", at(), defaults);
            }
        } else {
            for (key, value) in item {
                option.add(key, at(), value);
            }
            if let Some(default) = defaults.pop() {
                option.add("default_value", at(), default);
            }
        }
        draft.options.add(self.name, self.span, option);
    }

    /// Builds the fields that do not depend on the value.
    pub(super) fn option(
        &self,
        description: Option<(Span, Node)>,
        variable: Option<String>,
        env: Option<Text>,
    ) -> Node {
        let at = || self.span.clone();
        let mut option = Node::object(at());
        option.add("argument", at(), Node::string(at(), self.argument.clone()));
        if let Some(variable) = variable {
            option.add("variable", at(), Node::string(at(), variable));
        }
        if let Some(env) = env {
            option.add("env", env.span.clone(), env.into());
        }
        if let Some((span, description)) = description {
            option.add("description", span, description);
        }
        option.add("required", at(), Node::boolean(at(), self.is_required));
        option
    }
}

/// Escapes the characters of a class in a pattern, each once. Clients reject a backslash before
/// characters that need none.
fn escape_class(characters: &str) -> String {
    let mut class = String::new();
    for char in characters.chars() {
        if class.contains(char) {
            continue;
        }
        if matches!(char, '\\' | '[' | ']' | '^' | '-') {
            class.push('\\');
        }
        class.push(char);
    }
    class
}

fn size(min: Option<u64>, max: Option<u64>, span: &Span) -> Option<Node> {
    let mut size = Node::object(span.clone());
    for (bound, count) in [("min", min), ("max", max)] {
        if let Some(count) = count {
            let count = Node::new(span.clone(), Literal::Number(count.to_string()));
            size.add(bound, span.clone(), count);
        }
    }
    (min.is_some() || max.is_some()).then_some(size)
}

/// Variable in which usage and mise would pass an option of this name; `None` if their rules go
/// beyond letters of one case.
fn variable(name: &str) -> Option<String> {
    let has = |is_such: fn(&char) -> bool| name.chars().any(|char| is_such(&char));
    let is_simple = name
        .chars()
        .all(|char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_'));
    let has_one_case = !(has(char::is_ascii_uppercase) && has(char::is_ascii_lowercase));
    let name = name.to_ascii_lowercase().replace('-', "_");
    (is_simple && has_one_case).then(|| format!("usage_{name}"))
}
