//! Catalog entry of a script by its role, made once per scan result.

use std::sync::Arc;

use mcpd_scriptspec::Role;

use super::prompt::Prompt;
use super::resource::{Resource, Template};
use crate::catalog::tool::Tool;
use crate::script::Script;

/// A script and its entry in a list.
#[derive(Debug, Clone)]
pub(crate) struct ServedScript {
    pub(super) script: Arc<Script>,
    pub(super) entry: CatalogEntry,
}

/// Entry of a script in the list that its role selects.
#[derive(Debug, Clone)]
pub(super) enum CatalogEntry {
    Tool(Arc<Tool>),
    Prompt(Arc<Prompt>),
    Resource(Arc<Resource>),
    Template(Arc<Template>),
}

impl ServedScript {
    pub(super) fn new(script: Script) -> Self {
        let script = Arc::new(script);
        let ours = Arc::clone(&script);
        let entry = match &script.spec.role {
            Role::Prompt => CatalogEntry::Prompt(Arc::new(Prompt::new(ours))),
            Role::Resource {
                uri,
                is_template: true,
                mime_type,
                ..
            } => {
                let template = uri.parse();
                let template = template.expect("a spec has only templates that parse");
                let template = Template::new(ours, template, mime_type.as_deref());
                CatalogEntry::Template(Arc::new(template))
            }
            Role::Resource { uri, mime_type, .. } => {
                let resource = Resource::script(ours, uri, mime_type.as_deref());
                CatalogEntry::Resource(Arc::new(resource))
            }
            _ => CatalogEntry::Tool(Arc::new(Tool::from_script(ours))),
        };
        Self { script, entry }
    }
}
