//! Table of tasks: calls that run in the background, by id. A finished task stays unchanged until
//! it expires.

use mcpd_protocol::method::{InputRequests, InputResponses, TaskStatus};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, Type, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, TransactionBehavior, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{Database, DatabaseError};
use crate::database::rows::{StoredTask, TaskRequest};

/// Maximum number of tasks, of one owner and overall.
const MAX_TASKS_PER_OWNER: i64 = 256;
const MAX_TASKS: i64 = 4096;
/// Size of all results from which no task is added, in bytes. Running tasks may still exceed it.
const MAX_RESULT_BYTES: i64 = if cfg!(test) { 1 << 20 } else { 256 << 20 };

/// Condition for unfinished tasks.
const IS_OPEN: &str = "status IN ('working', 'input_required')";

impl Database {
    /// Stores a new task, unless there are too many. Deletes expired ones.
    pub(crate) fn add_task(&self, task: &StoredTask) -> Result<bool, DatabaseError> {
        self.commit_durably(|transaction| {
            let now = task.created_at;
            transaction.execute("DELETE FROM tasks WHERE expires_at <= ?1", [now])?;
            let mut statement = transaction.prepare_cached(
                "INSERT INTO tasks (id, owner, tool, runner, status, created_at, updated_at, expires_at)
                 SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8
                 WHERE (SELECT count(*) FROM tasks WHERE owner = ?2) < ?9
                   AND (SELECT count(*) FROM tasks) < ?10
                   AND (SELECT total(octet_length(detail)) FROM tasks) < ?11",
            )?;
            let added = statement.execute(params![
                task.id,
                task.owner,
                task.tool,
                task.runner,
                StatusText(task.status),
                task.created_at,
                task.updated_at,
                task.expires_at,
                MAX_TASKS_PER_OWNER,
                MAX_TASKS,
                MAX_RESULT_BYTES,
            ])?;
            Ok(added == 1)
        })
    }

    /// Returns the task `id`, if `owner` has it and it has not expired.
    pub(crate) fn task(
        &self,
        id: &str,
        owner: &str,
        now: i64,
    ) -> Result<Option<StoredTask>, DatabaseError> {
        self.with_connection(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id, owner, tool, runner, status, detail, created_at, updated_at, expires_at
                 FROM tasks WHERE id = ?1 AND owner = ?2 AND expires_at > ?3",
            )?;
            statement
                .query_row(params![id, owner, now], read_task)
                .optional()
        })
    }

    /// Returns the tasks of `owner` without their results, the newest first.
    pub(crate) fn tasks(&self, owner: &str, now: i64) -> Result<Vec<StoredTask>, DatabaseError> {
        self.with_connection(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id, owner, tool, runner, status, NULL, created_at, updated_at, expires_at
                 FROM tasks WHERE owner = ?1 AND expires_at > ?2 ORDER BY created_at DESC, id",
            )?;
            statement
                .query_map(params![owner, now], read_task)?
                .collect()
        })
    }

    /// Stores the questions of a task.
    pub(crate) fn store_questions(
        &self,
        id: &str,
        questions: &InputRequests,
        now: i64,
    ) -> Result<(), DatabaseError> {
        self.commit_durably(|transaction| {
            update(
                transaction,
                id,
                TaskStatus::InputRequired,
                Some(json(questions)?),
                now,
            )
        })
    }

    /// Stores the ending of a task, unless it has ended before.
    pub(crate) fn end_task(
        &self,
        id: &str,
        status: TaskStatus,
        detail: Option<&RawValue>,
        now: i64,
    ) -> Result<(), DatabaseError> {
        self.commit_durably(|transaction| {
            update(
                transaction,
                id,
                status,
                detail.map(|detail| detail.get().to_owned()),
                now,
            )
        })
    }

    /// Stores answers to open questions; others are dropped. The last answer sets the task to
    /// working.
    pub(crate) fn store_answers(
        &self,
        id: &str,
        responses: &InputResponses,
        now: i64,
    ) -> Result<(), DatabaseError> {
        self.commit_durably(|transaction| {
            let waiting =
                "SELECT detail, answers FROM tasks WHERE id = ?1 AND status = 'input_required'";
            let row = transaction
                .query_row(waiting, [id], |row| {
                    Ok((from_json(row, 0)?, from_json(row, 1)?))
                })
                .optional()?;
            let Some((Some(mut open), answers)) = row else {
                return Ok(());
            };
            let open: &mut InputRequests = &mut open;
            let mut answers: InputResponses = answers.unwrap_or_default();
            for (key, response) in responses {
                if open.remove(key).is_some() {
                    answers.insert(key.clone(), response.clone());
                }
            }
            let answers = json(&answers)?;
            transaction.execute(
                "UPDATE tasks SET answers = ?2 WHERE id = ?1",
                params![id, answers],
            )?;
            match open.is_empty() {
                true => update(transaction, id, TaskStatus::Working, None, now),
                false => update(
                    transaction,
                    id,
                    TaskStatus::InputRequired,
                    Some(json(open)?),
                    now,
                ),
            }
        })
    }

    /// Stores a request to cancel a task, unless it has ended.
    pub(crate) fn request_cancel(&self, id: &str) -> Result<(), DatabaseError> {
        self.commit_durably(|transaction| {
            let cancel = format!("UPDATE tasks SET cancel = TRUE WHERE id = ?1 AND {IS_OPEN}");
            transaction.execute(&cancel, [id]).map(drop)
        })
    }

    /// Takes the requests for the tasks of `runner`, by id. Answers are returned once.
    pub(crate) fn take_requests(
        &self,
        runner: &str,
    ) -> Result<Vec<(String, TaskRequest)>, DatabaseError> {
        self.with_connection(|connection| {
            // Usually there are none, and a mere read blocks no writer.
            if read_requests(connection, runner)?.is_empty() {
                return Ok(Vec::new());
            }
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let requests = read_requests(&transaction, runner)?;
            for (id, _) in &requests {
                transaction.execute("UPDATE tasks SET answers = NULL WHERE id = ?1", [id])?;
            }
            transaction.commit()?;
            Ok(requests)
        })
    }

    /// Marks all open tasks of `runner`, which is gone, as failed.
    pub(crate) fn fail_tasks_of(
        &self,
        runner: &str,
        error: &RawValue,
        now: i64,
    ) -> Result<(), DatabaseError> {
        self.commit_durably(|transaction| {
            let lose = format!(
                "UPDATE tasks SET status = 'failed', detail = ?2, answers = NULL, updated_at = ?3
                 WHERE runner = ?1 AND {IS_OPEN}"
            );
            transaction
                .execute(&lose, params![runner, error.get(), now])
                .map(drop)
        })
    }

    /// Commits a change durably: it survives a loss of power.
    fn commit_durably<R>(
        &self,
        mut work: impl FnMut(&Transaction<'_>) -> rusqlite::Result<R>,
    ) -> Result<R, DatabaseError> {
        self.with_connection(|connection| {
            connection.pragma_update(None, "synchronous", "FULL")?;
            let done = (|| {
                let transaction =
                    connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                let done = work(&transaction)?;
                transaction.commit()?;
                Ok(done)
            })();
            connection.pragma_update(None, "synchronous", "NORMAL")?;
            done
        })
    }
}

fn update(
    connection: &Connection,
    id: &str,
    status: TaskStatus,
    detail: Option<String>,
    now: i64,
) -> rusqlite::Result<()> {
    let update = format!(
        "UPDATE tasks SET status = ?2, detail = ?3, updated_at = ?4 WHERE id = ?1 AND {IS_OPEN}"
    );
    let mut statement = connection.prepare_cached(&update)?;
    statement
        .execute(params![id, StatusText(status), detail, now])
        .map(drop)
}

fn read_requests(
    connection: &Connection,
    runner: &str,
) -> rusqlite::Result<Vec<(String, TaskRequest)>> {
    let wished = format!(
        "SELECT id, cancel, answers FROM tasks
         WHERE runner = ?1 AND {IS_OPEN} AND (cancel OR status = 'working' AND answers IS NOT NULL)"
    );
    let mut statement = connection.prepare_cached(&wished)?;
    let requests = statement.query_map([runner], |row| {
        let request = match row.get(1)? {
            true => TaskRequest::Cancel,
            false => TaskRequest::Answers(from_json(row, 2)?.unwrap_or_default()),
        };
        Ok((row.get(0)?, request))
    })?;
    requests.collect()
}

fn read_task(row: &Row<'_>) -> rusqlite::Result<StoredTask> {
    let StatusText(status) = row.get(4)?;
    Ok(StoredTask {
        id: row.get(0)?,
        owner: row.get(1)?,
        tool: row.get(2)?,
        runner: row.get(3)?,
        status,
        detail: from_json(row, 5)?,
        created_at: row.get(6)?,
        updated_at: row.get(7)?,
        expires_at: row.get(8)?,
        // The processes of a server end with it.
        continuation: None,
        location: None,
    })
}

fn json(value: &impl Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

fn from_json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<T>> {
    let text: Option<String> = row.get(column)?;
    let value = text.map(|text| serde_json::from_str(&text)).transpose();
    value.map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
    })
}

/// Status with its name in MCP.
struct StatusText(TaskStatus);

impl ToSql for StatusText {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(match self.0 {
            TaskStatus::Working => "working",
            TaskStatus::InputRequired => "input_required",
            TaskStatus::Completed => "completed",
            TaskStatus::Failed => "failed",
            TaskStatus::Cancelled => "cancelled",
        }))
    }
}

impl FromSql for StatusText {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(Self(match value.as_str()? {
            "working" => TaskStatus::Working,
            "input_required" => TaskStatus::InputRequired,
            "completed" => TaskStatus::Completed,
            "failed" => TaskStatus::Failed,
            "cancelled" => TaskStatus::Cancelled,
            _ => return Err(FromSqlError::InvalidType),
        }))
    }
}

#[cfg(test)]
mod tests;
