//! Sidecars: `NAME.mcpd.toml` and `NAME.mcpd.json` describe the file `NAME` beside them, with the
//! fields of `--help` and a table `options`. A description in the file itself is ignored.

use super::{
    draft::{Draft, Entry, Literal, Node},
    toml_text,
};
use crate::{
    edit::Edit,
    json::{self, SyntaxErrorKind},
    parse::Parsed,
    rules::Code,
    suggest::suggest,
    text,
};

const JSON: &str = ".mcpd.json";

/// Suffixes of sidecars, after the name of the described file.
pub(super) const SUFFIXES: &[&str] = &[JSON, ".mcpd.toml"];

/// The path of the file that the file at `path` describes, if it is a sidecar.
pub(super) fn described_path(path: &str) -> Option<&str> {
    let described = SUFFIXES.iter().find_map(|end| path.strip_suffix(end))?;
    (!described.is_empty() && !described.ends_with('/')).then_some(described)
}

pub(super) fn read(path: &str, source: &str) -> Parsed {
    let first_line = source.lines().next().map_or(0, str::len);
    let mut draft = Draft::new(0..first_line);
    let fields = if path.ends_with(JSON) {
        read_json(source, &mut draft)
    } else {
        toml_text::read(source, |span| span, &mut draft)
    };
    finish(draft, fields)
}

fn read_json(source: &str, draft: &mut Draft) -> Option<Node> {
    let start = source.len() - source.trim_start_matches('\u{feff}').len();
    if start > 0 {
        let message = "a byte order mark before the JSON";
        let fault = draft.fault(Code::ByteOrderMark, 0..start, message);
        fault.edits = vec![Edit::new(0..start, "")];
    }
    match json::read(source, start) {
        Ok(document) => Some(document.root.into()),
        Err(error) => {
            let code = match error.kind {
                SyntaxErrorKind::TooDeep => Code::NestingTooDeep,
                SyntaxErrorKind::Grammar | SyntaxErrorKind::Trailing => Code::SourceSyntax,
            };
            draft.fault(code, text::visible_span(source, error.span), error.message);
            None
        }
    }
}

/// Splits the fields of one object: `options` is the part that a script prints to stderr, the rest
/// the part on stdout.
pub(super) fn finish(mut draft: Draft, fields: Option<Node>) -> Parsed {
    let Some(fields) = fields else {
        return draft.refuse();
    };
    let Literal::Object(entries) = fields.value else {
        draft.metadata = fields;
        return draft.finish();
    };
    let mut options = None;
    for Entry {
        key,
        key_span,
        value,
    } in entries
    {
        match key.as_str() {
            "options" if options.is_some() => draft.second_key(&key, key_span),
            "options" => options = Some(value),
            // This field is for editors.
            "$schema" => {}
            // `options` is not a field of the metadata, so their suggestions lack it.
            near if suggest(near, ["options"]).is_some() => {
                draft.unknown_field(near, key_span, &["options"]);
            }
            _ => draft.metadata.add(key, key_span, value),
        }
    }
    if let Some(options) = options {
        draft.options = options;
    }
    draft.finish()
}
