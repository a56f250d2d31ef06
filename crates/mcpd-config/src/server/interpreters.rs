//! Interpreters of scripts that are not executable: mcpd itself for BASIC, and those in the file.

use std::env;
use std::ffi::OsString;
use std::iter;

use mcpd_basic::{Fault, Program};
use mcpd_scriptspec::{Diagnostic, Dialect, Severity};
use mcpd_server::Interpreters;

use crate::file::File;

/// Interpreters that `file` configures.
///
/// # Errors
///
/// A faulty value, with its place.
pub fn interpreters(file: &File) -> anyhow::Result<Interpreters> {
    let mut interpreters = Interpreters::default();
    // Without its own path mcpd cannot run BASIC, and reports it when there is a BASIC script.
    if let Ok(program) = env::current_exe() {
        interpreters = interpreters.set(
            "bas",
            [program.into_os_string(), "basic".into(), "--checked".into()],
        );
        interpreters = interpreters.check("bas", basic_faults);
    }
    for (extension, words) in &file.tables.interpreter {
        let name = extension.get_ref();
        if let Some(bare) = name.strip_prefix('.') {
            let what = format!("`{name}`: write the extension without the dot, `{bare}`");
            return Err(file.error(extension.span(), &what));
        }
        let Some((program, args)) = words.get_ref().split_first() else {
            let what = format!("`{name}`: expected a program and its first arguments");
            return Err(file.error(words.span(), &what));
        };
        let args = args.iter().map(OsString::from);
        interpreters = interpreters.set(name, iter::once(file.program(program)).chain(args));
    }
    Ok(interpreters)
}

/// Compiles a BASIC program that is described in a dialect.
///
/// # Errors
///
/// The faults of the program.
pub(crate) fn compile_basic(source: &str, dialect: Dialect) -> Result<Program, Vec<Fault>> {
    match dialect {
        Dialect::Basic => mcpd_basic::compile(source),
        _ => mcpd_basic::compile_described(source),
    }
}

/// Reports faults of BASIC programs as warnings: a definition is valid without a program that our
/// interpreter can run.
pub fn tolerate_faults(interpreters: Interpreters) -> Interpreters {
    interpreters.replace_check("bas", |program, dialect| {
        let mut faults = basic_faults(program, dialect);
        for fault in &mut faults {
            fault.severity = Severity::Warning;
        }
        faults
    })
}

/// Faults of a BASIC program.
fn basic_faults(program: &str, dialect: Dialect) -> Vec<Diagnostic> {
    let compiled = compile_basic(program, dialect);
    let faults = compiled.err().unwrap_or_default().into_iter();
    faults
        .map(|fault| {
            let mut span = fault.span;
            if span.is_empty() {
                // A fault without a place is marked at the end of the program.
                span.start = program.floor_char_boundary(span.start.saturating_sub(1));
            }
            Diagnostic::source_syntax(span, fault.message, fault.help)
        })
        .collect()
}
