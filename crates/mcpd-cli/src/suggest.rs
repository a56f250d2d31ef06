//! Which of the names there are somebody meant.

/// How alike two names must be for one to be meant by the other.
const ALIKE: f64 = 0.8;

/// The name that is most like `given`, if one is like it at all.
pub(crate) fn nearest<'a>(
    given: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(given, name), name))
        .filter(|(likeness, _)| *likeness > ALIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}
