//! Offer of a server: its tools and prompts are served under the prefix, its resources at their
//! own URIs.

use std::sync::Arc;

use mcpd_scriptspec::excerpt;
use mcpd_server::source::Offer;
use rmcp::model::{Prompt, Resource, ResourceTemplate, Tool};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::call;
use crate::conversion;
use crate::inventory::Inventory;
use crate::link::Link;
use crate::upstream::Upstream;

/// Maximum length of the reason in a fault about an invalid entry, in characters.
const MAX_REASON: usize = 200;

/// Offer under construction.
pub(crate) struct OfferBuilder<'a> {
    pub(crate) offer: &'a mut Offer,
    pub(crate) upstream: &'a Upstream,
    pub(crate) link: &'a Arc<Link>,
}

impl OfferBuilder<'_> {
    /// Adds every valid entry; each invalid one becomes a fault of the offer.
    pub(crate) fn add(mut self, inventory: &Inventory) {
        for fault in inventory.faults.iter().chain(&inventory.oddities) {
            self.offer
                .fault(self.upstream.secrets.redact(fault.clone()));
        }
        let is_wanted = |tool: &&Value| {
            let name = tool["name"].as_str();
            name.is_none_or(|name| self.upstream.serves_tool(name))
        };
        for tool in inventory.tools.iter().filter(is_wanted) {
            self.tool(tool);
        }
        for prompt in &inventory.prompts {
            self.prompt(prompt);
        }
        for resource in &inventory.resources {
            self.resource(resource);
        }
        for template in &inventory.templates {
            self.template(template);
        }
    }

    fn tool(&mut self, listed: &Value) {
        let Some((tool, definition)) = self.read::<Tool, _>("tool", "name", listed) else {
            return;
        };
        let (link, name) = (Arc::clone(self.link), tool.name.to_string());
        let path = self.path(&name);
        // `null` is not an object, so it can't be a meaningful result under this schema.
        let schema = tool.output_schema.as_ref();
        let gives_null = schema.is_some_and(|schema| schema.get("type") != Some(&"object".into()));
        self.offer
            .tool(&path, definition, move |arguments, mut context| {
                let (link, name) = (Arc::clone(&link), name.clone());
                async move {
                    let mut result = call::tool(&link, name, &arguments, &mut context).await?;
                    if !gives_null {
                        call::leave_out_null(&link, &mut result);
                    }
                    Ok(result)
                }
            });
    }

    fn prompt(&mut self, listed: &Value) {
        let Some((prompt, definition)) = self.read::<Prompt, _>("prompt", "name", listed) else {
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

    fn resource(&mut self, listed: &Value) {
        let Some((resource, definition)) = self.read::<Resource, _>("resource", "uri", listed)
        else {
            return;
        };
        let (link, uri) = (Arc::clone(self.link), resource.uri);
        let path = self.path(&path_segment(&resource.name));
        self.offer
            .resource(&path, definition, move |_, mut context| {
                // The URI as the server knows it, which may contain a secret.
                let (link, uri) = (Arc::clone(&link), uri.clone());
                async move { call::resource(&link, uri, &mut context).await }
            });
    }

    fn template(&mut self, listed: &Value) {
        let read = self.read::<ResourceTemplate, _>("resource template", "uriTemplate", listed);
        let Some((template, definition)) = read else {
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

    /// Returns the path for the upstream name `name`.
    fn path(&self, name: &str) -> String {
        self.upstream.secrets.redact(self.upstream.path(name))
    }

    /// Reads an entry: its upstream form, and its definition in this server's type with secrets
    /// redacted. Messages identify it by its member `key`.
    fn read<Listed: Serialize + DeserializeOwned, Definition: DeserializeOwned>(
        &mut self,
        what: &str,
        key: &str,
        listed: &Value,
    ) -> Option<(Listed, Definition)> {
        let secrets = &self.upstream.secrets;
        let read = Listed::deserialize(listed).map_err(|error| error.to_string());
        let read = read.and_then(|read| Ok((conversion::convert_redacted(secrets, &read)?, read)));
        match read {
            Ok((definition, read)) => Some((read, definition)),
            Err(error) => {
                let name = listed[key].as_str().unwrap_or_default();
                let name = secrets.redact(name.to_owned());
                let reason = excerpt(&secrets.redact(error), MAX_REASON);
                self.offer.unservable(what, &name, &reason);
                None
            }
        }
    }
}

/// Returns the name of a resource, which may be any text, as a segment of the path shown to
/// people.
fn path_segment(name: &str) -> String {
    let replace = |char: char| char.is_control() || matches!(char, '/' | '\\');
    match name.replace(replace, "_").as_str() {
        "" | "." | ".." => "_".to_owned(),
        name => name.to_owned(),
    }
}
