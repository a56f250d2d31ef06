//! Contents and expiry of stored tasks.

use serde_json::json;
use tempfile::TempDir;

use super::*;

fn database() -> (TempDir, Database) {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::new(directory.path().join("mcpd.db"));
    (directory, database)
}

/// Creates a task that begins at 0 and expires at 1000.
fn task(id: &str, owner: &str) -> StoredTask {
    StoredTask {
        id: id.to_owned(),
        owner: owner.to_owned(),
        tool: "tool".to_owned(),
        runner: "runner".to_owned(),
        status: TaskStatus::Working,
        detail: None,
        created_at: 0,
        updated_at: 0,
        expires_at: 1000,
        continuation: None,
        location: None,
    }
}

fn raw(value: &serde_json::Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap()
}

fn questions(keys: &[&str]) -> InputRequests {
    let question = json!({"method": "roots/list"});
    let questions = keys.iter().map(|key| {
        let question = serde_json::from_value(question.clone()).unwrap();
        ((*key).to_owned(), question)
    });
    questions.collect()
}

fn answers(keys: &[&str]) -> InputResponses {
    let answers = keys.iter();
    answers
        .map(|key| ((*key).to_owned(), raw(&json!({"of": key}))))
        .collect()
}

#[track_caller]
fn check(database: &Database, id: &str, status: TaskStatus, detail: Option<&str>) {
    let task = database.task(id, "a", 1).unwrap().unwrap();
    let found = task.detail.as_deref().map(RawValue::get);
    assert_eq!((task.status, found), (status, detail));
}

#[test]
fn task_is_found_by_its_owner_until_it_expires() {
    let (_directory, database) = database();
    assert!(database.add_task(&task("1", "a")).unwrap());
    assert!(database.task("1", "a", 999).unwrap().is_some());
    assert!(database.task("1", "a", 1000).unwrap().is_none());
    assert!(database.task("1", "b", 1).unwrap().is_none());
    assert!(database.task("2", "a", 1).unwrap().is_none());
}

#[test]
fn finished_task_stays_unchanged() {
    let (_directory, database) = database();
    database.add_task(&task("1", "a")).unwrap();
    let result = raw(&json!({"n": 1.50}));
    database
        .end_task("1", TaskStatus::Completed, Some(&result), 5)
        .unwrap();
    database
        .end_task("1", TaskStatus::Cancelled, None, 6)
        .unwrap();
    database
        .store_questions("1", &questions(&["x"]), 7)
        .unwrap();
    database.fail_tasks_of("runner", &result, 8).unwrap();
    database.request_cancel("1").unwrap();
    check(&database, "1", TaskStatus::Completed, Some(result.get()));
    assert!(database.take_requests("runner").unwrap().is_empty());
}

#[test]
fn task_continues_with_the_last_answer_and_gets_answers_once() {
    let (_directory, database) = database();
    database.add_task(&task("1", "a")).unwrap();
    database
        .store_questions("1", &questions(&["x", "y"]), 1)
        .unwrap();
    database
        .store_answers("1", &answers(&["x", "z"]), 2)
        .unwrap();
    let open = r#"{"y":{"method":"roots/list"}}"#;
    check(&database, "1", TaskStatus::InputRequired, Some(open));
    assert!(database.take_requests("runner").unwrap().is_empty());

    database
        .store_answers("1", &answers(&["x", "y"]), 3)
        .unwrap();
    check(&database, "1", TaskStatus::Working, None);
    assert!(database.take_requests("another").unwrap().is_empty());
    let mut requests = database.take_requests("runner").unwrap();
    let Some((id, TaskRequest::Answers(given))) = requests.pop() else {
        panic!("{requests:?}");
    };
    assert_eq!(id, "1");
    assert_eq!(given.keys().collect::<Vec<_>>(), ["x", "y"]);
    assert!(database.take_requests("runner").unwrap().is_empty());
}

#[test]
fn tasks_of_an_ended_server_fail() {
    let (_directory, database) = database();
    let mut others = task("2", "a");
    others.runner = "another".to_owned();
    for task in [task("1", "a"), others] {
        database.add_task(&task).unwrap();
    }
    let error = raw(&json!("lost"));
    database.fail_tasks_of("runner", &error, 1).unwrap();
    check(&database, "1", TaskStatus::Failed, Some(error.get()));
    check(&database, "2", TaskStatus::Working, None);
}

#[test]
fn tasks_per_owner_are_bounded() {
    let (_directory, database) = database();
    let add = |number: i64, owner| {
        let task = task(&format!("{owner}{number}"), owner);
        database.add_task(&task).unwrap()
    };
    for number in 0..MAX_TASKS_PER_OWNER {
        assert!(add(number, "a"));
    }
    assert!(!add(MAX_TASKS_PER_OWNER, "a"));
    assert!(add(0, "b"));
    // Expired tasks make room.
    let mut later = task("later", "a");
    (later.created_at, later.expires_at) = (1000, 2000);
    assert!(database.add_task(&later).unwrap());
    assert_eq!(database.tasks("a", 1).unwrap().len(), 1);
}

#[test]
fn stored_result_bytes_are_bounded() {
    let (_directory, database) = database();
    database.add_task(&task("1", "a")).unwrap();
    let large = usize::try_from(MAX_RESULT_BYTES).unwrap();
    let large = raw(&json!("x".repeat(large)));
    database
        .end_task("1", TaskStatus::Completed, Some(&large), 1)
        .unwrap();
    assert!(!database.add_task(&task("2", "b")).unwrap());
}
