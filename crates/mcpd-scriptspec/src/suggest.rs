//! "Did you mean" suggestions: the known name closest to a misspelt one.

/// The name closest to `given`, if it is close enough.
pub(crate) fn suggest<'n>(
    given: &str,
    names: impl IntoIterator<Item = &'n str>,
) -> Option<&'n str> {
    // No known name is this long, and the distance takes quadratic time.
    if given.len() > 64 {
        return None;
    }
    let names: Vec<_> = names.into_iter().collect();
    // Matches `type` for `value_type`, and `default` for `default_value`.
    let is_part = |name: &&str| given.len() >= 4 && name.contains(given);
    if let Some(name) = names.iter().copied().find(is_part) {
        return Some(name);
    }
    let distance = |name: &str| strsim::osa_distance(&given.to_lowercase(), &name.to_lowercase());
    let (best, name) = names
        .into_iter()
        .map(|name| (distance(name), name))
        .min_by_key(|(distance, _)| *distance)?;
    (best <= name.chars().count().max(3) / 3).then_some(name)
}
