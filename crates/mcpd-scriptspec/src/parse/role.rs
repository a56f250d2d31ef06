//! Parser of the role of a script: tool, prompt or resource with its URI.

use std::collections::BTreeMap;

use super::{HelpStream, Report, metadata::MAX_NAME};
use crate::{
    edit::Repair,
    json::Member,
    rules::Code,
    spec::{Role, ScriptOption, ScriptSpec, ValueType},
    suggest::suggest,
    text,
    uri::normalize_uri,
    uri_template::{self, TemplateError, UriTemplate},
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum RoleKind {
    Tool,
    Prompt,
    Resource,
}

/// Reads `kind`, `uri`, `uri_template` and `mime_type` from the metadata.
pub(super) fn read(fields: &[Member<'_>], report: &mut Report<'_>) -> Role {
    const KINDS: &[(&str, RoleKind)] = &[
        ("tool", RoleKind::Tool),
        ("prompt", RoleKind::Prompt),
        ("resource", RoleKind::Resource),
    ];
    let kind = field(fields, "kind").and_then(|member| report.choice(member, KINDS));
    if kind == Some(RoleKind::Resource) {
        return resource(fields, report);
    }
    for member in ["uri", "uri_template", "mime_type"]
        .iter()
        .filter_map(|name| field(fields, name))
    {
        let message = format!("`{}` applies only to resources", member.key);
        report
            .fault(Code::UnusedField, member.key_span.clone(), message)
            .help(r#"add `"kind": "resource"`"#);
    }
    if kind == Some(RoleKind::Prompt) {
        Role::Prompt
    } else {
        Role::Tool
    }
}

fn resource(fields: &[Member<'_>], report: &mut Report<'_>) -> Role {
    let template = field(fields, "uri_template");
    let Some(member) = template.or_else(|| field(fields, "uri")) else {
        let span = field(fields, "kind")
            .map(|kind| kind.value.span())
            .unwrap_or_default();
        report
            .fault(
                Code::ResourceWithoutUri,
                span,
                "a resource without `uri` or `uri_template`",
            )
            .help(r#"add `"uri": "notes://today"`"#);
        return Role::Tool;
    };
    if let (Some(template), Some(_)) = (template, field(fields, "uri")) {
        let message = "a resource has a `uri` or a `uri_template`, not both";
        report.fault(Code::ConflictingFields, template.key_span.clone(), message);
    }
    let uri = report
        .text(member, uri_template::MAX_LENGTH)
        .unwrap_or_default();
    if !is_absolute(&uri) {
        let message = format!(
            "`{}` must begin with a scheme such as `notes:` and contain no blanks",
            member.key
        );
        report.fault(Code::InvalidUri, member.value.span(), message);
    }
    let uri = if template.is_some() {
        uri
    } else {
        normalize(uri, member, report)
    };
    let mime_type = field(fields, "mime_type").and_then(|member| report.text(member, MAX_NAME));
    Role::Resource {
        uri,
        is_template: template.is_some(),
        mime_type,
    }
}

/// Returns `uri` in the form in which clients send it back.
fn normalize(uri: String, member: &Member<'_>, report: &mut Report<'_>) -> String {
    let normalized = normalize_uri(&uri);
    if normalized == uri {
        return uri;
    }
    let message = format!("the URI is listed as {}", text::name(&normalized));
    let reported = report.fault(Code::UnnormalizedUri, member.value.span(), message);
    let repair = Repair::respell(&uri, &normalized);
    reported
        .repair(repair)
        .help("write it in that form, because clients send back the normalized URI");
    normalized.into_owned()
}

fn field<'f, 'a>(fields: &'f [Member<'a>], name: &str) -> Option<&'f Member<'a>> {
    fields.iter().find(|member| member.key == name)
}

/// Checks the variables of a URI template against the options, once both are known.
pub(super) fn check_variables(template: &Member<'_>, spec: &ScriptSpec, report: &mut Report<'_>) {
    let Some(uri) = template.value.string() else {
        return;
    };
    let parsed = match uri.parse::<UriTemplate>() {
        Ok(parsed) => parsed,
        // The limit of text lengths has reported this already.
        Err(TemplateError::TooLong) => return,
        Err(error) => {
            let message = format!("unusable URI template: {error}");
            report.fault(Code::InvalidUri, template.value.span(), message);
            return;
        }
    };
    for variable in parsed.variables() {
        let mut names = spec.options.iter().map(|option| option.name.as_str());
        if names.clone().any(|name| name == variable) {
            continue;
        }
        let message = format!(
            "the variable {} of the template is not an option",
            text::name(variable)
        );
        let reported = report.fault(Code::UndeclaredVariable, template.value.span(), message);
        if let Some(name) = suggest(variable, &mut names) {
            reported.help(format!("did you mean `{name}`?"));
        }
    }
}

/// Checks the options against the inputs of this role.
pub(super) fn check_options(options: &HelpStream<'_>, spec: &ScriptSpec, report: &mut Report<'_>) {
    let template = match &spec.role {
        Role::Resource {
            uri,
            is_template: true,
            ..
        } => Some(uri.parse::<UriTemplate>()),
        _ => None,
    };
    let Ok(template) = template.transpose() else {
        // The fault has been reported, and its consequences are not.
        return;
    };
    let variables = template.as_ref().map_or(&[][..], UriTemplate::variables);
    let is_declared = |variable: &String| {
        let mut options = spec.options.iter();
        options.any(|option| option.name == *variable)
    };
    let Some(root) = options.root().filter(|_| variables.iter().all(is_declared)) else {
        return;
    };
    let spans: BTreeMap<_, _> = root
        .members()
        .map(|member| (member.key, member.key_span))
        .collect();
    for option in &spec.options {
        let Some((reason, help)) = obstacle(option, &spec.role, variables) else {
            continue;
        };
        let span = spans.get(&*option.name).cloned().unwrap_or_default();
        let message = format!(
            "callers cannot pass the option {}: {reason}",
            text::name(&option.name)
        );
        report
            .fault(Code::UnfillableOption, span, message)
            .help(help);
    }
}

/// Returns why callers cannot provide an option as declared, and the fix.
fn obstacle(
    option: &ScriptOption,
    role: &Role,
    variables: &[String],
) -> Option<(&'static str, &'static str)> {
    let is_text = !matches!(
        option.value_type,
        ValueType::Array { .. } | ValueType::Object { .. }
    );
    let no_text = "it would arrive as text, which cannot be an array or an object";
    match role {
        Role::Prompt if option.required && !is_text => {
            Some((no_text, "make it a string, or optional with a default"))
        }
        Role::Resource {
            is_template: true, ..
        } if variables.contains(&option.name) => {
            (!is_text).then_some((no_text, "make it a string"))
        }
        Role::Resource {
            is_template: true, ..
        } if option.required => Some((
            "it is required, but not a variable of the template",
            "make it optional with a default, or add it to the template",
        )),
        Role::Resource { .. } if option.required => Some((
            "it is required, but a resource with a fixed URI gets no arguments",
            "make it optional with a default, or give the resource a `uri_template`",
        )),
        _ => None,
    }
}

/// Returns whether the text is `scheme:` with a rest without spaces.
fn is_absolute(uri: &str) -> bool {
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    };
    uri.split_once(':')
        .is_some_and(|(scheme, rest)| is_scheme(scheme) && !rest.is_empty())
        && !uri.contains(char::is_whitespace)
}
