//! Adoption: texts in the style of each library for command lines, and what is read in them.
//!
//! A snapshot shows the draft, then what was not read or left out. Each draft is a valid
//! description.

#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

use std::{fmt::Write as _, fs, path::Path};

use mcpd_scriptspec::adopt::{CommandLine, Form, Sidecar, TaskFile, Unread};
use mcpd_scriptspec::{Dialect, Severity};

/// Names of the files with help, and with tasks.
const STYLES: usize = 30;

fn notes(unread: &[Unread], text: &[u8]) -> String {
    let mut notes = String::new();
    for one in unread {
        let part = String::from_utf8_lossy(&text[one.span.clone()]).into_owned();
        writeln!(notes, "! {}: {part:?}", one.message).unwrap();
    }
    notes
}

#[track_caller]
fn check_draft(draft: &Sidecar) {
    let tools = Dialect::Sidecar.read("program.mcpd.toml", draft.text.as_bytes());
    let parsed = &tools[0].parsed;
    let is_fault = |severity| severity > Severity::Info;
    let faults = parsed
        .diagnostics
        .iter()
        .filter(|fault| is_fault(fault.severity));
    let faults: Vec<_> = faults.collect();
    assert!(faults.is_empty(), "{faults:#?}\n{}", draft.text);
    assert!(parsed.spec.is_some());
}

fn render(path: &Path) -> String {
    let text = fs::read(path).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    if let Some(file) = TaskFile::of(name) {
        let (tasks, unread) = file.read(std::str::from_utf8(&text).unwrap());
        let mut shown = notes(&unread, &text);
        for task in tasks {
            let draft = Sidecar::draft(file.runner()[0], &[&task.name], &task.command_line);
            check_draft(&draft);
            writeln!(shown, "{}", draft.text).unwrap();
        }
        return shown;
    }
    let read = CommandLine::read(Form::of(name, &text), &text);
    let draft = Sidecar::draft("program", &[], &read);
    check_draft(&draft);
    let commands: Vec<_> = read.commands.iter().map(|command| &command.name).collect();
    let lossy = String::from_utf8_lossy(&text).into_owned();
    format!(
        "{}\ncommands: {commands:?}\n{}{}",
        draft.text,
        notes(&read.unread, lossy.as_bytes()),
        notes(&draft.left_out, lossy.as_bytes())
    )
}

#[test]
fn each_style_is_read() {
    let mut count = 0;
    insta::glob!("adopt/*", |path| {
        if path.extension().is_none_or(|extension| extension != "snap") {
            count += 1;
            insta::with_settings!({omit_expression => true}, {
                insta::assert_snapshot!(render(path));
            });
        }
    });
    assert_eq!(count, STYLES);
}
