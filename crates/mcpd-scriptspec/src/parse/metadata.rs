//! The metadata object: what a script says of itself as a whole.

use super::{Output, Report};
use crate::{
    json::{Document, Kind, Value},
    rules::Code,
    spec::ScriptSpec,
};

pub(super) const FIELDS: &[&str] = &["title", "description", "version", "state"];

/// Longest texts, in characters.
const MAX_NAME: usize = 256;
pub(super) const MAX_DESCRIPTION: usize = 16 * 1024;

pub(super) fn read(
    output: &Output<'_>,
    stderr: &Output<'_>,
    spec: &mut ScriptSpec,
    report: &mut Report<'_>,
) {
    match output {
        Output::Json(document) if document.root.kind() == Kind::Object => {
            report.duplicates(&document.duplicates);
            fields(document.root, spec, report);
        }
        Output::Json(Document { root, .. }) => {
            let message = format!("the metadata is {}, expected an object", root.kind().name());
            report.fault(Code::MetadataNotObject, root.span(), message);
        }
        Output::Faulty => {}
        Output::Blank => {
            let message = "stdout is empty, expected the metadata as a JSON object".to_owned();
            let reported = report.fault(Code::MissingMetadata, 0..0, message);
            reported.help(if stderr.root().is_some_and(resembles) {
                "stderr holds what looks like the metadata: print it to stdout"
            } else {
                r#"print at least `{"description": "…"}` to stdout"#
            });
        }
    }
}

fn fields(root: Value<'_>, spec: &mut ScriptSpec, report: &mut Report<'_>) {
    let mut is_described = false;
    for member in root.members() {
        let key = &*member.key;
        if !FIELDS.contains(&key) {
            report.unknown_field(&member, FIELDS);
            continue;
        }
        if report.is_null(&member) {
            continue;
        }
        match key {
            "title" => spec.title = report.text(&member, MAX_NAME),
            "description" => {
                spec.description = report.text(&member, MAX_DESCRIPTION);
                is_described = spec
                    .description
                    .as_ref()
                    .is_none_or(|text| !text.trim().is_empty());
            }
            "version" => spec.version = report.text(&member, MAX_NAME),
            _ => spec.state = report.boolean(&member).unwrap_or_default(),
        }
    }
    if !is_described {
        let message = "the script has no description".to_owned();
        report
            .fault(Code::MissingDescription, root.span(), message)
            .help("say in a sentence or two what the script does and when to use it");
    }
}

/// Whether a value looks like metadata: a field of the metadata that is not an option.
pub(super) fn resembles(value: Value<'_>) -> bool {
    value
        .members()
        .any(|member| FIELDS.contains(&&*member.key) && member.value.kind() != Kind::Object)
}
