//! Definition of the tool of a script: its own texts under the protocol's names.

use mcpd_protocol as protocol;
use mcpd_protocol::content::Icon;
use mcpd_protocol::meta::Meta;
use mcpd_protocol::method::ToolAnnotations;
use mcpd_scriptspec::{ScriptPath, ScriptSpec};
use serde_json::{Value, json};

use super::raw;

/// Key in `_meta` of the version of a script.
const VERSION: &str = "mcpd/version";
/// Key in `_meta` of the tags of a script.
const TAGS: &str = "mcpd/tags";

/// Builds the definition of the tool of a script.
pub(super) fn tool(path: &ScriptPath, spec: &ScriptSpec) -> protocol::method::Tool {
    let mut tool = protocol::method::Tool::new(path.as_str(), raw(&spec.written_input_schema()));
    tool.title = Some(title(path, spec));
    tool.description.clone_from(&spec.description);
    tool.output_schema = spec.output_schema.as_ref().map(raw);
    tool.annotations = annotations(spec);
    tool.icons = icons(spec);
    tool.meta = Some(meta_of(path, spec));
    tool
}

/// Title for people: a list may show another spelling of the path, and the path itself is in
/// `_meta`.
pub(crate) fn title(path: &ScriptPath, spec: &ScriptSpec) -> String {
    spec.title
        .clone()
        .unwrap_or_else(|| path.file_name().to_owned())
}

/// Builds `_meta` of the author's values and the path behind every spelling of the name.
pub(crate) fn meta(path: &ScriptPath, mut meta: Meta) -> Meta {
    meta.insert("mcpd/path".to_owned(), json!(path.as_str()));
    meta
}

/// Builds `_meta` of a script, with metadata that has no field in the protocol.
pub(crate) fn meta_of(path: &ScriptPath, spec: &ScriptSpec) -> Meta {
    let mut meta = meta(path, spec.meta.clone().into());
    if let Some(version) = &spec.version {
        meta.insert(VERSION.to_owned(), json!(version));
    }
    if !spec.tags.is_empty() {
        meta.insert(TAGS.to_owned(), json!(spec.tags));
    }
    meta
}

/// Key in `_meta` of what MCP Apps define.
const UI: &str = "ui";
/// Members of `_meta.ui` that concern the page, and not the tool.
const UI_OF_PAGE: [&str; 4] = ["csp", "permissions", "domain", "prefersBorder"];

/// Names the app of a tool in its definition.
pub(super) fn set_app(tool: &mut protocol::method::Tool, uri: &str) {
    let meta = tool.meta.get_or_insert_default();
    let mut ui = match meta.get(UI) {
        Some(Value::Object(ui)) => ui.clone(),
        _ => serde_json::Map::new(),
    };
    ui.retain(|name, _| !UI_OF_PAGE.contains(&&**name));
    ui.insert("resourceUri".to_owned(), json!(uri));
    meta.insert(UI.to_owned(), Value::Object(ui));
}

/// Builds `_meta` of the app of a tool, of what its script says about the page.
pub(crate) fn meta_of_app(tool: &protocol::method::Tool) -> Option<Meta> {
    let ui = tool.meta.as_ref()?.get(UI)?.as_object()?;
    let members = UI_OF_PAGE.iter().filter_map(|name| {
        let value = ui.get(*name)?;
        Some(((*name).to_owned(), value.clone()))
    });
    let members: serde_json::Map<_, _> = members.collect();
    let mut meta = Meta::default();
    meta.insert(UI.to_owned(), Value::Object(members.clone()));
    (!members.is_empty()).then_some(meta)
}

/// Tags of a tool, which are in its `_meta`.
pub(crate) fn tags(tool: &protocol::method::Tool) -> impl Iterator<Item = &str> {
    let tags = tool.meta.as_ref().and_then(|meta| meta.get(TAGS));
    let tags = tags.and_then(Value::as_array).into_iter().flatten();
    tags.filter_map(Value::as_str)
}

/// Icons of a script.
pub(crate) fn icons(spec: &ScriptSpec) -> Vec<Icon> {
    let icon = |icon: &mcpd_scriptspec::spec::Icon| {
        let mut listed = Icon::new(icon.src.clone());
        listed.mime_type.clone_from(&icon.mime_type);
        listed.sizes.clone_from(&icon.sizes);
        listed.theme = icon.theme.clone().map(Into::into);
        listed
    };
    spec.icons.iter().map(icon).collect()
}

/// Annotations of a script; `None` if it declares no effects.
fn annotations(spec: &ScriptSpec) -> Option<ToolAnnotations> {
    let said = spec.annotations;
    let mut annotations = ToolAnnotations::default();
    annotations.read_only_hint = said.read_only;
    annotations.destructive_hint = said.destructive;
    annotations.idempotent_hint = said.idempotent;
    annotations.open_world_hint = said.open_world;
    (annotations != ToolAnnotations::default()).then_some(annotations)
}
