//! Capabilities and identity that each side declares. An absent capability may not be used.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use crate::JsonObject;
use crate::content::Icon;

/// Capabilities of the client: for the session in `initialize`, for one request in its `_meta`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClientCapabilities {
    /// Answers `elicitation/create`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationCapability>,
    /// Answers `sampling/createMessage`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingCapability>,
    /// Answers `roots/list`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roots: Option<RootsCapability>,
    /// Outside the specification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experimental: Option<JsonObject>,
    /// Settings by extension id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extensions: Option<JsonObject>,
}

/// Capabilities as real clients declare them: an empty array stands for an empty object wherever
/// one belongs.
pub(crate) struct Declared<T>(pub(crate) T);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Declared<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut declared = Value::deserialize(deserializer)?;
        mend_empty_array(&mut declared);
        for (name, capability) in declared.as_object_mut().into_iter().flatten() {
            mend_empty_array(capability);
            // The shape of other capabilities' members is unknown here.
            if ["elicitation", "sampling"].contains(&name.as_str()) {
                let members = capability.as_object_mut().into_iter().flatten();
                members.for_each(|(_, member)| mend_empty_array(member));
            }
        }
        T::deserialize(declared).map(Self).map_err(D::Error::custom)
    }
}

fn mend_empty_array(value: &mut Value) {
    if value.as_array().is_some_and(Vec::is_empty) {
        *value = Value::Object(JsonObject::new());
    }
}

/// Elicitation modes that the client supports. With neither named, `form` is meant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ElicitationCapability {
    /// Forms of flat fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<JsonObject>,
    /// Opening a page, so that a secret never passes through the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<JsonObject>,
}

/// Sampling features that the client supports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SamplingCapability {
    /// Supports `includeContext`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<JsonObject>,
    /// Supports `tools` and `toolChoice`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<JsonObject>,
}

/// Details of the client's roots.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RootsCapability {
    /// Announces changes; stateful wire only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

/// Capabilities of the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerCapabilities {
    /// Has tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<ListCapability>,
    /// Has resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesCapability>,
    /// Has prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts: Option<ListCapability>,
    /// Answers `completion/complete`. Undeclared before 2025-03-26.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completions: Option<JsonObject>,
    /// Sends `notifications/message`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logging: Option<JsonObject>,
    /// Outside the specification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experimental: Option<JsonObject>,
    /// Settings by extension id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extensions: Option<JsonObject>,
}

/// Details of a list of tools or prompts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListCapability {
    /// Announces changes of the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

/// Details of the list of resources.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourcesCapability {
    /// Announces changes of single resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscribe: Option<bool>,
    /// Announces changes of the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

/// Name and version of a program. For display and logs; behaviour must never depend on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Implementation {
    /// Programmatic name.
    pub name: String,
    /// Display name; since 2025-06-18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Version, in whatever form the program uses.
    pub version: String,
    /// Description; since 2025-11-25.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Web page; since 2025-11-25.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
    /// Icons; since 2025-11-25.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
}

impl ClientCapabilities {
    /// Capabilities of a client that supports one extension and nothing else.
    #[must_use]
    pub fn of_extension(id: &str) -> Self {
        Self {
            extensions: Some(JsonObject::from_iter([(id.to_owned(), json!({}))])),
            ..Self::default()
        }
    }

    /// Names of the declared capabilities, such as `roots`, `elicitation.url` and
    /// `extensions.io.modelcontextprotocol/tasks`.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let members = serde_json::to_value(self).unwrap_or_default();
        let mut names = Vec::new();
        for (name, inside) in members.as_object().into_iter().flatten() {
            match inside.as_object() {
                Some(parts) if !parts.is_empty() => {
                    names.extend(parts.keys().map(|part| format!("{name}.{part}")));
                }
                _ => names.push(name.clone()),
            }
        }
        names
    }

    /// Returns whether every capability in `required` is declared here.
    #[must_use]
    pub fn covers(&self, required: &Self) -> bool {
        fn members(capabilities: &ClientCapabilities) -> Value {
            let mut capabilities = capabilities.clone();
            // "an empty capabilities object is equivalent to declaring support for `form` mode
            // only" -- 2026-07-28/client/elicitation#capabilities
            if let Some(elicitation) = &mut capabilities.elicitation
                && elicitation.url.is_none()
            {
                elicitation.form.get_or_insert_default();
            }
            serde_json::to_value(capabilities).unwrap_or_default()
        }
        includes(&members(self), &members(required))
    }
}

fn includes(declared: &Value, required: &Value) -> bool {
    match (declared, required) {
        (Value::Object(declared), Value::Object(required)) => {
            required.iter().all(|(key, value)| {
                declared
                    .get(key)
                    .is_some_and(|declared| includes(declared, value))
            })
        }
        // A value that is not an object declares nothing.
        (_, Value::Object(_)) => false,
        // Settings are for the extension to compare; presence is enough here.
        _ => true,
    }
}

impl Implementation {
    /// Makes an implementation with only a name and a version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            version: version.into(),
            description: None,
            website_url: None,
            icons: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(declared: &str, required: &str, covered: bool) {
        let declared: ClientCapabilities = serde_json::from_str(declared).unwrap();
        let required: ClientCapabilities = serde_json::from_str(required).unwrap();
        assert_eq!(
            declared.covers(&required),
            covered,
            "{declared:?} for {required:?}"
        );
    }

    #[test]
    fn requirements_are_covered_member_by_member() {
        check("{}", "{}", true);
        check("{}", r#"{"sampling":{}}"#, false);
        check(r#"{"sampling":{}}"#, r#"{"sampling":{"tools":{}}}"#, false);
        check(
            r#"{"sampling":{"tools":{}},"roots":{}}"#,
            r#"{"sampling":{}}"#,
            true,
        );
        check(
            r#"{"extensions":{"a/b":{"x":1}}}"#,
            r#"{"extensions":{"a/b":{}}}"#,
            true,
        );
        check(
            r#"{"extensions":{"a/b":{}}}"#,
            r#"{"extensions":{"a/c":{}}}"#,
            false,
        );
        for declared in ["null", "false", "[]"] {
            check(
                &format!(r#"{{"extensions":{{"a/b":{declared}}}}}"#),
                r#"{"extensions":{"a/b":{}}}"#,
                false,
            );
        }
    }

    #[test]
    fn names_of_capabilities_have_their_parts() {
        let json = r#"{"elicitation":{"url":{}},"sampling":{},"extensions":{"a/b":{},"c":{}}}"#;
        let capabilities: ClientCapabilities = serde_json::from_str(json).unwrap();
        let expected = [
            "elicitation.url",
            "sampling",
            "extensions.a/b",
            "extensions.c",
        ];
        assert_eq!(capabilities.names(), expected);
    }

    #[test]
    fn elicitation_without_a_mode_means_forms() {
        check(
            r#"{"elicitation":{}}"#,
            r#"{"elicitation":{"form":{}}}"#,
            true,
        );
        check(
            r#"{"elicitation":{"form":{}}}"#,
            r#"{"elicitation":{}}"#,
            true,
        );
        check(
            r#"{"elicitation":{"url":{}}}"#,
            r#"{"elicitation":{}}"#,
            false,
        );
        check(
            r#"{"elicitation":{}}"#,
            r#"{"elicitation":{"url":{}}}"#,
            false,
        );
        check(
            r#"{"elicitation":{"form":{},"url":{}}}"#,
            r#"{"elicitation":{"url":{}}}"#,
            true,
        );
    }
}
