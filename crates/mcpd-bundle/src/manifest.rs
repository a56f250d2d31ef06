//! `manifest.json` of a bundle, in version 0.3 of its format.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::setting::UserSetting;
use crate::{BundleError, Platform, Setting};

/// Version of the format. Version 0.4 adds only servers in Python, which older clients don't know.
const MANIFEST_VERSION: &str = "0.3";

/// Description of a bundle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Manifest {
    /// Version of the format.
    pub manifest_version: String,
    /// Name for programs.
    pub name: String,
    /// Name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Version of the bundle.
    pub version: String,
    /// Sentence about the bundle.
    pub description: String,
    /// Author of the bundle.
    pub author: Author,
    /// Web page about the bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub homepage: Option<String>,
    /// Path of a picture in the bundle, in PNG.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icon: Option<String>,
    /// Program and its arguments.
    pub server: ServerEntry,
    /// All tools.
    #[serde(default)]
    pub tools: Vec<ListedTool>,
    /// The server has prompts. A manifest could only list those with a fixed text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prompts_generated: bool,
    /// Systems that the bundle is for.
    #[serde(default)]
    pub compatibility: Compatibility,
    /// Values that the client asks its user for, by their keys.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub user_config: BTreeMap<String, UserSetting>,
}

/// Author of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Author {
    /// Name of a person or an organisation.
    pub name: String,
}

/// Server of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerEntry {
    /// Kind of server: `binary`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Path of the program.
    pub entry_point: String,
    /// Start of the server.
    pub mcp_config: McpConfig,
}

/// Start of a server, with placeholders.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct McpConfig {
    /// Program.
    pub command: String,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Its variables.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Other programs, by the names of their platforms.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub platform_overrides: BTreeMap<String, Override>,
}

/// Difference of a platform.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Override {
    /// Program of the platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// Tool in a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListedTool {
    /// Name, as the server lists it.
    pub name: String,
    /// Meaning of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Systems that a bundle is for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Compatibility {
    /// Names of the platforms.
    #[serde(default)]
    pub platforms: Vec<String>,
}

impl ListedTool {
    /// Tool with a description.
    #[must_use]
    pub fn new(name: impl Into<String>, description: Option<String>) -> Self {
        let name = name.into();
        Self { name, description }
    }
}

impl Manifest {
    /// Placeholder for the directory that a bundle is unpacked to.
    pub const DIRECTORY: &str = "${__dirname}";

    /// Manifest without programs, tools and settings.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        version: impl Into<String>,
        description: impl Into<String>,
        author: impl Into<String>,
    ) -> Self {
        Self {
            manifest_version: MANIFEST_VERSION.to_owned(),
            name: name.into(),
            display_name: None,
            version: version.into(),
            description: description.into(),
            author: Author {
                name: author.into(),
            },
            homepage: None,
            icon: None,
            server: ServerEntry {
                kind: "binary".to_owned(),
                ..ServerEntry::default()
            },
            tools: Vec::new(),
            prompts_generated: false,
            compatibility: Compatibility::default(),
            user_config: BTreeMap::new(),
        }
    }

    /// Reads a manifest. Members that mean nothing here are skipped.
    ///
    /// # Errors
    ///
    /// The text is no manifest.
    pub fn read(json: &[u8]) -> Result<Self, BundleError> {
        serde_json::from_slice(json).map_err(BundleError::Manifest)
    }

    /// Text of the manifest.
    ///
    /// # Panics
    ///
    /// Never: every key is a text.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut json = serde_json::to_vec_pretty(self).expect("its keys are texts");
        json.push(b'\n');
        json
    }

    /// Starts the program of each platform with these arguments. The first platform is that of
    /// the entry point.
    pub fn set_programs(&mut self, platforms: &[Platform], args: Vec<String>) {
        let is_only_one = platforms.len() == 1;
        let command = |platform: &Platform| {
            format!("{}/{}", Self::DIRECTORY, platform.program_path(is_only_one))
        };
        let server = &mut self.server;
        server.mcp_config.args = args;
        if let Some((first, others)) = platforms.split_first() {
            server.entry_point = first.program_path(is_only_one);
            server.mcp_config.command = command(first);
            let others = others.iter().map(|platform| {
                let command = Some(command(platform));
                (platform.name().to_owned(), Override { command })
            });
            server.mcp_config.platform_overrides = others.collect();
        }
        let mut names: Vec<_> = platforms.iter().map(|one| one.name().to_owned()).collect();
        names.sort();
        self.compatibility.platforms = names;
    }

    /// Asks for these settings, and passes their values on as variables.
    pub fn set_settings(&mut self, settings: &[Setting]) {
        self.server.mcp_config.env = settings
            .iter()
            .map(|one| (one.variable.clone(), one.placeholder()))
            .collect();
        self.user_config = settings
            .iter()
            .map(|one| (one.key.clone(), one.user.clone()))
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifest_is_read_as_it_was_written() {
        let mut manifest = Manifest::new("a", "1.0.0", "Does it.", "Ada");
        manifest.set_programs(&[Platform::Linux], vec!["stdio".to_owned()]);
        manifest.set_settings(&[Setting::of_variable("API_KEY", true)]);
        manifest.tools.push(ListedTool::new("greet", None));
        assert_eq!(Manifest::read(&manifest.to_json()).unwrap(), manifest);
    }

    #[test]
    fn other_platforms_override_the_command() {
        let mut manifest = Manifest::new("a", "1.0.0", "Does it.", "Ada");
        manifest.set_programs(&[Platform::Linux, Platform::Windows], Vec::new());
        let server = &manifest.server;
        assert_eq!(server.entry_point, "server/linux/mcpd");
        let other = &server.mcp_config.platform_overrides["win32"];
        let path = "${__dirname}/server/win32/mcpd.exe";
        assert_eq!(other.command.as_deref(), Some(path));
        assert_eq!(manifest.compatibility.platforms, ["linux", "win32"]);
    }
}
