//! The table of definitions: what scripts have said of themselves, by their roots and their names.

use std::collections::BTreeMap;
use std::sync::Arc;

use rusqlite::{Connection, Row, params};
use serde::Serialize;
use serde_json::value::RawValue;

use super::refusals::{self, Refused};
use super::{Database, DatabaseError};
use crate::catalog::scan::{Answer, HelpText};

/// What has read the definitions: another version may read them otherwise.
pub(super) const COMPILER: &str = env!("CARGO_PKG_VERSION");

/// What a script has said of itself, as it is stored.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Definition {
    /// The root that the script is under.
    pub namespace: String,
    /// Its path below the root.
    pub name: String,
    /// The dialect it is described in, unless it was asked with `--help`.
    pub dialect: Option<String>,
    /// SHA-256 of what it said, in hexadecimal digits.
    pub content_hash: String,
    /// When it was read, in seconds since 1970.
    pub compiled_at: i64,
    /// Its name, description and input schema.
    pub metadata: Box<RawValue>,
}

/// What is known of a script from an earlier start.
#[derive(Debug)]
pub(crate) struct Remembered {
    /// Of the file that said it.
    pub(crate) fingerprint: String,
    /// Conditions beside the file.
    pub(crate) conditions: Arc<str>,
    /// Nothing if the script is not one that is asked.
    pub(crate) answer: Option<Answer>,
}

impl Remembered {
    /// Returns whether `now` says nothing new. How often something took too long counts.
    pub(crate) fn is_same_as(&self, now: &Self) -> bool {
        let refusal = |one: &Self| one.answer.as_ref().map(|answer| answer.refusal.clone());
        self.fingerprint == now.fingerprint
            && self.conditions == now.conditions
            && refusal(self) == refusal(now)
    }
}

/// A definition to be stored.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) definition: Definition,
    pub(crate) remembered: Remembered,
}

/// What is another under one root.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) namespace: String,
    pub(crate) new: Vec<Compiled>,
    pub(crate) refused: Vec<Refused>,
    /// The names of those that are not there any more.
    pub(crate) gone: Vec<String>,
}

impl Change {
    /// Whether nothing is another.
    pub(crate) fn is_none(&self) -> bool {
        self.new.is_empty() && self.refused.is_empty() && self.gone.is_empty()
    }
}

impl Database {
    /// The definitions there are, or those of one name, by their namespaces and names.
    ///
    /// # Errors
    ///
    /// The database can't be read.
    pub fn definitions(&self, name: Option<&str>) -> Result<Vec<Definition>, DatabaseError> {
        self.with(|connection| {
            let mut statement = connection.prepare(
                "SELECT namespace, name, dialect, content_hash, compiled_at, metadata FROM definitions
                 WHERE ?1 IS NULL OR name = ?1 ORDER BY namespace, name",
            )?;
            let rows = statement.query_map([name], definition)?;
            rows.collect()
        })
    }

    /// Forgets all definitions, or those of one name, and what was found to be none. Says how many definitions those were.
    ///
    /// # Errors
    ///
    /// The database can't be written.
    pub fn forget(&self, name: Option<&str>) -> Result<usize, DatabaseError> {
        self.with(|connection| {
            let statement = "DELETE FROM refusals WHERE ?1 IS NULL OR name = ?1";
            connection.execute(statement, [name])?;
            let statement = "DELETE FROM definitions WHERE ?1 IS NULL OR name = ?1";
            connection.execute(statement, [name])
        })
    }

    /// What is remembered of the scripts under `namespace`, by their names.
    pub(crate) fn remembered(
        &self,
        namespace: &str,
    ) -> Result<BTreeMap<String, Remembered>, DatabaseError> {
        self.with(|connection| {
            let mut statement = connection.prepare(
                "SELECT name, fingerprint, stdout, stderr, shebang, conditions FROM definitions
                 WHERE namespace = ?1 AND compiler = ?2",
            )?;
            let rows = statement.query_map([namespace, COMPILER], |row| {
                Ok((row.get(0)?, remembered(row)?))
            })?;
            let mut known: BTreeMap<_, _> = rows.collect::<rusqlite::Result<_>>()?;
            known.extend(refusals::read(connection, namespace)?);
            Ok(known)
        })
    }

    /// Remembers what is new, and forgets what is gone: all of it or nothing.
    pub(crate) fn remember(&self, changes: &[Change]) -> Result<(), DatabaseError> {
        self.with(|connection| {
            let transaction =
                connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            for change in changes {
                for name in &change.gone {
                    for statement in [
                        "DELETE FROM definitions WHERE namespace = ?1 AND name = ?2",
                        "DELETE FROM refusals WHERE namespace = ?1 AND name = ?2",
                    ] {
                        transaction
                            .prepare_cached(statement)?
                            .execute([&change.namespace, name])?;
                    }
                }
                for compiled in &change.new {
                    insert(&transaction, compiled)?;
                }
                for refused in &change.refused {
                    refusals::insert(&transaction, &change.namespace, refused)?;
                }
            }
            transaction.commit()
        })
    }
}

fn insert(connection: &Connection, compiled: &Compiled) -> rusqlite::Result<()> {
    let Compiled {
        definition,
        remembered,
    } = compiled;
    let answer = remembered.answer.as_ref();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    connection
        .prepare_cached("DELETE FROM refusals WHERE namespace = ?1 AND name = ?2")?
        .execute([&definition.namespace, &definition.name])?;
    let mut statement = connection.prepare_cached(
        "INSERT OR REPLACE INTO definitions
         (namespace, name, compiler, fingerprint, dialect, stdout, stderr, shebang, content_hash, compiled_at, metadata,
          conditions)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?;
    statement.execute(params![
        definition.namespace,
        definition.name,
        COMPILER,
        remembered.fingerprint,
        definition.dialect,
        answer.map(|answer| text(&answer.help.stdout)),
        answer.map(|answer| text(&answer.help.stderr)),
        answer.map(|answer| answer.shebang.as_deref()),
        definition.content_hash,
        definition.compiled_at,
        definition.metadata.get(),
        &*remembered.conditions,
    ])?;
    Ok(())
}

fn definition(row: &Row<'_>) -> rusqlite::Result<Definition> {
    let metadata: String = row.get(5)?;
    let metadata = RawValue::from_string(metadata).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(5, rusqlite::types::Type::Text, Box::new(error))
    })?;
    Ok(Definition {
        namespace: row.get(0)?,
        name: row.get(1)?,
        dialect: row.get(2)?,
        content_hash: row.get(3)?,
        compiled_at: row.get(4)?,
        metadata,
    })
}

fn remembered(row: &Row<'_>) -> rusqlite::Result<Remembered> {
    let stdout: Option<String> = row.get(2)?;
    let answer = match stdout {
        None => None,
        Some(stdout) => Some(Answer {
            help: HelpText {
                stdout: stdout.into(),
                stderr: row.get::<_, String>(3)?.into(),
                ..HelpText::default()
            },
            shebang: row.get(4)?,
            refusal: None,
        }),
    };
    let conditions: String = row.get(5)?;
    Ok(Remembered {
        fingerprint: row.get(1)?,
        conditions: Arc::from(conditions),
        answer,
    })
}
