//! Suggestions for a misspelt name.

/// Minimum similarity of two names for a suggestion.
const MIN_SIMILARITY: f64 = 0.8;

/// The known name most similar to `given`, if any is similar.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(given, name), name))
        .filter(|(likeness, _)| *likeness > MIN_SIMILARITY)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}
