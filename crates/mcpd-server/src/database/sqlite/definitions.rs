//! Table of definitions: descriptions of scripts, by root and name.

use std::collections::BTreeMap;
use std::sync::Arc;

use rusqlite::{Connection, Row, params};
use serde::Serialize;
use serde_json::value::RawValue;

use super::refusals::{self, StoredRefusal};
use super::{Database, DatabaseError};
use crate::database::rows::{HelpText, ProbeResult};

/// Version that wrote the definitions: another one may parse them differently.
pub(super) const COMPILER: &str = env!("CARGO_PKG_VERSION");

/// Stored description of a script.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Definition {
    /// Root of the script.
    pub namespace: String,
    /// Path below the root.
    pub name: String,
    /// Dialect of the description, unless the script was probed with `--help`.
    pub dialect: Option<String>,
    /// SHA-256 of the description, in hexadecimal digits.
    pub content_hash: String,
    /// Time of the description, in seconds since 1970.
    pub compiled_at: i64,
    /// Name, description and input schema.
    pub metadata: Box<RawValue>,
}

/// Knowledge of a script from an earlier start.
#[derive(Debug)]
pub(crate) struct CacheEntry {
    /// Fingerprint of the described file.
    pub(crate) fingerprint: String,
    /// Conditions beside the file.
    pub(crate) conditions: Arc<str>,
    /// `None` if the script needs no probe.
    pub(crate) answer: Option<ProbeResult>,
}

/// Definition to store.
#[derive(Debug)]
pub(crate) struct CompiledDefinition {
    pub(crate) definition: Definition,
    pub(crate) entry: CacheEntry,
}

/// Changes under one root.
#[derive(Debug)]
pub(crate) struct CacheChange {
    pub(crate) namespace: String,
    pub(crate) new: Vec<CompiledDefinition>,
    pub(crate) refused: Vec<StoredRefusal>,
    /// Names of removed files.
    pub(crate) gone: Vec<String>,
}

impl CacheChange {
    /// Returns whether there is no change.
    pub(crate) fn is_empty(&self) -> bool {
        self.new.is_empty() && self.refused.is_empty() && self.gone.is_empty()
    }
}

impl Database {
    /// Returns all definitions, or those of one name, by namespace and name.
    ///
    /// # Errors
    ///
    /// Fails if the database is unreadable.
    pub fn definitions(&self, name: Option<&str>) -> Result<Vec<Definition>, DatabaseError> {
        self.with_connection(|connection| {
            let mut statement = connection.prepare(
                "SELECT namespace, name, dialect, content_hash, compiled_at, metadata FROM definitions
                 WHERE ?1 IS NULL OR name = ?1 ORDER BY namespace, name",
            )?;
            let rows = statement.query_map([name], definition)?;
            rows.collect()
        })
    }

    /// Deletes all definitions and refusals, or those of one name. Returns the number of deleted
    /// definitions.
    ///
    /// # Errors
    ///
    /// Fails if the database cannot be written.
    pub fn forget(&self, name: Option<&str>) -> Result<usize, DatabaseError> {
        self.with_connection(|connection| {
            if name.is_none() {
                connection.execute("DELETE FROM versions", [])?;
            }
            let statement = "DELETE FROM refusals WHERE ?1 IS NULL OR name = ?1";
            connection.execute(statement, [name])?;
            let statement = "DELETE FROM definitions WHERE ?1 IS NULL OR name = ?1";
            connection.execute(statement, [name])
        })
    }

    /// Returns the stored knowledge of the scripts under `namespace`, by name.
    pub(crate) fn cache_entries(
        &self,
        namespace: &str,
    ) -> Result<BTreeMap<String, CacheEntry>, DatabaseError> {
        self.with_connection(|connection| {
            let mut statement = connection.prepare(
                "SELECT name, fingerprint, stdout, stderr, shebang, conditions FROM definitions
                 WHERE namespace = ?1 AND compiler = ?2",
            )?;
            let rows = statement.query_map([namespace, COMPILER], |row| {
                Ok((row.get(0)?, read_entry(row)?))
            })?;
            let mut known: BTreeMap<_, _> = rows.collect::<rusqlite::Result<_>>()?;
            known.extend(refusals::read(connection, namespace)?);
            Ok(known)
        })
    }

    /// Stores additions and deletes removed files, in one transaction.
    pub(crate) fn update_cache(&self, changes: &[CacheChange]) -> Result<(), DatabaseError> {
        self.with_connection(|connection| {
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

fn insert(connection: &Connection, compiled: &CompiledDefinition) -> rusqlite::Result<()> {
    let CompiledDefinition { definition, entry } = compiled;
    let answer = entry.answer.as_ref();
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
        entry.fingerprint,
        definition.dialect,
        answer.map(|answer| text(&answer.help.stdout)),
        answer.map(|answer| text(&answer.help.stderr)),
        answer.map(|answer| answer.shebang.as_deref()),
        definition.content_hash,
        definition.compiled_at,
        definition.metadata.get(),
        &*entry.conditions,
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

fn read_entry(row: &Row<'_>) -> rusqlite::Result<CacheEntry> {
    let stdout: Option<String> = row.get(2)?;
    let answer = match stdout {
        None => None,
        Some(stdout) => Some(ProbeResult {
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
    Ok(CacheEntry {
        fingerprint: row.get(1)?,
        conditions: Arc::from(conditions),
        answer,
    })
}
