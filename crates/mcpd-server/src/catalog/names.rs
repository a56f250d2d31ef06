//! Which tool answers to which name. A path is a tool's identity; what a list shows is a spelling of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Conflict;
use crate::tool::Tool;

/// How a list spells the names of tools; a call may always use any spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolNames {
    /// `math_add`: what every client and model API accepts.
    Portable,
    /// `math/add`: the path below the root.
    Path,
}

/// Sorts the tools by path and gives each a portable name of its own: what is listed is what is run.
pub(super) fn assign(tools: impl Iterator<Item = Arc<Tool>>) -> (Vec<Arc<Tool>>, Vec<Conflict>) {
    let mut by_path = BTreeMap::new();
    let mut conflicts = Vec::new();
    for tool in tools {
        if let Some(first) = by_path.get(tool.path()) {
            conflicts.push(Conflict {
                path: tool.path().clone(),
                message: format!("{tool} is hidden by {first}, which has the same name"),
            });
        } else {
            by_path.insert(tool.path().clone(), tool);
        }
    }
    // A path that is portable already means its own tool in every call, so it is listed as itself.
    let mut taken: BTreeMap<String, Arc<Tool>> = by_path
        .values()
        .filter(|tool| tool.portable_name() == tool.path().as_str())
        .map(|tool| (tool.portable_name().to_owned(), Arc::clone(tool)))
        .collect();
    let mut assigned = Vec::with_capacity(by_path.len());
    for tool in by_path.into_values() {
        let tool = match taken.get(tool.portable_name()) {
            Some(first) if first.path() != tool.path() => {
                let renamed = Arc::new(tool.with_distinct_name());
                conflicts.push(Conflict {
                    path: tool.path().clone(),
                    message: format!(
                        "{tool} is listed as `{}`, because {first} is listed as `{}`",
                        renamed.portable_name(),
                        tool.portable_name(),
                    ),
                });
                renamed
            }
            _ => tool,
        };
        taken.insert(tool.portable_name().to_owned(), Arc::clone(&tool));
        assigned.push(tool);
    }
    (assigned, conflicts)
}

/// Every spelling of every tool. A path is never shadowed by another tool's alias, nor a listed name
/// by a dotted one.
pub(super) fn index(tools: &[Arc<Tool>]) -> BTreeMap<String, usize> {
    let mut index = BTreeMap::new();
    let spellings: [fn(&Tool) -> String; 3] = [
        |tool| tool.path().as_str().to_owned(),
        |tool| tool.portable_name().to_owned(),
        |tool| tool.path().as_str().replace('/', "."),
    ];
    for spelling in spellings {
        for (place, tool) in tools.iter().enumerate() {
            index.entry(spelling(tool)).or_insert(place);
        }
    }
    index
}
