//! Templates: texts whose placeholders become values, printed as the result.

use super::{
    language::variable,
    placeholder::{Placeholder, placeholders},
};

/// Converts a template to a program for `sh` that prints it with the values of a call.
pub(super) fn fill(template: &str) -> (String, Vec<Placeholder>) {
    let template = template.strip_suffix('\n').unwrap_or(template);
    let mut program = "printf '%s\\n' ".to_owned();
    let mut found = Vec::new();
    let mut at = 0;
    for (name, span) in placeholders(template) {
        program += &quote_word(&template[at..span.start]);
        program += &format!("\"${{{}}}\"", variable(name));
        at = span.end;
        found.push(Placeholder {
            name: name.to_owned(),
            span,
            fault: None,
        });
    }
    program += &quote_word(&template[at..]);
    program.push('\n');
    (program, found)
}

/// Quotes a text as one word of a shell.
fn quote_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
