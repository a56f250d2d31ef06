//! Start of a bundle, as a client does it: the command of the platform, with the directory and the
//! values of the settings in place of placeholders.

use std::collections::BTreeMap;

use crate::{BundleError, Manifest, Platform};

/// Program that a client starts for a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Launch {
    /// Program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its variables beside those that the client gives to each server.
    pub env: BTreeMap<String, String>,
}

impl Manifest {
    /// Start of the bundle that is unpacked in `directory`, with `values` of settings by their
    /// keys. The placeholder of a setting without a value and without a default stays, as clients
    /// leave it.
    ///
    /// # Errors
    ///
    /// A required setting has no value.
    pub fn launch(
        &self,
        directory: &str,
        platform: Platform,
        values: &BTreeMap<String, String>,
    ) -> Result<Launch, BundleError> {
        let mut known = vec![(Self::DIRECTORY.to_owned(), directory.to_owned())];
        for (key, setting) in &self.user_config {
            let given = values.get(key).filter(|value| !value.is_empty()).cloned();
            if setting.required && given.is_none() {
                return Err(BundleError::MissingSetting { key: key.clone() });
            }
            if let Some(value) = given.or_else(|| setting.default_text()) {
                known.push((placeholder(key), value));
            }
        }
        let config = &self.server.mcp_config;
        let other = config.platform_overrides.get(platform.name());
        let command = other.and_then(|other| other.command.as_ref());
        let resolve = |text: &String| resolve(text, &known);
        Ok(Launch {
            command: resolve(command.unwrap_or(&config.command)),
            args: config.args.iter().map(resolve).collect(),
            env: config
                .env
                .iter()
                .map(|(name, value)| (name.clone(), resolve(value)))
                .collect(),
        })
    }
}

/// Placeholder for the value of a setting.
pub(crate) fn placeholder(key: &str) -> String {
    format!("${{user_config.{key}}}")
}

/// Puts values in place of placeholders, and none in place of what a value contains.
fn resolve(text: &str, known: &[(String, String)]) -> String {
    let mut resolved = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        resolved += &rest[..start];
        rest = &rest[start..];
        let found = known.iter().find(|(name, _)| rest.starts_with(&**name));
        let (name, value) = found.map_or(("${", "${"), |(name, value)| (name, value));
        resolved += value;
        rest = &rest[name.len()..];
    }
    resolved + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Setting;

    fn manifest() -> Manifest {
        let mut manifest = Manifest::new("a", "1.0.0", "Does it.", "Ada");
        let args = ["stdio", "${__dirname}/scripts", "${HOME}"];
        let platforms = [Platform::Linux, Platform::Darwin];
        manifest.set_programs(&platforms, args.map(str::to_owned).into());
        let mut region = Setting::of_variable("REGION", false);
        region.user.required = false;
        manifest.set_settings(&[Setting::of_variable("API_KEY", true), region]);
        manifest
    }

    #[test]
    fn placeholders_are_replaced_once() {
        let values = [("api_key".to_owned(), "${__dirname}".to_owned())].into();
        let launch = manifest().launch("/b", Platform::Darwin, &values).unwrap();
        assert_eq!(launch.command, "/b/server/darwin/mcpd");
        assert_eq!(launch.args, ["stdio", "/b/scripts", "${HOME}"]);
        assert_eq!(launch.env["API_KEY"], "${__dirname}");
        assert_eq!(launch.env["REGION"], "${user_config.region}");
    }

    #[test]
    fn required_setting_is_missed() {
        let error = manifest().launch("/b", Platform::Linux, &BTreeMap::new());
        let text = error.unwrap_err().to_string();
        assert_eq!(text, "start the bundle: the setting `api_key` is required");
    }
}
