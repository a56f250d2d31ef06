//! In place of Seatbelt on systems that have nothing like it: nothing is confined.

use std::path::Path;

use super::confine::plain;
use crate::command::Command;
use crate::error::StartError;

/// Whether nothing is run at level `guarded` without it.
pub(super) const IS_NEEDED: bool = false;

/// # Errors
///
/// Always.
pub(super) fn check() -> Result<(), String> {
    Err("neither files nor other processes nor the network can be kept from a process on this system".to_owned())
}

/// # Errors
///
/// Never.
pub(super) fn starter(
    _: &Command,
    program: &Path,
    _: &Path,
) -> Result<std::process::Command, StartError> {
    Ok(plain(program))
}
