//! Glob patterns of paths and texts, in source and compiled form.

use globset::{GlobBuilder, GlobMatcher};

/// Invalid pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("parse the pattern `{pattern}`: {reason}")]
pub struct PatternError {
    pattern: String,
    reason: String,
}

impl PatternError {
    pub(crate) fn new(pattern: &str, reason: &str) -> Self {
        Self {
            pattern: pattern.to_owned(),
            reason: reason.to_owned(),
        }
    }
}

/// Pattern of paths or texts.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    text: String,
    matcher: GlobMatcher,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.matcher.glob() == other.matcher.glob()
    }
}

impl Pattern {
    /// Compiles a pattern of paths: `*` matches a part of a name, `?` a character, `[ab]` either,
    /// `{add,sub}` either, `**` any number of names.
    ///
    /// # Errors
    ///
    /// Fails if the pattern is invalid.
    pub(crate) fn of_paths(text: &str) -> Result<Self, PatternError> {
        Self::new(text, GlobBuilder::new(text).literal_separator(true))
    }

    /// Compiles a pattern of texts: `*` matches any text, and every other character itself. JSON
    /// is full of brackets, and a rule that treated them as wildcards would miss calls that it
    /// should deny.
    ///
    /// # Errors
    ///
    /// Fails if the pattern is invalid.
    pub(crate) fn of_texts(text: &str) -> Result<Self, PatternError> {
        let mut glob = String::with_capacity(text.len());
        for char in text.chars() {
            if r"?[]{}\".contains(char) {
                glob.push('\\');
            }
            glob.push(char);
        }
        Self::new(text, GlobBuilder::new(&glob).backslash_escape(true))
    }

    fn new(text: &str, glob: &GlobBuilder<'_>) -> Result<Self, PatternError> {
        let glob = glob
            .build()
            .map_err(|error| PatternError::new(text, &error.kind().to_string()))?;
        Ok(Self {
            text: text.to_owned(),
            matcher: glob.compile_matcher(),
        })
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.matcher.is_match(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_text_every_character_but_the_star_is_itself() {
        #[track_caller]
        fn check(pattern: &str, matched: &[&str], others: &[&str]) {
            let pattern = Pattern::of_texts(pattern).unwrap();
            let is_match = |text: &&&str| pattern.is_match(text);
            assert_eq!(matched.iter().find(|text| !is_match(text)), None);
            assert_eq!(others.iter().find(is_match), None);
        }
        check("data[1].txt", &["data[1].txt"], &["data1.txt"]);
        check("a{b,c}?", &["a{b,c}?"], &["ab?", "a{b,c}x"]);
        check(r"a\*", &[r"a\b", r"a\"], &["a*"]);
        check("[!a]*", &["[!a]", "[!a]b"], &["b"]);
        check("a*", &["a", "a/b", "a\nb"], &["b"]);
    }
}
