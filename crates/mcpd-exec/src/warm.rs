//! Warm starts, asked for and reported: a run that begins as a fork of an interpreter that has
//! started already.

use std::sync::Arc;

/// Request for a warm start, with modules that the interpreter imports before any run.
///
/// It never keeps a run from starting: where it is not possible, the run starts as any other. It
/// is possible on Linux, for scripts of Python with standard input, at the levels
/// [`None`](crate::Level::None) and [`Guarded`](crate::Level::Guarded).
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WarmStart(Arc<[String]>);

impl WarmStart {
    /// Asks for a warm start after these modules are imported. A name that no module can have is
    /// left out.
    pub fn new(modules: impl IntoIterator<Item = String>) -> Self {
        let modules = modules.into_iter();
        Self(modules.filter(|name| is_module_name(name)).collect())
    }

    /// Names of the modules.
    pub fn modules(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// Returns whether a module of Python can have this name, such as `xml.dom`.
#[must_use]
pub fn is_module_name(name: &str) -> bool {
    name.split('.').all(|part| {
        let is_word = |char: char| char == '_' || char.is_alphanumeric();
        part.starts_with(|char: char| char == '_' || char.is_alphabetic())
            && part.chars().all(is_word)
    })
}

/// Start of a run for which a warm one was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Warmth {
    /// It was forked from an interpreter that had started.
    Warm,
    /// It was started as any other, for this reason.
    Cold(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn module_name_is_checked() {
        for (name, expected) in [
            ("json", true),
            ("xml.dom", true),
            ("_a1", true),
            ("", false),
            ("a.", false),
            ("1a", false),
            ("os;x", false),
            ("a,b", false),
        ] {
            assert_eq!(is_module_name(name), expected, "{name}");
        }
        let asked = WarmStart::new(["json".to_owned(), "a b".to_owned()]);
        assert_eq!(asked.modules().collect::<Vec<_>>(), ["json"]);
    }
}
