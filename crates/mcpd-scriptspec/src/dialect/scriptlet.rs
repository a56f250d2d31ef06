//! Scriptlets: Markdown files in which each heading with a code block is a tool.
//!
//! HTML comments, or blocks called `metadata` and `schema`, describe the tool with Script
//! Kit's fields. A placeholder `{{ }}` in the code is an input; it reaches the code as a
//! variable and is never pasted into it. Conditional sections make variants of the code, one
//! of which runs in each call.

use std::collections::BTreeSet;

use super::{
    Body, Condition, DescribedTool, Variant,
    draft::{Entry, Node},
    script_kit::{Description, LiteralReader, comment_line, slug},
};
use crate::{diagnostic::Diagnostic, json::Span, rules::Code, suggest::suggest, text};

mod directives;
mod language;
mod literal;
mod placeholder;
mod positional;
mod section;
mod shell;
mod skipped_blocks;
mod template;
mod text_template;

use directives::{Directives, MisplacedDirective};
use language::Language;
use placeholder::Placeholder;
use positional::Positional;
use section::{Block, Section, Text, sections};
use template::Template;

/// Returns whether the file at `path` contains scriptlets.
pub(super) fn is_file(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    let (directories, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let is_among_them = directories
        .split('/')
        .any(|directory| directory == "scriptlets");
    let is_scriptlets = name.ends_with(".scriptlets.md") || is_among_them && name.ends_with(".md");
    // Such a file lists Script Kit's further actions for the scriptlets of another file.
    is_scriptlets && !name.ends_with(".actions.md")
}

pub(super) fn read(source: &str) -> Vec<DescribedTool> {
    let mut taken = BTreeSet::new();
    let scriptlets = sections(source).into_iter().filter(Section::is_tool);
    scriptlets
        .map(|section| Scriptlet::new(source, &section).read(&section, &mut taken))
        .collect()
}

/// One section, with the description built from it.
struct Scriptlet<'a> {
    source: &'a str,
    description: Description,
    directives: Directives,
    /// Faults of literals.
    faults: Vec<Diagnostic>,
}

impl<'a> Scriptlet<'a> {
    fn new(source: &'a str, section: &Section) -> Self {
        Self {
            source,
            description: Description::new(section.heading.span.clone()),
            directives: Directives::default(),
            faults: Vec::new(),
        }
    }

    fn read(mut self, section: &Section, taken: &mut BTreeSet<String>) -> DescribedTool {
        for comment in &section.comments {
            self.metadata(comment);
        }
        if let Some(open) = &section.open_comment {
            let message = "unclosed comment";
            self.description
                .fault(Code::SourceSyntax, open.clone(), message);
        }
        let mut code: Option<&Block> = None;
        for block in &section.blocks {
            match block.name.as_str() {
                "metadata" => self.metadata(&block.span),
                "schema" => {
                    if let Some(schema) = self.object(&block.span) {
                        self.description.schema(schema);
                    }
                }
                _ if code.is_none() => code = Some(block),
                _ => {
                    let message = "only the first block of code in a section is run";
                    self.description
                        .fault(Code::UnusedField, block.name_span.clone(), message);
                }
            }
        }
        self.add_field("name", &section.heading);
        if let Some(paragraph) = &section.paragraph {
            self.add_field("description", paragraph);
        }
        if let Some(passed_over) = code.and_then(|block| self.skipped_block(section, block)) {
            return passed_over;
        }
        let path = self.path(taken);
        let body = code.and_then(|block| self.body(section, block));
        DescribedTool {
            path,
            parsed: self.description.finish(self.faults),
            body: body.unwrap_or(Body::None),
        }
    }

    /// Describes a scriptlet that cannot run, with the reason.
    fn skipped_block(&self, section: &Section, block: &Block) -> Option<DescribedTool> {
        let reason = skipped_blocks::reason(&block.name).or_else(|| {
            let language = Language::of(&block.name).filter(|language| language.is_javascript())?;
            let code = shared_code(section, block, language).code;
            let name = skipped_blocks::kit_name(&code)?;
            Some(format!(
                "it calls `{name}`, which exists only in Script Kit"
            ))
        })?;
        let mut description = Description::new(section.heading.span.clone());
        description.fault(Code::SourceNotRun, block.name_span.clone(), reason);
        let title = self.description.title().and_then(Node::text);
        let slug = slug(title.unwrap_or_default());
        let mut parsed = description.finish(Vec::new());
        parsed.spec = None;
        parsed
            .diagnostics
            .retain(|found| found.code == Code::SourceNotRun);
        Some(DescribedTool {
            path: (!slug.is_empty()).then(|| format!("scriptlets/{slug}")),
            parsed,
            body: Body::None,
        })
    }

    fn add_field(&mut self, key: &str, text: &Text) {
        self.description.add_field(Entry {
            key: key.to_owned(),
            key_span: text.span.clone(),
            value: Node::string(text.span.clone(), text.text.clone()),
        });
    }

    fn path(&mut self, taken: &mut BTreeSet<String>) -> Option<String> {
        let title = self.description.title()?;
        let (slug, span) = (slug(title.text()?), title.span.clone());
        if slug.is_empty() {
            let message =
                "the heading has no letter from A to Z and no digit for the name of the tool";
            self.description.fault(Code::SourceSyntax, span, message);
            return None;
        }
        if !taken.insert(slug.clone()) {
            let message = format!("a second scriptlet with the name `{slug}`");
            let fault = self
                .description
                .fault(Code::SourceDuplicateName, span, message);
            fault.help = Some("give one of them another heading".to_owned());
        }
        Some(format!("scriptlets/{slug}"))
    }

    /// Reads a comment: an object, or lines such as `Name: value`, with objects
    /// for `input` and `output`.
    fn metadata(&mut self, span: &Span) {
        if self.source[span.clone()].trim_start().starts_with('{') {
            if let Some(object) = self.object(span) {
                let (schema, metadata) = split(object);
                self.description.metadata(metadata);
                if !schema.is_empty_object() {
                    self.description.schema(schema);
                }
            }
            return;
        }
        let mut schema = Node::object(span.clone());
        let mut start = span.start;
        while start < span.end {
            let rest = &self.source[start..span.end];
            let line = rest.lines().next().unwrap_or_default();
            start += match self.field(line, start, span.end, &mut schema) {
                Some(length) => length,
                None => rest.find('\n').map_or(rest.len(), |end| end + 1),
            };
        }
        if !schema.is_empty_object() {
            self.description.schema(schema);
        }
    }

    /// Reads one line; if it begins an object, returns the length up to its end.
    fn field(&mut self, line: &str, start: usize, end: usize, schema: &mut Node) -> Option<usize> {
        if let Some(said) = comment_line(line, start) {
            self.description.add_field(said);
            return None;
        }
        if self.directives.take(line, start) {
            return None;
        }
        let (key, value) = line.split_once(':')?;
        let is_schema = ["input", "output"]
            .iter()
            .find(|name| key.trim().eq_ignore_ascii_case(name));
        let name = is_schema.filter(|_| value.trim_start().starts_with('{'))?;
        let value_start = start + line.len() - value.trim_start().len();
        let mut reader = LiteralReader::new(&self.source[..end], value_start);
        let value = reader.expression(0);
        self.faults.append(&mut reader.faults);
        let length = reader.end().max(start + 1) - start;
        if let Ok(Some(value)) = value {
            schema.add(*name, start..start + key.len(), value);
        }
        Some(length)
    }

    /// Reads the one object at `span`.
    fn object(&mut self, span: &Span) -> Option<Node> {
        let mut reader = LiteralReader::new(&self.source[..span.end], span.start);
        let object = reader.only_object();
        self.faults.append(&mut reader.faults);
        object.ok()
    }

    fn body(&mut self, section: &Section, block: &Block) -> Option<Body> {
        let Some(language) = Language::of(&block.name) else {
            let message = format!("unknown language {}", text::name(&block.name));
            let fault =
                self.description
                    .fault(Code::UnknownChoice, block.name_span.clone(), message);
            fault.help = Some(match suggest(&block.name, language::names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!(
                    "languages are {}",
                    language::names().collect::<Vec<_>>().join(", ")
                ),
            });
            return None;
        };
        let whole = match self.surround(section, block, language) {
            Ok(whole) => whole,
            Err(misplaced) => {
                let MisplacedDirective {
                    span,
                    message,
                    help,
                } = misplaced;
                let fault = self.description.fault(Code::SourceSyntax, span, message);
                fault.help = Some(help.to_owned());
                return None;
            }
        };
        Some(Body::Code {
            extension: language.extension.to_owned(),
            variants: self.variants(&whole, language),
        })
    }

    /// Returns the whole program of a block: change of directory, shared code, the block itself.
    fn surround(
        &self,
        section: &Section,
        block: &Block,
        language: Language,
    ) -> Result<Block, MisplacedDirective> {
        let wrapped = self.directives.wrap(block, language)?;
        let shared = shared_code(section, &wrapped, language);
        let Some(mut whole) = self.directives.change_directory(language)? else {
            return Ok(shared);
        };
        whole.append(&shared);
        Ok(whole)
    }

    /// Programs of a block, one for every result of its conditions.
    fn variants(&mut self, block: &Block, language: Language) -> Vec<Variant> {
        let template = Template::read(&block.code);
        for fault in &template.faults {
            let span = block.source_of(&fault.span);
            let fault_of = self
                .description
                .fault(Code::SourceSyntax, span, fault.message);
            fault_of.help = Some(fault.help.to_owned());
        }
        if !template.faults.is_empty() {
            return Vec::new();
        }
        let Some(selections) = template.selections(block.code.len()) else {
            let message = "the conditions of this block have more than 64 combinations";
            let first = template.names().next().map(|(_, span, _)| span);
            let span = block.source_of(&first.unwrap_or_default());
            let fault = self.description.fault(Code::SourceSyntax, span, message);
            fault.help = Some("split it into several scriptlets".to_owned());
            return Vec::new();
        };
        self.add_conditions(block, &template);
        let mut found = Vec::new();
        let mut variants = Vec::with_capacity(selections.len());
        for selection in selections {
            let selected = block.with_parts(&selection.parts);
            let (text, placeholders) = language.fill(&selected.code, &|name| self.is_number(name));
            found.extend(placeholders.into_iter().map(|placeholder| Placeholder {
                span: selected.source_of(&placeholder.span),
                ..placeholder
            }));
            variants.push(Variant {
                conditions: selection.conditions.into_iter().map(condition).collect(),
                text,
            });
        }
        // Parts that several variants share are checked several times.
        found.sort_by(|a, b| (a.span.start, a.fault).cmp(&(b.span.start, b.fault)));
        found.dedup_by(|a, b| (a.span.start, a.fault) == (b.span.start, b.fault));
        for placeholder in found {
            self.add_placeholder(placeholder, language);
        }
        if language.has_arguments() {
            self.add_arguments(block);
        }
        variants
    }

    fn is_number(&self, name: &str) -> bool {
        let option = self.description.option(name);
        let value_type = option.and_then(|option| option.member("value_type"));
        matches!(value_type.and_then(Node::text), Some("integer" | "float"))
    }

    /// Adds the undeclared conditions: booleans, or texts if the code also uses their values.
    fn add_conditions(&mut self, block: &Block, template: &Template<'_>) {
        let values = template.conditional_values();
        for (name, span, is_condition) in template.names() {
            if !is_condition || self.description.option(name).is_some() {
                continue;
            }
            let span = block.source_of(&span);
            let (value_type, default) = if values.contains(name) {
                ("string", Node::string(span.clone(), ""))
            } else {
                ("boolean", Node::boolean(span.clone(), false))
            };
            let input = Node::object(span.clone())
                .with("value_type", Node::string(span.clone(), value_type))
                .with("default_value", default);
            self.description.options().add(name, span, input);
        }
    }

    /// Adds the arguments that the code reads as a shell does.
    fn add_arguments(&mut self, block: &Block) {
        let Positional { numbered, has_all } = Positional::read(&block.code);
        let span = block.name_span.clone();
        let string = |text: &str| Node::string(span.clone(), text);
        let mut add = |name: String, input: Node| {
            if self.description.option(&name).is_none() {
                self.description.options().add(name, span.clone(), input);
            }
        };
        if has_all {
            let arguments = Node::object(span.clone())
                .with("description", string("The arguments, one by one"))
                .with("value_type", string("array"))
                .with(
                    "items",
                    Node::object(span.clone()).with("value_type", string("string")),
                )
                .with("argument", string("plain"))
                .with("required", Node::boolean(span.clone(), false));
            return add("arguments".to_owned(), arguments);
        }
        for (place, is_optional) in numbered.into_iter().enumerate() {
            let number = place + 1;
            let mut input = Node::object(span.clone())
                .with("description", string(&format!("Value of `${number}`")))
                .with("value_type", string("string"))
                .with("argument", string("plain"))
                .with("required", Node::boolean(span.clone(), !is_optional));
            if is_optional {
                input = input.with("default_value", string(""));
            }
            add(format!("argument{number}"), input);
        }
    }

    /// Adds the input of a placeholder, and reports why a variable cannot replace it.
    fn add_placeholder(&mut self, placeholder: Placeholder, language: Language) {
        let Placeholder { name, span, fault } = placeholder;
        if let Some(message) = fault {
            let help = match message {
                shell::ARITHMETIC => format!("declare `{name}` as an `integer`"),
                shell::LIST => format!("write `=({{{{{name}}}}})`"),
                shell::COMMAND => {
                    format!(
                        "select between commands instead, as in `{{{{#if {name}}}}} … {{{{else}}}} … {{{{/if}}}}`"
                    )
                }
                _ => language.input_expression(&name),
            };
            let code = Code::SourceMisplacedPlaceholder;
            self.description.fault(code, span.clone(), message).help = Some(help);
        }
        if self.description.option(&name).is_none() {
            let input = Node::object(span.clone())
                .with("value_type", Node::string(span.clone(), "string"))
                .with("required", Node::boolean(span.clone(), true));
            self.description.options().add(name, span, input);
        }
    }
}

/// Returns a block with the code for all sections before it.
fn shared_code(section: &Section, block: &Block, language: Language) -> Block {
    let mut whole = Block::default();
    for shared in &section.shared {
        if Language::of(&shared.name) == Some(language) {
            whole.append(shared);
        }
    }
    whole.append(block);
    whole
}

fn condition((name, is_set): (&str, bool)) -> Condition {
    Condition {
        option: name.to_owned(),
        is_set,
    }
}

/// Splits an object into the fields of a schema, and the others.
fn split(object: Node) -> (Node, Node) {
    let mut parts = [
        Node::object(object.span.clone()),
        Node::object(object.span.clone()),
    ];
    for Entry {
        key,
        key_span,
        value,
    } in object.into_entries()
    {
        let is_schema = matches!(key.as_str(), "input" | "output");
        parts[usize::from(!is_schema)].add(key, key_span, value);
    }
    let [schema, metadata] = parts;
    (schema, metadata)
}
