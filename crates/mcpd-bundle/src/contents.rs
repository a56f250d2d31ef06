//! Contents of a bundle that follow from a catalog: the files of its directories, the tools of the
//! manifest, and the settings that options of scripts declare.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use mcpd_server::catalog::scan::{INSTRUCTIONS, PassOverKind, Scan};
use mcpd_server::{Catalog, Tool, ToolNames};

use crate::{BundleError, ListedTool, Selection, Setting, Tree, merge};

/// Directory of scripts in a bundle.
const SCRIPTS: &str = "scripts";

/// Contents of a bundle.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Contents {
    /// Directories with scripts, in their order.
    pub roots: Vec<PackedRoot>,
    /// Tools, as a client sees them.
    pub tools: Vec<ListedTool>,
    /// Names of the tools by their paths.
    pub names: BTreeMap<String, String>,
    /// There are prompts.
    pub has_prompts: bool,
    /// Settings that options of scripts declare.
    pub settings: Vec<Setting>,
}

/// Directory with scripts, and its place in the bundle.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PackedRoot {
    /// Directory on this machine.
    pub root: PathBuf,
    /// Path in the bundle.
    pub path: String,
    /// Files of the directory.
    pub tree: Tree,
}

impl Contents {
    /// Finds the contents for the `roots` of a catalog, which are canonical. The catalog must come
    /// from a thorough scan; `selection` has what else stays out or goes in.
    ///
    /// # Errors
    ///
    /// See [`Tree::read`].
    pub fn of_catalog(
        catalog: &Catalog,
        roots: &[PathBuf],
        mut selection: Selection,
        names: ToolNames,
    ) -> Result<Self, BundleError> {
        select(catalog.scan(), roots, &mut selection);
        let paths = places(roots);
        let packed = roots.iter().zip(paths).map(|(root, path)| {
            Ok(PackedRoot {
                root: root.clone(),
                path,
                tree: Tree::read(root, &selection)?,
            })
        });
        let name_of = |tool: &Tool| match names {
            ToolNames::Path => tool.path().as_str().to_owned(),
            _ => tool.portable_name().to_owned(),
        };
        let tools = catalog.tools().iter();
        let described = tools.clone().map(|tool| {
            let description = tool.definition().description.clone();
            ListedTool::new(name_of(tool), description)
        });
        let by_path = tools.map(|tool| (tool.path().to_string(), name_of(tool)));
        let specs = catalog.scan().scripts.iter();
        let specs = specs.filter_map(|script| script.spec.as_deref());
        let options = specs.flat_map(|spec| &spec.options);
        Ok(Self {
            roots: packed.collect::<Result<_, BundleError>>()?,
            tools: described.collect(),
            names: by_path.collect(),
            has_prompts: !catalog.prompts().is_empty(),
            settings: merge(options.filter_map(Setting::of_option)),
        })
    }
}

/// Takes what is served, and leaves out what the scan ignores. Other files may be imported by
/// scripts, so they go in.
fn select(scan: &Scan, roots: &[PathBuf], selection: &mut Selection) {
    let is_served = |file: &Path| roots.iter().any(|root| root.join(INSTRUCTIONS) == file);
    for script in &scan.scripts {
        selection.serve(&script.file);
        selection.serve(&script.described_in);
    }
    for (_, file) in scan.static_files() {
        selection.serve(file);
    }
    for passed in &scan.passed_over {
        let stays_out = match passed.kind {
            PassOverKind::Ignored => !is_served(&passed.file),
            PassOverKind::TestCases => true,
            PassOverKind::NotAScript => passed.file.is_dir(),
            _ => !passed.file.exists(),
        };
        if stays_out {
            selection.leave_out(&passed.file, &passed.reason);
        }
    }
}

/// Paths of the directories in the bundle: the name of each, if there are several.
fn places(roots: &[PathBuf]) -> Vec<String> {
    if roots.len() == 1 {
        return vec![SCRIPTS.to_owned()];
    }
    let mut taken = BTreeSet::new();
    let place = |root: &Path| {
        let name = root.file_name().unwrap_or_default().to_string_lossy();
        let is_plain = |char: char| char.is_ascii_alphanumeric() || "._-".contains(char);
        let name: String = name.chars().filter(|char| is_plain(*char)).collect();
        let name = name.trim_start_matches('.').to_owned();
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let first = Some(name.clone()).filter(|name| !name.is_empty());
        let mut names = first.into_iter().chain(numbered);
        let free = names.find(|name| taken.insert(name.to_lowercase()));
        format!("{SCRIPTS}/{}", free.unwrap_or_default())
    };
    roots.iter().map(|root| root.as_path()).map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_one_name_have_places_of_their_own() {
        let places = |roots: &[&str]| places(&roots.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(places(&["/srv/tools"]), ["scripts"]);
        assert_eq!(
            places(&["/a/tools", "/b/Tools", "/c/.äx", "/"]),
            [
                "scripts/tools",
                "scripts/Tools-2",
                "scripts/x",
                "scripts/-2"
            ]
        );
    }
}
