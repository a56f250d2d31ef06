//! Table of versions of interpreters, by their programs.

use rusqlite::OptionalExtension as _;

use super::{Database, DatabaseError};
use crate::database::rows::Version;

impl Database {
    /// Returns the version of the file with this fingerprint at `program`, if it is known.
    pub(crate) fn version(
        &self,
        program: &str,
        fingerprint: &str,
    ) -> Result<Option<Version>, DatabaseError> {
        self.with_connection(|connection| {
            let mut statement = connection.prepare(
                "SELECT major, minor FROM versions WHERE program = ?1 AND fingerprint = ?2",
            )?;
            statement
                .query_row([program, fingerprint], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        })
    }

    /// Stores the version of the file with this fingerprint at `program`.
    pub(crate) fn store_version(
        &self,
        program: &str,
        fingerprint: &str,
        (major, minor): Version,
    ) -> Result<(), DatabaseError> {
        self.with_connection(|connection| {
            let statement = "INSERT OR REPLACE INTO versions (program, fingerprint, major, minor)
                             VALUES (?1, ?2, ?3, ?4)";
            connection
                .execute(statement, (program, fingerprint, major, minor))
                .map(drop)
        })
    }
}
