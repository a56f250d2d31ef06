//! Substitute for Seatbelt on systems without such a mechanism: nothing is confined.

use std::path::Path;

use super::confinement::plain_command;
use crate::command::Command;
use crate::error::StartError;

/// Returns false: level `guarded` runs without it.
pub(super) const IS_NEEDED: bool = false;

/// Reports that nothing is confined.
///
/// # Errors
///
/// Always.
pub(super) fn check() -> Result<(), String> {
    Err(
        "this system cannot deny a process access to files, other processes or the network"
            .to_owned(),
    )
}

/// Returns the command that starts the program.
///
/// # Errors
///
/// Never.
pub(super) fn starter(
    _: &Command,
    program: &Path,
    _: &Path,
) -> Result<std::process::Command, StartError> {
    Ok(plain_command(program))
}
