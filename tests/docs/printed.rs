//! Comparison of the output printed on a page with the real one.

use std::sync::LazyLock;

use regex::Regex;

/// Patterns of values that differ on every run, with their replacement: a page shows one example
/// of each.
static VARYING: LazyLock<[(Regex, &str); 3]> = LazyLock::new(|| {
    [
        (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
        (r"\b\d+ ms\b", "N ms"),
        (r"\b[0-9a-f]{64}\b", "HASH"),
    ]
    .map(|(pattern, name)| (Regex::new(pattern).expect("a pattern"), name))
});

/// Returns whether the lines of `printed` match those of `expected`. There `…` stands for any text
/// within a line, and on a line of its own for any number of lines.
pub(crate) fn is_as(expected: &str, printed: &str) -> bool {
    let (expected, printed) = (stable(expected), stable(printed));
    let lines = expected.lines().map(|line| match line {
        "…" => "(?:.*\n)*?".to_owned(),
        line => {
            let parts: Vec<_> = line.split('…').map(regex::escape).collect();
            format!("{}\n", parts.join(".*"))
        }
    });
    let pattern = format!("^{}$", lines.collect::<String>());
    let pattern = Regex::new(&pattern).expect("its parts are escaped");
    pattern.is_match(&format!("{printed}\n"))
}

fn stable(text: &str) -> String {
    let text = text.trim_end().replace('\r', "");
    VARYING.iter().fold(text, |text, (pattern, name)| {
        pattern.replace_all(&text, *name).into_owned()
    })
}

#[test]
fn ellipsis_stands_for_omitted_output() {
    #[track_caller]
    fn check(expected: &str, printed: &str, is: bool) {
        assert_eq!(is_as(expected, printed), is, "{expected:?} {printed:?}");
    }
    check("a\nb\n", "a\nb", true);
    check("a", "a\nb", false);
    check("a\nb", "a", false);
    check("a.", "ab", false);
    check("a…c", "a b c", true);
    check("a…c", "a b c d", false);
    check("…\nb", "a\na\nb", true);
    check("…\nb", "b", true);
    check("…\nb", "a\nb\nc", false);
    check("took 3 ms", "took 12 ms", true);
    check("took 3 ms", "took 12 s", false);
    check(
        "2026-11-22T10:00:00.132Z  x",
        "2027-01-02T00:00:00.000Z  x",
        true,
    );
}
