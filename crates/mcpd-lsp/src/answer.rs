//! Answers in the types of the protocol: capabilities, diagnostics, completions and code actions.

use std::ops::Range;

use lsp_types::{
    CodeAction, CodeActionKind, CodeActionOptions, CodeActionProviderCapability, CodeDescription,
    CompletionItem, CompletionItemKind, CompletionOptions, CompletionTextEdit, Diagnostic,
    DiagnosticSeverity, Documentation, HoverProviderCapability, NumberOrString, ServerCapabilities,
    TextDocumentSyncCapability, TextDocumentSyncKind, TextEdit, WorkspaceEdit,
};
use mcpd_scriptspec::{Edit, Severity};
use serde_json::{Value, json};

use crate::complete::{Completion, Kind};
use crate::document::Document;
use crate::problem::{Checker, Problem};
use crate::text::Encoding;

/// Kind of the action that makes all fixes.
const FIX_ALL: CodeActionKind = CodeActionKind::new("source.fixAll.mcpd");

/// Characters after which an editor asks for completions.
const TRIGGERS: [&str; 5] = ["\"", "'", "[", ".", "="];

pub(crate) fn capabilities(encoding: Encoding) -> ServerCapabilities {
    ServerCapabilities {
        position_encoding: Some(encoding.kind()),
        text_document_sync: Some(TextDocumentSyncCapability::Kind(
            TextDocumentSyncKind::INCREMENTAL,
        )),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some(TRIGGERS.map(str::to_owned).to_vec()),
            ..CompletionOptions::default()
        }),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        code_action_provider: Some(CodeActionProviderCapability::Options(CodeActionOptions {
            code_action_kinds: Some(vec![CodeActionKind::QUICKFIX, FIX_ALL]),
            ..CodeActionOptions::default()
        })),
        ..ServerCapabilities::default()
    }
}

pub(crate) fn diagnostic(encoding: Encoding, document: &Document, problem: &Problem) -> Diagnostic {
    let url = problem.url.as_deref().and_then(|url| url.parse().ok());
    Diagnostic {
        range: encoding.range(&document.text, &problem.span),
        severity: Some(match problem.severity {
            Severity::Error => DiagnosticSeverity::ERROR,
            Severity::Warning => DiagnosticSeverity::WARNING,
            Severity::Info => DiagnosticSeverity::INFORMATION,
        }),
        code: problem.code.clone().map(NumberOrString::String),
        code_description: url.map(|href| CodeDescription { href }),
        source: Some("mcpd".to_owned()),
        message: problem.message.clone(),
        ..Diagnostic::default()
    }
}

pub(crate) fn completion(
    encoding: Encoding,
    document: &Document,
    word: Completion,
) -> CompletionItem {
    let is_quoted = document.text[word.span.clone()].starts_with(['"', '\'']);
    let range = encoding.range(&document.text, &word.span);
    CompletionItem {
        // Editors compare it with the text that is replaced.
        filter_text: is_quoted.then(|| word.text.clone()),
        label: word.label,
        kind: Some(match word.kind {
            Kind::Key => CompletionItemKind::FIELD,
            Kind::Table => CompletionItemKind::MODULE,
            Kind::Value => CompletionItemKind::ENUM_MEMBER,
        }),
        documentation: word.description.map(Documentation::String),
        text_edit: Some(CompletionTextEdit::Edit(TextEdit {
            range,
            new_text: word.text,
        })),
        ..CompletionItem::default()
    }
}

/// Code actions of a document.
pub(crate) struct Actions<'a> {
    pub(crate) encoding: Encoding,
    pub(crate) checker: &'a Checker,
    pub(crate) document: &'a Document,
}

impl Actions<'_> {
    /// Lists the fixes of the problems in a range, and one for the whole document, if these kinds
    /// are wanted.
    pub(crate) fn list(
        &self,
        problems: &[Problem],
        range: &Range<usize>,
        only: Option<&[CodeActionKind]>,
    ) -> Vec<CodeAction> {
        let is_wanted = |kind: &CodeActionKind| {
            // A kind includes those below it: `source` has `source.fixAll`.
            let includes = |wanted: &CodeActionKind| {
                let rest = kind.as_str().strip_prefix(wanted.as_str());
                rest.is_some_and(|rest| {
                    rest.is_empty() || rest.starts_with('.') || wanted.as_str().is_empty()
                })
            };
            only.is_none_or(|only| only.iter().any(includes))
        };
        let mut actions = Vec::new();
        let Document { path, text, .. } = self.document;
        if is_wanted(&CodeActionKind::QUICKFIX) {
            let touched = problems.iter().filter(|problem| {
                problem.span.start <= range.end && range.start <= problem.span.end
            });
            let fixable = touched.filter(|problem| problem.is_fixable(path, text));
            actions.extend(fixable.map(|problem| self.fix(problem)));
        }
        let has_fix = || {
            problems
                .iter()
                .any(|problem| problem.is_fixable(path, text))
        };
        if is_wanted(&FIX_ALL) && has_fix() {
            actions.push(self.fix_all());
        }
        actions
    }

    fn fix(&self, problem: &Problem) -> CodeAction {
        CodeAction {
            title: title(&problem.edits),
            kind: Some(CodeActionKind::QUICKFIX),
            diagnostics: Some(vec![diagnostic(self.encoding, self.document, problem)]),
            edit: Some(self.workspace_edit(&problem.edits)),
            is_preferred: Some(true),
            ..CodeAction::default()
        }
    }

    fn fix_all(&self) -> CodeAction {
        let Document {
            path, text, kind, ..
        } = self.document;
        let fixed = self.checker.fix_all(*kind, path, text);
        CodeAction {
            title: "Fix all that needs no decision".to_owned(),
            kind: Some(FIX_ALL),
            edit: Some(self.workspace_edit(&[difference(text, &fixed)])),
            ..CodeAction::default()
        }
    }

    fn workspace_edit(&self, edits: &[Edit]) -> WorkspaceEdit {
        let edits: Vec<_> = edits
            .iter()
            .map(|edit| TextEdit {
                range: self.encoding.range(&self.document.text, &edit.span),
                new_text: edit.replacement.clone(),
            })
            .collect();
        let changes: Value = json!({ self.document.uri.as_str(): edits });
        let edit = serde_json::from_value(json!({ "changes": changes }));
        edit.expect("an address with its edits is such an object")
    }
}

fn title(edits: &[Edit]) -> String {
    match edits {
        [edit] if edit.replacement.is_empty() => "Remove it".to_owned(),
        [edit] => format!("Write `{}`", edit.replacement),
        edits if edits.iter().all(|edit| edit.replacement == "\"") => "Put it in quotes".to_owned(),
        edits => format!("Change it in {} places", edits.len()),
    }
}

/// The edit of the part in which two texts differ.
fn difference(before: &str, after: &str) -> Edit {
    let pairs = || before.char_indices().zip(after.chars());
    let same = pairs().find(|((_, a), b)| a != b);
    let start = same.map_or(before.len().min(after.len()), |((at, _), _)| at);
    let ends = before[start..]
        .chars()
        .rev()
        .zip(after[start..].chars().rev());
    let end: usize = ends
        .take_while(|(a, b)| a == b)
        .map(|(char, _)| char.len_utf8())
        .sum();
    Edit {
        span: start..before.len() - end,
        replacement: after[start..after.len() - end].to_owned(),
    }
}
