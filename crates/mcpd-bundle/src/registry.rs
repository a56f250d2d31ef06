//! `server.json`: the entry of a bundle in the registry of MCP servers, in the schema of
//! 2025-12-11.

use serde_json::{Map, Value, json};
use url::Url;

use crate::{BundleError, Kind, Manifest, Setting};

const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";

/// Maximum length of texts, in characters.
const MAX_TEXT: usize = 100;

/// Entry for the bundle that is downloaded from `address` and has that SHA-256. Its `name` begins
/// with a domain of its publisher, as in `io.github.ada/tools`.
///
/// # Errors
///
/// The registry would refuse the name or the address.
pub fn registry_entry(
    manifest: &Manifest,
    settings: &[Setting],
    name: &str,
    address: &str,
    digest: &str,
) -> Result<Value, BundleError> {
    check_name(name)?;
    check_address(address)?;
    let variables: Vec<_> = settings.iter().map(variable).collect();
    let mut package = json!({
        "registryType": "mcpb",
        "identifier": address,
        "version": manifest.version,
        "fileSha256": digest,
        "transport": {"type": "stdio"},
    });
    if !variables.is_empty() {
        package["environmentVariables"] = Value::Array(variables);
    }
    let mut entry = Map::new();
    entry.insert("$schema".to_owned(), json!(SCHEMA));
    entry.insert("name".to_owned(), json!(name));
    if let Some(title) = &manifest.display_name {
        entry.insert("title".to_owned(), json!(shorten(title)));
    }
    let description = shorten(&manifest.description);
    entry.insert("description".to_owned(), json!(description));
    entry.insert("version".to_owned(), json!(manifest.version));
    if let Some(homepage) = &manifest.homepage {
        entry.insert("websiteUrl".to_owned(), json!(homepage));
    }
    entry.insert("packages".to_owned(), json!([package]));
    Ok(Value::Object(entry))
}

fn check_name(name: &str) -> Result<(), BundleError> {
    let is_word = |text: &str, others: &str| {
        let is_allowed = |char: char| char.is_ascii_alphanumeric() || others.contains(char);
        !text.is_empty() && text.chars().all(is_allowed)
    };
    let parts = name.split_once('/');
    match parts.filter(|(space, name)| is_word(space, ".-") && is_word(name, "._-")) {
        Some(_) if name.len() <= 200 => Ok(()),
        _ => Err(refuse(format!(
            "`{name}` is no name of the registry; expected one such as `io.github.ada/tools`"
        ))),
    }
}

fn check_address(address: &str) -> Result<(), BundleError> {
    let url = Url::parse(address).ok();
    let url = url.filter(|url| url.scheme() == "https" && url.password().is_none());
    if url.is_none() {
        let what = "the address of the bundle must be an https URL without a password";
        return Err(refuse(what.to_owned()));
    }
    match address.to_lowercase().contains("mcp") {
        true => Ok(()),
        false => Err(refuse(format!(
            "`{address}`: the registry accepts addresses with `mcp` in them only"
        ))),
    }
}

fn refuse(reason: String) -> BundleError {
    BundleError::Registry { reason }
}

/// Variable of a package.
fn variable(setting: &Setting) -> Value {
    let user = &setting.user;
    let format = match user.kind {
        Kind::Number => "number",
        Kind::Boolean => "boolean",
        Kind::File | Kind::Directory => "filepath",
        Kind::String => "string",
    };
    let mut variable = json!({
        "name": setting.variable,
        "description": user.description,
        "isRequired": user.required,
        "isSecret": user.sensitive,
        "format": format,
    });
    if let Some(default) = user.default_text() {
        variable["default"] = Value::String(default);
    }
    variable
}

fn shorten(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(MAX_TEXT) {
        None => text,
        Some(_) => text.chars().take(MAX_TEXT - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: &str = "https://host.example/tools.mcpb";

    fn entry(name: &str, address: &str) -> Result<Value, BundleError> {
        let mut manifest = Manifest::new("tools", "1.0.0", "x".repeat(200), "Ada");
        manifest.display_name = Some("Tools".to_owned());
        let mut count = Setting::of_variable("COUNT", false);
        count.user.kind = Kind::Number;
        count.user.default = Some(json!(3));
        let settings = [Setting::of_variable("API_KEY", true), count];
        registry_entry(&manifest, &settings, name, address, &"0".repeat(64))
    }

    #[test]
    fn entry_has_the_digest_and_the_variables() {
        let entry = entry("io.github.ada/tools", ADDRESS).unwrap();
        let package = &entry["packages"][0];
        assert_eq!(package["identifier"], ADDRESS);
        assert_eq!(package["fileSha256"], "0".repeat(64));
        assert_eq!(package["environmentVariables"][0]["isSecret"], true);
        assert_eq!(package["environmentVariables"][1]["default"], "3");
        assert_eq!(entry["description"].as_str().unwrap().chars().count(), 100);
    }

    #[test]
    fn names_and_addresses_that_the_registry_refuses_are_refused() {
        for name in ["tools", "/tools", "io.github.ada/", "a/b/c", "a b/c"] {
            assert!(entry(name, ADDRESS).is_err(), "{name}");
        }
        for address in [
            "http://host.example/mcp",
            "tools.mcpb",
            "https://a:b@host.example/mcp",
            "https://host.example/tools.zip",
        ] {
            assert!(entry("a.b/c", address).is_err(), "{address}");
        }
    }
}
