//! The one file in which mcpd keeps what outlives it: an SQLite database that several processes may use at once.
//! It can be done without, so a file that is no good is put aside, and none is better than a fault.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use crate::sync;

mod definitions;
mod refusals;
mod tasks;

pub use definitions::Definition;
pub(crate) use definitions::{Change, Compiled, Remembered};
pub(crate) use refusals::Refused;

/// How long to wait for another process that is writing.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// What tells our files from those of other programs.
const APPLICATION: i32 = i32::from_be_bytes(*b"mcpd");

/// What leads from each version of the tables to the next.
const MIGRATIONS: &[&str] = &[
    include_str!("database/1.sql"),
    include_str!("database/2.sql"),
    include_str!("database/3.sql"),
    include_str!("database/4.sql"),
];

/// A database of mcpd's own, opened when it is needed. All clones are one.
///
/// Whatever is done with it blocks.
#[derive(Clone)]
pub struct Database {
    inner: Arc<Inner>,
}

struct Inner {
    file: PathBuf,
    connection: Mutex<Option<Connection>>,
}

/// Why something could not be read from the database, or written to it.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct DatabaseError(#[from] Kind);

#[derive(Debug, thiserror::Error)]
enum Kind {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error("a newer mcpd has written it")]
    Newer,
    #[error("it is the database of another program")]
    Foreign,
}

impl Kind {
    /// Whether there is nothing in the file that could be used, now or ever.
    fn is_lost(&self) -> bool {
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
    /// The database in `file`, which is made when it is needed and not there.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self {
            inner: Arc::new(Inner {
                file: file.into(),
                connection: Mutex::new(None),
            }),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.inner.file
    }

    /// Does `work` with the database, twice if the file has to be made anew in between.
    fn with<R>(
        &self,
        mut work: impl FnMut(&mut Connection) -> rusqlite::Result<R>,
    ) -> Result<R, DatabaseError> {
        let mut connection = sync::lock(&self.inner.connection);
        let mut attempt = || -> Result<R, Kind> {
            let connection = match &mut *connection {
                Some(connection) => connection,
                closed => closed.insert(connect(self.file())?),
            };
            Ok(work(connection)?)
        };
        match attempt() {
            Err(fault) if fault.is_lost() => {}
            done => return Ok(done?),
        }
        *connection = None;
        put_aside(self.file())?;
        Ok(work(connection.insert(connect(self.file())?)).map_err(Kind::from)?)
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Database").field(&self.inner.file).finish()
    }
}

fn connect(file: &Path) -> Result<Connection, Kind> {
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory)?;
    }
    create(file)?;
    let mut connection = Connection::open(file)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // In one transaction: meanwhile somebody else may make the tables.
    let version = version(&*connection.unchecked_transaction()?)?;
    if version < MIGRATIONS.len() {
        write_ahead(&connection)?;
        migrate(&mut connection)?;
    }
    // What the system loses in a crash can be made again, or else says so itself; the file stays whole.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    Ok(connection)
}

/// Makes the file for this user alone, unless it is there.
fn create(file: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    // One that is there is not even opened: closing it would give up all locks that this process has on it.
    options.append(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(file) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map(drop::<File>),
    }
}

/// Lets readers go on while somebody writes. The mode stays with the file.
fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    const PAUSE: Duration = Duration::from_millis(5);
    let until = Instant::now() + BUSY_TIMEOUT;
    loop {
        match connection.pragma_update(None, "journal_mode", "WAL") {
            // For this SQLite does not wait for others, as it does everywhere else.
            Err(error) if is_busy(&error) && Instant::now() < until => thread::sleep(PAUSE),
            changed => return changed,
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

/// The version of the tables; 0 if there are none yet.
fn version(connection: &Connection) -> Result<usize, Kind> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let version = usize::try_from(pragma("user_version")?).unwrap_or(usize::MAX);
    let is_empty = || {
        connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", (), |row| {
            row.get(0)
        })
    };
    match (pragma("application_id")?, version) {
        (APPLICATION, version) if version > MIGRATIONS.len() => Err(Kind::Newer),
        (APPLICATION, version) => Ok(version),
        (0, 0) if is_empty()? => Ok(0),
        _ => Err(Kind::Foreign),
    }
}

/// Brings the tables up to date, once, whoever else tries it at the same time.
fn migrate(connection: &mut Connection) -> Result<(), Kind> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version = version(&transaction)?;
    for step in &MIGRATIONS[version..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(
        None,
        "user_version",
        i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX),
    )?;
    Ok(transaction.commit()?)
}

/// Moves a file that is no good out of the way, unless another process has done so.
fn put_aside(file: &Path) -> Result<(), Kind> {
    if connect(file).is_ok_and(|connection| is_whole(&connection)) {
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
        "the database can't be used: it is put aside and made anew"
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

fn is_whole(connection: &Connection) -> bool {
    let check = connection.pragma_query_value(None, "quick_check", |row| row.get::<_, String>(0));
    check.is_ok_and(|answer| answer == "ok")
}

#[cfg(test)]
mod tests;
