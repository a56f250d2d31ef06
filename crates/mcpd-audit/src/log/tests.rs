//! Tests of the handle: the handling of records while the file is unavailable.

use std::fs::{self, File};
use std::path::Path;
use std::thread;
use std::time::Instant;

use super::*;
use crate::{RecordKind, verify};

fn audit(directory: &Path, mode: Mode) -> Audit {
    let options = Options {
        mode,
        ..Options::default()
    };
    Audit::new(directory.join("audit.jsonl"), options).unwrap()
}

fn send(audit: &Audit) {
    audit.send(record::note("test", &serde_json::json!({})));
}

#[track_caller]
fn eventually(what: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !what() {
        assert!(Instant::now() < deadline);
        thread::yield_now();
    }
}

#[test]
fn last_handle_waits_until_everything_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let audit = audit(directory.path(), Mode::BestEffort);
    (0..1000).for_each(|_| send(&audit));
    let file = audit.file();
    drop(audit);
    assert_eq!(verify(&file).unwrap().records, 1000);
}

#[test]
fn lost_records_are_counted_and_noted_later() {
    let directory = tempfile::tempdir().unwrap();
    let audit = audit(directory.path(), Mode::BestEffort);
    // Nothing can be written to a directory.
    fs::create_dir(audit.file()).unwrap();
    (0..3).for_each(|_| send(&audit));
    eventually(|| audit.lost_records() == 3);
    assert!(audit.is_failing());
    fs::remove_dir(audit.file()).unwrap();
    eventually(|| !audit.is_failing());
    let file = audit.file();
    drop(audit);
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.contains(r#""method":"audit/lost","params":{"records":3}"#),
        "{text}"
    );
    assert_eq!(verify(&file).unwrap().records, 1);
}

#[test]
fn locked_file_blocks_no_sender() {
    let directory = tempfile::tempdir().unwrap();
    let audit = audit(directory.path(), Mode::BestEffort);
    let file = File::create(audit.file()).unwrap();
    file.lock().unwrap();
    // These exceed the queue, the batch in the hands of the thread, and some more.
    (0..6000).for_each(|_| send(&audit));
    let lost = audit.lost_records();
    assert!(lost > 1000, "{lost}");
    file.unlock().unwrap();
    let path = audit.file();
    drop(audit);
    let written = verify(&path).unwrap();
    assert_eq!(written.faults, []);
    let text = fs::read_to_string(&path).unwrap();
    let notes = text.matches("audit/lost").count() as u64;
    assert_eq!(written.records - notes + lost, 6000);
}

#[test]
fn log_continues_in_another_file_without_loss() {
    let directory = tempfile::tempdir().unwrap();
    let audit = audit(directory.path(), Mode::BestEffort);
    let (first, second) = (audit.file(), directory.path().join("other.jsonl"));
    (0..10).for_each(|_| send(&audit));
    eventually(|| first.exists());
    audit.continue_in(&second, audit.options());
    (0..10).for_each(|_| send(&audit));
    eventually(|| second.exists());
    // Records that another process has appended meanwhile are followed.
    audit.continue_in(&first, audit.options());
    (0..10).for_each(|_| send(&audit));
    drop(audit);
    let logs = [first, second].map(|log| verify(&log).unwrap());
    assert!(logs.iter().all(|log| log.faults.is_empty()));
    assert_eq!(logs[0].records + logs[1].records, 30);
}

#[test]
fn log_continues_in_a_writable_file() {
    let directory = tempfile::tempdir().unwrap();
    let audit = audit(directory.path(), Mode::Require);
    fs::create_dir(audit.file()).unwrap();
    send(&audit);
    eventually(|| audit.is_refusing());
    let mut options = audit.options();
    options.mode = Mode::BestEffort;
    audit.continue_in(directory.path().join("other.jsonl"), options);
    eventually(|| !audit.is_failing());
    assert_eq!(audit.options().mode, Mode::Require);
}

#[tokio::test]
async fn commit_waits_until_the_record_is_in_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let audit = audit(directory.path(), Mode::Require);
    let params = serde_json::value::to_raw_value("x").unwrap();
    let record = Record::new(RecordKind::Begin, "test", &params);
    audit.commit(&record).await.unwrap();
    assert_eq!(verify(&audit.file()).unwrap().records, 1);
    fs::remove_file(audit.file()).unwrap();
    fs::create_dir(audit.file()).unwrap();
    assert_eq!(audit.commit(&record).await, Err(NotRecorded));
}

#[test]
fn reserved_slot_takes_a_record_when_the_queue_is_full() {
    let directory = tempfile::tempdir().unwrap();
    let audit = audit(directory.path(), Mode::BestEffort);
    let slots: Vec<_> = std::iter::from_fn(|| audit.reserve()).collect();
    assert!(slots.len() > 1000);
    let params = serde_json::value::to_raw_value("x").unwrap();
    let record = Record::new(RecordKind::End, "test", &params);
    audit.record(&record);
    assert_eq!(audit.lost_records(), 1);
    let count = slots.len() as u64;
    slots.into_iter().for_each(|slot| slot.record(&record));
    let file = audit.file();
    drop(audit);
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text.matches(r#""method":"test""#).count() as u64, count);
}
