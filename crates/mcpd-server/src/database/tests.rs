//! Databases that are shared, torn, foreign, newer, or without space.

use std::fs;
use std::thread;

use mcpd_scriptspec::Diagnostic;
use serde_json::value::to_raw_value;

use super::*;
use crate::catalog::scan::{HelpText, ProbeRefusal, ProbeResult};

fn compiled(namespace: &str, name: &str) -> Compiled {
    let help = HelpText {
        stdout: format!("{{\"description\": \"{name}\"}}").into(),
        ..HelpText::default()
    };
    Compiled {
        definition: Definition {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            dialect: None,
            content_hash: "00".to_owned(),
            compiled_at: 1,
            metadata: to_raw_value(name).unwrap(),
        },
        remembered: CacheEntry {
            fingerprint: format!("of {name}"),
            conditions: "same".into(),
            answer: Some(ProbeResult {
                help,
                shebang: Some("#!/bin/sh".to_owned()),
                refusal: None,
            }),
        },
    }
}

fn added<const N: usize>(namespace: &str, names: [&str; N]) -> Change {
    Change {
        namespace: namespace.to_owned(),
        new: names.map(|name| compiled(namespace, name)).into(),
        refused: Vec::new(),
        gone: Vec::new(),
    }
}

fn names(database: &Database) -> Vec<String> {
    let definitions = database.definitions(None).unwrap();
    definitions.into_iter().map(|one| one.name).collect()
}

/// Returns a database that was put aside next to `file`, if there is one.
fn aside(file: &Path) -> Option<PathBuf> {
    let mut files = fs::read_dir(file.parent().unwrap()).unwrap();
    let is_aside = |file: &PathBuf| file.to_string_lossy().contains("mcpd.db.corrupt-");
    files.find_map(|entry| Some(entry.ok()?.path()).filter(is_aside))
}

#[test]
fn what_is_remembered_is_there_at_the_next_start() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("new/mcpd.db");
    let database = Database::new(&file);
    let changes = [added("/a", ["x", "y"]), added("/b", ["x"])];
    database.remember(&changes).unwrap();

    let next = Database::new(&file);
    let remembered = next.remembered("/a").unwrap();
    assert_eq!(remembered.len(), 2);
    assert_eq!(remembered["x"].fingerprint, "of x");
    let answer = remembered["x"].answer.as_ref().unwrap();
    assert_eq!(answer.help.stdout, r#"{"description": "x"}"#);
    assert_eq!(answer.shebang.as_deref(), Some("#!/bin/sh"));

    let refused = |name: &str, refusal| {
        let mut remembered = compiled("/a", name).remembered;
        remembered.answer.as_mut().unwrap().refusal = Some(refusal);
        Refused {
            name: name.to_owned(),
            remembered,
        }
    };
    let fault = Diagnostic::help_failed(3);
    let refusals = [
        ("none", ProbeRefusal::NotATool("it is none".to_owned())),
        ("faulty", ProbeRefusal::Fault(fault.clone())),
        ("late", ProbeRefusal::TimeOut(fault, 2)),
        ("text", ProbeRefusal::Text),
    ];
    let refused = refusals
        .clone()
        .map(|(name, refusal)| refused(name, refusal));
    let change = Change {
        refused: refused.into(),
        ..added("/a", [])
    };
    next.remember(&[change]).unwrap();
    let remembered = next.remembered("/a").unwrap();
    for (name, refusal) in refusals {
        let answer = remembered[name].answer.as_ref().unwrap();
        assert_eq!(answer.refusal, Some(refusal));
    }
    assert_eq!(&*remembered["none"].conditions, "same");

    let gone = Change {
        gone: vec!["y".to_owned(), "none".to_owned()],
        ..added("/a", [])
    };
    next.remember(&[gone]).unwrap();
    assert!(!next.remembered("/a").unwrap().contains_key("none"));
    assert_eq!(names(&database), ["x", "x"]);
    assert_eq!(database.definitions(Some("x")).unwrap()[1].namespace, "/b");
    assert_eq!(database.forget(Some("x")).unwrap(), 2);
    assert_eq!(database.forget(None).unwrap(), 0);
}

#[test]
#[cfg(unix)]
fn nobody_else_can_read_it() {
    use std::os::unix::fs::MetadataExt as _;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mcpd.db");
    Database::new(&file).forget(None).unwrap();
    assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
}

#[test]
fn several_use_it_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mcpd.db");
    thread::scope(|scope| {
        for writer in 0..4 {
            let file = &file;
            scope.spawn(move || {
                // Each thread opens the file separately, as processes do.
                let database = Database::new(file);
                for round in 0..10 {
                    let one = added("/a", [&format!("{writer}-{round}")]);
                    database.remember(&[one]).unwrap();
                }
            });
        }
    });
    assert_eq!(names(&Database::new(&file)).len(), 40);
    assert_eq!(aside(&file), None);
}

#[track_caller]
fn check_made_anew(damage: impl Fn(&Path)) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mcpd.db");
    damage(&file);
    let database = Database::new(&file);
    database.remember(&[added("/a", ["x"])]).unwrap();
    assert_eq!(names(&database), ["x"]);
    assert!(aside(&file).is_some());
}

#[test]
fn a_file_that_is_no_good_is_put_aside() {
    check_made_anew(|file| fs::write(file, "{torn".repeat(1000)).unwrap());
    check_made_anew(|file| {
        let foreign = Connection::open(file).unwrap();
        foreign.execute_batch("CREATE TABLE theirs (x)").unwrap();
    });
    check_made_anew(|file| {
        let ours = Database::new(file);
        let many = Change {
            new: (0..200).map(|n| compiled("/a", &n.to_string())).collect(),
            ..added("/a", [])
        };
        ours.remember(&[many]).unwrap();
        drop(ours);
        let mut bytes = fs::read(file).unwrap();
        let length = bytes.len();
        bytes[4096..length].fill(0xff);
        fs::write(file, bytes).unwrap();
    });
}

#[test]
fn an_older_one_is_brought_up_to_date() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mcpd.db");
    let older = Connection::open(&file).unwrap();
    older.execute_batch(MIGRATIONS[0]).unwrap();
    older
        .pragma_update(None, "application_id", APPLICATION)
        .unwrap();
    older.pragma_update(None, "user_version", 1).unwrap();
    let database = Database::new(&file);
    database.remember(&[added("/a", ["x"])]).unwrap();
    assert_eq!(names(&database), ["x"]);
    assert_eq!(aside(&file), None);
}

#[test]
fn a_newer_one_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mcpd.db");
    Database::new(&file).forget(None).unwrap();
    let newer = Connection::open(&file).unwrap();
    newer.pragma_update(None, "user_version", 1000).unwrap();
    let error = Database::new(&file).definitions(None).unwrap_err();
    assert_eq!(error.to_string(), "a newer mcpd has written it");
    assert_eq!(aside(&file), None);
}

#[test]
fn where_there_is_no_room_it_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let in_the_way = directory.path().join("file");
    fs::write(&in_the_way, "").unwrap();
    Database::new(in_the_way.join("mcpd.db"))
        .definitions(None)
        .unwrap_err();
}
