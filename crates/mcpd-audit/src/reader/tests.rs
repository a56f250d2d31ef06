//! Tests of reading: all lines, the last ones, and those written later.

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::chain::MAX_LINE_LENGTH;
use crate::files::LogFiles;
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
    let last = Records::open_last(&files.path, 6)
        .unwrap()
        .map(Result::unwrap);
    assert!(last.map(|line| line.text).eq(lines[5..].iter().cloned()));
}

/// Checks that the last lines of a log are those that reading all of it ends with, and that what
/// is written then follows.
#[track_caller]
fn check_last(files: &LogFiles, count: usize) {
    let all = Records::open(&files.path).unwrap().map(Result::unwrap);
    let all: Vec<_> = all.collect();
    let mut last = Records::open_last(&files.path, count).unwrap();
    let lines: Vec<_> = last.by_ref().map(Result::unwrap).collect();
    assert_eq!(lines, all[all.len().saturating_sub(count)..], "{count}");
    append(files, "z");
    last.refresh().unwrap();
    assert_eq!(names(&mut last), "z");
}

#[test]
fn last_lines_are_found_in_any_file() {
    let (_directory, mut files) = log();
    files.max_size = 800;
    append(&files, "f");
    append(&files, "ghij");
    assert!(PathBuf::from(format!("{}.1", files.path.display())).exists());
    for count in 0..15 {
        check_last(&files, count);
    }
}

#[test]
fn torn_line_counts_as_the_last() {
    let (_directory, files) = log();
    let text = fs::read_to_string(&files.path).unwrap();
    let torn = &text[..text.len() - 10];
    for (count, expected) in [(1, 1), (2, 2), (0, 0)] {
        fs::write(&files.path, torn).unwrap();
        let mut last = Records::open_last(&files.path, count).unwrap();
        let lines: Vec<_> = last.by_ref().map(Result::unwrap).collect();
        assert_eq!(lines.len(), expected);
        assert!(lines.last().is_none_or(|line| !line.is_whole));
        fs::write(&files.path, &text).unwrap();
        last.refresh().unwrap();
        assert_eq!(names(&mut last), "e");
    }
}

#[test]
#[cfg(unix)]
fn last_lines_are_found_without_reading_the_rest() {
    let (_directory, files) = log();
    let text = fs::read_to_string(&files.path).unwrap();
    // A file with a hole of a terabyte is read in no time from its end only.
    let file = fs::OpenOptions::new()
        .write(true)
        .open(&files.path)
        .unwrap();
    file.set_len(1 << 40).unwrap();
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(&files.path)
        .unwrap();
    io::Write::write_all(&mut file, format!("\n{text}").as_bytes()).unwrap();
    let mut last = Records::open_last(&files.path, 5).unwrap();
    assert_eq!(names(&mut last), "abcde");
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
