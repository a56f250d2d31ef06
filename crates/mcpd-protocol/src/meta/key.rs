//! The grammar of `_meta` keys.

/// Whether `key` is a well-formed `_meta` key: an optional prefix of dot-separated labels and a slash,
/// then a name -- 2026-07-28/basic/index#_meta.
#[must_use]
pub fn is_valid_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => prefix.split('.').all(is_label) && is_name(name),
        None => is_name(key),
    }
}

/// "Labels MUST start with a letter and end with a letter or digit; interior characters can be
/// letters, digits, or hyphens".
fn is_label(label: &str) -> bool {
    label.starts_with(|c: char| c.is_ascii_alphabetic())
        && label.ends_with(|c: char| c.is_ascii_alphanumeric())
        && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// "Unless empty, MUST begin and end with an alphanumeric character"; hyphens, underscores and dots
/// may stand inside.
fn is_name(name: &str) -> bool {
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let edge = |c: char| c.is_ascii_alphanumeric();
    name.is_empty() || name.starts_with(edge) && name.ends_with(edge) && name.chars().all(inside)
}

#[cfg(test)]
mod tests {
    use super::is_valid_key;

    #[test]
    fn keys_follow_the_grammar() {
        for key in [
            "a",
            "progressToken",
            "com.example/",
            "com.example-1.x/my_key.2",
            "a/b",
        ] {
            assert!(is_valid_key(key), "{key}");
        }
        for key in [
            "1com/a",
            "com..example/a",
            "com-/a",
            "a/b/c",
            "_a",
            "a-",
            "é",
            "/a",
            "a b",
        ] {
            assert!(!is_valid_key(key), "{key}");
        }
    }
}
