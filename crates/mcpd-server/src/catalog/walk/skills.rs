//! Places of skills: a directory below `skills/` with a `SKILL.md`, and everything in it.

use std::path::Path;

/// Directory of a root whose directories may be skills.
const SKILL_DIRECTORY: &str = "skills";
/// File that makes a directory a skill.
pub(crate) const SKILL_FILE: &str = "SKILL.md";

/// Returns whether a file is part of a skill below `root`: no such file is a script.
pub(super) fn is_part(root: &Path, file: &Path) -> bool {
    let top = root.join(SKILL_DIRECTORY);
    if !file.starts_with(&top) {
        return false;
    }
    let above = file.ancestors().skip(1);
    let mut above = above.take_while(|directory| *directory != top);
    above.any(|directory| directory.join(SKILL_FILE).is_file())
}

/// Returns whether a directory is a skill below `root`.
pub(crate) fn is_skill(root: &Path, directory: &Path) -> bool {
    is_part(root, &directory.join(SKILL_FILE))
}
