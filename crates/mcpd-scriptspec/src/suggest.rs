//! "Did you mean" suggestions: the known name closest to a misspelt one.

/// The name that [`suggest`] suggests, if no other is as close: what the author must have meant.
pub(crate) fn suggest_only<'n>(
    given: &str,
    names: impl IntoIterator<Item = &'n str>,
) -> Option<&'n str> {
    let names: Vec<_> = names.into_iter().collect();
    let name = suggest(given, names.iter().copied())?;
    // `type` is a small part of both `value_type` and `mime_type`.
    if name.contains(given) && given.len() * 2 < name.len() {
        return None;
    }
    let rest = names.into_iter().filter(|other| *other != name);
    let second = suggest(given, rest);
    let is_closer = |second: &str| {
        let distance = |name| strsim::osa_distance(given, name);
        !second.contains(given) && distance(name) < distance(second)
    };
    second.is_none_or(is_closer).then_some(name)
}

/// Suggests what a misspelt name may mean: the name closest to it, if one is close enough.
pub fn suggest<'n>(given: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
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
