//! Collects the faults found in one output, and reads the simple fields with the checks common to all of them.

use crate::{
    diagnostic::{Diagnostic, Stream},
    json::{self, Kind, Member, Span, Value},
    rules::Code,
    suggest::suggest,
};

pub(super) struct Report<'d> {
    stream: Stream,
    diagnostics: &'d mut Vec<Diagnostic>,
}

/// A fault just reported, to say more about.
pub(super) struct Reported<'d>(&'d mut Diagnostic);

impl Reported<'_> {
    pub(super) fn help(self, help: impl Into<String>) {
        self.0.help = Some(help.into());
    }
}

impl<'d> Report<'d> {
    pub(super) fn new(stream: Stream, diagnostics: &'d mut Vec<Diagnostic>) -> Self {
        Self {
            stream,
            diagnostics,
        }
    }

    pub(super) fn fault(&mut self, code: Code, span: Span, message: String) -> Reported<'_> {
        let diagnostic = Diagnostic::new(code, self.stream, span, message);
        Reported(self.diagnostics.push_mut(diagnostic))
    }

    /// A field that is of another type than `expected`, such as `a string`.
    pub(super) fn type_mismatch(&mut self, name: &str, value: Value<'_>, expected: &str) {
        let message = format!("`{name}` is {}, expected {expected}", value.kind().name());
        self.fault(Code::FieldTypeMismatch, value.span(), message);
    }

    pub(super) fn unknown_field(&mut self, member: &Member<'_>, known: &[&'static str]) {
        let message = format!("unknown field `{}`", json::shorten(&member.key, 64));
        let suggestion = suggest(&member.key, known.iter().copied());
        let reported = self.fault(Code::UnknownField, member.key_span.clone(), message);
        reported.help(match suggestion {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("known fields: {}", known.join(", ")),
        });
    }

    pub(super) fn duplicates(&mut self, keys: &[Span]) {
        for span in keys {
            let message = "this key stands here for the second time".to_owned();
            self.fault(Code::DuplicateKey, span.clone(), message);
        }
    }

    /// Whether a known field counts as absent.
    pub(super) fn is_null(&mut self, member: &Member<'_>) -> bool {
        let is_null = member.value.kind() == Kind::Null;
        if is_null {
            let message = format!("`{}` is `null`, which counts as absent", member.key);
            self.fault(Code::NullField, member.value.span(), message)
                .help("leave the field out");
        }
        is_null
    }

    pub(super) fn boolean(&mut self, member: &Member<'_>) -> Option<bool> {
        let boolean = member.value.boolean();
        if boolean.is_none() {
            self.type_mismatch(&member.key, member.value, "`true` or `false`");
        }
        boolean
    }

    /// Text of at most `max` characters that looks to people like what it is.
    pub(super) fn text(&mut self, member: &Member<'_>, max: usize) -> Option<String> {
        let Some(text) = member.value.string() else {
            self.type_mismatch(&member.key, member.value, "a string");
            return None;
        };
        let length = text.chars().count();
        if length > max {
            let message = format!(
                "`{}` has {length} characters, at most {max} are allowed",
                member.key
            );
            self.fault(Code::TextTooLong, member.value.span(), message);
        }
        self.visible(&member.key, &text, member.value.span());
        Some(text.into_owned())
    }

    /// Minds the characters that nobody sees in `text`, which stands at `span`.
    pub(super) fn visible(&mut self, name: &str, text: &str, span: Span) {
        if let Some(char) = text.chars().find(|char| is_hidden(*char)) {
            let code = u32::from(char);
            let message = format!(
                "`{}` holds the hidden character U+{code:04X}",
                json::shorten(name, 64).escape_debug()
            );
            self.fault(Code::HiddenCharacter, span, message);
        }
    }
}

/// Control characters except line ends and tabs, direction marks, invisible characters and tags.
///
/// The joiners U+200C and U+200D are spelling in several scripts, and part of many emoji.
fn is_hidden(char: char) -> bool {
    match char {
        '\n' | '\t' | '\r' => false,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}' => {
            true
        }
        '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}' => true,
        '\u{e0000}'..='\u{e0fff}' => true,
        _ => char.is_control(),
    }
}
