//! Spelling of names in lists.

/// Spelling of tools and prompts in lists; a request may use any spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolNames {
    /// `math_add`, which every client and model API accepts.
    Portable,
    /// `math/add`, the path below the root.
    Path,
}
