//! Handler of `completion/complete`: values of script options while a person types.

use mcpd_protocol::Params;
use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::method::{CompleteRequestParams, CompleteResult, CompletionReference};
use mcpd_scriptspec::{ScriptSpec, ValueType};

use crate::catalog::Catalog;
use crate::client::request::context::Context;
use crate::message::reply::MethodResult;
use crate::server::Server;

/// Completes a value by its prefix. Only enums and booleans of scripts are known; nothing runs,
/// and no source is asked.
pub(crate) fn complete(server: &Server, params: &Params<'_>, context: &Context) -> MethodResult {
    let params: CompleteRequestParams = params.parse()?;
    let catalog = server.catalog_for(&context.peer.principal);
    let Some(spec) = spec(&catalog, &params.reference)? else {
        return context.encode(CompleteResult::new(Vec::new()));
    };
    let option = spec
        .options
        .iter()
        .find(|option| option.name == params.argument.name)
        .ok_or_else(|| {
            ErrorObject::invalid_params(format!("unknown argument `{}`", params.argument.name))
        })?;
    let values = values(&option.value_type, &params.argument.value);
    context.encode(CompleteResult::new(values))
}

/// Returns the spec of the referenced item, if it is a script.
fn spec<'a>(
    catalog: &'a Catalog,
    reference: &CompletionReference,
) -> Result<Option<&'a ScriptSpec>, ErrorObject> {
    match reference {
        CompletionReference::Prompt { name, .. } => catalog
            .prompt(name)
            .map(|prompt| prompt.spec())
            .ok_or_else(|| ErrorObject::invalid_params(format!("unknown prompt `{name}`"))),
        CompletionReference::Resource { uri } => catalog
            .template(uri)
            .or_else(|| catalog.template_of(uri).map(|(template, _)| template))
            .map(|template| template.spec())
            .ok_or_else(|| {
                ErrorObject::invalid_params(format!("unknown resource template `{uri}`"))
            }),
        _ => Err(ErrorObject::invalid_params("unknown kind of `ref`")),
    }
}

/// Matching values in declared order, in any case: people type lower case whatever the
/// declaration has.
fn values(value_type: &ValueType, typed: &str) -> Vec<String> {
    let typed = typed.to_lowercase();
    let begins = |value: &&str| value.to_lowercase().starts_with(&typed);
    match value_type {
        ValueType::Enum { values, .. } => {
            to_strings(values.iter().map(String::as_str).filter(begins))
        }
        ValueType::Boolean => to_strings(["true", "false"].into_iter().filter(begins)),
        _ => Vec::new(),
    }
}

fn to_strings<'a>(values: impl Iterator<Item = &'a str>) -> Vec<String> {
    values.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use mcpd_scriptspec::{HelpOutput, parse};
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(value_type: &serde_json::Value, typed: &str, expected: &[&str], total: u64) {
        let options =
            json!({"o": {"description": "o", "required": true, "value_type": value_type}});
        let spec = parse(HelpOutput {
            stdout: br#"{"description": "d"}"#,
            stderr: options.to_string().as_bytes(),
        })
        .spec
        .unwrap();
        let result = CompleteResult::new(values(&spec.options[0].value_type, typed));
        assert_eq!(result.completion.values, expected);
        assert_eq!(result.completion.total, Some(total));
        assert_eq!(result.completion.has_more, Some(total > 100));
    }

    #[test]
    fn enum_completes_by_prefix_in_any_case() {
        let cities = json!({"enum": ["Zürich", "zug", "Bern"]});
        check(&cities, "", &["Zürich", "zug", "Bern"], 3);
        check(&cities, "Z", &["Zürich", "zug"], 2);
        check(&cities, "ZÜ", &["Zürich"], 1);
        check(&cities, "ern", &[], 0);
    }

    #[test]
    fn completion_returns_at_most_a_hundred_values() {
        let names: Vec<_> = (0..250).map(|number| format!("n{number}")).collect();
        let first: Vec<_> = names.iter().take(100).map(String::as_str).collect();
        check(&json!({"enum": names}), "n", &first, 250);
        check(
            &json!({"enum": names}),
            "n24",
            &[
                "n24", "n240", "n241", "n242", "n243", "n244", "n245", "n246", "n247", "n248",
                "n249",
            ],
            11,
        );
    }

    #[test]
    fn other_types_have_no_completion() {
        check(&json!("boolean"), "F", &["false"], 1);
        check(&json!("string"), "", &[], 0);
        check(&json!("integer"), "1", &[], 0);
    }
}
