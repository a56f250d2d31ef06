//! Databases that are shared, torn, foreign, newer, or without space.

use std::fs;
use std::thread;

use mcpd_scriptspec::Diagnostic;
use serde_json::value::to_raw_value;

use super::*;
use crate::database::rows::{HelpText, ProbeRefusal, ProbeResult};

fn compile(namespace: &str, name: &str) -> CompiledDefinition {
    let help = HelpText {
        stdout: format!("{{\"description\": \"{name}\"}}").into(),
        ..HelpText::default()
    };
    CompiledDefinition {
        definition: Definition {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            dialect: None,
            content_hash: "00".to_owned(),
            compiled_at: 1,
            metadata: to_raw_value(name).unwrap(),
        },
        entry: CacheEntry {
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

fn add_scripts<const N: usize>(namespace: &str, names: [&str; N]) -> CacheChange {
    CacheChange {
        namespace: namespace.to_owned(),
        new: names.map(|name| compile(namespace, name)).into(),
        refused: Vec::new(),
        gone: Vec::new(),
    }
}

fn names(database: &Database) -> Vec<String> {
    let definitions = database.definitions(None).unwrap();
    definitions.into_iter().map(|one| one.name).collect()
}

/// Returns a database that was put aside next to `file`, if there is one.
fn find_put_aside(file: &Path) -> Option<PathBuf> {
    let mut files = fs::read_dir(file.parent().unwrap()).unwrap();
    let is_aside = |file: &PathBuf| file.to_string_lossy().contains("mcpd.db.corrupt-");
    files.find_map(|entry| Some(entry.ok()?.path()).filter(is_aside))
}

#[test]
fn cache_survives_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("new/mcpd.db");
    let database = Database::new(&file);
    let changes = [add_scripts("/a", ["x", "y"]), add_scripts("/b", ["x"])];
    database.update_cache(&changes).unwrap();

    let next = Database::new(&file);
    let entry = next.cache_entries("/a").unwrap();
    assert_eq!(entry.len(), 2);
    assert_eq!(entry["x"].fingerprint, "of x");
    let answer = entry["x"].answer.as_ref().unwrap();
    assert_eq!(answer.help.stdout, r#"{"description": "x"}"#);
    assert_eq!(answer.shebang.as_deref(), Some("#!/bin/sh"));

    let refused = |name: &str, refusal| {
        let mut entry = compile("/a", name).entry;
        entry.answer.as_mut().unwrap().refusal = Some(refusal);
        StoredRefusal {
            name: name.to_owned(),
            entry,
        }
    };
    let fault = Diagnostic::help_failed(3);
    let refusals = [
        ("none", ProbeRefusal::NotATool("it is not a URL".to_owned())),
        ("faulty", ProbeRefusal::Fault(fault.clone())),
        ("late", ProbeRefusal::TimeOut(fault, 2)),
        ("text", ProbeRefusal::Text),
    ];
    let refused = refusals
        .clone()
        .map(|(name, refusal)| refused(name, refusal));
    let change = CacheChange {
        refused: refused.into(),
        ..add_scripts("/a", [])
    };
    next.update_cache(&[change]).unwrap();
    let entry = next.cache_entries("/a").unwrap();
    for (name, refusal) in refusals {
        let answer = entry[name].answer.as_ref().unwrap();
        assert_eq!(answer.refusal, Some(refusal));
    }
    assert_eq!(&*entry["none"].conditions, "same");

    let gone = CacheChange {
        gone: vec!["y".to_owned(), "none".to_owned()],
        ..add_scripts("/a", [])
    };
    next.update_cache(&[gone]).unwrap();
    assert!(!next.cache_entries("/a").unwrap().contains_key("none"));
    assert_eq!(names(&database), ["x", "x"]);
    assert_eq!(database.definitions(Some("x")).unwrap()[1].namespace, "/b");
    assert_eq!(database.forget(Some("x")).unwrap(), 2);
    assert_eq!(database.forget(None).unwrap(), 0);
}

#[test]
#[cfg(unix)]
fn database_file_is_private() {
    use std::os::unix::fs::MetadataExt as _;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mcpd.db");
    Database::new(&file).forget(None).unwrap();
    assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
}

#[test]
fn database_serves_several_processes() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mcpd.db");
    thread::scope(|scope| {
        for writer in 0..4 {
            let file = &file;
            scope.spawn(move || {
                // Each thread opens the file separately, as processes do.
                let database = Database::new(file);
                for round in 0..10 {
                    let one = add_scripts("/a", [&format!("{writer}-{round}")]);
                    database.update_cache(&[one]).unwrap();
                }
            });
        }
    });
    assert_eq!(names(&Database::new(&file)).len(), 40);
    assert_eq!(find_put_aside(&file), None);
}

#[track_caller]
fn check_recreated(damage: impl Fn(&Path)) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mcpd.db");
    damage(&file);
    let database = Database::new(&file);
    database.update_cache(&[add_scripts("/a", ["x"])]).unwrap();
    assert_eq!(names(&database), ["x"]);
    assert!(find_put_aside(&file).is_some());
}

#[test]
fn damaged_file_is_put_aside() {
    check_recreated(|file| fs::write(file, "{torn".repeat(1000)).unwrap());
    check_recreated(|file| {
        let foreign = Connection::open(file).unwrap();
        foreign.execute_batch("CREATE TABLE theirs (x)").unwrap();
    });
    check_recreated(|file| {
        let ours = Database::new(file);
        let many = CacheChange {
            new: (0..200).map(|n| compile("/a", &n.to_string())).collect(),
            ..add_scripts("/a", [])
        };
        ours.update_cache(&[many]).unwrap();
        drop(ours);
        let mut bytes = fs::read(file).unwrap();
        let length = bytes.len();
        bytes[4096..length].fill(0xff);
        fs::write(file, bytes).unwrap();
    });
}

#[test]
fn older_tables_are_migrated() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mcpd.db");
    let older = Connection::open(&file).unwrap();
    older.execute_batch(MIGRATIONS[0]).unwrap();
    older
        .pragma_update(None, "application_id", APPLICATION_ID)
        .unwrap();
    older.pragma_update(None, "user_version", 1).unwrap();
    let database = Database::new(&file);
    database.update_cache(&[add_scripts("/a", ["x"])]).unwrap();
    assert_eq!(names(&database), ["x"]);
    assert_eq!(find_put_aside(&file), None);
}

#[test]
fn newer_file_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mcpd.db");
    Database::new(&file).forget(None).unwrap();
    let newer = Connection::open(&file).unwrap();
    newer.pragma_update(None, "user_version", 1000).unwrap();
    let error = Database::new(&file).definitions(None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "it was written by a newer version of mcpd"
    );
    assert_eq!(find_put_aside(&file), None);
}

#[test]
fn full_disk_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let in_the_way = directory.path().join("file");
    fs::write(&in_the_way, "").unwrap();
    Database::new(in_the_way.join("mcpd.db"))
        .definitions(None)
        .unwrap_err();
}
