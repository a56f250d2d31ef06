//! Names of entries, and their conflicts. The path identifies an entry; lists show one of its
//! spellings.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Display;
use std::sync::Arc;

use mcpd_scriptspec::ScriptPath;

use super::Conflict;

/// Entry that is called by a name. Displays its origin.
pub(super) trait NamedEntry: Display {
    fn path(&self) -> &ScriptPath;

    fn portable_name(&self) -> &str;

    /// Returns a copy under a name that no other path has.
    fn with_distinct_name(&self) -> Self;
}

/// Advice on two entries with one name, and with one URI.
pub(super) const RENAME: &str = "rename one of the two";
pub(super) const OTHER_URI: &str = "give one of the two another `uri` or `uri_template`";

/// First claimants of keys that can have only one owner.
pub(super) struct FirstClaims {
    /// Kind of the keys: a name, a URI.
    what: &'static str,
    /// Advice if two claim the same key.
    help: &'static str,
    /// Owners by key; they display their origin.
    owners: BTreeMap<String, Arc<dyn Display>>,
}

impl FirstClaims {
    pub(super) fn new(what: &'static str, help: &'static str) -> Self {
        Self {
            what,
            help,
            owners: BTreeMap::new(),
        }
    }

    /// Assigns `key` to `claimant`, at `path`, unless it has an owner.
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
                    "{claimant} is not served: {} has the same {}",
                    owner.get(),
                    self.what
                ),
                help: self.help,
            }),
        }
    }
}

/// Gives each entry, all of different paths, a portable name of its own: the listed name runs
/// that entry.
pub(super) fn assign<T: NamedEntry>(
    mut entries: Vec<Arc<T>>,
    conflicts: &mut Vec<Conflict>,
) -> Vec<Arc<T>> {
    entries.sort_by(|a, b| a.path().cmp(b.path()));
    // A portable path means its own entry in every request already, so it is listed unchanged.
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

/// Maps every spelling of every entry to its index. A path is never shadowed by the alias of
/// another entry, nor a listed name by a dotted one.
pub(super) fn index<T: NamedEntry>(entries: &[Arc<T>]) -> BTreeMap<String, usize> {
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
