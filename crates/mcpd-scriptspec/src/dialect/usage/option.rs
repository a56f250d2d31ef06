//! Conversion of a `flag` or an `arg` to an option with its position on the command line.

mod declared;

use declared::Declared;

use super::{Effect, Field, KdlNode, Node, Text, Tool, kdl::ValueKind, report_unknown};
use crate::{
    dialect::draft::{Draft, Literal},
    json::Span,
    rules::Code,
};

/// Rules that only the script can apply.
const RULES: &[&str] = &[
    "required_if",
    "required_if_eq",
    "required_if_eq_all",
    "required_unless",
    "required_unless_all",
    "conflicts",
    "requires",
    "requires_if",
    "overrides",
    "exclusive",
    "default_if",
    "validate",
];

/// Fields about help and completion, or with permissions that mcpd does not use.
const SKIPPED: &[&str] = &[
    "validate_error",
    "alias",
    "global",
    "value_names",
    "help_md",
    "help_heading",
    "display_order",
    "hide_default_value",
    "hide_env",
    "hide_env_values",
    "hide_possible_values",
    "hide_short_help",
    "hide_long_help",
    "deprecated",
    "deprecated_warn_at",
    "deprecated_remove_at",
    "allow_hyphen_values",
    "allow_negative_numbers",
    "value_terminator",
    "require_equals",
    "value_optional",
    "bool_value",
    "default_missing",
    "env_fallback",
    "deprecated_env",
];

pub(super) fn flag(node: &KdlNode, tool: &mut Tool) {
    let draft = &mut tool.draft;
    let Some(form) = Field::of_node(node).string(draft) else {
        return;
    };
    let Some(flag) = Flag::read(&form.text) else {
        let fault = draft.fault(Code::SourceSyntax, form.span, "not a flag");
        fault.help = Some(r#"write `"-u --user <user>"`, or less of it"#.to_owned());
        return;
    };
    let mut fields = UsageFields::default();
    fields.read(node, draft);
    let name = flag.name();
    let mut placeholders = flag.placeholders;
    if let Some(arg) = fields.arg {
        let placeholder = Field::of_node(arg).string(draft);
        placeholders.extend(placeholder.map(|placeholder| placeholder.text));
        fields.read(arg, draft);
    }
    fields.is_var |= flag.is_var
        || placeholders
            .iter()
            .any(|name| ArgumentForm::read(name).is_var);
    tool.note_effect(&fields);
    if fields.is_skipped() {
        return;
    }
    let draft = &mut tool.draft;
    let option = Declared {
        name,
        argument: flag.argument.unwrap_or_default(),
        is_required: fields.required.unwrap_or_default() && fields.default.is_empty(),
        span: form.span,
    };
    match placeholders.len() {
        0 => option.switch(fields, draft),
        1 => option.value(fields, draft),
        _ => {
            let message = format!(
                "callers cannot pass `{}`, because it takes several words",
                option.name
            );
            draft.fault(Code::SourceUnsupported, option.span, message);
        }
    }
}

/// Returns the name of the option for a flag, if it becomes one.
pub(super) fn flag_name(node: &KdlNode) -> Option<String> {
    match &node.arguments.first()?.kind {
        ValueKind::String(form) => Some(Flag::read(form)?.name()),
        _ => None,
    }
}

pub(super) fn arg(node: &KdlNode, tool: &mut Tool) {
    let draft = &mut tool.draft;
    let Some(form) = Field::of_node(node).string(draft) else {
        return;
    };
    let mut fields = UsageFields::default();
    fields.read(node, draft);
    let placeholder = ArgumentForm::read(&form.text);
    fields.is_var |= placeholder.is_var;
    if placeholder.words > 1 {
        fields.min = Some(placeholder.words);
        fields.max = Some(placeholder.words);
    }
    tool.note_effect(&fields);
    if fields.is_skipped() {
        return;
    }
    let draft = &mut tool.draft;
    let is_last = placeholder.is_last || fields.double_dash.as_deref() == Some("required");
    let option = Declared {
        name: placeholder.name.to_owned(),
        // An argument after `--` in the form always needs one.
        argument: match is_last || tool.is_run_by_usage {
            true => "positional".to_owned(),
            false => "operand".to_owned(),
        },
        is_required: fields.required.unwrap_or(placeholder.is_required)
            && fields.default.is_empty(),
        span: form.span,
    };
    // All arguments are passed after one `--`.
    if is_last && tool.places > 0 || fields.double_dash.as_deref() == Some("preserve") {
        let message = format!(
            "callers cannot pass `{}`, because it needs its own `--`",
            option.name
        );
        draft.fault(Code::SourceUnsupported, option.span, message);
        return;
    }
    tool.places += 1;
    option.value(fields, draft);
}

impl Tool {
    fn note_effect(&mut self, fields: &UsageFields<'_>) {
        let effect = fields.effect.clone();
        let worst = self.worst.take();
        self.worst = worst
            .into_iter()
            .chain(effect)
            .max_by_key(|(_, effect)| *effect);
    }
}

/// The form of a flag, such as `-u --user <user>`.
#[derive(Default)]
struct Flag {
    name: Option<String>,
    /// The long flag, or else the short one.
    argument: Option<String>,
    placeholders: Vec<String>,
    is_var: bool,
}

impl Flag {
    fn read(form: &str) -> Option<Self> {
        let mut flag = Self::default();
        let form = form.replace("...", "…").replace('…', " … ");
        for part in form.split_whitespace() {
            if part == "…" {
                flag.is_var = true;
            } else if let Some(name) = part.strip_suffix(':') {
                flag.name = Some(name.to_owned());
            } else if is_placeholder(part.trim_start_matches('=')) {
                flag.placeholders
                    .push(part.trim_start_matches('=').to_owned());
            } else {
                flag.spelling(part)?;
            }
        }
        (flag.name.is_some() || flag.argument.is_some()).then_some(flag)
    }

    fn name(&self) -> String {
        let spelling = self.argument.as_deref().unwrap_or_default();
        let spelled = || spelling.trim_start_matches('-').to_owned();
        self.name.clone().unwrap_or_else(spelled)
    }

    /// Parses `--user`, `-u`, `--user=<user>` or `--user[=user]`.
    fn spelling(&mut self, part: &str) -> Option<()> {
        let (spelling, value) = match part.split_once('=') {
            Some((spelling, value)) => (spelling.trim_end_matches('['), Some(value)),
            None => (part, None),
        };
        if let Some(value) = value {
            let is_value = is_placeholder(value) || value.ends_with(']');
            self.placeholders.push(is_value.then(|| value.to_owned())?);
        }
        let is_long = spelling.starts_with("--") && spelling.len() > 2;
        let is_short = spelling.starts_with('-') && spelling.chars().count() == 2;
        let has_long = self
            .argument
            .as_ref()
            .is_some_and(|flag| flag.starts_with("--"));
        if is_long && !has_long || is_short && self.argument.is_none() {
            self.argument = Some(spelling.to_owned());
        }
        (is_long || is_short).then_some(())
    }
}

fn is_placeholder(text: &str) -> bool {
    text.starts_with('<') && text.ends_with('>') || text.starts_with('[') && text.ends_with(']')
}

/// The form of an argument, such as `<file>` or `[-- args]...`.
struct ArgumentForm<'a> {
    name: &'a str,
    is_required: bool,
    is_var: bool,
    /// The argument stands after a `--` of its own.
    is_last: bool,
    /// Fixed number of its words, if more than one.
    words: u64,
}

impl<'a> ArgumentForm<'a> {
    fn read(form: &'a str) -> Self {
        let (form, is_last) = unless_none(form, form.strip_prefix("-- "));
        let words: Vec<_> = form.split_whitespace().collect();
        if words.len() > 1 && words.iter().all(|word| is_placeholder(word)) {
            let first = Self::read(words[0]);
            return Self {
                is_var: true,
                is_last,
                words: words.len().try_into().unwrap_or(u64::MAX),
                ..first
            };
        }
        let (form, is_var) = unless_none(form, without_dots(form));
        let is_required = !form.starts_with('[');
        let name = if is_placeholder(form) {
            &form[1..form.len() - 1]
        } else {
            form
        };
        let (name, is_inner_last) = unless_none(name, name.strip_prefix("-- "));
        let (name, is_inner_var) = unless_none(name, without_dots(name));
        Self {
            name,
            is_required,
            is_var: is_var || is_inner_var,
            is_last: is_last || is_inner_last,
            words: 1,
        }
    }
}

fn without_dots(text: &str) -> Option<&str> {
    text.strip_suffix("...").or_else(|| text.strip_suffix('…'))
}

/// Returns the changed text if there is one, and whether there is.
fn unless_none<'a>(text: &'a str, changed: Option<&'a str>) -> (&'a str, bool) {
    (changed.unwrap_or(text), changed.is_some())
}

/// Fields of a flag or an argument.
#[derive(Default)]
struct UsageFields<'n> {
    short: Option<(Span, Node)>,
    long: Option<(Span, Node)>,
    required: Option<bool>,
    is_var: bool,
    min: Option<u64>,
    max: Option<u64>,
    default: Vec<Text>,
    choices: Option<Choices>,
    delimiter: Option<Text>,
    negation: Option<Text>,
    double_dash: Option<String>,
    effect: Option<(Span, Effect)>,
    is_counted: bool,
    is_hidden: bool,
    /// Variable that can provide the value as well.
    env: Option<Text>,
    /// The flag requests help or the version.
    is_action: bool,
    arg: Option<&'n KdlNode>,
}

struct Choices {
    values: Vec<Node>,
    /// No other values are allowed.
    is_strict: bool,
}

impl<'n> UsageFields<'n> {
    fn read(&mut self, node: &'n KdlNode, draft: &mut Draft) {
        for field in Field::all(node) {
            match field.name() {
                "arg" => self.arg = node.children.iter().find(|child| child.name.text == "arg"),
                "choices" => {
                    let choices = node
                        .children
                        .iter()
                        .find(|child| child.name.text == "choices");
                    self.choices = choices.and_then(|choices| Choices::read(choices, draft));
                }
                _ => self.field(&field, draft),
            }
        }
    }

    fn field(&mut self, field: &Field<'n>, draft: &mut Draft) {
        match field.name() {
            "help" => self.short = field.text(draft),
            "long_help" | "help_long" => self.long = field.text(draft),
            "required" => self.required = field.boolean(draft),
            "var" => self.is_var = field.boolean(draft).unwrap_or_default(),
            "var_min" => self.min = field.number(draft),
            "var_max" => self.max = field.number(draft),
            "default" => self.default = defaults(field, draft),
            "delimiter" => self.delimiter = field.string(draft),
            "negate" => self.negation = field.string(draft),
            "double_dash" => self.double_dash = field.string(draft).map(|text| text.text),
            "effect" => self.effect = field.effect(draft),
            "count" => self.is_counted = field.boolean(draft).unwrap_or_default(),
            "hide" => self.is_hidden = field.boolean(draft).unwrap_or_default(),
            "env" => self.env = field.string(draft),
            "action" => self.is_action = field.string(draft).is_some_and(|text| text.text != "set"),
            name if RULES.contains(&name) => {
                let message = format!("clients do not see `{name}`; only the script applies it");
                draft.fault(Code::SourceUnsupported, field.key.span.clone(), message);
            }
            name if SKIPPED.contains(&name) => {}
            _ => {
                let known = [
                    "help",
                    "long_help",
                    "required",
                    "var",
                    "var_min",
                    "var_max",
                    "default",
                    "choices",
                    "negate",
                    "count",
                    "effect",
                    "env",
                    "delimiter",
                    "double_dash",
                ];
                report_unknown(field.key, known.iter().chain(RULES).chain(SKIPPED), draft);
            }
        }
    }

    fn is_skipped(&self) -> bool {
        self.is_action || self.is_hidden && self.required != Some(true)
    }
}

/// Reads one value, or the names of the nodes inside.
fn defaults(field: &Field<'_>, draft: &mut Draft) -> Vec<Text> {
    if !field.children.is_empty() {
        return field
            .children
            .iter()
            .map(|child| child.name.clone())
            .collect();
    }
    match field.values.first().map(|value| (&value.kind, &value.span)) {
        Some((ValueKind::Boolean(is_on), span)) => vec![Text {
            text: is_on.to_string(),
            span: span.clone(),
        }],
        _ => field.string(draft).into_iter().collect(),
    }
}

impl Choices {
    /// Reads the choices; `None` if some are only known at run time.
    fn read(node: &KdlNode, draft: &mut Draft) -> Option<Self> {
        let mut is_strict = true;
        for (key, value) in &node.properties {
            let field = Field::of_property(key, value);
            match field.name() {
                "strict" => is_strict = field.boolean(draft).unwrap_or(true),
                "env" => return None,
                "ignore_case" => {}
                _ => report_unknown(key, &["strict", "env", "ignore_case"], draft),
            }
        }
        let field = Field::of_node(node);
        let plain = field.values.iter().map(|value| Field {
            values: std::slice::from_ref(value),
            ..Field::of_node(node)
        });
        let choices = plain.chain(field.children.iter().map(Field::of_node));
        let values = choices.filter_map(|choice| choice.string(draft));
        Some(Self {
            values: values.map(Node::from).collect(),
            is_strict,
        })
    }

    /// The fields of an option that define its values.
    fn value_type(self, span: &Span) -> Vec<(&'static str, Node)> {
        let values = Node::new(span.clone(), Literal::Array(self.values));
        if !self.is_strict {
            let string = Node::string(span.clone(), "string");
            return vec![("value_type", string), ("examples", values)];
        }
        let mut choice = Node::object(span.clone());
        choice.add("enum", span.clone(), values);
        vec![("value_type", choice)]
    }
}
