//! Tests of verification: every damage to a log is detected, with its location.

use std::fs;

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::chain::MAX_LINE_LENGTH;
use crate::test_log::{append, log, log_in};

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
fn overlong_line_is_reported() {
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
        let verified = verify(&files.path).unwrap();
        let is_record = length as u64 - 1 <= MAX_LINE_LENGTH;
        assert_eq!(verified.records, 4 + u64::from(is_record));
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

#[test]
fn missing_log_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let error = verify(&directory.path().join("audit.jsonl")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

/// Damage to one line of a log.
#[derive(Debug, Clone)]
enum Damage {
    Remove,
    Repeat,
    MoveTo(Index),
    /// The byte at a place is replaced.
    Change(Index, u8),
    /// The line and its end are cut off at a place.
    Cut(Index),
    Insert(Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    let other_line = prop::collection::vec(any::<u8>(), 0..200);
    prop_oneof![
        Just(Damage::Remove),
        Just(Damage::Repeat),
        any::<Index>().prop_map(Damage::MoveTo),
        (any::<Index>(), any::<u8>()).prop_map(|(place, byte)| Damage::Change(place, byte)),
        any::<Index>().prop_map(Damage::Cut),
        other_line.prop_map(Damage::Insert),
    ]
}

fn apply(damage: &Damage, at: Index, lines: &mut Vec<Vec<u8>>) {
    if lines.is_empty() {
        return;
    }
    let at = at.index(lines.len());
    match damage {
        Damage::Remove => drop(lines.remove(at)),
        Damage::Repeat => lines.insert(at, lines[at].clone()),
        Damage::MoveTo(to) => {
            let to = to.index(lines.len());
            lines.swap(at, to);
        }
        Damage::Change(place, byte) if !lines[at].is_empty() => {
            let place = place.index(lines[at].len());
            lines[at][place] = *byte;
        }
        Damage::Change(..) => {}
        Damage::Cut(place) => {
            let place = place.index(lines[at].len() + 1);
            lines[at].truncate(place);
        }
        Damage::Insert(bytes) => lines.insert(at, bytes.clone()),
    }
}

/// Verifies a log line by line, and compares nothing but neighbours.
fn verify_in_sequence(path: &Path) -> Verified {
    let mut verifier = Verifier::default();
    for (file, bytes) in crate::files::readable(path).unwrap() {
        let file: Arc<Path> = file.into();
        let bytes = io::Read::bytes(bytes)
            .collect::<Result<Vec<_>, _>>()
            .unwrap();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let line = RawLine {
                offset: 0,
                is_whole: line.ends_with(b"\n"),
                bytes: line.strip_suffix(b"\n").unwrap_or(line),
                length: line.strip_suffix(b"\n").unwrap_or(line).len() as u64,
            };
            let block = (Arc::clone(&file), Block::default());
            verifier.add(&[block], vec![vec![LineKind::of(line)]]);
        }
    }
    verifier.verified
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// Neither the borders of blocks nor the number of threads shows in what is found.
    #[test]
    fn verification_in_parallel_is_that_in_sequence(
        damages in prop::collection::vec((damage(), any::<Index>()), 0..8),
        block_size in 1..2000_u64,
        threads in 1..5_usize,
    ) {
        let (directory, mut files) = log();
        files.max_size = 1500;
        for names in ["fgh", "ijk", "lmn", "opq"] {
            append(&files, names);
        }
        for name in ["audit.jsonl", "audit.jsonl.1"] {
            let path = directory.path().join(name);
            let bytes = fs::read(&path).unwrap();
            let lines = bytes.split_inclusive(|byte| *byte == b'\n');
            let mut lines: Vec<_> = lines.map(<[u8]>::to_vec).collect();
            for (damage, at) in &damages {
                apply(damage, *at, &mut lines);
            }
            fs::write(&path, lines.concat()).unwrap();
        }
        let log = LogBlocks::open_with(&files.path, block_size, threads).unwrap();
        prop_assert_eq!(verify_blocks(log).unwrap(), verify_in_sequence(&files.path));
    }
}
