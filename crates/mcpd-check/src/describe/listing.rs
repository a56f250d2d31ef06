//! Entries of a catalog for a list of one line each.

use mcpd_protocol::method::{Prompt, Resource, ResourceTemplate, Tool};
use mcpd_server::Catalog;
use serde::Serialize;

use super::{prompt_signature, tool_signature};

/// An entry of the catalog, as clients get it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ListedEntry<'a> {
    /// A tool.
    Tool(&'a Tool),
    /// A prompt.
    Prompt(&'a Prompt),
    /// A resource.
    Resource(&'a Resource),
    /// A template of resources.
    Template(&'a ResourceTemplate),
}

impl<'a> ListedEntry<'a> {
    /// Tools of a catalog.
    #[must_use]
    pub fn tools(catalog: &'a Catalog) -> Vec<Self> {
        let tools = catalog.tools().iter();
        tools.map(|one| Self::Tool(one.definition())).collect()
    }

    /// Prompts of a catalog.
    #[must_use]
    pub fn prompts(catalog: &'a Catalog) -> Vec<Self> {
        let prompts = catalog.prompts().iter();
        prompts.map(|one| Self::Prompt(one.definition())).collect()
    }

    /// Resources of a catalog, and then its templates.
    #[must_use]
    pub fn resources(catalog: &'a Catalog) -> Vec<Self> {
        let resources = catalog.resources().iter();
        let resources = resources.map(|one| Self::Resource(one.definition()));
        let templates = catalog.templates().iter();
        let templates = templates.map(|one| Self::Template(one.definition()));
        resources.chain(templates).collect()
    }

    /// Name of the entry with its arguments, and the first line of its description, or else its
    /// title.
    #[must_use]
    pub fn row(&self) -> (String, &'a str) {
        let (name, title, description) = match *self {
            Self::Tool(tool) => (tool_signature(tool), &tool.title, &tool.description),
            Self::Prompt(prompt) => (prompt_signature(prompt), &prompt.title, &prompt.description),
            Self::Resource(one) => (one.uri.clone(), &one.title, &one.description),
            Self::Template(one) => (one.uri_template.clone(), &one.title, &one.description),
        };
        let first_line = description.as_deref().and_then(|text| text.lines().next());
        let summary = first_line.or(title.as_deref()).unwrap_or_default();
        (name, summary)
    }
}
