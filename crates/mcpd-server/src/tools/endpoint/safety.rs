//! Safety of a tool in words, and the hints that the words stand for. Only sentences of this
//! module are understood: any other text about safety is for people, and makes no hint that a
//! client might rely on.

use mcpd_protocol::method::ToolAnnotations;

/// Text for a tool without hints.
const UNKNOWN_SAFETY: &str = "Unknown.";

type Hint = fn(&mut ToolAnnotations) -> &mut Option<bool>;

/// Hints, each with the sentence for true and that for false.
const HINTS: [(Hint, &str, &str); 4] = [
    (
        |annotations| &mut annotations.read_only_hint,
        "Changes nothing.",
        "Changes something.",
    ),
    (
        |annotations| &mut annotations.destructive_hint,
        "May destroy something.",
        "Destroys nothing.",
    ),
    (
        |annotations| &mut annotations.idempotent_hint,
        "Can be repeated.",
        "Does more when repeated.",
    ),
    (
        |annotations| &mut annotations.open_world_hint,
        "Reaches beyond this machine.",
        "Stays on this machine.",
    ),
];

/// Returns the text for these hints.
pub(super) fn of(annotations: Option<&ToolAnnotations>) -> String {
    let mut annotations = annotations.cloned().unwrap_or_default();
    let words = HINTS.iter().filter_map(|(hint, yes, no)| {
        hint(&mut annotations).map(|holds| if holds { *yes } else { *no })
    });
    let words: Vec<_> = words.collect();
    match words.is_empty() {
        true => UNKNOWN_SAFETY.to_owned(),
        false => words.join(" "),
    }
}

/// Returns the hints for a text that consists of these sentences alone.
pub(super) fn read(words: &str) -> Option<ToolAnnotations> {
    let mut annotations = ToolAnnotations::default();
    for (hint, yes, no) in HINTS {
        *hint(&mut annotations) = match (words.contains(yes), words.contains(no)) {
            (true, false) => Some(true),
            (false, true) => Some(false),
            _ => None,
        };
    }
    let is_known = annotations != ToolAnnotations::default() && of(Some(&annotations)) == words;
    is_known.then_some(annotations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(read_only: Option<bool>, open_world: Option<bool>, expected: &str) {
        let mut annotations = ToolAnnotations::default();
        annotations.read_only_hint = read_only;
        annotations.open_world_hint = open_world;
        assert_eq!(of(Some(&annotations)), expected);
        assert_eq!(read(expected).unwrap_or_default(), annotations);
    }

    #[test]
    fn hints_have_their_sentences() {
        check(None, None, "Unknown.");
        check(Some(true), None, "Changes nothing.");
        check(
            Some(false),
            Some(true),
            "Changes something. Reaches beyond this machine.",
        );
        check(None, Some(false), "Stays on this machine.");
    }

    #[test]
    fn unknown_sentences_make_no_hint() {
        for words in [
            "",
            "Read-only.",
            "Changes nothing. Honestly.",
            "Changes nothing. Changes something.",
        ] {
            assert_eq!(read(words), None, "{words}");
        }
    }
}
