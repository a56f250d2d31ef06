//! Failing system calls, for tests: the n-th of a thread, for every n. Nothing is left of this in a real build.

/// The error the next system call of this thread is to fail with, if a test wants it to.
#[cfg(not(test))]
#[inline(always)]
pub(crate) fn here() -> Option<i32> {
    None
}

#[cfg(test)]
pub(crate) use counting::{here, in_call};

#[cfg(test)]
mod counting {
    use std::cell::Cell;

    thread_local! {
        /// How many more calls go well before one fails, and how that does.
        static LEFT: Cell<Option<(u32, i32)>> = const { Cell::new(None) };
    }

    pub(crate) fn here() -> Option<i32> {
        let (left, error) = LEFT.get()?;
        LEFT.set(left.checked_sub(1).map(|left| (left, error)));
        (left == 0).then_some(error)
    }

    /// Lets the n-th call of `work` on this thread fail with `error`, counted from 0. False if it made fewer calls.
    pub(crate) fn in_call<T>(n: u32, error: i32, work: impl FnOnce() -> T) -> (T, bool) {
        LEFT.set(Some((n, error)));
        let result = work();
        (result, LEFT.take().is_none())
    }
}
