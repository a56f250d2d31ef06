//! Screenshots that the scenarios of the console leave below `target/console`, one directory each.

use std::fs;
use std::path::Path;

/// Scenarios, each with the names of its screenshots.
const NAMES: [(&str, &str); 12] = [
    ("actions", "actions approval url-question"),
    ("apps", "app app-question narrow-app"),
    ("form", "form form-faults"),
    (
        "hostile",
        "fault-hiddencharacter fault-notexecutable fault-windowhacked1 hostile-hostile hostile-pictures hostile-question hostile-runs hostile-skill",
    ),
    ("keyboard", "question record running"),
    ("many", "late-tool many-runs"),
    (
        "operator",
        "examined other-run seen-as skill task team-connect team-runs team-server team-tool team-tools",
    ),
    ("runs", "again filtered record"),
    ("sites", "call-goes-on"),
    ("stream", "flood"),
    (
        "tasks",
        "call-with-a-list cancel-a-run connect-Cursor failure-of-team-A missing-script",
    ),
    (
        "tour",
        "connect cursor dark-connect dark-cursor dark-runs dark-server dark-tool definition fault live-card narrow-connect narrow-record narrow-result narrow-server narrow-tools passed-over picture question result running runs server sign-in tools",
    ),
];

/// Empties the directory of a scenario.
pub(crate) fn clear(directory: &Path) {
    fs::remove_dir_all(directory).ok();
    fs::create_dir_all(directory).unwrap();
}

/// Asserts that a scenario has left its screenshots, and no other. One that has no entry above has
/// none.
#[track_caller]
pub(crate) fn check(directory: &Path, scenario: &str) {
    let expected = NAMES.iter().find(|(name, _)| *name == scenario);
    let expected = expected.map_or("", |(_, names)| names);
    let entries = fs::read_dir(directory).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.map(|name| name.replace(".png", "")).collect();
    names.sort();
    assert_eq!(names.join(" "), expected, "screenshots of {scenario}");
}
