//! State that outlives the process, in an SQLite database. Knows keys and values; what they mean is
//! known to those who keep them.

pub(crate) mod rows;
#[cfg(feature = "database")]
mod sqlite;

#[cfg(feature = "database")]
pub(crate) use sqlite::{CacheChange, CacheEntry, CompiledDefinition, StoredRefusal};
#[cfg(feature = "database")]
pub use sqlite::{Database, DatabaseError, Definition};
