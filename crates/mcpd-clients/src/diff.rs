//! Unified diff of two texts, for an operator to agree to.

/// Lines that differ, with three lines around them; empty if nothing does.
#[must_use]
pub fn diff(before: &str, after: &str) -> String {
    similar::TextDiff::from_lines(before, after)
        .unified_diff()
        .context_radius(3)
        .to_string()
}
