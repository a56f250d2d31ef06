//! Differences from what is approved, as text for review. Hidden characters are left to the caller,
//! who escapes the whole text.

use std::time::Duration;

use mcpd_server::catalog::pins::{Difference, PinChange, PinnedEntry, PinnedFile};
use similar::TextDiff;

/// Time in which the shortest difference of two texts is searched for.
const DIFF_TIME: Duration = Duration::from_millis(500);

/// Contents of a file before and after a change, as far as they are known.
pub type Versions = [Option<String>; 2];

/// Renders a change of a tool, prompt or resource. `code` has the contents of its script.
#[must_use]
pub fn entry_text(change: &PinChange, code: &Versions) -> String {
    let Some(entry) = change.entry() else {
        return String::new();
    };
    let name = format!("{} {}", entry.kind.word(), entry.path);
    let place = match &entry.file {
        Some(file) if (&*entry.root, &file.path) == (".", &entry.path) => String::new(),
        Some(file) => format!(" ({})", place(&entry.root, &file.path)),
        None => format!(" ({})", entry.root),
    };
    match (&change.before, &change.after) {
        (Some(_), Some(_)) => {
            let differences = change.differences();
            let members: Vec<_> = differences.iter().map(|one| one.member.as_str()).collect();
            let mut text = format!("~ {name}{place}: {}\n", members.join(", "));
            for difference in &differences {
                text += &member_text(difference, code);
            }
            text
        }
        (None, _) => format!("+ {name}{place}: new\n{}", new_text(entry, code)),
        (_, None) => format!("- {name}{place}: gone\n"),
    }
}

/// Renders a change of another file, of which `code` has the contents.
#[must_use]
pub fn file_text([before, after]: &[Option<PinnedFile>; 2], code: &Versions) -> String {
    let Some(file) = after.as_ref().or(before.as_ref()) else {
        return String::new();
    };
    let (sign, what) = match (before, after) {
        (None, _) => ("+", "new"),
        (_, None) => ("-", "gone"),
        _ => ("~", "content"),
    };
    let content = |file: &Option<PinnedFile>| file.as_ref().map(|file| file.content.clone());
    let content = [content(before), content(after)];
    let shown = match after {
        Some(_) => content_text(&content, code),
        None => String::new(),
    };
    let place = place(&file.root, &file.path);
    format!("{sign} file {place}: {what}\n{shown}")
}

fn place(root: &str, path: &str) -> String {
    match root {
        "." => path.to_owned(),
        root => format!("{root}/{path}"),
    }
}

fn new_text(entry: &PinnedEntry, code: &Versions) -> String {
    let members = entry.definition.iter();
    let mut text: String = members
        .filter(|(name, _)| !matches!(name.as_str(), "_meta" | "name"))
        .map(|(name, value)| labelled(name, &indented(value)))
        .collect();
    if let Some(file) = &entry.file {
        let interpreter = file.interpreter.as_deref().unwrap_or("itself");
        text += &labelled("run by", &indented(interpreter));
        text += &labelled(
            "content",
            &content_text(&[None, Some(file.sha256.clone())], code),
        );
    }
    text
}

fn member_text(difference: &Difference, code: &Versions) -> String {
    let Difference {
        member,
        before,
        after,
        ..
    } = difference;
    let shown = match member.as_str() {
        "content" => content_text(&[before.clone(), after.clone()], code),
        _ => diff(
            before.as_deref().unwrap_or_default(),
            after.as_deref().unwrap_or_default(),
        ),
    };
    labelled(member, &shown)
}

/// Renders the difference of two contents, or says that only their digests are known.
fn content_text(digests: &Versions, code: &Versions) -> String {
    let is_new = digests[0].is_none();
    match code {
        [Some(before), Some(after)] => diff(before, after),
        [None, Some(after)] if is_new => diff("", after),
        _ => {
            let [before, after] = digests.each_ref().map(|digest| digest.as_deref());
            let nothing = "nothing";
            indented(&format!(
                "no copy of what was approved, only its digest: {} → {}",
                before.unwrap_or(nothing),
                after.unwrap_or(nothing)
            ))
        }
    }
}

fn labelled(name: &str, text: &str) -> String {
    format!("  {name}\n{text}")
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

/// Renders the difference of two texts, with a few equal lines around each change.
fn diff(before: &str, after: &str) -> String {
    let with_end = |text: &str| match text.is_empty() || text.ends_with('\n') {
        true => text.to_owned(),
        false => format!("{text}\n"),
    };
    let (before, after) = (with_end(before), with_end(after));
    let diff = TextDiff::configure()
        .timeout(DIFF_TIME)
        .diff_lines(&*before, &*after);
    indented(&diff.unified_diff().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_without_a_copy_is_named_by_its_digest() {
        let digests = [Some("a".to_owned()), Some("b".to_owned())];
        let known = [Some("x\n".to_owned()), Some("y\n".to_owned())];
        assert_eq!(
            content_text(&digests, &known),
            "    @@ -1 +1 @@\n    -x\n    +y\n"
        );
        let unknown = [None, Some("y\n".to_owned())];
        assert_eq!(
            content_text(&digests, &unknown),
            "    no copy of what was approved, only its digest: a → b\n"
        );
        let new = [None, digests[1].clone()];
        assert_eq!(content_text(&new, &unknown), "    @@ -0,0 +1 @@\n    +y\n");
    }
}
