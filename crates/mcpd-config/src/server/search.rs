//! Settings of the search for tools, from `[search]`.

use mcpd_server::catalog::Search;

use crate::file::File;

/// Maximum number of tools that a search returns.
const MAX_RESULTS: usize = 20;

/// Reads the settings of the search.
///
/// # Errors
///
/// A faulty value, with its place.
pub(crate) fn search(file: &File) -> anyhow::Result<Search> {
    let table = &file.tables.search;
    let mut search = Search::default();
    for pattern in &table.pinned {
        let wrong = |error| file.failure("pinned", pattern.span(), &error);
        search = search.pin(pattern.get_ref()).map_err(wrong)?;
    }
    if let Some(results) = &table.results {
        if results.get_ref().get() > MAX_RESULTS {
            let what = format!("`results`: a search returns at most {MAX_RESULTS} tools");
            return Err(file.error(results.span(), &what));
        }
        search = search.results(*results.get_ref());
    }
    Ok(search)
}
