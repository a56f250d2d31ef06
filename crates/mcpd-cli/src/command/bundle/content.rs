//! What goes into a bundle: files, settings, configuration and manifest, from a catalog, the
//! configuration of this machine and the flags.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use mcpd_bundle::{Archive, Contents, Manifest, Platform, Selection, Setting, merge};
use mcpd_config::{File, Portable};
use mcpd_doctor::entry;
use mcpd_server::{Catalog, ToolNames};

use crate::args::Bundle;
use crate::command::install::request::is_variable_name;

/// Minimum length of a secret that files are searched for, in bytes: shorter ones occur by chance.
const MIN_SECRET_LEN: usize = 6;

/// Bundle before it is written.
pub(super) struct Content {
    pub(super) manifest: Manifest,
    pub(super) settings: Vec<Setting>,
    pub(super) contents: Contents,
    pub(super) archive: Archive,
    /// Keys of the configuration that stay here.
    pub(super) left_out_keys: Vec<String>,
    /// Values of settings on this machine, by their keys.
    pub(super) values: BTreeMap<String, String>,
    /// Variables of required settings that have no value on this machine.
    pub(super) unset: Vec<String>,
}

/// Gathers all of it.
///
/// # Errors
///
/// A file can't be packed, or contains a secret; a flag is faulty.
pub(super) async fn gather(
    args: &Bundle,
    file: &File,
    catalog: &Catalog,
    roots: &[PathBuf],
) -> anyhow::Result<Content> {
    let selection = selection(args, file, roots)?;
    let names = file.tool_names().map_or(ToolNames::Portable, Into::into);
    let contents = Contents::of_catalog(catalog, roots, selection, names)?;
    let executor = mcpd_config::executor(None, None)?;
    let mut portable = file.portable(&executor).await?;
    let settings = settings(args, &contents, &mut portable)?;
    let mut manifest = manifest(args, &contents, &settings, &mut portable, roots)?;
    let mut content = Content {
        archive: archive(args, &contents, &mut manifest, &portable)?,
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
fn selection(args: &Bundle, file: &File, roots: &[PathBuf]) -> anyhow::Result<Selection> {
    let mut selection = Selection::default();
    for path in file.private_files() {
        let path = path.canonicalize().unwrap_or(path);
        selection.leave_out(path, "configuration, secret or state of mcpd");
    }
    for path in &args.include {
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
    args: &Bundle,
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
    for name in &args.pass_env {
        if !is_variable_name(name) {
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
    args: &Bundle,
    contents: &Contents,
    settings: &[Setting],
    portable: &mut Portable,
    roots: &[PathBuf],
) -> anyhow::Result<Manifest> {
    let of_file = |key| portable.server(key).map(str::to_owned);
    let directory = roots[0].file_name().unwrap_or_default().to_string_lossy();
    let name = args.name.clone().or_else(|| of_file("name"));
    let name = name.unwrap_or_else(|| directory.into_owned());
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "._-".contains(char);
    if name.is_empty() || name.starts_with('.') || !name.chars().all(is_plain) {
        bail!(
            "use the name `{}`: expected letters, digits, `.`, `_` and `-`; choose one with `--name`",
            name.escape_debug()
        );
    }
    let version = args.version.clone().or_else(|| of_file("version"));
    let version = version.unwrap_or_else(|| "0.1.0".to_owned());
    let tools: Vec<_> = contents.tools.iter().map(|tool| &*tool.name).collect();
    let description = args
        .description
        .clone()
        .unwrap_or_else(|| match &tools[..] {
            [] => format!("Prompts and resources of {name}."),
            tools => format!("Tools: {}.", tools.join(", ")),
        });
    let mut manifest = Manifest::new(&name, &version, description, &args.author);
    manifest.display_name = args.title.clone().or_else(|| of_file("title"));
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
    args: &Bundle,
    contents: &Contents,
    manifest: &mut Manifest,
    portable: &Portable,
) -> anyhow::Result<Archive> {
    let mut archive = Archive::default();
    let own = env::current_exe().context("find the path of mcpd")?;
    let programs = Platform::of_files(&args.program, own)?;
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
    if let Some(icon) = &args.icon {
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
    pub(super) fn left_out(&self) -> impl Iterator<Item = (String, &str)> {
        let roots = self.contents.roots.iter();
        roots.flat_map(|root| {
            let left_out = root.tree.left_out.iter();
            left_out.map(|one| (format!("{}/{}", root.path, one.path), &*one.reason))
        })
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
