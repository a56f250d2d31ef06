//! Script Kit: `schema = { input: { … } }` and `metadata = { … }` at the top level of a script
//! in JavaScript or TypeScript, and comments such as `// Name: …`. They are parsed as
//! literals; nothing is run.

use super::{DescribedTool, draft::Node, split_extension};
use crate::rules::Code;

mod description;
mod fields;
mod literal;
mod scalar;
mod scanner;

pub(super) use description::{Description, comment_line};
pub(super) use literal::LiteralReader;

use scanner::TokenKind;

/// Returns whether a script declares its input.
pub(super) fn is_tool(source: &str) -> bool {
    // Most scripts lack this word, and need not be parsed.
    source.contains("chema") && Declarations::read(source).schemas.iter().any(has_input)
}

fn has_input(schema: &Node) -> bool {
    schema
        .member("input")
        .is_some_and(|input| !input.is_empty_object())
}

pub(super) fn read(path: &str, source: &str) -> DescribedTool {
    let found = Declarations::read(source);
    let first_line = source.lines().next().map_or(0, str::len);
    let mut description = Description::new(0..first_line);
    for metadata in found.metadata {
        description.metadata(metadata);
    }
    for comment in found.reader.scanner.comments {
        let line = &source[comment.start + 2..comment.end];
        if let Some(said) = comment_line(line, comment.start + 2) {
            description.add_field(said);
        }
    }
    for schema in found.schemas.into_iter().filter(has_input) {
        description.schema(schema);
    }
    let file_name = path.rsplit('/').next().unwrap_or(path);
    let (name, _) = split_extension(file_name);
    DescribedTool {
        path: Some(format!("scripts/{}", script_slug(&mut description, name))),
        ..DescribedTool::of_file(description.finish(found.reader.faults))
    }
}

/// The slug of a script's title, or of its file name.
fn script_slug(description: &mut Description, file_name: &str) -> String {
    if let Some(title) = description.title()
        && let Some(text) = title.text()
    {
        let slug = slug(text);
        if !slug.is_empty() {
            return slug;
        }
        let span = title.span.clone();
        let message =
            "the name has no letter from A to Z and no digit, so the name of the file is used";
        description.fault(Code::SourceUnusableName, span, message);
    }
    match slug(file_name) {
        slug if slug.is_empty() => file_name.to_owned(),
        slug => slug,
    }
}

/// Lower-case ASCII letters and digits, with `-` in place of everything between them.
pub(super) fn slug(name: &str) -> String {
    let is_word = |char: char| char.is_ascii_alphanumeric();
    let words = name
        .split(|char| !is_word(char))
        .filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

/// Declarations at the top level of a script.
struct Declarations<'a> {
    reader: LiteralReader<'a>,
    schemas: Vec<Node>,
    metadata: Vec<Node>,
}

impl<'a> Declarations<'a> {
    fn read(source: &'a str) -> Self {
        let start = if source.starts_with('\u{feff}') { 3 } else { 0 };
        let mut found = Self {
            reader: LiteralReader::new(source, start),
            schemas: Vec::new(),
            metadata: Vec::new(),
        };
        while found.reader.token.kind != TokenKind::End {
            found.statement();
        }
        found
    }

    /// Skips at least one token, and reads a declaration if one begins here.
    fn statement(&mut self) {
        let token = self.reader.advance();
        if token.depth > 0 {
            return;
        }
        let mut last = token.kind;
        if token.starts_statement {
            while let TokenKind::Word("export" | "const" | "let" | "var") = last {
                last = self.reader.advance().kind;
            }
        }
        match last {
            TokenKind::Word("schema") if token.starts_statement => {
                self.assignment(|found| &mut found.schemas)
            }
            TokenKind::Word("metadata") if token.starts_statement => {
                self.assignment(|found| &mut found.metadata)
            }
            TokenKind::Word("defineSchema") => self.call(),
            // The name is not Script Kit's own function.
            TokenKind::Word("function") | TokenKind::Symbol("." | "?.") => {
                self.reader.advance();
            }
            _ => {}
        }
    }

    /// Reads `= { … }`, possibly after a type.
    fn assignment(&mut self, declared: fn(&mut Self) -> &mut Vec<Node>) {
        if self.reader.is_symbol(":") {
            self.reader.skip_type(0);
        }
        if self.reader.is_symbol("=") {
            self.reader.advance();
            self.object(0, declared);
        }
    }

    /// Reads `({ … })`, possibly after types.
    fn call(&mut self) {
        if self.reader.is_symbol("<") {
            while !matches!(
                self.reader.token.kind,
                TokenKind::Symbol("(" | ";") | TokenKind::End
            ) {
                self.reader.advance();
            }
        }
        if self.reader.is_symbol("(") {
            self.reader.advance();
            self.object(1, |found| &mut found.schemas);
        }
    }

    fn object(&mut self, depth: usize, declared: fn(&mut Self) -> &mut Vec<Node>) {
        let start = self.reader.token.span.start;
        if self.reader.is_symbol("{")
            && let Ok(Some(object)) = self.reader.value(depth)
        {
            declared(self).push(object);
            // If the rest makes the object no literal, that has been reported.
            let _ = self.reader.end_of_value(start, depth);
        }
    }
}
