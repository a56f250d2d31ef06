//! Template tags in a code block: placeholders `{{name}}`, and conditional sections from `{{#if
//! name}}` over `{{else if other}}` and `{{else}}` to `{{/if}}`.
//!
//! Conditions choose among parts of the author's text and never add a caller's text to it. Every
//! `{{` is a tag; an unknown tag is a fault.

use std::collections::BTreeSet;

use super::placeholder;
use crate::json::Span;

/// Maximum number of variants of one block: six independent conditions.
const MAX_VARIANTS: usize = 64;

/// Maximum number of reported faults in the tags of one block.
const MAX_FAULTS: usize = 20;

/// Tags of a code block, in order.
#[derive(Debug, Default)]
pub(super) struct Template<'a> {
    tags: Vec<Tag<'a>>,
    pub(super) faults: Vec<TagFault>,
}

/// One tag and its place in the code.
#[derive(Debug)]
struct Tag<'a> {
    kind: TagKind<'a>,
    span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TagKind<'a> {
    Placeholder(&'a str),
    If(&'a str),
    ElseIf(&'a str),
    Else,
    EndIf,
}

/// A fault of a tag.
#[derive(Debug)]
pub(super) struct TagFault {
    pub(super) span: Span,
    pub(super) message: &'static str,
    pub(super) help: &'static str,
}

/// Parts of the code that remain under some conditions.
#[derive(Debug)]
pub(super) struct Selection<'a> {
    /// Names of conditions, and whether they hold.
    pub(super) conditions: Vec<(&'a str, bool)>,
    pub(super) parts: Vec<Span>,
}

/// An open conditional section, during the selection of parts.
struct OpenSection {
    /// The section itself is selected.
    is_reached: bool,
    /// One of its branches has been selected.
    is_decided: bool,
    /// The current branch is selected.
    is_selected: bool,
}

const TAGS: &str = "tags are `{{name}}`, `{{#if name}}`, `{{else if name}}`, `{{else}}` and `{{/if}}`; put quotes between braces that are code";

impl<'a> Template<'a> {
    /// Reads the tags of a block.
    pub(super) fn read(code: &'a str) -> Self {
        let mut template = Self::default();
        let mut at = 0;
        while let Some(next) = code[at..].find("{{") {
            let start = at + next;
            let rest = &code[start..];
            at = match tag(rest) {
                Some((kind, length)) => {
                    let span = start..start + length;
                    template.tags.push(Tag { kind, span });
                    start + length
                }
                None => {
                    let length = length_of_unknown(rest);
                    let message = "a `{{` that is not a scriptlet tag";
                    template.fault(start..start + length, message, TAGS);
                    start + length
                }
            };
        }
        template.check_sections();
        template
    }

    fn fault(&mut self, span: Span, message: &'static str, help: &'static str) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(TagFault {
                span,
                message,
                help,
            });
        }
    }

    /// Reports branches and ends without a beginning, and the reverse.
    fn check_sections(&mut self) {
        const OPEN: &str = "begin the section with `{{#if name}}`";
        // Start of each open section, and whether its last branch has begun.
        let mut open: Vec<(Span, bool)> = Vec::new();
        let mut faults = Vec::new();
        for Tag { kind, span } in &self.tags {
            match (kind, open.last_mut()) {
                (TagKind::Placeholder(_), _) => {}
                (TagKind::If(_), _) => open.push((span.clone(), false)),
                (TagKind::EndIf, Some(_)) => drop(open.pop()),
                (TagKind::Else, Some((_, is_last @ false))) => *is_last = true,
                (TagKind::ElseIf(_), Some((_, false))) => {}
                (TagKind::ElseIf(_) | TagKind::Else, Some(_)) => {
                    faults.push((span.clone(), "a branch after `{{else}}`", "leave it out"));
                }
                (_, None) => faults.push((span.clone(), "no section is open here", OPEN)),
            }
        }
        let unclosed = open.into_iter().map(|(span, _)| {
            let message = "unclosed section";
            (span, message, "close it with `{{/if}}`")
        });
        faults.extend(unclosed);
        for (span, message, help) in faults {
            self.fault(span, message, help);
        }
    }

    /// Names in the tags in order, with the place of each, and whether it is a condition.
    pub(super) fn names(&self) -> impl Iterator<Item = (&'a str, Span, bool)> {
        self.tags.iter().filter_map(|Tag { kind, span }| {
            let (name, is_condition) = match *kind {
                TagKind::Placeholder(name) => (name, false),
                TagKind::If(name) | TagKind::ElseIf(name) => (name, true),
                TagKind::Else | TagKind::EndIf => return None,
            };
            Some((name, span.clone(), is_condition))
        })
    }

    /// Returns the remaining code of a block of this length, for every result of its conditions;
    /// `None` if there are too many results.
    pub(super) fn selections(&self, length: usize) -> Option<Vec<Selection<'a>>> {
        let mut found = Vec::new();
        let mut open = vec![Vec::new()];
        while let Some(conditions) = open.pop() {
            match self.select(length, &conditions) {
                Ok(parts) => found.push(Selection { conditions, parts }),
                Err(undecided) => {
                    for holds in [false, true] {
                        let mut conditions = conditions.clone();
                        conditions.push((undecided, holds));
                        open.push(conditions);
                    }
                }
            }
            if found.len() + open.len() > MAX_VARIANTS {
                return None;
            }
        }
        Some(found)
    }

    /// Parts that remain under these conditions, or a condition to decide first.
    fn select(&self, length: usize, conditions: &[(&str, bool)]) -> Result<Vec<Span>, &'a str> {
        let value = |name: &'a str| {
            let known = conditions.iter().find(|(known, _)| *known == name);
            known.map(|(_, holds)| *holds).ok_or(name)
        };
        let mut parts = Vec::new();
        let mut sections: Vec<OpenSection> = Vec::new();
        let mut start = 0;
        for Tag { kind, span } in &self.tags {
            if matches!(kind, TagKind::Placeholder(_)) {
                continue;
            }
            if sections.last().is_none_or(|section| section.is_selected) {
                parts.push(start..span.start);
            }
            start = span.end;
            match (*kind, sections.last_mut()) {
                (TagKind::If(name), around) => {
                    let is_reached = around.is_none_or(|section| section.is_selected);
                    let holds = is_reached && value(name)?;
                    sections.push(OpenSection {
                        is_reached,
                        is_decided: holds,
                        is_selected: holds,
                    });
                }
                (TagKind::ElseIf(name), Some(section)) => {
                    let is_open = section.is_reached && !section.is_decided;
                    section.is_selected = is_open && value(name)?;
                    section.is_decided |= section.is_selected;
                }
                (TagKind::Else, Some(section)) => {
                    section.is_selected = section.is_reached && !section.is_decided;
                    section.is_decided = true;
                }
                (TagKind::EndIf, Some(_)) => drop(sections.pop()),
                // Outside of a section they are faults.
                (_, _) => {}
            }
        }
        parts.push(start..length);
        Ok(parts)
    }

    /// Conditions whose values the code uses elsewhere.
    pub(super) fn conditional_values(&self) -> BTreeSet<&'a str> {
        let of = |wanted: bool| {
            let names = self.names().filter(move |(_, _, is)| *is == wanted);
            names.map(|(name, _, _)| name).collect::<BTreeSet<_>>()
        };
        of(true).intersection(&of(false)).copied().collect()
    }
}

/// The tag at the start of a text, and its length.
fn tag(text: &str) -> Option<(TagKind<'_>, usize)> {
    let inside = text.strip_prefix("{{")?;
    let end = inside.find("}}")?;
    let words: Vec<_> = inside[..end].split_ascii_whitespace().take(4).collect();
    let kind = match *words {
        ["#if", name] if placeholder::is_name(name) => TagKind::If(name),
        ["else", "if", name] if placeholder::is_name(name) => TagKind::ElseIf(name),
        ["else"] => TagKind::Else,
        ["/if"] => TagKind::EndIf,
        _ => {
            let (name, length) = placeholder::first(text)?;
            return Some((TagKind::Placeholder(name), length));
        }
    };
    Some((kind, end + 4))
}

/// Length of an unknown tag: up to its end if that is on the same line, and else the braces.
fn length_of_unknown(text: &str) -> usize {
    let line = text.lines().next().unwrap_or(text);
    match line.find("}}") {
        Some(end) => end + 2,
        None => text.len() - text.trim_start_matches('{').len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(code: &str, conditions: &[(&str, bool)], expected: &str) {
        let template = Template::read(code);
        assert!(template.faults.is_empty(), "{:?}", template.faults);
        let selections = template.selections(code.len()).unwrap();
        let holds = |name: &str| conditions.contains(&(name, true));
        let is_fitting = |found: &&Selection<'_>| {
            let mut all = found.conditions.iter();
            all.all(|(name, is)| holds(name) == *is)
        };
        let fitting: Vec<_> = selections.iter().filter(is_fitting).collect();
        let [found] = *fitting else {
            panic!("{} selections fit", fitting.len());
        };
        let text: String = found.parts.iter().map(|part| &code[part.clone()]).collect();
        assert_eq!(text, expected);
    }

    #[test]
    fn conditions_select_the_first_branch_that_holds() {
        let code = "{{#if a}}A{{else if b}}B{{ else if c }}C{{else}}D{{/if}}!";
        check(code, &[], "D!");
        check(code, &[("c", true)], "C!");
        check(code, &[("b", true), ("c", true)], "B!");
        check(code, &[("a", true), ("c", true)], "A!");
        check("x{{#if a}}A{{else if b}}B{{/if}}", &[], "x");
    }

    #[test]
    fn sections_in_sections_follow_those_around_them() {
        let code = "{{#if out}}o{{#if in}}i{{else}}-{{/if}}{{else}}n{{#if in}}{{x}}{{/if}}{{/if}}";
        check(code, &[], "n");
        check(code, &[("in", true)], "n{{x}}");
        check(code, &[("out", true)], "o-");
        check(code, &[("out", true), ("in", true)], "oi");
    }

    #[test]
    fn variants_are_limited() {
        let count = |code: &str| {
            let selections = Template::read(code).selections(code.len());
            selections.map(|selections| selections.len())
        };
        let independent = |count: usize| -> String {
            let one = |place: usize| format!("{{{{#if f{place}}}}}x{{{{/if}}}}");
            (0..count).map(one).collect()
        };
        assert_eq!(count("no tags"), Some(1));
        assert_eq!(count(&"{{#if a}}x{{/if}}".repeat(1000)), Some(2));
        assert_eq!(count(&independent(6)), Some(64));
        assert_eq!(count(&independent(7)), None);
        let chain: String = (0..60)
            .map(|place| format!("{{{{else if c{place}}}}}x"))
            .collect();
        assert_eq!(count(&format!("{{{{#if a}}}}{chain}{{{{/if}}}}")), Some(62));
    }
}
