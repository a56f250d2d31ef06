//! Tests of reading: all lines, the last ones, and those written later.

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::chain::MAX_LINE_LENGTH;
use crate::test_log::{append, log};

/// Methods of the remaining records.
fn names(records: &mut Records) -> String {
    let method = |line: Line| {
        let record: serde_json::Value = serde_json::from_str(&line.text).unwrap();
        record["method"].as_str().unwrap().to_owned()
    };
    records.map(|line| method(line.unwrap())).collect()
}

#[test]
fn reader_continues_with_later_records() {
    let (_directory, mut files) = log();
    files.max_size = 800;
    let mut records = Records::open(&files.path).unwrap();
    assert_eq!(names(&mut records), "abcde");
    records.refresh().unwrap();
    assert_eq!(names(&mut records), "");
    for name in ["f", "g", "h", "i", "j", "k"] {
        append(&files, name);
    }
    records.refresh().unwrap();
    assert_eq!(names(&mut records), "fghijk");
    assert!(PathBuf::from(format!("{}.2", files.path.display())).exists());
}

#[test]
fn torn_line_is_read_again_when_complete() {
    let (_directory, files) = log();
    let text = fs::read_to_string(&files.path).unwrap();
    fs::write(&files.path, &text[..text.len() - 10]).unwrap();
    let mut records = Records::open(&files.path).unwrap();
    let lines: Vec<_> = records.by_ref().map(Result::unwrap).collect();
    assert!(!lines[4].is_whole);
    fs::write(&files.path, &text).unwrap();
    records.refresh().unwrap();
    assert_eq!(names(&mut records), "e");
}

#[test]
fn overlong_line_is_not_read_whole() {
    let (_directory, files) = log();
    let text = fs::read_to_string(&files.path).unwrap();
    let long = "x".repeat(3 * MAX_LINE_LENGTH as usize);
    fs::write(&files.path, format!("{text}{long}\n{text}")).unwrap();
    let lines = Records::open(&files.path).unwrap().map(Result::unwrap);
    let lines: Vec<_> = lines.map(|line| line.text).collect();
    assert_eq!(lines[5].len() as u64, MAX_LINE_LENGTH);
    assert_eq!(lines[6..].join("\n") + "\n", text);
}

#[test]
fn record_is_found_at_its_offset_until_its_file_is_removed() {
    let (directory, mut files) = log();
    files.max_size = 1;
    let lines: Vec<_> = Records::open(&files.path)
        .unwrap()
        .map(|line| line.unwrap())
        .collect();
    let line = &lines[2];
    let hash = &line.record()["hash"];
    let hash = &hash.as_str().unwrap()[..32];
    let find = |offset| find_record(&files.path, offset, hash).unwrap();
    assert_eq!(find(line.offset).as_ref(), Some(&line.text));
    for offset in [0, line.offset - 1, lines[3].offset, u64::MAX] {
        assert_eq!(find(offset), None, "{offset}");
    }
    for _ in 0..files.keep.get() {
        append(&files, "f");
        assert_eq!(find(line.offset).as_ref(), Some(&line.text));
    }
    append(&files, "f");
    assert_eq!(find(line.offset), None);
    fs::remove_file(directory.path().join("audit.jsonl")).unwrap();
    assert!(find_record(&files.path, 0, hash).is_err());
}
