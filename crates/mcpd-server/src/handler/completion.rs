//! `completion/complete`: what the options of a script allow, while a person types.

use mcpd_protocol::jsonrpc::{ErrorObject, Request};
use mcpd_protocol::{CompleteRequestParams, CompleteResult, CompletionReference};
use mcpd_scriptspec::{ScriptSpec, ValueType};

use crate::Server;
use crate::catalog::Catalog;
use crate::context::Context;
use crate::dispatch::MethodResult;

/// The values an argument can have that begin with what was typed. Only enums and booleans are known;
/// nothing is run.
pub(crate) fn complete(server: &Server, request: &Request<'_>, context: &Context) -> MethodResult {
    let params: CompleteRequestParams = request.parse_params()?;
    let catalog = server.catalog();
    let spec = spec(&catalog, &params.reference)?;
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

fn spec<'a>(
    catalog: &'a Catalog,
    reference: &CompletionReference,
) -> Result<&'a ScriptSpec, ErrorObject> {
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

/// In declared order. People type in lower case what may be declared otherwise.
fn values(value_type: &ValueType, typed: &str) -> Vec<String> {
    let typed = typed.to_lowercase();
    let begins = |value: &&str| value.to_lowercase().starts_with(&typed);
    match value_type {
        ValueType::Enum { values, .. } => owned(values.iter().map(String::as_str).filter(begins)),
        ValueType::Boolean => owned(["true", "false"].into_iter().filter(begins)),
        _ => Vec::new(),
    }
}

fn owned<'a>(values: impl Iterator<Item = &'a str>) -> Vec<String> {
    values.map(str::to_owned).collect()
}
