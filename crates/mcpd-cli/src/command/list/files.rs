//! `mcpd list --all`: every file below the roots, with its status and the reason.

use std::path::Path;

use mcpd_check::ListedFile;
use mcpd_server::Catalog;

use crate::exit_code::ExitCode;
use crate::output;

/// Prints the files, in the order of their paths.
pub(super) fn list(catalog: &Catalog, is_json: bool) -> anyhow::Result<ExitCode> {
    let files = mcpd_check::files(catalog);
    if is_json {
        output::write_json(&files)?;
        return Ok(ExitCode::Success);
    }
    let here = mcpd_check::render::base_directory();
    let rows: Vec<_> = files.iter().map(|listed| row(listed, &here)).collect();
    let rows = rows.iter().map(|(file, what)| (&**file, &**what));
    output::write_table(rows)?;
    Ok(ExitCode::Success)
}

fn row(listed: &ListedFile, here: &Path) -> (String, String) {
    let mut file = mcpd_check::render::display_path(&listed.file, here);
    if listed.file.is_dir() {
        file.push('/');
    }
    let mut what = listed.status.word().to_owned();
    match (&listed.reason, &listed.name) {
        (Some(reason), _) => what += &format!(": {reason}"),
        (None, Some(name)) => what += &format!(" as `{name}`"),
        (None, None) => {}
    }
    (file, what)
}
