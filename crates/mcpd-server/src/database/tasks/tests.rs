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
fn a_task_is_found_by_its_owner_until_its_time_has_come() {
    let (_directory, database) = database();
    assert!(database.add_task(&task("1", "a")).unwrap());
    assert!(database.task("1", "a", 999).unwrap().is_some());
    assert!(database.task("1", "a", 1000).unwrap().is_none());
    assert!(database.task("1", "b", 1).unwrap().is_none());
    assert!(database.task("2", "a", 1).unwrap().is_none());
}

#[test]
fn what_is_over_stays_as_it_is() {
    let (_directory, database) = database();
    database.add_task(&task("1", "a")).unwrap();
    let result = raw(&json!({"n": 1.50}));
    database
        .end_task("1", TaskStatus::Completed, Some(&result), 5)
        .unwrap();
    database
        .end_task("1", TaskStatus::Cancelled, None, 6)
        .unwrap();
    database.ask_in_task("1", &questions(&["x"]), 7).unwrap();
    database.lose_tasks("runner", &result, 8).unwrap();
    database.cancel_task("1").unwrap();
    check(&database, "1", TaskStatus::Completed, Some(result.get()));
    assert!(database.wishes("runner").unwrap().is_empty());
}

#[test]
fn a_task_goes_on_with_the_last_answer_and_is_given_them_once() {
    let (_directory, database) = database();
    database.add_task(&task("1", "a")).unwrap();
    database
        .ask_in_task("1", &questions(&["x", "y"]), 1)
        .unwrap();
    database.answer_task("1", &answers(&["x", "z"]), 2).unwrap();
    let open = r#"{"y":{"method":"roots/list"}}"#;
    check(&database, "1", TaskStatus::InputRequired, Some(open));
    assert!(database.wishes("runner").unwrap().is_empty());

    database.answer_task("1", &answers(&["x", "y"]), 3).unwrap();
    check(&database, "1", TaskStatus::Working, None);
    assert!(database.wishes("another").unwrap().is_empty());
    let mut wishes = database.wishes("runner").unwrap();
    let Some((id, Wish::Answers(given))) = wishes.pop() else {
        panic!("{wishes:?}");
    };
    assert_eq!(id, "1");
    assert_eq!(given.keys().collect::<Vec<_>>(), ["x", "y"]);
    assert!(database.wishes("runner").unwrap().is_empty());
}

#[test]
fn what_is_lost_with_its_server_has_failed() {
    let (_directory, database) = database();
    let mut others = task("2", "a");
    others.runner = "another".to_owned();
    for task in [task("1", "a"), others] {
        database.add_task(&task).unwrap();
    }
    let error = raw(&json!("lost"));
    database.lose_tasks("runner", &error, 1).unwrap();
    check(&database, "1", TaskStatus::Failed, Some(error.get()));
    check(&database, "2", TaskStatus::Working, None);
}

#[test]
fn an_owner_has_so_many_tasks_and_no_more() {
    let (_directory, database) = database();
    let add = |number: i64, owner| {
        let task = task(&format!("{owner}{number}"), owner);
        database.add_task(&task).unwrap()
    };
    for number in 0..MAX_OF_OWNER {
        assert!(add(number, "a"));
    }
    assert!(!add(MAX_OF_OWNER, "a"));
    assert!(add(0, "b"));
    // Expired tasks make room.
    let mut later = task("later", "a");
    (later.created_at, later.expires_at) = (1000, 2000);
    assert!(database.add_task(&later).unwrap());
    assert_eq!(database.tasks("a", 1).unwrap().len(), 1);
}

#[test]
fn so_many_bytes_are_kept_and_no_more() {
    let (_directory, database) = database();
    database.add_task(&task("1", "a")).unwrap();
    let large = usize::try_from(MAX_BYTES).unwrap();
    let large = raw(&json!("x".repeat(large)));
    database
        .end_task("1", TaskStatus::Completed, Some(&large), 1)
        .unwrap();
    assert!(!database.add_task(&task("2", "b")).unwrap());
}
