//! Bundles of scripts: their content is gathered from a catalog, the configuration of this machine
//! and the wishes of the author, and the finished file is tried before it takes its place.

use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use mcpd_bundle::{Archive, Contents, Manifest, Platform, Selection, Setting, merge};
use mcpd_config::{File, Portable};
use mcpd_doctor::entry;
use mcpd_server::{Catalog, ToolNames};
use serde_json::Value;

pub use self::staging::Staged;
pub use self::trial::{Calls, Trial};

mod report;
mod staging;
mod trial;

/// Minimum length of a secret that files are searched for, in bytes: shorter ones occur by chance.
const MIN_SECRET_LEN: usize = 6;

/// Options of a bundle.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct BundleOptions {
    /// Name of the bundle; by default that of the configuration, or of the first directory.
    pub name: Option<String>,
    /// Version; by default that of the configuration, or 0.1.0.
    pub version: Option<String>,
    /// Title; by default that of the configuration.
    pub title: Option<String>,
    /// Description; by default the list of the tools.
    pub description: Option<String>,
    /// Author.
    pub author: String,
    /// Picture, a PNG.
    pub icon: Option<PathBuf>,
    /// Files and directories to pack that are left out otherwise.
    pub include: Vec<PathBuf>,
    /// Variables that scripts read, and the user of the bundle sets.
    pub pass_env: Vec<String>,
    /// Files of mcpd for other systems than this one.
    pub programs: Vec<PathBuf>,
}

/// Bundle before it is written.
#[non_exhaustive]
pub struct Content {
    /// Description of the bundle.
    pub manifest: Manifest,
    /// Values that clients ask for.
    pub settings: Vec<Setting>,
    /// Files and entries of the catalog.
    pub contents: Contents,
    /// Entries of the file.
    pub archive: Archive,
    /// Keys of the configuration that stay here.
    pub left_out_keys: Vec<String>,
    /// Values of settings on this machine, by their keys.
    values: BTreeMap<String, String>,
    /// Variables of required settings that have no value on this machine.
    pub unset: Vec<String>,
}

/// Shows no value of a setting.
impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content")
            .field("manifest", &self.manifest)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// Directories as a bundle packs them: absolute, and each once.
///
/// # Errors
///
/// One is no directory.
pub fn roots(directories: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut roots = Vec::new();
    for directory in directories {
        let named = || format!("pack `{}`", directory.display());
        let root = directory.canonicalize().with_context(named)?;
        if !root.is_dir() {
            bail!("{}: it is no directory", named());
        }
        if !roots.contains(&root) {
            roots.push(root);
        }
    }
    Ok(roots)
}

/// Gathers the content of a bundle: what the catalog of the `roots` has, with the part of the
/// configuration that holds on other machines.
///
/// # Errors
///
/// A file can't be packed, or contains a secret; an option can't be applied.
pub async fn gather(
    options: &BundleOptions,
    file: &File,
    catalog: &Catalog,
    roots: &[PathBuf],
) -> anyhow::Result<Content> {
    let selection = selection(options, file, roots)?;
    let names = file.tool_names().map_or(ToolNames::Portable, Into::into);
    let contents = Contents::of_catalog(catalog, roots, selection, names)?;
    let executor = mcpd_config::executor(None, None)?;
    let mut portable = file.portable(&executor).await?;
    let settings = settings(options, &contents, &mut portable)?;
    let mut manifest = manifest(options, &contents, &settings, &mut portable, roots)?;
    let mut content = Content {
        archive: archive(options, &contents, &mut manifest, &portable)?,
        left_out_keys: portable.left_out.clone(),
        values: BTreeMap::new(),
        unset: Vec::new(),
        manifest,
        settings,
        contents,
    };
    content.find_values(&portable);
    content.refuse_secrets()?;
    Ok(content)
}

/// Leaves out what is mcpd's own, and takes what the flags name.
fn selection(options: &BundleOptions, file: &File, roots: &[PathBuf]) -> anyhow::Result<Selection> {
    let mut selection = Selection::default();
    for path in file.private_files() {
        let path = path.canonicalize().unwrap_or(path);
        selection.leave_out(path, "configuration, secret or state of mcpd");
    }
    for path in &options.include {
        let named = || format!("include `{}`", path.display());
        let path = path.canonicalize().with_context(named)?;
        if !roots.iter().any(|root| path.starts_with(root)) {
            bail!("{}: it is below none of the directories", named());
        }
        selection.include(path);
    }
    Ok(selection)
}

/// Settings of options, secrets of tools, and variables that scripts inherit.
fn settings(
    options: &BundleOptions,
    contents: &Contents,
    portable: &mut Portable,
) -> anyhow::Result<Vec<Setting>> {
    let is_secret = |name: &str| entry::is_secret_name(name);
    let passed = portable.passed().into_iter().map(|name| {
        let mut setting = Setting::of_variable(&*name, is_secret(&name));
        setting.user.required = false;
        setting
    });
    let mut inherited: Vec<_> = contents.settings.iter().cloned().chain(passed).collect();
    for name in &options.pass_env {
        if !entry::is_variable_name(name) {
            // It may be the secret itself, which no message repeats.
            bail!("use the value of `--pass-env`: expected the name of a variable");
        }
        inherited.push(Setting::of_variable(name, is_secret(name)));
    }
    let inherited = merge(inherited);
    for setting in &inherited {
        portable.pass(&setting.variable, !setting.user.required);
    }
    let secrets = portable.secrets.iter().map(|secret| {
        let mut setting = Setting::of_variable(&secret.variable, true);
        let (variable, tools) = (&secret.variable, &secret.tools);
        setting.user.description = format!("Value of the variable {variable} of `{tools}`.");
        setting
    });
    Ok(merge(inherited.into_iter().chain(secrets)))
}

/// The manifest, and the same description of the server in its configuration.
fn manifest(
    options: &BundleOptions,
    contents: &Contents,
    settings: &[Setting],
    portable: &mut Portable,
    roots: &[PathBuf],
) -> anyhow::Result<Manifest> {
    let of_file = |key| portable.server(key).map(str::to_owned);
    let directory = roots[0].file_name().unwrap_or_default().to_string_lossy();
    let name = options.name.clone().or_else(|| of_file("name"));
    let name = name.unwrap_or_else(|| directory.into_owned());
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "._-".contains(char);
    if name.is_empty() || name.starts_with('.') || !name.chars().all(is_plain) {
        bail!(
            "use the name `{}`: expected letters, digits, `.`, `_` and `-`; choose one with `--name`",
            name.escape_debug()
        );
    }
    let version = options.version.clone().or_else(|| of_file("version"));
    let version = version.unwrap_or_else(|| "0.1.0".to_owned());
    let tools: Vec<_> = contents.tools.iter().map(|tool| &*tool.name).collect();
    let description = options
        .description
        .clone()
        .unwrap_or_else(|| match &tools[..] {
            [] => format!("Prompts and resources of {name}."),
            tools => format!("Tools: {}.", tools.join(", ")),
        });
    let mut manifest = Manifest::new(&name, &version, description, &options.author);
    manifest.display_name = options.title.clone().or_else(|| of_file("title"));
    manifest.homepage = of_file("website_url");
    manifest.tools.clone_from(&contents.tools);
    manifest.prompts_generated = contents.has_prompts;
    manifest.set_settings(settings);
    portable.set_server("name", &name);
    portable.set_server("version", &version);
    if let Some(title) = &manifest.display_name {
        portable.set_server("title", title);
    }
    Ok(manifest)
}

/// Entries of the archive; the manifest learns of its programs and its picture.
fn archive(
    options: &BundleOptions,
    contents: &Contents,
    manifest: &mut Manifest,
    portable: &Portable,
) -> anyhow::Result<Archive> {
    let mut archive = Archive::default();
    let own = env::current_exe().context("find the path of mcpd")?;
    let programs = Platform::of_files(&options.programs, own)?;
    let mut platforms: Vec<_> = programs.keys().copied().collect();
    platforms.sort_by_key(|platform| *platform != Platform::current());
    for (platform, program) in &programs {
        archive.add_file(platform.program_path(programs.len() == 1), program, true)?;
    }
    let at = |path: &str| format!("{}/{path}", Manifest::DIRECTORY);
    let mut words = vec!["stdio".to_owned()];
    for root in &contents.roots {
        archive.add_tree(&root.path, &root.tree)?;
        words.push(at(&root.path));
    }
    words.extend(["--config".to_owned(), at("mcpd.toml")]);
    manifest.set_programs(&platforms, words);
    archive.add_bytes("mcpd.toml", portable.text())?;
    if let Some(icon) = &options.icon {
        let picture = fs::read(icon).with_context(|| format!("read `{}`", icon.display()))?;
        if !picture.starts_with(b"\x89PNG\r\n\x1a\n") {
            bail!("use the icon `{}`: it is no PNG", icon.display());
        }
        archive.add_bytes("icon.png", picture)?;
        manifest.icon = Some("icon.png".to_owned());
    }
    archive.add_bytes("manifest.json", manifest.to_json())?;
    Ok(archive)
}

impl Content {
    /// Files that are not packed, by the paths that they would have, and why.
    pub fn left_out(&self) -> impl Iterator<Item = (String, &str)> {
        let roots = self.contents.roots.iter();
        roots.flat_map(|root| {
            let left_out = root.tree.left_out.iter();
            left_out.map(|one| (format!("{}/{}", root.path, one.path), &*one.reason))
        })
    }

    /// Entry of the bundle for the registry, where its file is at `url` and has this digest.
    ///
    /// # Errors
    ///
    /// A value does not fit the registry.
    pub fn registry_entry(&self, name: &str, url: &str, digest: &str) -> anyhow::Result<Value> {
        let entry = mcpd_bundle::registry_entry(&self.manifest, &self.settings, name, url, digest);
        Ok(entry?)
    }

    /// Finds the values of the settings on this machine, for the trial.
    fn find_values(&mut self, portable: &Portable) {
        for setting in &self.settings {
            let variable = &setting.variable;
            let mut secrets = portable.secrets.iter();
            let secret = secrets.find(|secret| secret.variable == *variable);
            let value = secret.map(|secret| secret.value.clone());
            let value = value.or_else(|| env::var(variable).ok());
            let user = &setting.user;
            let value = value.filter(|value| !value.is_empty()).or_else(|| {
                user.required.then(|| {
                    self.unset.push(variable.clone());
                    setting.stand_in()
                })
            });
            if let Some(value) = value {
                self.values.insert(setting.key.clone(), value);
            }
        }
    }

    /// Fails if a file contains a secret that is known here.
    fn refuse_secrets(&self) -> anyhow::Result<()> {
        let is_secret = |setting: &&Setting| setting.user.sensitive;
        let secrets: Vec<_> = self.settings.iter().filter(is_secret).collect();
        let known = secrets.iter().filter_map(|setting| {
            let value = self.values.get(&setting.key)?;
            (value.len() >= MIN_SECRET_LEN).then_some((&setting.variable, &**value))
        });
        let (names, values): (Vec<_>, Vec<_>) = known.unzip();
        for place in ["scripts/", "mcpd.toml", "manifest.json"] {
            if let Some((path, position)) = self.archive.find_text(place, &values)? {
                let name = names[position];
                bail!(
                    "pack `{path}`: it contains the value of `{name}`, which is a secret; let the script read the variable"
                );
            }
        }
        Ok(())
    }
}
