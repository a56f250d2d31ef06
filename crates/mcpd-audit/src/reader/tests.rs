//! Tests of reading: every damage to a log is detected, with its location.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::files::LogFiles;

/// Creates a log of five records.
fn log() -> (TempDir, LogFiles) {
    let directory = tempfile::tempdir().unwrap();
    let files = log_in(directory.path());
    append(&files, "abcde");
    (directory, files)
}

fn log_in(directory: &Path) -> LogFiles {
    LogFiles {
        path: directory.join("audit.jsonl"),
        max_size: u64::MAX,
        keep: 3.try_into().unwrap(),
        durable: false,
    }
}

fn append(files: &LogFiles, names: &str) {
    let records: Vec<_> = names
        .chars()
        .map(|name| format!(r#"{{"timestamp":"","method":"{name}"}}"#))
        .collect();
    files.append(&records, None).unwrap();
}

/// Checks the faults of a log, by line, after `damage` was done to its lines.
#[track_caller]
fn check(damage: impl FnOnce(&mut Vec<String>), expected: &[(u64, &str)]) {
    let (_directory, files) = log();
    let text = fs::read_to_string(&files.path).unwrap();
    let mut lines: Vec<_> = text.split_inclusive('\n').map(str::to_owned).collect();
    damage(&mut lines);
    fs::write(&files.path, lines.concat()).unwrap();
    let faults = verify(&files.path).unwrap().faults;
    let faults: Vec<_> = faults
        .iter()
        .map(|fault| (fault.line, fault.kind.to_string()))
        .collect();
    let faults: Vec<_> = faults.iter().map(|(line, kind)| (*line, &**kind)).collect();
    assert_eq!(faults, expected);
}

#[test]
fn untouched_log_has_no_fault() {
    check(|_| {}, &[]);
}

#[test]
fn changed_record_is_reported() {
    let change = |lines: &mut Vec<String>, from: &str, to: &str| {
        assert!(lines[2].contains(from));
        lines[2] = lines[2].replace(from, to);
    };
    let changed = [(3, "the record was changed")];
    check(|lines| change(lines, r#":"c""#, r#":"x""#), &changed);
    check(|lines| change(lines, r#""seq":3"#, r#""seq":9"#), &changed);
    check(|lines| change(lines, r#"{"time"#, r#"{ "time"#), &changed);
    check(
        |lines| lines[4] = lines[4].replace(r#":"e""#, r#":"x""#),
        &[(5, "the record was changed")],
    );
}

#[test]
fn record_with_invalid_utf8_is_reported() {
    let (_directory, files) = log();
    append(&files, "\u{fffd}");
    let text = fs::read_to_string(&files.path).unwrap();
    let (before, after) = text.split_once('\u{fffd}').unwrap();
    let changed = [before.as_bytes(), b"\xff", after.as_bytes()].concat();
    fs::write(&files.path, changed).unwrap();
    let verified = verify(&files.path).unwrap();
    assert_eq!(verified.faults.len(), 1);
    assert_eq!(verified.faults[0].kind, FaultKind::Unreadable);
}

#[test]
fn similarly_named_files_are_ignored() {
    let (directory, files) = log();
    for number in ["007", "+1", "x"] {
        fs::write(directory.path().join(format!("audit.jsonl.{number}")), "x").unwrap();
    }
    assert_eq!(verify(&files.path).unwrap().records, 5);
}

#[test]
#[cfg(target_os = "linux")]
fn directories_and_pipes_are_ignored() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let directory = tempfile::tempdir().unwrap();
    let beside = |number| directory.path().join(format!("audit.jsonl.{number}"));
    fs::create_dir(beside(1)).unwrap();
    mknodat(CWD, beside(2), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let files = log_in(directory.path());
    append(&files, "abc");
    assert_eq!(verify(&files.path).unwrap().records, 3);
}

#[test]
fn forged_record_is_reported() {
    // The hash fits: a forger who knows the format computes it.
    check(
        |lines| {
            let mut link = ChainPosition::read(lines[1].trim_end()).unwrap().link();
            lines[2].clear();
            link.append(r#"{"method":"x"}"#, &mut lines[2]);
        },
        &[(4, "the record before this one was replaced")],
    );
}

#[test]
fn impossible_number_is_reported() {
    // The hash fits, and the records after it are linked.
    check(
        |lines| {
            let mut link = ChainPosition::read(lines[1].trim_end()).unwrap().link();
            link.seq = u64::MAX - 1;
            lines.truncate(2);
            for name in ["x", "y"] {
                let mut line = String::new();
                link.append(&format!(r#"{{"method":"{name}"}}"#), &mut line);
                link.seq = u64::MAX - 1;
                lines.push(line);
            }
        },
        &[(3, "not a record"), (4, "not a record")],
    );
}

#[test]
fn removed_records_are_reported() {
    check(|lines| drop(lines.remove(2)), &[(3, "record 3 is missing")]);
    check(
        |lines| drop(lines.drain(1..4)),
        &[(2, "records 2 to 4 are missing")],
    );
}

#[test]
fn moved_and_repeated_records_are_reported() {
    check(
        |lines| lines.swap(1, 2),
        &[
            (2, "record 2 is missing"),
            (3, "record 2 does not belong here"),
            (4, "record 3 is missing"),
        ],
    );
    check(
        |lines| lines.insert(3, lines[2].clone()),
        &[(4, "record 3 does not belong here")],
    );
}

#[test]
fn unreadable_line_is_reported() {
    check(|lines| lines[2] = "\n".to_owned(), &[(3, "not a record")]);
    check(
        |lines| lines.insert(2, "nonsense\n".to_owned()),
        &[(3, "not a record")],
    );
}

#[test]
fn overlong_line_is_reported_without_reading_it_whole() {
    let padded = |line: &str, length: usize| {
        let (start, end) = line.split_at(1);
        start.to_owned() + &" ".repeat(length - line.len()) + end
    };
    for length in [MAX_LINE_LENGTH as usize + 1, 3 * MAX_LINE_LENGTH as usize] {
        let (_directory, files) = log();
        let text = fs::read_to_string(&files.path).unwrap();
        let third = text.split_inclusive('\n').nth(2).unwrap();
        let long = padded(third, length);
        fs::write(&files.path, text.replace(third, &long)).unwrap();
        let mut lines = Records::open(&files.path).unwrap().map(Result::unwrap);
        let line = lines.by_ref().nth(2).unwrap();
        assert_eq!(line.length, length as u64 - 1);
        assert!(line.text.len() as u64 <= MAX_LINE_LENGTH && line.is_whole);
        assert_eq!(lines.next().unwrap().number, 4);
        let verified = verify(&files.path).unwrap();
        assert_eq!(verified.records, 4 + u64::from(line.is_verbatim));
        assert_eq!(verified.faults[0].line, 3);
    }
    let torn = "x".repeat(2 * MAX_LINE_LENGTH as usize);
    check(
        |lines| lines.push(torn),
        &[(6, "the record is incomplete: it ends after 2097152 bytes")],
    );
}

#[test]
fn torn_record_is_reported_and_earlier_ones_are_intact() {
    check(
        |lines| lines[4].truncate(30),
        &[(5, "the record is incomplete: it ends after 30 bytes")],
    );
    let (_directory, files) = log();
    let text = fs::read_to_string(&files.path).unwrap();
    fs::write(&files.path, &text[..text.len() - 1]).unwrap();
    let verified = verify(&files.path).unwrap();
    assert_eq!((verified.records, verified.last), (4, 4));
}

#[test]
fn verified_hash_is_that_of_the_last_record() {
    let (_directory, files) = log();
    let hash = verify(&files.path).unwrap().hash;
    let text = fs::read_to_string(&files.path).unwrap();
    assert!(text.ends_with(&format!("{hash}\"}}\n")));
}

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
fn missing_log_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let error = verify(&directory.path().join("audit.jsonl")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
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
