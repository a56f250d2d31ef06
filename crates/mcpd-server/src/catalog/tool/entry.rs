//! Tools as entries of a list.

use mcpd_protocol as protocol;
use mcpd_protocol::method::ListToolsResult;
use mcpd_scriptspec::ScriptPath;

use std::sync::Arc;

use super::{Body, Tool, definition};
use crate::catalog::list::{ListEntry, ListForm};
use crate::catalog::names::NamedEntry;
use crate::message::tool_names::ToolNames;
use crate::script::schema::is_of_objects;

impl NamedEntry for Tool {
    fn path(&self) -> &ScriptPath {
        self.path()
    }

    fn portable_name(&self) -> &str {
        self.portable_name()
    }

    fn with_distinct_name(&self) -> Self {
        Self {
            portable_name: self.path.portable_hashed(),
            ..self.clone()
        }
    }
}

impl ListEntry for Tool {
    type Listed = protocol::method::Tool;
    type Page = ListToolsResult;

    const KIND: u8 = b't';

    fn key(&self) -> &str {
        self.path().as_str()
    }

    fn to_listed(&self, form: ListForm) -> protocol::method::Tool {
        let ListForm { version, names, .. } = form;
        let mut listed = self.definition().clone();
        if let Some(uri) = self.app.as_ref().filter(|_| form.has_apps) {
            definition::set_app(&mut listed, uri);
        }
        if names == ToolNames::Portable {
            listed.name = self.portable_name().to_owned();
            if let Some(schema) = self.portable_input_schema() {
                listed.input_schema = schema.to_owned();
            }
        }
        if !version.has_titles() {
            // One revision has a title in the annotations only.
            if let Some(title) = listed.title.take() {
                listed.annotations.get_or_insert_default().title = Some(title);
            }
            listed.meta = None;
        }
        if !version.has_tool_annotations() {
            listed.annotations = None;
        }
        if !version.has_structured_content()
            || version.structured_content_is_object_only()
                && !listed.output_schema.as_deref().is_some_and(is_of_objects)
        {
            listed.output_schema = None;
        }
        if !version.has_icons() {
            listed.icons.clear();
        }
        listed
    }

    fn page(listed: Vec<protocol::method::Tool>, next_cursor: Option<String>) -> ListToolsResult {
        let mut page = ListToolsResult::new(listed);
        page.next_cursor = next_cursor;
        page
    }

    fn is_listed_like(&self, other: &Self) -> bool {
        match (&self.body, &other.body) {
            // Rescanned and found unchanged.
            (Body::Script(a), Body::Script(b)) if Arc::ptr_eq(&a.spec, &b.spec) => {
                self.portable_name == other.portable_name && self.app == other.app
            }
            _ => {
                self.portable_name == other.portable_name
                    && self.app == other.app
                    && serde_json::to_value(&self.definition).ok()
                        == serde_json::to_value(&other.definition).ok()
            }
        }
    }
}
