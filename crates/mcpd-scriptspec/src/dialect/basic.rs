//! BASIC: lines `PARAM name AS type …` and `DESCRIPTION "…"` anywhere in a program. The
//! interpreter handles all other lines.
//!
//! ```text
//! PARAM name [AS type] { LIKE value | DESCRIPTION text | OPTIONAL | DEFAULT value
//!                      | ENUM [ value, … ] | PATTERN "regex" | MIN number | MAX number }
//! type: string | number | integer | boolean | date | email | array | object | ARRAY OF type
//!     | another word for one of these, as in TYPE_ALIASES
//!     | "value", "value" … (one of these texts) | "text" (a text, and what it means)
//! ```

use std::collections::BTreeMap;

use super::draft::{Draft, Literal, Node, Optional};
use crate::{json::Span, rules::Code, suggest::suggest};

mod example;
mod lexer;

use lexer::{Token, TokenKind, Tokens};

const TYPES: &[&str] = &[
    "string", "number", "integer", "boolean", "date", "email", "array", "object",
];

/// Aliases of types in hosts of BASIC: input of a dialogue is text.
const TYPE_ALIASES: &[(&str, &[&str])] = &[
    (
        "string",
        &[
            "text", "char", "datetime", "time", "hour", "name", "phone", "mobile", "zipcode",
            "money", "language", "cpf", "cnpj", "qrcode", "url", "file", "image", "audio", "video",
            "document",
        ],
    ),
    ("integer", &["int", "long"]),
    ("number", &["float", "double", "decimal", "single"]),
    ("boolean", &["bool"]),
    ("array", &["list"]),
    ("object", &["map"]),
];

const CLAUSES: &[&str] = &[
    "LIKE",
    "DESCRIPTION",
    "OPTIONAL",
    "DEFAULT",
    "ENUM",
    "PATTERN",
    "MIN",
    "MAX",
];

/// Keywords that cannot be names of parameters.
const NO_NAMES: [&str; 10] = [
    "and", "or", "not", "mod", "then", "else", "true", "false", "nothing", "null",
];

/// Maximum nesting depth of values.
const MAX_DEPTH: usize = 32;

/// Error that has been reported; the rest of the line is skipped.
struct Reported;

pub(super) fn read(source: &str) -> Draft {
    let first_line = source.lines().next().map_or(0, str::len);
    let mut draft = Draft::new(0..first_line);
    draft.optional = Optional::OnPurpose;
    let mut names = BTreeMap::new();
    let mut start = 0;
    let mut in_table = false;
    for line in source.split_inclusive('\n') {
        // A fault of the line is in the draft already.
        let _ = Statement::new(source, start, &mut draft, &mut names).read(&mut in_table);
        start += line.len();
    }
    draft
}

/// One line.
struct Statement<'a, 'd> {
    tokens: Tokens<'a>,
    draft: &'d mut Draft,
    /// The parameters so far, by their variables: in lower case, because programs ignore case.
    names: &'d mut BTreeMap<String, &'a str>,
}

impl<'a, 'd> Statement<'a, 'd> {
    fn new(
        source: &'a str,
        start: usize,
        draft: &'d mut Draft,
        names: &'d mut BTreeMap<String, &'a str>,
    ) -> Self {
        Self {
            tokens: Tokens::of_line(source, start),
            draft,
            names,
        }
    }

    /// Reads the line. Lines of a table definition, `TABLE name … END TABLE`, are columns, and a
    /// column may be called `description`.
    fn read(&mut self, in_table: &mut bool) -> Result<(), Reported> {
        let keyword = self.tokens.next();
        let next = self.tokens.peek();
        if keyword.is_word("ENDTABLE") || keyword.is_word("END") && next.is_word("TABLE") {
            *in_table = false;
        } else if keyword.is_word("TABLE")
            && matches!(next.kind, TokenKind::Word(_) | TokenKind::String(_))
        {
            *in_table = true;
        }
        if *in_table {
            return Ok(());
        }
        if keyword.is_word("PARAM") && self.tokens.peek().kind != TokenKind::Symbol("=") {
            return self.param();
        }
        if keyword.is_word("DESCRIPTION") {
            let text = match self.tokens.peek().kind {
                TokenKind::String(_) | TokenKind::Unclosed => self.description()?,
                // Without quotes, the rest of the line.
                TokenKind::Word(_) | TokenKind::Number(_) => self.tokens.rest_as_text(),
                _ => return Ok(()),
            };
            self.draft.metadata.add("description", keyword.span, text);
            self.end()?;
        }
        Ok(())
    }

    fn param(&mut self) -> Result<(), Reported> {
        let name = self.tokens.next();
        let TokenKind::Word(word) = name.kind else {
            return self.report_expected("the name of a parameter", &name);
        };
        if NO_NAMES.iter().any(|no_name| name.is_word(no_name)) {
            return self.report_expected("a name without another meaning in programs", &name);
        }
        let other = *self.names.entry(word.to_lowercase()).or_insert(word);
        // Later checks find duplicates in the same case.
        if other != word {
            let message = format!("`{word}` is the same variable as `{other}`");
            let fault = self.draft.fault(Code::DuplicateOption, name.span, message);
            fault.help = Some("names in a program are case-insensitive".to_owned());
            return Err(Reported);
        }
        let mut option = Node::object(name.span.clone());
        let mut clauses = Clauses::default();
        let value_type = self.declared_type(&name.span, &mut option, &mut clauses)?;
        while self.tokens.peek().kind != TokenKind::End {
            self.clause(&mut option, &mut clauses)?;
        }
        clauses.finish(&mut option, value_type, &name.span, self.draft)?;
        self.draft.options.add(word, name.span, option);
        Ok(())
    }

    /// Parses the part after the name: `AS` and a type, texts in place of one, or nothing.
    fn declared_type(
        &mut self,
        name: &Span,
        option: &mut Node,
        clauses: &mut Clauses,
    ) -> Result<Node, Reported> {
        let next = self.tokens.peek();
        if next.is_word("AS") {
            self.tokens.next();
            if !matches!(self.tokens.peek().kind, TokenKind::String(_)) {
                return self.value_type(0);
            }
            let mut texts = vec![self.text()?];
            while self.tokens.peek().kind == TokenKind::Symbol(",") {
                self.tokens.next();
                texts.push(self.text()?);
            }
            match <[Node; 1]>::try_from(texts) {
                Ok([meaning]) => option.add("description", meaning.span.clone(), meaning),
                Err(texts) => {
                    clauses.values = Some(Node::new(name.clone(), Literal::Array(texts)));
                }
            }
        } else if next.kind != TokenKind::End && !CLAUSES.iter().any(|clause| next.is_word(clause))
        {
            return self.report_expected("`AS`", &next);
        }
        let string = Node::string(name.clone(), "string");
        Ok(Node::object(name.clone()).with("value_type", string))
    }

    /// Parses the type of an option, or of the elements of a list, into fields.
    fn value_type(&mut self, depth: usize) -> Result<Node, Reported> {
        let token = self.tokens.next();
        let TokenKind::Word(word) = token.kind else {
            return self.report_expected("a type", &token);
        };
        let written = word.to_ascii_lowercase();
        let mut aliases = TYPE_ALIASES.iter();
        let name = aliases
            .find(|(_, words)| words.contains(&written.as_str()))
            .map_or(written.as_str(), |(name, _)| name);
        let span = token.span.clone();
        let mut node = Node::object(span.clone());
        let (value_type, format) = match name {
            "string" | "integer" | "boolean" | "array" | "object" => (name, None),
            "number" => ("float", None),
            "date" | "email" => ("string", Some(name)),
            _ => {
                let fault = self.draft.fault(
                    Code::UnknownValueType,
                    span,
                    format!("unknown type `{word}`"),
                );
                fault.help = Some(match suggest(name, TYPES.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("types are {}", TYPES.join(", ")),
                });
                return Err(Reported);
            }
        };
        node.add(
            "value_type",
            span.clone(),
            Node::string(span.clone(), value_type),
        );
        if let Some(format) = format {
            node.add("format", span.clone(), Node::string(span.clone(), format));
        }
        if value_type == "array" && self.tokens.peek().is_word("OF") {
            self.tokens.next();
            if depth == MAX_DEPTH {
                return self.too_deep(span);
            }
            let items = self.value_type(depth + 1)?;
            node.add("items", span, items);
        }
        Ok(node)
    }

    fn clause(&mut self, option: &mut Node, clauses: &mut Clauses) -> Result<(), Reported> {
        let token = self.tokens.next();
        let keyword = match token.kind {
            TokenKind::Word(word) => word.to_ascii_uppercase(),
            _ => String::new(),
        };
        let span = token.span.clone();
        match keyword.as_str() {
            "LIKE" if clauses.example.is_some() => {
                return self.report_expected("at most one `LIKE`", &token);
            }
            "LIKE" => clauses.example = Some((span, self.example()?)),
            "DESCRIPTION" => {
                let text = self.description()?;
                option.add("description", span, text);
            }
            "DEFAULT" => {
                clauses.optional = true;
                let value = self.value(0)?;
                option.add("default_value", span, value);
            }
            "OPTIONAL" => clauses.optional = true,
            "ENUM" => clauses.values = Some(self.value(0)?),
            "PATTERN" => {
                let text = self.text()?;
                option.add("pattern", span, text);
            }
            "MIN" | "MAX" => {
                let bound = self.value(0)?;
                let size = clauses
                    .size
                    .get_or_insert_with(|| Node::object(span.clone()));
                size.add(keyword.to_ascii_lowercase(), span, bound);
            }
            _ => {
                let near = suggest(&keyword, CLAUSES.iter().copied());
                self.report_expected("a clause", &token)
                    .unwrap_or_else(|Reported| {
                        if let Some(fault) = self.draft.diagnostics.last_mut() {
                            fault.help = Some(match near {
                                Some(near) => format!("did you mean `{near}`?"),
                                None => format!("clauses are {}", CLAUSES.join(", ")),
                            });
                        }
                    });
                return Err(Reported);
            }
        }
        Ok(())
    }

    /// Parses a value, or words without quotes up to the next clause.
    fn example(&mut self) -> Result<Node, Reported> {
        if matches!(
            self.tokens.peek().kind,
            TokenKind::String(_) | TokenKind::Unclosed | TokenKind::Symbol("[")
        ) {
            return self.value(0);
        }
        let words = self.tokens.clone();
        let mut span = self.tokens.peek().span;
        let mut count = 0;
        loop {
            let token = self.tokens.peek();
            let is_clause = CLAUSES.iter().any(|clause| token.is_word(clause));
            if is_clause
                || matches!(
                    token.kind,
                    TokenKind::End | TokenKind::String(_) | TokenKind::Unclosed
                )
            {
                break;
            }
            span.end = token.span.end;
            count += 1;
            self.tokens.next();
        }
        let first = &words.peek().kind;
        let is_value = matches!(first, TokenKind::Number(_))
            || ["true", "false"]
                .iter()
                .any(|word| words.peek().is_word(word));
        if count == 0 || (count == 1 && is_value) {
            self.tokens = words;
            return self.value(0);
        }
        let text = &self.tokens.source()[span.clone()];
        Ok(Node::string(span, text))
    }

    /// Parses a non-empty text.
    fn description(&mut self) -> Result<Node, Reported> {
        let text = self.text()?;
        if text.text().is_some_and(|text| text.trim().is_empty()) {
            let message = "the description is empty";
            self.draft.fault(Code::SourceSyntax, text.span, message);
            return Err(Reported);
        }
        Ok(text)
    }

    fn text(&mut self) -> Result<Node, Reported> {
        let token = self.tokens.next();
        match token.kind {
            TokenKind::String(ref text) => Ok(Node::string(token.span, text.clone())),
            _ => self.report_expected("a string in quotes", &token),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, Reported> {
        let token = self.tokens.next();
        let literal = match token.kind {
            TokenKind::String(ref text) => Literal::String(text.clone()),
            TokenKind::Number(ref number) => Literal::Number(number.clone()),
            TokenKind::Word(word) if word.eq_ignore_ascii_case("true") => Literal::Boolean(true),
            TokenKind::Word(word) if word.eq_ignore_ascii_case("false") => Literal::Boolean(false),
            TokenKind::Symbol("[") => return self.list(token.span, depth),
            _ => {
                return self.report_expected(
                    "a value: a string in quotes, a number, `TRUE`, `FALSE` or a list in `[ ]`",
                    &token,
                );
            }
        };
        Ok(Node::new(token.span, literal))
    }

    fn list(&mut self, open: Span, depth: usize) -> Result<Node, Reported> {
        if depth == MAX_DEPTH {
            return self.too_deep(open);
        }
        let mut items = Vec::new();
        if self.tokens.peek().kind == TokenKind::Symbol("]") {
            let close = self.tokens.next();
            return Ok(Node::new(open.start..close.span.end, Literal::Array(items)));
        }
        loop {
            items.push(self.value(depth + 1)?);
            let token = self.tokens.next();
            match token.kind {
                TokenKind::Symbol(",") => {}
                TokenKind::Symbol("]") => {
                    return Ok(Node::new(open.start..token.span.end, Literal::Array(items)));
                }
                _ => return self.report_expected("`,` or `]`", &token),
            }
        }
    }

    fn end(&mut self) -> Result<(), Reported> {
        let token = self.tokens.next();
        match token.kind {
            TokenKind::End => Ok(()),
            _ => self.report_expected("the end of the line", &token),
        }
    }

    fn report_expected<T>(&mut self, what: &str, token: &Token<'_>) -> Result<T, Reported> {
        let message = match token.kind {
            TokenKind::Unclosed => "the string has no closing quote on its line".to_owned(),
            _ => format!("expected {what}, found {}", token.kind.describe()),
        };
        self.draft
            .fault(Code::SourceSyntax, token.span.clone(), message);
        Err(Reported)
    }

    fn too_deep<T>(&mut self, span: Span) -> Result<T, Reported> {
        let message = format!("nested more than {MAX_DEPTH} levels deep");
        self.draft.fault(Code::NestingTooDeep, span, message);
        Err(Reported)
    }
}

/// Clauses that depend on each other.
#[derive(Default)]
struct Clauses {
    optional: bool,
    /// The example, with the place of its keyword.
    example: Option<(Span, Node)>,
    values: Option<Node>,
    size: Option<Node>,
}

impl Clauses {
    fn finish(
        self,
        option: &mut Node,
        mut value_type: Node,
        name: &Span,
        draft: &mut Draft,
    ) -> Result<(), Reported> {
        let required = Node::boolean(name.clone(), !self.optional);
        option.add("required", name.clone(), required);
        if let Some((keyword, example)) = self.example {
            example::add(option, keyword, example, &value_type);
        }
        if let Some(default) = option.member_mut("default_value") {
            example::convert(default, &value_type);
        }
        if let Some(values) = self.values {
            choose(&mut value_type, values, draft)?;
        }
        if let Literal::Object(fields) = value_type.value {
            for field in fields {
                option.add(field.key, field.key_span, field.value);
            }
        }
        if let Some(size) = self.size {
            option.add("size", size.span.clone(), size);
        }
        Ok(())
    }
}

/// Restricts the type to one of these values; for a list of texts, each element.
fn choose(value_type: &mut Node, values: Node, draft: &mut Draft) -> Result<(), Reported> {
    let Literal::Object(fields) = &mut value_type.value else {
        return Ok(());
    };
    if let Some(items) = fields.iter_mut().find(|field| field.key == "items") {
        return choose(&mut items.value, values, draft);
    }
    fields.retain(|field| field.key != "format");
    let Some(name) = fields.iter_mut().find(|field| field.key == "value_type") else {
        return Ok(());
    };
    if !matches!(&name.value.value, Literal::String(name) if name == "string") {
        let message = "`ENUM` lists strings, but the option has another type";
        let fault = draft.fault(Code::ConflictingFields, name.key_span.clone(), message);
        fault.help = Some("make it `string`, or `ARRAY OF string`".to_owned());
        return Err(Reported);
    }
    let mut choice = Node::object(values.span.clone());
    choice.add("enum", values.span.clone(), values);
    name.value = choice;
    Ok(())
}
