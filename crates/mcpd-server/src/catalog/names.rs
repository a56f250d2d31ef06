//! What answers to which name. A path is an identity; what a list shows is a spelling of it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Display;
use std::sync::Arc;

use mcpd_scriptspec::ScriptPath;

use super::Conflict;

/// How a list spells the names of tools and prompts; a request may always use any spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolNames {
    /// `math_add`: what every client and model API accepts.
    Portable,
    /// `math/add`: the path below the root.
    Path,
}

/// What is called by a name. Displayed, it says where it comes from.
pub(super) trait Named: Display {
    fn path(&self) -> &ScriptPath;

    fn portable_name(&self) -> &str;

    /// The same under a name that no other path has.
    fn with_distinct_name(&self) -> Self;
}

/// What to do about two of one name, and of one URI.
pub(super) const RENAME: &str = "rename one of the two";
pub(super) const OTHER_URI: &str = "give one of the two another `uri` or `uri_template`";

/// Who came first, where one thing can have only one owner.
pub(super) struct Claims {
    /// What is claimed: a name, a URI.
    what: &'static str,
    /// What to do if two claim the same.
    help: &'static str,
    /// Displayed, they say where they come from.
    owners: BTreeMap<String, Arc<dyn Display>>,
}

impl Claims {
    pub(super) fn of(what: &'static str, help: &'static str) -> Self {
        Self {
            what,
            help,
            owners: BTreeMap::new(),
        }
    }

    /// Gives `key` to `claimant`, at `path`, unless somebody has it.
    pub(super) fn claim(
        &mut self,
        key: &str,
        path: &ScriptPath,
        claimant: &Arc<impl Display + 'static>,
    ) -> Result<(), Conflict> {
        match self.owners.entry(key.to_owned()) {
            Entry::Vacant(free) => {
                free.insert(Arc::clone(claimant) as _);
                Ok(())
            }
            Entry::Occupied(owner) => Err(Conflict {
                path: path.clone(),
                message: format!(
                    "{claimant} is hidden by {}, which has the same {}",
                    owner.get(),
                    self.what
                ),
                help: self.help,
            }),
        }
    }
}

/// Gives each entry, all of different paths, a portable name of its own: what is listed is what is run.
pub(super) fn assign<T: Named>(
    mut entries: Vec<Arc<T>>,
    conflicts: &mut Vec<Conflict>,
) -> Vec<Arc<T>> {
    entries.sort_by(|a, b| a.path().cmp(b.path()));
    // A path that is portable already means its own entry in every request, so it is listed as itself.
    let is_portable = |entry: &Arc<T>| entry.portable_name() == entry.path().as_str();
    let mut taken: BTreeMap<String, Arc<T>> = entries
        .iter()
        .filter(|entry| is_portable(entry))
        .map(|entry| (entry.portable_name().to_owned(), Arc::clone(entry)))
        .collect();
    for entry in entries.iter_mut().filter(|entry| !is_portable(entry)) {
        if let Some(first) = taken.get(entry.portable_name()) {
            let renamed = Arc::new(entry.with_distinct_name());
            conflicts.push(Conflict {
                path: entry.path().clone(),
                message: format!(
                    "{entry} is listed as `{}`, because {first} is listed as `{}`",
                    renamed.portable_name(),
                    entry.portable_name(),
                ),
                help: RENAME,
            });
            *entry = renamed;
        }
        taken.insert(entry.portable_name().to_owned(), Arc::clone(entry));
    }
    entries
}

/// Every spelling of every entry. A path is never shadowed by another entry's alias, nor a listed name
/// by a dotted one.
pub(super) fn index<T: Named>(entries: &[Arc<T>]) -> BTreeMap<String, usize> {
    let paths = entries.iter().map(|entry| entry.path().as_str().to_owned());
    let mut index: BTreeMap<_, _> = paths.zip(0..).collect();
    let spellings: [fn(&T) -> Cow<'_, str>; 2] = [
        |entry| entry.portable_name().into(),
        |entry| entry.path().dotted(),
    ];
    for spelling in spellings {
        for (place, entry) in entries.iter().enumerate() {
            let name = spelling(entry);
            if !index.contains_key(&*name) {
                index.insert(name.into_owned(), place);
            }
        }
    }
    index
}
