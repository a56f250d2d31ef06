//! One way to take a lock.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`. No code of this crate panics while it holds a lock, so a poisoned one still
/// guards consistent data.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
