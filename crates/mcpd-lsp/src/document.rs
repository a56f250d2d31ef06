//! Open documents: their kinds by name, their texts, and the problems found in them.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use lsp_types::Uri;
use mcpd_scriptspec::dialect::HeaderText;
use percent_encoding::percent_decode_str;

use crate::complete::{Completion, Part};
use crate::outline::Format;
use crate::problem::Problem;
use crate::schema::Schema;

/// Kind of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `NAME.mcpd.toml` or `NAME.mcpd.json`.
    Sidecar(Format),
    /// `mcpd.toml`.
    Configuration,
    /// Any other file, which may describe itself.
    Script,
}

impl Kind {
    pub(crate) fn of(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name == "mcpd.toml" {
            Self::Configuration
        } else if name.ends_with(".mcpd.toml") {
            Self::Sidecar(Format::Toml)
        } else if name.ends_with(".mcpd.json") {
            Self::Sidecar(Format::Json)
        } else {
            Self::Script
        }
    }
}

/// An open document.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) uri: Uri,
    pub(crate) path: PathBuf,
    pub(crate) kind: Kind,
    pub(crate) version: i32,
    pub(crate) text: String,
    /// Problems of this text, once they have been looked for.
    pub(crate) problems: Option<Rc<[Problem]>>,
}

/// Schemas of the documents that have one.
#[derive(Debug)]
pub(crate) struct Schemas {
    sidecar: Schema,
    configuration: Schema,
}

impl Schemas {
    /// Reads the published schemas.
    pub(crate) fn load() -> Self {
        let sidecar = include_str!("sidecar.schema.json");
        let sidecar = serde_json::from_str(sidecar).expect("the published schema is JSON");
        Self {
            sidecar: Schema::new(sidecar),
            configuration: Schema::new(mcpd_config::schema()),
        }
    }
}

impl Document {
    pub(crate) fn new(uri: Uri, version: i32, text: String) -> Self {
        let path = path_of(&uri);
        Self {
            kind: Kind::of(&path),
            uri,
            path,
            version,
            text,
            problems: None,
        }
    }

    fn whole<'a>(&'a self, format: Format, schema: &'a Schema) -> Part<'a> {
        Part {
            text: &self.text,
            format,
            schema,
            table: &[],
        }
    }

    /// Returns the words that fit at a byte.
    pub(crate) fn complete(&self, schemas: &Schemas, at: usize) -> Vec<Completion> {
        match self.kind {
            Kind::Sidecar(format) => self.whole(format, &schemas.sidecar).complete(at),
            Kind::Configuration => {
                let part = self.whole(Format::Toml, &schemas.configuration);
                part.complete(at)
            }
            Kind::Script => self.complete_header(schemas, at).unwrap_or_default(),
        }
    }

    fn complete_header(&self, schemas: &Schemas, at: usize) -> Option<Vec<Completion>> {
        let header = HeaderText::find(&self.text)?;
        let at = header.from_source(at)?;
        let part = header_part(&header, &schemas.sidecar);
        let words = part.complete(at).into_iter().map(|mut word| {
            let is_first = word.span.start == 0 || header.toml()[..word.span.start].ends_with('\n');
            word.span = in_source(&header, &word.span);
            // A line of a header has a blank behind its comment leader.
            if is_first && !self.text[..word.span.start].ends_with([' ', '\t']) {
                word.text.insert(0, ' ');
            }
            word
        });
        Some(words.collect())
    }

    /// Returns the description of what is at a byte, and its place.
    pub(crate) fn hover(&self, schemas: &Schemas, at: usize) -> Option<(String, Range<usize>)> {
        match self.kind {
            Kind::Sidecar(format) => self.whole(format, &schemas.sidecar).hover(at),
            Kind::Configuration => {
                let part = self.whole(Format::Toml, &schemas.configuration);
                part.hover(at)
            }
            Kind::Script => {
                let header = HeaderText::find(&self.text)?;
                let at = header.from_source(at)?;
                let (text, span) = header_part(&header, &schemas.sidecar).hover(at)?;
                Some((text, in_source(&header, &span)))
            }
        }
    }
}

fn header_part<'a>(header: &'a HeaderText, schema: &'a Schema) -> Part<'a> {
    Part {
        text: header.toml(),
        format: Format::Toml,
        schema,
        table: header.table(),
    }
}

fn in_source(header: &HeaderText, span: &Range<usize>) -> Range<usize> {
    header.to_source(span.start)..header.to_source(span.end)
}

/// The path of a file; of another document, such as a new one, the end of its address.
fn path_of(uri: &Uri) -> PathBuf {
    let text = uri.as_str();
    let path = text.strip_prefix("file://").unwrap_or(text);
    let path = percent_decode_str(path).decode_utf8_lossy();
    let is_drive = path.as_bytes().get(2) == Some(&b':') && path.starts_with('/');
    PathBuf::from(&path[usize::from(is_drive)..])
}
