//! Edits: fixes of faults as replacements in the text of a file, for tools that apply them.

use std::ops::Range;

use crate::diagnostic::{Diagnostic, Stream};

/// Replacement of a part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a replacement is nothing else")]
pub struct Edit {
    /// Replaced bytes, between two characters; an empty range inserts.
    pub span: Range<usize>,
    /// Text in their place.
    pub replacement: String,
}

impl Edit {
    pub(crate) fn new(span: Range<usize>, replacement: impl Into<String>) -> Self {
        Self {
            span,
            replacement: replacement.into(),
        }
    }
}

/// Applies edits to a text, which leave everything else as it is. Returns nothing if two of them
/// overlap, or one is not between characters of the text.
///
/// ```
/// use mcpd_scriptspec::{Edit, apply_edits};
///
/// let edit = Edit { span: 0..5, replacement: "title".to_owned() };
/// assert_eq!(apply_edits("titel = 'x'", &[edit]).as_deref(), Some("title = 'x'"));
/// ```
#[must_use]
pub fn apply_edits(text: &str, edits: &[Edit]) -> Option<String> {
    let mut sorted: Vec<_> = edits.iter().collect();
    sorted.sort_by_key(|edit| (edit.span.start, edit.span.end));
    let (mut edited, mut end) = (String::with_capacity(text.len()), 0);
    for edit in sorted {
        edited += text.get(end..edit.span.start)?;
        text.get(edit.span.clone())?;
        edited += &edit.replacement;
        end = edit.span.end;
    }
    edited += text.get(end..)?;
    Some(edited)
}

/// Fix of a fault whose edits are only known with the text of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Repair {
    /// Writes another word in the place of the fault, in the same quotes.
    Respell { given: String, meant: String },
    /// Removes the element of an array, with the comma before it.
    RemoveElement,
    /// Removes the member of a JSON object whose value has the fault.
    RemoveMember { key: String },
}

impl Repair {
    pub(crate) fn respell(given: &str, meant: &str) -> Self {
        Self::Respell {
            given: given.to_owned(),
            meant: meant.to_owned(),
        }
    }

    /// Returns the edit of `text` for a fault at `span`; none if the text has another form there,
    /// such as a word with escapes.
    fn edit(&self, text: &str, span: &Range<usize>) -> Option<Edit> {
        let token = text.get(span.clone())?;
        match self {
            Self::Respell { given, meant } => {
                let quoted = ['"', '\'']
                    .into_iter()
                    .find_map(|quote| token.strip_prefix(quote)?.strip_suffix(quote));
                let quote = usize::from(quoted.is_some());
                (quoted.unwrap_or(token) == given)
                    .then(|| Edit::new(span.start + quote..span.end - quote, meant))
            }
            Self::RemoveElement => {
                let start = text[..span.start].trim_end().strip_suffix(',')?.len();
                Some(Edit::new(start..span.end, ""))
            }
            Self::RemoveMember { key } => {
                let before = text[..span.start].trim_end().strip_suffix(':')?.trim_end();
                let before = before.strip_suffix(&format!("\"{key}\""))?;
                let after = &text[span.end..];
                let trailing = after.trim_start().strip_prefix(',').map(str::trim_start);
                Some(match (before.trim_end().strip_suffix(','), trailing) {
                    (Some(before), _) => Edit::new(before.len()..span.end, ""),
                    (None, Some(rest)) => Edit::new(before.len()..text.len() - rest.len(), ""),
                    (None, None) => Edit::new(before.len()..span.end, ""),
                })
            }
        }
    }
}

impl Diagnostic {
    /// Turns the fix into edits of the file with this text.
    pub(crate) fn locate_edits(&mut self, text: &str) {
        let repair = self.repair.take();
        let is_in_file = self.location.stream == Stream::Source;
        if let Some(repair) = repair.filter(|_| is_in_file) {
            self.edits.extend(repair.edit(text, &self.location.span));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect;

    /// Applies the edits of all faults in a file.
    #[track_caller]
    fn check(path: &str, text: &str, expected: &str) {
        let dialect = Dialect::of(path, text.as_bytes()).expect("it describes itself");
        let tools = dialect.read(path, text.as_bytes());
        let faults = tools.iter().flat_map(|tool| &tool.parsed.diagnostics);
        let edits: Vec<_> = faults.flat_map(|fault| fault.edits.clone()).collect();
        assert_eq!(
            apply_edits(text, &edits).as_deref(),
            Some(expected),
            "{edits:?}"
        );
    }

    #[test]
    fn misspelt_words_keep_their_quotes() {
        check(
            "x.mcpd.toml",
            "titel = 'A'\n'descripton' = \"Does\"\noutput = \"JSON\"\nrequires = ['sampeling']\n\n[options.n]\nrequired = true\nvalue_type = \"int\"\n",
            "title = 'A'\n'description' = \"Does\"\noutput = \"json\"\nrequires = ['sampling']\n\n[options.n]\nrequired = true\nvalue_type = \"integer\"\n",
        );
        check(
            "x.sh",
            "#!/bin/sh\r\n# /// mcpd\r\n# titel = \"A\"\r\n# description = \"Does\"\r\n# ///\r\n",
            "#!/bin/sh\r\n# /// mcpd\r\n# title = \"A\"\r\n# description = \"Does\"\r\n# ///\r\n",
        );
    }

    #[test]
    fn uncertain_word_is_left_to_its_author() {
        check(
            "x.mcpd.toml",
            "description = 'Does'\nurl = 'x'\n[options.n]\nrequired = false\ndefault = 'string'\n",
            "description = 'Does'\nuri = 'x'\n[options.n]\nrequired = false\ndefault_value = 'string'\n",
        );
        check(
            "x.mcpd.toml",
            "description = 'Does'\ntype = 'x'\n",
            "description = 'Does'\ntype = 'x'\n",
        );
        let escaped = "\"t\\u0069tel\" = 'x'\ndescription = 'Does'\n";
        check("x.mcpd.toml", escaped, escaped);
    }

    #[test]
    fn surplus_parts_are_removed_with_their_commas() {
        check(
            "x.mcpd.json",
            "\u{feff}{\"title\": null, \"description\": \"Does\",\n \"version\" : null,\n \"tags\": [\"a\"]}\n",
            "{\"description\": \"Does\",\n \"tags\": [\"a\"]}\n",
        );
        check(
            "x.mcpd.toml",
            "description = 'Does'\n[options.n]\nrequired = true\nvalue_type = { enum = ['a', 'b', # more\n 'a', 'b'] }\n",
            "description = 'Does'\n[options.n]\nrequired = true\nvalue_type = { enum = ['a', 'b', # more\n 'a'] }\n",
        );
    }

    #[test]
    fn date_is_quoted_and_misspelt_header_opened() {
        check(
            "x.mcpd.toml",
            "description = 'Does'\nversion = 2026-01-02\n",
            "description = 'Does'\nversion = \"2026-01-02\"\n",
        );
        check(
            "x.sh",
            "#!/bin/sh\n#///mcpd\n# ///\n",
            "#!/bin/sh\n# /// mcpd\n# ///\n",
        );
    }

    #[test]
    fn overlapping_edits_are_refused() {
        let edits = [Edit::new(0..2, "x"), Edit::new(1..3, "y")];
        assert_eq!(apply_edits("abcd", &edits), None);
        assert_eq!(apply_edits("ä", &[Edit::new(1..2, "")]), None);
        let inserts = [Edit::new(4..4, ")"), Edit::new(0..0, "(")];
        assert_eq!(apply_edits("abcd", &inserts).as_deref(), Some("(abcd)"));
    }
}
