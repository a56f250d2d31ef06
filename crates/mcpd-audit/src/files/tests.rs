//! Tests of writing: continued chains, rotation of files, and the remains of other writers.

use std::os::unix::fs::PermissionsExt as _;
use std::thread;

use tempfile::TempDir;

use super::*;
use crate::{FaultKind, verify};

/// Creates a log in a new directory, with files of about `max_size` bytes.
fn log(max_size: u64, keep: u32) -> (TempDir, LogFiles) {
    let directory = tempfile::tempdir().unwrap();
    let files = LogFiles {
        path: directory.path().join("logs/audit.jsonl"),
        max_size,
        keep: keep.try_into().unwrap(),
        durable: false,
    };
    (directory, files)
}

fn record(number: usize) -> String {
    format!(r#"{{"timestamp":"2026-11-22T10:00:00.000Z","method":"{number}"}}"#)
}

fn append(files: &LogFiles, numbers: impl IntoIterator<Item = usize>) {
    let records: Vec<_> = numbers.into_iter().map(record).collect();
    files.append(&records, None).unwrap();
}

/// Checks that the log has no fault, and records with these numbers.
#[track_caller]
fn check(files: &LogFiles, first: u64, last: u64) {
    let verified = verify(&files.path).unwrap();
    assert_eq!(verified.faults, []);
    assert_eq!((verified.first, verified.last), (first, last));
    assert_eq!(verified.records, last + 1 - first);
}

fn text(files: &LogFiles) -> String {
    fs::read_to_string(&files.path).unwrap()
}

#[test]
fn records_are_appended_by_several_writers() {
    let (_directory, files) = log(u64::MAX, 1);
    let other = files.clone();
    append(&files, [1, 2]);
    append(&other, [3]);
    append(&files, [4]);
    check(&files, 1, 4);
}

#[test]
fn writer_notices_changes_by_other_writers() {
    let (_directory, files) = log(u64::MAX, 2);
    let append = |number, written| files.append(&[record(number)], written).unwrap();
    let first = append(1, None);
    let second = append(2, Some(first));
    append(3, None);
    let fourth = append(4, Some(second));
    check(&files, 1, 4);
    files.rotate().unwrap();
    append(5, Some(fourth));
    check(&files, 1, 5);
}

#[test]
fn log_files_are_private_to_their_owner() {
    let (_directory, files) = log(u64::MAX, 1);
    append(&files, [1]);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&files.path), 0o600);
    assert_eq!(mode(files.path.parent().unwrap()), 0o700);
}

#[test]
fn torn_record_is_removed_and_noted() {
    for kept in [1, 20, 2000] {
        let (_directory, files) = log(u64::MAX, 1);
        append(&files, 1..=3);
        let whole = text(&files);
        let long = "x".repeat(3000);
        append_raw(&files, &record(4).replace('4', &long)[..kept.min(300)]);
        append(&files, [5]);
        let now = text(&files);
        let rest = now.strip_prefix(&whole).unwrap();
        let note = rest.lines().next().unwrap();
        let expected = format!(
            r#""method":"audit/recovered","params":{{"bytes":{}}}"#,
            kept.min(300)
        );
        assert!(note.contains(&expected), "{note}");
        check(&files, 1, 5);
    }
}

fn append_raw(files: &LogFiles, text: &str) {
    let mut file = create(&files.path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn torn_first_record_is_removed() {
    let (_directory, files) = log(u64::MAX, 1);
    append(&files, [1]);
    File::create(&files.path).unwrap();
    append_raw(&files, r#"{"timestamp":"2026-1"#);
    append(&files, [1]);
    check(&files, 1, 2);
}

#[test]
fn damaged_lines_are_kept() {
    for lines in [
        "a letter\n",
        "{}\n\n",
        &"x\n".repeat(TAIL_SIZES[0] as usize),
    ] {
        let (_directory, files) = log(u64::MAX, 1);
        append(&files, 1..=2);
        append_raw(&files, lines);
        let damaged = text(&files);
        append(&files, [4]);
        let now = text(&files);
        let rest = now.strip_prefix(&damaged).unwrap();
        let expected = format!(
            r#""method":"audit/damaged","params":{{"bytes":{}}}"#,
            lines.len()
        );
        assert!(rest.contains(&expected), "{rest}");
        append(&files, [5]);
        let verified = verify(&files.path).unwrap();
        assert_eq!((verified.first, verified.last), (1, 5));
        let faults = verified.faults.iter();
        let faults = faults.filter(|fault| fault.kind != FaultKind::Unreadable);
        assert_eq!(faults.count(), 0);
    }
}

#[test]
fn file_that_is_not_a_log_is_put_aside_unharmed() {
    let foreign = ["a letter\nwithout an end", "a letter\n", "\0\0\0", "{}\n"];
    let (_directory, files) = log(400, 1);
    append(&files, 1..=2);
    append(&files, [3]);
    for (number, foreign) in (1..).zip(foreign) {
        fs::write(&files.path, foreign).unwrap();
        append(&files, [3]);
        let name = format!("audit.jsonl.aside.{number}");
        let aside = files.path.with_file_name(&name);
        assert_eq!(fs::read_to_string(aside).unwrap(), foreign);
        let expected = format!(r#""method":"audit/put-aside","params":{{"file":"{name}"}}"#);
        assert!(text(&files).contains(&expected));
        // The full file before it is still there.
        check(&files, 1, 4);
    }
}

#[test]
fn long_record_is_found_at_the_end() {
    let (_directory, files) = log(u64::MAX, 1);
    append(&files, [1]);
    let long = record(2).replace('2', &"x".repeat(3 * TAIL_SIZES[0] as usize));
    files.append(&[long], None).unwrap();
    append(&files, [3]);
    check(&files, 1, 3);
}

#[test]
fn full_files_rotate_and_the_chain_continues() {
    let (_directory, files) = log(400, 2);
    for number in 1..=9 {
        append(&files, [number]);
    }
    // Two records make a file full.
    check(&files, 5, 9);
    assert!(!numbered_path(&files.path, 3).exists());
}

#[test]
fn file_takes_at_least_one_record() {
    let (_directory, files) = log(0, 2);
    (1..=5).for_each(|number| append(&files, [number]));
    check(&files, 3, 5);
}

#[test]
fn gap_between_files_is_used_by_rotation() {
    let (_directory, files) = log(400, 4);
    for number in 1..=9 {
        append(&files, [number]);
    }
    check(&files, 1, 9);
    fs::rename(numbered_path(&files.path, 4), numbered_path(&files.path, 5)).unwrap();
    fs::rename(numbered_path(&files.path, 3), numbered_path(&files.path, 4)).unwrap();
    fs::remove_file(numbered_path(&files.path, 5)).unwrap();
    append(&files, 10..=11);
    check(&files, 3, 11);
    append(&files, [12]);
    check(&files, 3, 12);
}

#[test]
fn many_writers_make_one_chain() {
    let (_directory, files) = log(20_000, 100);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut written = None;
                for number in 0..50 {
                    let records = [record(number), record(number)];
                    written = Some(files.append(&records, written).unwrap());
                }
            });
        }
    });
    check(&files, 1, 800);
    assert!(numbered_path(&files.path, 2).exists());
}

#[test]
#[cfg(target_os = "linux")]
fn full_disk_is_an_error() {
    let (_directory, mut files) = log(u64::MAX, 1);
    files.path = "/dev/full".into();
    let error = files.append(&[record(1)], None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
}

#[cfg(target_os = "linux")]
#[test]
fn pipe_is_refused_without_blocking() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    let (_directory, files) = log(u64::MAX, 1);
    fs::create_dir(files.path.parent().unwrap()).unwrap();
    mknodat(CWD, &files.path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let refused = files.append(&[record(1)], None).unwrap_err();
    assert_eq!(refused.to_string(), not_a_file().to_string());
    assert!(verify(&files.path).is_err());
}

/// Covers a script that runs as the same user and changes the mode.
#[test]
fn mode_changed_by_a_script_is_restored_and_recorded() {
    let (_directory, files) = log(u64::MAX, 1);
    let written = files.append(&[record(1)], None).unwrap();
    let directory = files.path.parent().unwrap();
    let set =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    set(&files.path, 0);
    set(directory, 0o500);
    files.append(&[record(2)], Some(written)).unwrap();
    assert_eq!((mode(directory), mode(&files.path)), (0o700, 0o600));
    check(&files, 1, 4);
    let text = text(&files);
    for restored in [r#""mode":"0500""#, r#""mode":"0000""#] {
        let mut notes = text
            .lines()
            .filter(|line| line.contains("audit/access-restored"));
        assert!(notes.any(|note| note.contains(restored)), "{text}");
    }
}
