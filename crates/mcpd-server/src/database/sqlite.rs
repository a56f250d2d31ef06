//! SQLite database of state that outlives the process; several processes may use it at once. It
//! is expendable: a damaged file is put aside, and a missing one is no fault.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use crate::support::sync;

mod definitions;
mod refusals;
mod tasks;
mod versions;

pub use definitions::Definition;
pub(crate) use definitions::{CacheChange, CacheEntry, CompiledDefinition};
pub(crate) use refusals::StoredRefusal;

/// Time limit of the wait for another writer.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Application id in the file, against files of other programs.
const APPLICATION_ID: i32 = i32::from_be_bytes(*b"mcpd");

/// Migrations from each version of the tables to the next.
const MIGRATIONS: &[&str] = &[
    include_str!("sqlite/1.sql"),
    include_str!("sqlite/2.sql"),
    include_str!("sqlite/3.sql"),
    include_str!("sqlite/4.sql"),
    include_str!("sqlite/5.sql"),
];

/// Database of mcpd, opened on first use or [ahead](Database::open_ahead), and shared by all
/// clones.
///
/// All operations block.
#[derive(Clone)]
pub struct Database {
    inner: Arc<Inner>,
}

struct Inner {
    file: PathBuf,
    connection: Mutex<Option<Connection>>,
}

/// Failure of a read or a write.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct DatabaseError(#[from] DatabaseErrorKind);

#[derive(Debug, thiserror::Error)]
enum DatabaseErrorKind {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error("it was written by a newer version of mcpd")]
    Newer,
    #[error("it belongs to another program")]
    Foreign,
}

impl DatabaseErrorKind {
    /// Returns whether the file will never be usable.
    fn is_unusable(&self) -> bool {
        match self {
            Self::Foreign => true,
            Self::Sqlite(error) => matches!(
                error.sqlite_error_code(),
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
            ),
            Self::Io(_) | Self::Newer => false,
        }
    }
}

impl Database {
    /// Opens the database in `file` on first use, and creates it if necessary.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self {
            inner: Arc::new(Inner {
                file: file.into(),
                connection: Mutex::new(None),
            }),
        }
    }

    /// Opens an existing one on another thread meanwhile, so that the first use waits less. Faults
    /// are left to the first use.
    ///
    /// Must be called on a tokio runtime.
    #[must_use]
    pub fn open_ahead(self) -> Self {
        if !self.file().exists() {
            return self;
        }
        let database = self.clone();
        drop(tokio::task::spawn_blocking(move || {
            database.with_connection(|_| Ok(())).ok();
        }));
        self
    }

    /// Location in the file system.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.inner.file
    }

    /// Runs `work` on the database, a second time if the file had to be recreated.
    fn with_connection<R>(
        &self,
        mut work: impl FnMut(&mut Connection) -> rusqlite::Result<R>,
    ) -> Result<R, DatabaseError> {
        let mut connection = sync::lock(&self.inner.connection);
        let mut attempt = || -> Result<R, DatabaseErrorKind> {
            let connection = match &mut *connection {
                Some(connection) => connection,
                closed => closed.insert(connect(self.file())?),
            };
            Ok(work(connection)?)
        };
        match attempt() {
            Err(fault) if fault.is_unusable() => {}
            done => return Ok(done?),
        }
        *connection = None;
        put_aside(self.file())?;
        Ok(work(connection.insert(connect(self.file())?)).map_err(DatabaseErrorKind::from)?)
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Database").field(&self.inner.file).finish()
    }
}

fn connect(file: &Path) -> Result<Connection, DatabaseErrorKind> {
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory)?;
    }
    create(file)?;
    let mut connection = Connection::open(file)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // One transaction, because another process may create the tables in the meantime.
    let version = version(&*connection.unchecked_transaction()?)?;
    if version < MIGRATIONS.len() {
        enable_write_ahead_log(&connection)?;
        migrate(&mut connection)?;
    }
    // The contents can be rebuilt, or are written durably by their own code; the file stays
    // consistent.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    Ok(connection)
}

/// Creates the file for this user alone, if it is missing.
fn create(file: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    // An existing file is not opened: closing it would release all locks of this process on it.
    options.append(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(file) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map(drop::<File>),
    }
}

/// Switches to write-ahead logging, so that readers proceed beside a writer. The file keeps the
/// mode.
fn enable_write_ahead_log(connection: &Connection) -> rusqlite::Result<()> {
    const PAUSE: Duration = Duration::from_millis(5);
    let until = Instant::now() + BUSY_TIMEOUT;
    loop {
        match connection.pragma_update(None, "journal_mode", "WAL") {
            // Only for this change, SQLite does not wait for other processes by itself.
            Err(error) if is_busy(&error) && Instant::now() < until => thread::sleep(PAUSE),
            changed => return changed,
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

/// Returns the version of the tables; 0 if there are none.
fn version(connection: &Connection) -> Result<usize, DatabaseErrorKind> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let version = usize::try_from(pragma("user_version")?).unwrap_or(usize::MAX);
    let is_empty = || {
        connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", (), |row| {
            row.get(0)
        })
    };
    match (pragma("application_id")?, version) {
        (APPLICATION_ID, version) if version > MIGRATIONS.len() => Err(DatabaseErrorKind::Newer),
        (APPLICATION_ID, version) => Ok(version),
        (0, 0) if is_empty()? => Ok(0),
        _ => Err(DatabaseErrorKind::Foreign),
    }
}

/// Migrates the tables, exactly once even if several processes try.
fn migrate(connection: &mut Connection) -> Result<(), DatabaseErrorKind> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version = version(&transaction)?;
    for step in &MIGRATIONS[version..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(
        None,
        "user_version",
        i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX),
    )?;
    Ok(transaction.commit()?)
}

/// Moves an unusable file away, unless another process has done so.
fn put_aside(file: &Path) -> Result<(), DatabaseErrorKind> {
    if connect(file).is_ok_and(|connection| is_intact(&connection)) {
        return Ok(());
    }
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let mut aside = file.as_os_str().to_owned();
    aside.push(format!(".corrupt-{}", now.as_secs()));
    tracing::warn!(
        file = %file.display(),
        aside = %aside.display(),
        "database is unusable; it was moved aside and a new one created"
    );
    fs::rename(file, &aside)?;
    for end in ["-wal", "-shm"] {
        let with_end = |path: &std::ffi::OsStr| {
            let mut path = path.to_owned();
            path.push(end);
            path
        };
        match fs::rename(with_end(file.as_os_str()), with_end(&aside)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

fn is_intact(connection: &Connection) -> bool {
    let check = connection.pragma_query_value(None, "quick_check", |row| row.get::<_, String>(0));
    check.is_ok_and(|answer| answer == "ok")
}

#[cfg(test)]
mod tests;
