//! From what a server lists to what is served of it: tools and prompts under the prefix, resources at their own URIs.

use std::sync::Arc;

use mcpd_server::source::Offer;
use rmcp::model::{Prompt, Resource, ResourceTemplate, Tool};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::call;
use crate::inventory::Inventory;
use crate::link::Link;
use crate::upstream::Upstream;
use crate::words;

/// An offer that is being filled.
pub(crate) struct Filling<'a> {
    pub(crate) offer: &'a mut Offer,
    pub(crate) upstream: &'a Upstream,
    pub(crate) link: &'a Arc<Link>,
}

impl Filling<'_> {
    /// Adds everything that can be served; what can't be is a fault of the offer.
    pub(crate) fn add(mut self, inventory: Inventory) {
        let tools = inventory.tools.into_iter();
        for tool in tools.filter(|tool| self.upstream.serves(&tool.name)) {
            self.tool(&tool);
        }
        for prompt in inventory.prompts {
            self.prompt(prompt);
        }
        for resource in inventory.resources {
            self.resource(&resource);
        }
        for template in inventory.templates {
            self.template(&template);
        }
    }

    fn tool(&mut self, tool: &Tool) {
        let Some(definition) = self.translated("tool", &tool.name, tool) else {
            return;
        };
        let (link, name) = (Arc::clone(self.link), tool.name.to_string());
        let path = self.path(&name);
        self.offer
            .tool(&path, definition, move |arguments, mut context| {
                let (link, name) = (Arc::clone(&link), name.clone());
                async move { call::tool(&link, name, &arguments, &mut context).await }
            });
    }

    fn prompt(&mut self, prompt: Prompt) {
        let Some(definition) = self.translated("prompt", &prompt.name, &prompt) else {
            return;
        };
        let (link, name) = (Arc::clone(self.link), prompt.name);
        let path = self.path(&name);
        self.offer
            .prompt(&path, definition, move |arguments, mut context| {
                let (link, name) = (Arc::clone(&link), name.clone());
                async move { call::prompt(&link, name, arguments, &mut context).await }
            });
    }

    fn resource(&mut self, resource: &Resource) {
        let Some(definition) = self.translated("resource", &resource.uri, resource) else {
            return;
        };
        let (link, uri) = (Arc::clone(self.link), resource.uri.clone());
        let path = self.path(&path_segment(&resource.name));
        self.offer
            .resource(&path, definition, move |_, mut context| {
                // As the server has it, which may be with a secret.
                let (link, uri) = (Arc::clone(&link), uri.clone());
                async move { call::resource(&link, uri, &mut context).await }
            });
    }

    fn template(&mut self, template: &ResourceTemplate) {
        let what = "resource template";
        let Some(definition) = self.translated(what, &template.uri_template, template) else {
            return;
        };
        let link = Arc::clone(self.link);
        let path = self.path(&path_segment(&template.name));
        self.offer
            .template(&path, definition, move |uri, mut context| {
                let link = Arc::clone(&link);
                async move { call::resource(&link, uri, &mut context).await }
            });
    }

    /// The path of what the server calls `name`.
    fn path(&self, name: &str) -> String {
        self.upstream.secrets.redact(self.upstream.path(name))
    }

    /// The definition in this server's words, and without secrets.
    fn translated<T: DeserializeOwned>(
        &mut self,
        what: &str,
        name: &str,
        listed: &impl Serialize,
    ) -> Option<T> {
        let secrets = &self.upstream.secrets;
        let name = name.escape_debug();
        words::redacted(secrets, listed)
            .inspect_err(|error| {
                let fault = format!("has the {what} `{name}`, which can't be served: {error}");
                self.offer.fault(secrets.redact(fault));
            })
            .ok()
    }
}

/// The name of a resource, which may be anything, as a segment of the path by which people know it.
fn path_segment(name: &str) -> String {
    let replace = |char: char| char.is_control() || matches!(char, '/' | '\\');
    match name.replace(replace, "_").as_str() {
        "" | "." | ".." => "_".to_owned(),
        name => name.to_owned(),
    }
}
