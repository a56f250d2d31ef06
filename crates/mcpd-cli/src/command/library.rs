//! `mcpd lib`: helper libraries for scripts, one file for each language.

use crate::args::{Library, LibraryLanguage};
use crate::exit_code::ExitCode;
use crate::output;

/// Prints the library.
pub(crate) fn run(args: &Library) -> anyhow::Result<ExitCode> {
    let text = match args.language {
        LibraryLanguage::Sh => include_str!("../../../../examples/lib/mcpd.sh"),
        LibraryLanguage::Python => include_str!("../../../../examples/lib/mcpd.py"),
        LibraryLanguage::JavaScript => include_str!("../../../../examples/lib/mcpd.mjs"),
    };
    output::write(text.as_bytes())?;
    Ok(ExitCode::Success)
}
