//! usage and mise: comments `#USAGE` in KDL, which declare the command line of a script, and
//! `#MISE` in TOML, which describe the script.
//!
//! A script with subcommands is one tool for each of them. The script itself
//! checks rules between options.

use std::collections::BTreeSet;

use super::draft::{Draft, Node};
use crate::{json::Span, rules::Code, suggest::suggest};

mod kdl;
mod mise;
mod option;

use kdl::{KdlNode, KdlValue, Text, ValueKind};

/// One tool: the words of its subcommand, none for the script as a whole, and its description.
pub(super) type Command = (Vec<String>, Draft);

/// Maximum number of copies of global flags in subcommands.
const MAX_REPEATED: usize = 10_000;

const LEADERS: &[&str] = &["#", "//", "::"];

/// Nodes that cannot be conveyed to callers.
const UNSUPPORTED: &[&str] = &[
    "group",
    "mount",
    "include",
    "flagset",
    "use",
    "external_subcommand",
    "multicall",
];

/// Nodes about help, completion or the configuration of the script.
const SKIPPED: &[&str] = &[
    "bin",
    "author",
    "license",
    "repository",
    "usage",
    "example",
    "complete",
    "config",
    "alias",
    "hide",
    "view",
    "about_md",
    "help_md",
    "long_version",
    "help_template",
    "help_heading",
    "display_order",
    "source_code_link_template",
    "before_help",
    "after_help",
    "before_long_help",
    "before_help_long",
    "after_long_help",
    "after_help_long",
    "before_help_md",
    "after_help_md",
    "disable_help",
    "disable_help_flag",
    "disable_help_subcommand",
    "disable_version_flag",
    "min_usage_version",
    "unknown_flags",
    "default_subcommand",
    "subcommand_required",
    "subcommand_help_heading",
    "subcommand_value_name",
    "arg_required_else_help",
    "args_conflicts_with_subcommands",
    "subcommand_negates_reqs",
    "subcommand_precedence_over_arg",
    "allow_missing_positional",
    "args_override_self",
    "dont_delimit_trailing_values",
    "deprecated",
    "deprecated_warn_at",
    "deprecated_remove_at",
    "next_line_help",
    "flatten_help",
    "term_width",
    "max_term_width",
    "restart_token",
];

pub(super) fn is_in(text: &[u8]) -> bool {
    let mut lines = text.split(|&byte| byte == b'\n');
    lines.any(|line| {
        let line = String::from_utf8_lossy(line);
        marked_text(&line, "USAGE").is_some() || marked_text(&line, "MISE").is_some()
    })
}

/// The text after `#USAGE`, `# [USAGE]` and similar marks at the start of a line.
fn marked_text<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    let comment = LEADERS
        .iter()
        .find_map(|leader| line.strip_prefix(leader))?;
    if let Some(rest) = comment.strip_prefix(mark) {
        return Some(rest);
    }
    let bracket = comment
        .strip_prefix(' ')
        .unwrap_or(comment)
        .strip_prefix('[')?;
    bracket.strip_prefix(mark)?.strip_prefix(']')
}

pub(super) fn read(source: &str) -> Vec<Command> {
    let mut draft = Draft::new(0..source.lines().next().map_or(0, str::len));
    let text = comment_text(source, &mut draft);
    let (nodes, errors) = kdl::read(&text);
    for error in errors {
        draft.fault(Code::SourceSyntax, error.span, error.message);
    }
    let mut tool = Tool::new(Vec::new(), draft);
    tool.is_run_by_usage = is_run_by_usage(source);
    tool.short = mise::read(source, &mut tool.draft);
    let mut commands = Vec::new();
    tool.read(&nodes, &[], &mut commands);
    commands
}

/// Returns whether `#!` starts usage, as in `#!/usr/bin/env -S usage bash`, which parses the
/// command line for the script.
fn is_run_by_usage(source: &str) -> bool {
    let first = source.lines().next().unwrap_or_default();
    let words = first
        .strip_prefix("#!")
        .into_iter()
        .flat_map(str::split_whitespace);
    let mut programs = words.map(|word| word.rsplit('/').next().unwrap_or(word));
    programs.any(|program| program == "usage")
}

/// Position of a line in a source: the description is one block of comments.
#[derive(Clone, Copy)]
enum LinePosition {
    Before,
    Inside,
    Behind,
    /// After the block; a mark there is not read, and has been reported.
    Told,
}

/// The text of the comments, each at its place in the source.
fn comment_text(source: &str, draft: &mut Draft) -> String {
    let mut text = String::with_capacity(source.len());
    let mut place = LinePosition::Before;
    for line in source.split_inclusive('\n') {
        match (marked_text(line, "USAGE"), place) {
            (Some(content), LinePosition::Before | LinePosition::Inside) => {
                place = LinePosition::Inside;
                text.extend(std::iter::repeat_n(' ', line.len() - content.len()));
                text.push_str(content);
                continue;
            }
            (Some(_), LinePosition::Behind) => {
                place = LinePosition::Told;
                let span = text.len()..text.len() + line.trim_end().len();
                let message = "this and all that follows is ignored, because another line separates it from the lines above";
                draft.fault(Code::SourceUnsupported, span, message);
            }
            (None, LinePosition::Inside) if !LEADERS.contains(&line.trim_end()) => {
                place = LinePosition::Behind
            }
            _ => {}
        }
        text.extend(std::iter::repeat_n(' ', line.len() - 1));
        text.push(if line.ends_with('\n') { '\n' } else { ' ' });
    }
    text
}

/// Effect of a script or a subcommand on the world, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    Read,
    Write,
    Destructive,
}

/// A script, or a subcommand of it.
struct Tool {
    words: Vec<String>,
    draft: Draft,
    /// Short and long description.
    short: Option<(Span, Node)>,
    long: Option<(Span, Node)>,
    effect: Option<(Span, Effect)>,
    /// The worst effect of its options.
    worst: Option<(Span, Effect)>,
    /// Number of positionals on the command line.
    places: usize,
    /// usage parses the command line before the script runs.
    is_run_by_usage: bool,
}

impl Tool {
    fn new(words: Vec<String>, draft: Draft) -> Self {
        Self {
            words,
            draft,
            short: None,
            long: None,
            effect: None,
            worst: None,
            places: 0,
            is_run_by_usage: false,
        }
    }

    /// Reads the nodes and the global flags, and finishes this tool or the
    /// subcommands among the nodes.
    fn read<'n>(
        mut self,
        nodes: &'n [KdlNode],
        global: &[&'n KdlNode],
        commands: &mut Vec<Command>,
    ) {
        for node in nodes {
            let field = Field::of_node(node);
            match field.name() {
                "cmd" => {}
                "flag" => option::flag(node, &mut self),
                "arg" => option::arg(node, &mut self),
                _ => self.field(&field),
            }
        }
        let inner: Vec<_> = nodes
            .iter()
            .filter(|node| node.name.text == "cmd")
            .collect();
        if inner.is_empty() {
            if global.len() * commands.len() > MAX_REPEATED {
                let span = self.draft.metadata.span.clone();
                let message = "too many commands for this number of global flags";
                self.draft.fault(Code::SourceSyntax, span, message);
            } else {
                let own = flag_names(nodes);
                for node in without_redeclared(global, &own) {
                    option::flag(node, &mut self);
                }
            }
            commands.push(self.finish());
            return;
        }
        let (own, of_all): (Vec<_>, Vec<_>) = nodes
            .iter()
            .filter(|node| matches!(node.name.text.as_str(), "flag" | "arg"))
            .partition(|node| !is_global(node));
        for node in own {
            let message = "callers cannot pass this to a command, because it is not `global`";
            self.draft
                .fault(Code::SourceUnsupported, node.name.span.clone(), message);
        }
        let mut global: Vec<_> =
            without_redeclared(global, &flag_names(of_all.iter().copied())).collect();
        global.extend(of_all);
        // Only subcommands can be called. Faults of the whole are reported with the first of them.
        let mut diagnostics = self.draft.diagnostics;
        for node in inner {
            let mut words = self.words.clone();
            let mut draft = Draft::new(node.name.span.clone());
            draft.diagnostics.append(&mut diagnostics);
            let name = Field::of_node(node).string(&mut draft);
            words.extend(name.map(|name| name.text));
            let mut tool = Self::new(words, draft);
            tool.is_run_by_usage = self.is_run_by_usage;
            for (key, value) in &node.properties {
                tool.field(&Field::of_property(key, value));
            }
            tool.read(&node.children, &global, commands);
        }
    }

    /// Reads a field of the tool, from a node or a property.
    fn field(&mut self, field: &Field<'_>) {
        let (name, span) = (field.name(), field.key.span.clone());
        match name {
            "name" | "version" => {
                let key = if name == "name" { "title" } else { name };
                if let Some(text) = field.string(&mut self.draft) {
                    self.draft.metadata.add(key, span, text.into());
                }
            }
            "about" | "help" => self.short = field.text(&mut self.draft),
            "long_about" | "about_long" | "long_help" | "help_long" => {
                self.long = field.text(&mut self.draft);
            }
            "effect" => self.effect = field.effect(&mut self.draft),
            _ if UNSUPPORTED.contains(&name) => {
                let message = format!("clients do not see what `{name}` adds");
                self.draft.fault(Code::SourceUnsupported, span, message);
            }
            _ if SKIPPED.contains(&name) => {}
            _ => {
                let known = [
                    "about",
                    "long_about",
                    "name",
                    "version",
                    "effect",
                    "flag",
                    "arg",
                    "cmd",
                ];
                report_unknown(field.key, known.iter().chain(SKIPPED), &mut self.draft);
            }
        }
    }

    fn finish(mut self) -> Command {
        if let Some((span, description)) = self.long.or(self.short) {
            self.draft.metadata.add("description", span, description);
        }
        // The effect of an option can only worsen the declared effect, and alone counts
        // only if it is destructive.
        let worst = self.worst.filter(|(_, worst)| match self.effect {
            Some((_, own)) => *worst > own,
            None => *worst == Effect::Destructive,
        });
        if let Some((span, effect)) = worst.or(self.effect) {
            let hints: &[(&str, bool)] = match effect {
                Effect::Read => &[("read_only", true)],
                Effect::Write => &[("read_only", false), ("destructive", false)],
                Effect::Destructive => &[("destructive", true)],
            };
            let mut annotations = Node::object(span.clone());
            for (hint, value) in hints {
                annotations.add(*hint, span.clone(), Node::boolean(span.clone(), *value));
            }
            self.draft.metadata.add("annotations", span, annotations);
        }
        (self.words, self.draft)
    }
}

/// Returns the names of the flags among the nodes.
fn flag_names<'n>(nodes: impl IntoIterator<Item = &'n KdlNode>) -> BTreeSet<String> {
    let nodes = nodes.into_iter();
    let flags = nodes.filter(|node| node.name.text == "flag");
    flags.filter_map(option::flag_name).collect()
}

/// Returns the global flags that a subcommand does not redeclare: its own
/// declaration takes precedence.
fn without_redeclared<'g, 'n>(
    global: &'g [&'n KdlNode],
    own: &'g BTreeSet<String>,
) -> impl Iterator<Item = &'n KdlNode> + use<'g, 'n> {
    let is_own = |node: &&KdlNode| option::flag_name(node).is_some_and(|name| own.contains(&name));
    global.iter().copied().filter(move |node| !is_own(node))
}

fn is_global(node: &KdlNode) -> bool {
    let is_true = |value: &KdlValue| value.kind == ValueKind::Boolean(true);
    Field::all(node).any(|field| field.name() == "global" && field.values.iter().any(is_true))
}

/// A property of a node, or a node inside it: two notations of one field.
struct Field<'n> {
    key: &'n Text,
    values: &'n [KdlValue],
    children: &'n [KdlNode],
}

impl<'n> Field<'n> {
    /// All fields of a node, in both notations.
    fn all(node: &'n KdlNode) -> impl Iterator<Item = Self> {
        let properties = node.properties.iter();
        let properties = properties.map(|(key, value)| Self::of_property(key, value));
        properties.chain(node.children.iter().map(Self::of_node))
    }

    fn of_node(node: &'n KdlNode) -> Self {
        Self {
            key: &node.name,
            values: &node.arguments,
            children: &node.children,
        }
    }

    fn of_property(key: &'n Text, value: &'n KdlValue) -> Self {
        Self {
            key,
            values: std::slice::from_ref(value),
            children: &[],
        }
    }

    fn name(&self) -> &'n str {
        &self.key.text
    }

    /// Reports that the first value has the wrong type.
    fn mismatch<T>(&self, expected: &str, draft: &mut Draft) -> Option<T> {
        let span = self
            .values
            .first()
            .map_or(&self.key.span, |value| &value.span);
        let message = format!("`{}` needs {expected}", self.name());
        draft.fault(Code::FieldTypeMismatch, span.clone(), message);
        None
    }

    fn string(&self, draft: &mut Draft) -> Option<Text> {
        match self.values.first() {
            Some(KdlValue {
                kind: ValueKind::String(text),
                span,
            }) => Some(Text {
                text: text.clone(),
                span: span.clone(),
            }),
            _ => self.mismatch("a text", draft),
        }
    }

    fn text(&self, draft: &mut Draft) -> Option<(Span, Node)> {
        let text = self.string(draft)?;
        Some((self.key.span.clone(), text.into()))
    }

    fn boolean(&self, draft: &mut Draft) -> Option<bool> {
        match self.values.first() {
            Some(KdlValue {
                kind: ValueKind::Boolean(value),
                ..
            }) => Some(*value),
            _ => self.mismatch("`#true` or `#false`", draft),
        }
    }

    fn number(&self, draft: &mut Draft) -> Option<u64> {
        match self.values.first().map(|value| &value.kind) {
            Some(ValueKind::Number(number)) if number.parse::<u64>().is_ok() => number.parse().ok(),
            _ => self.mismatch("a whole number", draft),
        }
    }

    fn effect(&self, draft: &mut Draft) -> Option<(Span, Effect)> {
        let text = self.string(draft)?;
        let effect = match text.text.as_str() {
            "read" => Effect::Read,
            "write" => Effect::Write,
            "destructive" => Effect::Destructive,
            _ => return self.mismatch("`read`, `write` or `destructive`", draft),
        };
        Some((text.span, effect))
    }
}

impl From<Text> for Node {
    fn from(text: Text) -> Self {
        Self::string(text.span, text.text)
    }
}

/// Reports an unknown word.
fn report_unknown<'a>(key: &Text, known: impl IntoIterator<Item = &'a &'a str>, draft: &mut Draft) {
    let message = format!("`{}` has no effect here", key.text);
    let fault = draft.fault(Code::UnknownField, key.span.clone(), message);
    fault.help = suggest(&key.text, known.into_iter().copied())
        .map(|near| format!("did you mean `{near}`?"));
}
