//! Settings: values that a client asks its user for when a bundle is installed, and passes on as
//! variables. They come from options with a variable (`env`) and from variables that the server
//! passes to scripts.

use std::collections::BTreeSet;

use mcpd_scriptspec::{ScriptOption, ValueType};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::launch::placeholder;

/// Value that a client asks its user for.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Setting {
    /// Key in the manifest.
    pub key: String,
    /// Variable that has the value.
    pub variable: String,
    /// Description for the client.
    pub user: UserSetting,
}

/// Description of a setting in a manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UserSetting {
    /// Type of the value.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// Name for people.
    pub title: String,
    /// Meaning of the value.
    pub description: String,
    /// The bundle does not start without it.
    #[serde(default)]
    pub required: bool,
    /// Value unless the user gives another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// It is a secret: the client hides it, and stores it in a safe place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sensitive: bool,
    /// Smallest number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<Number>,
    /// Largest number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Number>,
}

/// Type of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Kind {
    /// Text.
    String,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// Path of a directory.
    Directory,
    /// Path of a file.
    File,
}

impl UserSetting {
    /// Text of the default, as a variable has it.
    pub(crate) fn default_text(&self) -> Option<String> {
        match self.default.as_ref()? {
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }
}

impl Setting {
    /// Required text for a variable.
    #[must_use]
    pub fn of_variable(variable: impl Into<String>, is_secret: bool) -> Self {
        let variable = variable.into();
        Self {
            key: variable.to_lowercase(),
            user: UserSetting {
                kind: Kind::String,
                title: variable.clone(),
                description: format!("Value of the variable {variable}, which the tools read."),
                required: true,
                default: None,
                sensitive: is_secret,
                min: None,
                max: None,
            },
            variable,
        }
    }

    /// Setting of an option that a variable provides; `None` for other options.
    #[must_use]
    pub fn of_option(option: &ScriptOption) -> Option<Self> {
        let mut setting = Self::of_variable(option.env.as_ref()?, option.secret);
        let user = &mut setting.user;
        user.required = option.required;
        user.title = option.title.clone().unwrap_or_else(|| option.name.clone());
        if let Some(description) = &option.description {
            user.description.clone_from(description);
        }
        let default = option.default_value.as_deref();
        let default = default.and_then(|value| serde_json::from_str(value.get()).ok());
        // Clients hide texts only.
        let kind = match &option.value_type {
            _ if option.secret => Kind::String,
            ValueType::Integer { .. } | ValueType::Float { .. } => Kind::Number,
            ValueType::Boolean => Kind::Boolean,
            _ => Kind::String,
        };
        user.default = default.filter(|value: &Value| match kind {
            Kind::Number => value.is_number(),
            Kind::Boolean => value.is_boolean(),
            _ => value.is_string(),
        });
        if kind == Kind::Number
            && let ValueType::Integer { size, .. } | ValueType::Float { size, .. } =
                &option.value_type
        {
            let number = |text: &str| serde_json::from_str(text).ok();
            user.min = size.min.as_ref().and_then(|min| number(min.as_str()));
            user.max = size.max.as_ref().and_then(|max| number(max.as_str()));
        }
        user.kind = kind;
        Some(setting)
    }

    /// Value of its type, in place of one that is not known.
    #[must_use]
    pub fn stand_in(&self) -> String {
        match self.user.kind {
            Kind::Number => self
                .user
                .min
                .as_ref()
                .map_or("1".to_owned(), Number::to_string),
            Kind::Boolean => "false".to_owned(),
            _ => "trial".to_owned(),
        }
    }

    /// Text in the manifest that the client replaces by the value.
    pub(crate) fn placeholder(&self) -> String {
        placeholder(&self.key)
    }
}

/// Settings with one for each variable, in the order of the variables. The first description of a
/// variable counts; it is required if one setting is, and a secret if one is.
#[must_use]
pub fn merge(settings: impl IntoIterator<Item = Setting>) -> Vec<Setting> {
    let mut merged: Vec<Setting> = Vec::new();
    for setting in settings {
        match merged
            .iter_mut()
            .find(|known| known.variable == setting.variable)
        {
            None => merged.push(setting),
            Some(known) => {
                known.user.required |= setting.user.required;
                if setting.user.sensitive && !known.user.sensitive {
                    known.user.sensitive = true;
                    known.user.kind = Kind::String;
                    known.user.default = None;
                }
            }
        }
    }
    merged.sort_by(|a, b| a.variable.cmp(&b.variable));
    let mut keys = BTreeSet::new();
    for setting in &mut merged {
        // `A` and `a` are two variables.
        if !keys.insert(setting.key.clone()) {
            setting.key = format!("{}_{}", setting.key, keys.len());
            keys.insert(setting.key.clone());
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use mcpd_scriptspec::{HelpOutput, parse};
    use serde_json::json;

    use super::*;

    fn settings(options: &[u8]) -> Vec<Setting> {
        let stdout = br#"{"description": "Does it"}"#;
        let stderr = options;
        let spec = parse(HelpOutput { stdout, stderr }).spec.unwrap();
        spec.options.iter().filter_map(Setting::of_option).collect()
    }

    #[test]
    fn options_with_a_variable_become_settings_of_their_type() {
        let settings = settings(
            br#"{
              "key": {"title": "API key", "description": "From the site", "value_type": "string",
                      "required": true, "secret": true, "env": "API_KEY"},
              "count": {"description": "How many", "value_type": "integer", "default_value": 3,
                        "size": {"min": 1, "max": 9}, "env": "COUNT"},
              "dry": {"description": "No change", "value_type": "boolean", "default_value": false,
                      "env": "DRY"},
              "name": {"description": "Who", "value_type": "string", "required": true}
            }"#,
        );
        let manifest: Vec<_> = settings.iter().map(|one| json!(one.user)).collect();
        assert_eq!(
            manifest,
            [
                json!({"type": "string", "title": "API key", "description": "From the site",
                       "required": true, "sensitive": true}),
                json!({"type": "number", "title": "count", "description": "How many",
                       "required": false, "default": 3, "min": 1, "max": 9}),
                json!({"type": "boolean", "title": "dry", "description": "No change",
                       "required": false, "default": false}),
            ]
        );
    }

    #[test]
    fn one_variable_is_one_setting() {
        let mut plain = Setting::of_variable("TOKEN", false);
        plain.user.required = false;
        plain.user.default = Some(json!("abc"));
        let merged = merge([
            Setting::of_variable("region", false),
            plain,
            Setting::of_variable("TOKEN", true),
            Setting::of_variable("REGION", false),
        ]);
        let keys: Vec<_> = merged.iter().map(|one| &*one.key).collect();
        assert_eq!(keys, ["region", "token", "region_2"]);
        let token = &merged[1].user;
        assert!(token.required && token.sensitive && token.default.is_none());
    }
}
