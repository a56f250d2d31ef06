//! Comments that ignore faults: `# mcpd: ignore[unknown-field]`, in scripts and in their
//! descriptions.
//!
//! On a line of its own, a comment applies to the file; behind other text, to its line. In a file
//! that describes itself it may be anywhere; in a script that answers `--help`, whose faults are in
//! no line of it, among the first [`HEAD_LINES`].

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use mcpd_scriptspec::{Edit, Severity, Stream};
use mcpd_server::Catalog;

use crate::finding::{Finding, Place, Position};
use crate::fix::Fix;
use crate::rules;
use crate::selection::similar_code;

/// Number of lines at the beginning of a script in which comments are read, unless the file
/// describes itself.
pub const HEAD_LINES: usize = 20;

/// Maximum size of these lines, in bytes.
const MAX_HEAD_BYTES: u64 = 16 * 1024;

/// Beginning of the comment, behind its leader.
const MARK: &str = "mcpd: ignore[";

/// Comment leaders of the languages in which scripts and descriptions are written.
const LEADERS: [&str; 10] = ["#", "//", "--", ";", "%", "'", "REM", "rem", "/*", "<!--"];

/// The comments of files, with the texts that findings about them point into.
#[derive(Debug, Default)]
pub struct IgnoreComments {
    files: Vec<CommentedFile>,
}

#[derive(Debug)]
struct CommentedFile {
    file: PathBuf,
    text: Vec<u8>,
    codes: Vec<IgnoredCode>,
}

/// One code of a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
struct IgnoredCode {
    code: String,
    span: Range<usize>,
    /// Line of the faults, from 1 on; none if the comment applies to the whole file.
    line: Option<usize>,
    /// Text whose removal removes this code alone.
    removal: Range<usize>,
}

impl IgnoreComments {
    /// Reads the comments in the text of a file that describes itself.
    #[must_use]
    pub fn of_text(file: &Path, text: &[u8]) -> Self {
        let mut comments = Self::default();
        comments.add(file, text);
        comments
    }

    /// Reads the comments in the scripts of a catalog and in their descriptions. A file that
    /// can't be read has none.
    #[must_use]
    pub fn read(catalog: &Catalog) -> Self {
        let scan = catalog.scan();
        let mut texts: BTreeMap<&Path, Cow<'_, [u8]>> = BTreeMap::new();
        for script in &scan.scripts {
            if !script.help.source.is_empty() {
                let text = Cow::Borrowed(&script.help.source[..]);
                texts.insert(&script.described_in, text);
            }
        }
        let scripts = scan.scripts.iter().map(|script| &script.file);
        let unusable = scan.unusable.iter().map(|file| &file.file);
        let overlooked = scan.overlooked.iter().map(|file| &file.file);
        for file in scripts.chain(unusable).chain(overlooked) {
            if !texts.contains_key(file.as_path())
                && let Ok(head) = read_head(file)
            {
                texts.insert(file, Cow::Owned(head));
            }
        }
        let mut comments = Self::default();
        for (file, text) in texts {
            comments.add(file, &text);
        }
        comments
    }

    fn add(&mut self, file: &Path, text: &[u8]) {
        let valid = text.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        let codes = ignored_codes(valid);
        if !codes.is_empty() {
            self.files.push(CommentedFile {
                file: file.to_owned(),
                text: text.to_owned(),
                codes,
            });
        }
    }

    /// Removes ignored findings, and adds one for each code that no rule has, and for each that
    /// ignores nothing if `is_complete`: the findings are those of all rules.
    #[must_use]
    pub fn apply<'a>(&'a self, findings: Vec<Finding<'a>>, is_complete: bool) -> Vec<Finding<'a>> {
        let unused = self.files.iter().map(|file| vec![true; file.codes.len()]);
        let mut unused: Vec<Vec<bool>> = unused.collect();
        let mut left = Vec::with_capacity(findings.len());
        for finding in findings {
            let mut is_ignored = false;
            for (file, unused) in self.files.iter().zip(&mut unused) {
                for (ignored, is_unused) in file.codes.iter().zip(unused) {
                    if file.ignores(ignored, &finding) {
                        *is_unused = false;
                        is_ignored = true;
                    }
                }
            }
            if !is_ignored {
                left.push(finding);
            }
        }
        for (file, unused) in self.files.iter().zip(unused) {
            let unused = file
                .codes
                .iter()
                .zip(unused)
                .filter(|(_, is_unused)| *is_unused);
            left.extend(
                unused.filter_map(|(ignored, _)| file.unused_finding(ignored, is_complete)),
            );
        }
        left
    }
}

impl CommentedFile {
    fn ignores(&self, ignored: &IgnoredCode, finding: &Finding<'_>) -> bool {
        let is_other = finding.code != ignored.code || finding.file != Some(&self.file);
        if is_other || rules::warns_of_author(finding.code) {
            return false;
        }
        let in_file = finding.place.as_ref().filter(|place| place.is_in_file());
        let line = in_file.map(|place| place.start().line);
        ignored.line.is_none() || ignored.line == line
    }

    /// Returns the finding about a code that ignores nothing.
    fn unused_finding(&self, ignored: &IgnoredCode, is_complete: bool) -> Option<Finding<'_>> {
        let code = &ignored.code;
        let is_known = rules::find(code).is_ok();
        let message = if !is_known {
            let shown = code.escape_debug();
            match similar_code(code) {
                Some(near) => format!("no rule has the code `{shown}`; did you mean `{near}`?"),
                None => format!("no rule has the code `{shown}`"),
            }
        } else if is_complete {
            let place = if ignored.line.is_some() {
                "line"
            } else {
                "file"
            };
            format!("the {place} has no fault `{code}` to ignore")
        } else {
            return None;
        };
        let removal = Edit {
            span: ignored.removal.clone(),
            replacement: String::new(),
        };
        Some(Finding {
            path: None,
            file: Some(&self.file),
            code: rules::UNUSED_IGNORE,
            severity: Severity::Warning,
            message: message.into(),
            place: Place::new(Stream::Source, &self.text, &ignored.span),
            help: is_known.then_some("remove it"),
            last_words: None,
            fix: is_known.then(|| Fix::Edits(vec![removal])),
        })
    }
}

/// Reads the first lines of a file.
fn read_head(file: &Path) -> io::Result<Vec<u8>> {
    let is_file = file.metadata()?.is_file();
    let mut head = Vec::new();
    if is_file {
        File::open(file)?
            .take(MAX_HEAD_BYTES)
            .read_to_end(&mut head)?;
    }
    let mut ends = head.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    if let Some((end, _)) = ends.nth(HEAD_LINES - 1) {
        head.truncate(end + 1);
    }
    Ok(head)
}

/// Returns the codes of all comments.
fn ignored_codes(text: &str) -> Vec<IgnoredCode> {
    let mut codes = Vec::new();
    for (at, _) in text.match_indices(MARK) {
        let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let list = at + MARK.len();
        let line_end = text[list..].find('\n').map_or(text.len(), |end| list + end);
        let Some(length) = text[list..line_end].find(']') else {
            continue;
        };
        let Some((comment, is_alone)) = comment_start(&text[line_start..at]) else {
            continue;
        };
        let whole = if is_alone {
            line_start..(line_end + 1).min(text.len())
        } else {
            line_start + comment..list + length + 1
        };
        let has_reason = !text[list + length + 1..line_end].trim().is_empty();
        let whole = if is_alone || !has_reason {
            whole
        } else {
            line_start + comment..line_end
        };
        let line = Position::of(text.as_bytes(), at).line;
        let spans = code_spans(text, list..list + length);
        for (place, span) in spans.iter().enumerate() {
            let removal = match (place.checked_sub(1), spans.get(place + 1)) {
                (Some(before), _) => spans[before].end..span.end,
                (None, Some(next)) => span.start..next.start,
                (None, None) => whole.clone(),
            };
            codes.push(IgnoredCode {
                code: text[span.clone()].to_owned(),
                span: span.clone(),
                line: (!is_alone).then_some(line),
                removal,
            });
        }
    }
    codes
}

/// Returns the end of what is before a comment on its line, and whether that is nothing but
/// leaders, as before a comment in a header; none if there is no leader.
fn comment_start(before: &str) -> Option<(usize, bool)> {
    let without_leader = |text: &str| {
        let leader = LEADERS.into_iter().find(|leader| text.ends_with(leader))?;
        Some(text[..text.len() - leader.len()].trim_end().len())
    };
    let comment = without_leader(before.trim_end())?;
    let mut rest = comment;
    while let Some(shorter) = without_leader(&before[..rest]) {
        rest = shorter;
    }
    Some((comment, before[..rest].trim().is_empty()))
}

/// Returns the places of the words between commas.
fn code_spans(text: &str, list: Range<usize>) -> Vec<Range<usize>> {
    let (mut spans, mut start) = (Vec::new(), list.start);
    for word in text[list].split(',') {
        let code = word.trim();
        let at = start + word.len() - word.trim_start().len();
        if !code.is_empty() {
            spans.push(at..at + code.len());
        }
        start += word.len() + 1;
    }
    spans
}

#[cfg(test)]
mod tests {
    use mcpd_scriptspec::Dialect;

    use super::*;
    use crate::render;

    /// Checks the remaining findings of a file, and its text without unused comments.
    #[track_caller]
    fn check(file: &str, text: &str, expected: &[&str], without: &str) {
        let path = Path::new(file);
        let dialect = Dialect::of(file, text.as_bytes()).expect("it describes itself");
        let tools = dialect.read(file, text.as_bytes());
        let faults = tools.iter().flat_map(|tool| &tool.parsed.diagnostics);
        let found = faults.map(|fault| Finding::in_file(path, text.as_bytes(), fault));
        let comments = IgnoreComments::of_text(path, text.as_bytes());
        let left = comments.apply(found.collect(), true);
        let shown = render::short(&left);
        assert_eq!(shown.lines().collect::<Vec<_>>(), expected);
        let edits = left.iter().filter_map(|finding| match &finding.fix {
            Some(Fix::Edits(edits)) if finding.code == rules::UNUSED_IGNORE => Some(edits.clone()),
            _ => None,
        });
        let edits: Vec<_> = edits.flatten().collect();
        assert_eq!(
            mcpd_scriptspec::apply_edits(text, &edits).as_deref(),
            Some(without)
        );
    }

    #[test]
    fn comment_applies_to_its_line_or_its_file() {
        let text = "colour = 1 # mcpd: ignore[unknown-field]\ntitle = 'x'\ncolor = 2\n";
        check(
            "x.mcpd.toml",
            text,
            &[
                "x.mcpd.toml:1:1: warning[missing-description]: the script has no description",
                "x.mcpd.toml:3:1: warning[unknown-field]: unknown field `color`",
            ],
            text,
        );
        let text = "  # mcpd: ignore[unknown-field, missing-description]: for another server\ncolour = 1\ncolor = 2\n";
        check("x.mcpd.toml", text, &[], text);
        let text = "#!/bin/sh\n# /// mcpd\n# # mcpd: ignore[missing-description]\n# colour = 1 # mcpd: ignore[unknown-field]\n# ///\n";
        check("x.sh", text, &[], text);
        let text = "REM mcpd: ignore[missing-description]\nPRINT 1\n";
        check("x.bas", text, &[], text);
    }

    #[test]
    fn unused_code_is_found_and_removed() {
        check(
            "x.mcpd.toml",
            "# mcpd: ignore[unknown-field]\ndescription = 'Does' # mcpd: ignore[null-field]\n",
            &[
                "x.mcpd.toml:1:16: warning[unused-ignore]: the file has no fault `unknown-field` to ignore",
                "x.mcpd.toml:2:37: warning[unused-ignore]: the line has no fault `null-field` to ignore",
            ],
            "description = 'Does'\n",
        );
        check(
            "x.mcpd.toml",
            "# mcpd: ignore[missing-description, unknown-field]\ntitle = 'x'\n",
            &[
                "x.mcpd.toml:1:37: warning[unused-ignore]: the file has no fault `unknown-field` to ignore",
            ],
            "# mcpd: ignore[missing-description]\ntitle = 'x'\n",
        );
        let text = "# mcpd: ignore[unknown-feild]\ndescription = 'Does'\n";
        check(
            "x.mcpd.toml",
            text,
            &[
                "x.mcpd.toml:1:16: warning[unused-ignore]: no rule has the code `unknown-feild`; did you mean `unknown-field`?",
            ],
            text,
        );
    }

    #[test]
    fn other_texts_are_no_comments() {
        for text in [
            "mcpd: ignore[a]",
            "# mcpd: ignore[a",
            "x mcpd: ignore[a]",
            "# ignore[a]",
        ] {
            assert_eq!(ignored_codes(text), [], "{text}");
        }
    }
}
