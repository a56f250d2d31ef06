//! Versions of interpreters. A database keeps them, so that a warm start runs no program to learn
//! one.

use std::path::Path;
use std::time::Duration;

use mcpd_exec::{Command, Executor, Limits};

#[cfg(feature = "database")]
use crate::database::Database;
use crate::database::rows::Version;

/// Time limit of a query.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// Source of versions: the database, if there is one, or the programs themselves.
#[derive(Debug, Clone, Default)]
pub(super) struct Versions {
    #[cfg(feature = "database")]
    pub(super) database: Option<Database>,
}

impl Versions {
    /// Returns the version of a program, which is run with `--version` unless its version is
    /// known. Blocks for a read of the database.
    #[cfg(feature = "database")]
    pub(super) async fn of(&self, program: &Path, executor: &Executor) -> Option<Version> {
        let Some((database, stamp)) = self.database.as_ref().zip(stamp(program)) else {
            return query(program, executor).await;
        };
        let name = program.to_string_lossy();
        if let Ok(Some(version)) = database.version(&name, &stamp) {
            return Some(version);
        }
        let version = query(program, executor).await?;
        if let Err(error) = database.store_version(&name, &stamp, version) {
            tracing::debug!(%error, program = %name, "failed to store the version of an interpreter");
        }
        Some(version)
    }

    /// Returns the version of a program, which is run with `--version`.
    #[cfg(not(feature = "database"))]
    pub(super) async fn of(&self, program: &Path, executor: &Executor) -> Option<Version> {
        query(program, executor).await
    }
}

/// Returns the fingerprint of a program. Scripts have none: a version manager puts one in the
/// place of an interpreter, and its version changes while the script stays.
#[cfg(feature = "database")]
fn stamp(program: &Path) -> Option<String> {
    use std::io::Read as _;

    use crate::script::fingerprint::{FileStamp, Fingerprint};

    let mut file = std::fs::File::open(program).ok()?;
    let mut start = [0; 2];
    file.read_exact(&mut start).ok()?;
    if start == *b"#!" {
        return None;
    }
    let fingerprint = Fingerprint::of(&file.metadata().ok()?);
    Some(FileStamp::of(fingerprint, None).to_string())
}

/// Runs a program for its version, such as `v22.18.0` or `deno 2.5.0 (stable)`.
async fn query(program: &Path, executor: &Executor) -> Option<Version> {
    let mut limits = Limits::default();
    limits.wall = TIME_LIMIT;
    let command = Command::new(program).arg("--version").limits(limits);
    let outcome = executor.run(command).await.ok()?;
    let text = String::from_utf8(outcome.stdout.head.to_vec()).ok()?;
    let mut numbers = text
        .trim()
        .trim_start_matches("deno ")
        .trim_start_matches('v')
        .split('.');
    let mut number = || numbers.next()?.parse().ok();
    Some((number()?, number()?))
}

#[cfg(all(test, unix, feature = "database"))]
mod tests {
    use mcpd_exec::Config;

    use super::*;

    #[tokio::test]
    async fn version_of_a_program_is_read_from_the_database_and_of_a_script_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let database = Database::new(directory.path().join("state.db"));
        let executor = Executor::new(Config::default()).unwrap();
        let versions = Versions {
            database: Some(database.clone()),
        };
        // A program of its own, which prints no version that could be read.
        let program = directory.path().join("program");
        std::fs::copy(which::which("true").unwrap(), &program).unwrap();
        assert_eq!(versions.of(&program, &executor).await, None);
        let stored = stamp(&program).unwrap();
        let name = program.to_string_lossy();
        database.store_version(&name, &stored, (22, 18)).unwrap();
        assert_eq!(versions.of(&program, &executor).await, Some((22, 18)));
        // Another file in its place is queried again.
        std::fs::remove_file(&program).unwrap();
        std::fs::copy(which::which("false").unwrap(), &program).unwrap();
        assert_eq!(versions.of(&program, &executor).await, None);

        std::fs::write(&program, "#!/bin/sh\necho v1.2\n").unwrap();
        assert_eq!(versions.of(&program, &executor).await, Some((1, 2)));
        std::fs::write(&program, "#!/bin/sh\necho v1.3\n").unwrap();
        assert_eq!(versions.of(&program, &executor).await, Some((1, 3)));
        database.forget(None).unwrap();
        assert_eq!(database.version(&name, &stored).unwrap(), None);
    }
}
