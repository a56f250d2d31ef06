//! Selection of entries for one purpose, such as one client: by path, tag and effect, up to a
//! number of tools.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use mcpd_protocol::Implementation;
use mcpd_scriptspec::ScriptPath;

use crate::policy::access::Access;
use crate::policy::pattern::{Pattern, PatternError};
use crate::policy::principal::Principal;
use crate::support::sync::lock;

/// Maximum number of callers' accesses that a selection is kept combined with.
const MAX_COMBINED: usize = 64;

/// Selection of tools, prompts and resources: all of them by default.
///
/// Callers see nothing else, as with [`Access`]; the two narrow each other.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selection {
    only: Vec<Pattern>,
    except: Vec<Pattern>,
    tags: Vec<String>,
    is_read_only: bool,
    max_tools: Option<NonZeroUsize>,
}

/// Attributes of a tool that a selection may depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToolTraits<'a> {
    pub(crate) path: &'a ScriptPath,
    pub(crate) tags: &'a [String],
    pub(crate) is_read_only: bool,
}

impl Selection {
    /// Selects entries whose paths match `pattern`, or another pattern given for it: `*` matches
    /// a part of a name, `**` any number of names, `?` a character, `[ab]` and `{a,b}` either.
    ///
    /// # Errors
    ///
    /// Fails if the pattern is invalid.
    pub fn only(mut self, pattern: &str) -> Result<Self, PatternError> {
        self.only.push(Pattern::of_paths(pattern)?);
        Ok(self)
    }

    /// Leaves out entries whose paths match `pattern`.
    ///
    /// # Errors
    ///
    /// Fails if the pattern is invalid.
    pub fn except(mut self, pattern: &str) -> Result<Self, PatternError> {
        self.except.push(Pattern::of_paths(pattern)?);
        Ok(self)
    }

    /// Selects tools with this tag, or another tag given for it.
    #[must_use]
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(tag.into());
        self
    }

    /// Selects tools that say they change nothing, if `is_read_only`.
    #[must_use]
    pub fn read_only(mut self, is_read_only: bool) -> Self {
        self.is_read_only = is_read_only;
        self
    }

    /// Selects this many tools at most: those of the first pattern of [`only`](Self::only), then
    /// those of the next, each in the order of their paths.
    #[must_use]
    pub fn max_tools(mut self, max_tools: NonZeroUsize) -> Self {
        self.max_tools = Some(max_tools);
        self
    }

    /// Returns whether it selects everything.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether it may select an entry at `path`.
    pub(crate) fn allows(&self, path: &ScriptPath) -> bool {
        self.rank(path).is_some() && !self.except.iter().any(|one| one.is_match(path.as_str()))
    }

    /// Returns the place of the first pattern that `path` matches.
    fn rank(&self, path: &ScriptPath) -> Option<usize> {
        let mut only = self.only.iter();
        match only.as_slice() {
            [] => Some(0),
            _ => only.position(|one| one.is_match(path.as_str())),
        }
    }

    fn allows_tool(&self, tool: ToolTraits<'_>) -> bool {
        let has_tag = |tag: &String| tool.tags.contains(tag);
        self.allows(tool.path)
            && (self.tags.is_empty() || self.tags.iter().any(has_tag))
            && (!self.is_read_only || tool.is_read_only)
    }

    /// Returns which of `tools`, in the order of their paths, it selects.
    pub(crate) fn select(&self, tools: &[ToolTraits<'_>]) -> Vec<bool> {
        let mut selected: Vec<_> = tools.iter().map(|tool| self.allows_tool(*tool)).collect();
        let Some(max_tools) = self.max_tools else {
            return selected;
        };
        let places = selected.iter().enumerate();
        let mut places: Vec<_> = places
            .filter(|(_, is)| **is)
            .map(|(place, _)| place)
            .collect();
        places.sort_by_key(|place| Reverse((self.rank(tools[*place].path), *place)));
        let excess = places.len().saturating_sub(max_tools.get());
        for place in &places[..excess] {
            selected[*place] = false;
        }
        selected
    }
}

/// Named selections, which requests choose by their path or the name of their client.
#[derive(Debug, Default)]
pub(crate) struct Selections {
    named: Vec<(String, CachedSelection)>,
    /// Patterns of names of clients, and the place of the selection for these.
    clients: Vec<(Pattern, usize)>,
}

impl Selections {
    pub(crate) fn add(&mut self, name: String, selection: Selection) {
        self.named.retain(|(known, _)| *known != name);
        self.named.push((name, CachedSelection::new(selection)));
    }

    /// Narrows the clients whose names match `pattern` to the last added selection.
    ///
    /// # Errors
    ///
    /// Fails if the pattern is invalid.
    pub(crate) fn add_client(&mut self, pattern: &str) -> Result<(), PatternError> {
        let place = self.named.len().saturating_sub(1);
        self.clients.push((Pattern::of_texts(pattern)?, place));
        Ok(())
    }

    /// Iterates over the names of the selections.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.named.iter().map(|(name, _)| &**name)
    }

    /// Returns `principal` narrowed to the selection called `name`, if there is one.
    pub(crate) fn narrow_by_name(&self, name: &str, principal: &Principal) -> Option<Principal> {
        let (_, selection) = self.named.iter().find(|(known, _)| known == name)?;
        Some(selection.narrow(principal))
    }

    /// Returns `principal` narrowed to all selections for a client that calls itself `client`, if
    /// there are any.
    pub(crate) fn narrow_by_client(
        &self,
        client: Option<&Implementation>,
        principal: &Principal,
    ) -> Option<Principal> {
        let name = &client.filter(|_| !self.clients.is_empty())?.name;
        let matching = self.clients.iter().filter(|(one, _)| one.is_match(name));
        let places: BTreeSet<_> = matching.map(|(_, place)| *place).collect();
        let selections = places.into_iter().filter_map(|place| self.named.get(place));
        selections.fold(None, |narrowed, (_, selection)| {
            Some(selection.narrow(narrowed.as_ref().unwrap_or(principal)))
        })
    }
}

/// Access of a caller, and its combination with a selection.
type Combined = (Option<Arc<Access>>, Arc<Access>);

/// Selection that narrows callers.
#[derive(Debug)]
struct CachedSelection {
    selection: Selection,
    /// Callers with one access share a view of the catalog.
    combined: Mutex<Vec<Combined>>,
}

impl CachedSelection {
    fn new(selection: Selection) -> Self {
        Self {
            selection,
            combined: Mutex::default(),
        }
    }

    /// Returns `principal` with access to the selection alone.
    fn narrow(&self, principal: &Principal) -> Principal {
        let own = principal.access();
        let is_own =
            |known: &Option<Arc<Access>>| known.as_ref().map(Arc::as_ptr) == own.map(Arc::as_ptr);
        let mut combined = lock(&self.combined);
        if let Some((_, access)) = combined.iter().find(|(known, _)| is_own(known)) {
            return principal.clone().with_shared_access(Arc::clone(access));
        }
        let access = own.map_or_else(Access::default, |own| Access::clone(own));
        let access = Arc::new(access.select(self.selection.clone()));
        if combined.len() >= MAX_COMBINED {
            combined.remove(0);
        }
        combined.push((own.cloned(), Arc::clone(&access)));
        principal.clone().with_shared_access(access)
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    const TOOLS: &[(&str, &[&str], bool)] = &[
        ("deploy", &["ops"], false),
        ("git/log", &["git", "read"], true),
        ("git/push", &["git"], false),
        ("greet", &[], true),
    ];

    #[track_caller]
    fn check(selection: &Selection, expected: &[&str]) {
        let tools = TOOLS.iter().map(|(path, tags, is_read_only)| {
            let tags: Vec<_> = tags.iter().map(|tag| (*tag).to_owned()).collect();
            (path.parse().unwrap(), tags, *is_read_only)
        });
        let tools: Vec<(ScriptPath, Vec<String>, bool)> = tools.collect();
        let traits = tools.iter().map(|(path, tags, is_read_only)| ToolTraits {
            path,
            tags,
            is_read_only: *is_read_only,
        });
        let traits: Vec<_> = traits.collect();
        let selected = selection.select(&traits);
        let paths = TOOLS.iter().zip(selected);
        let paths: Vec<_> = paths
            .filter(|(_, is)| *is)
            .map(|((path, ..), _)| *path)
            .collect();
        assert_eq!(paths, expected);
    }

    #[test]
    fn selection_is_by_path_tag_and_effect() {
        let all = Selection::default();
        check(&all, &["deploy", "git/log", "git/push", "greet"]);
        assert!(all.is_everything());
        let git = Selection::default().only("git/*").unwrap();
        check(&git.clone(), &["git/log", "git/push"]);
        check(&git.clone().except("*/push").unwrap(), &["git/log"]);
        check(&git.read_only(true), &["git/log"]);
        check(
            &Selection::default().tag("ops").tag("read"),
            &["deploy", "git/log"],
        );
    }

    #[test]
    fn first_patterns_come_first_up_to_the_number() {
        let max = |number| NonZeroUsize::new(number).unwrap();
        let all = Selection::default();
        check(&all.clone().max_tools(max(2)), &["deploy", "git/log"]);
        let greet = all.only("greet").unwrap().only("git/*").unwrap();
        check(&greet.clone().max_tools(max(2)), &["git/log", "greet"]);
        check(&greet.max_tools(max(9)), &["git/log", "git/push", "greet"]);
    }

    #[test]
    fn client_is_narrowed_by_every_selection_for_its_name() {
        let mut selections = Selections::default();
        for (name, pattern) in [("git", "git/*"), ("logs", "*/log")] {
            let selection = Selection::default().only(pattern).unwrap();
            selections.add(name.to_owned(), selection);
            selections.add_client("cursor*").unwrap();
        }
        let narrow = |client: &str| {
            let client = Implementation::new(client, "1");
            selections.narrow_by_client(Some(&client), &Principal::new("ada"))
        };
        let narrowed = narrow("cursor-vscode").unwrap();
        let allows = |path: &str| narrowed.access().unwrap().allows(&path.parse().unwrap());
        assert!(allows("git/log") && !allows("git/push") && !allows("svn/log"));
        assert!(narrow("other").is_none());
    }

    #[test]
    fn callers_with_one_access_share_a_narrowed_one() {
        let selection = CachedSelection::new(Selection::default().only("git/*").unwrap());
        let narrowed = |name: &str| selection.narrow(&Principal::new(name));
        let (alice, bob) = (narrowed("alice"), narrowed("bob"));
        assert!(ptr::eq(
            &**alice.access().unwrap(),
            &**bob.access().unwrap()
        ));
        let allows = |path: &str| alice.access().unwrap().allows(&path.parse().unwrap());
        assert!(allows("git/log") && !allows("greet"));
        let restricted = Principal::new("carol").with_access(Access::default().allow_only([]));
        let carol = selection.narrow(&restricted);
        assert!(!carol.access().unwrap().allows(&"git/log".parse().unwrap()));
    }
}
