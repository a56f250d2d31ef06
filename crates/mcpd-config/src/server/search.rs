//! Settings of the search for tools, from `[search]`.

use mcpd_server::catalog::Search;

use crate::file::File;

/// Reads the settings of the search.
///
/// # Errors
///
/// A faulty value, with its place.
pub(crate) fn search(file: &File) -> anyhow::Result<Search> {
    let table = &file.tables.search;
    let mut search = Search::default();
    for pattern in &table.always_listed {
        let wrong = |error| file.failure("always_listed", pattern.span(), &error);
        search = search.always_list(pattern.get_ref()).map_err(wrong)?;
    }
    if let Some(results) = &table.results {
        if results.get_ref().get() > Search::MAX_RESULTS {
            let what = format!(
                "`results`: a search returns at most {} tools",
                Search::MAX_RESULTS
            );
            return Err(file.error(results.span(), &what));
        }
        search = search.results(*results.get_ref());
    }
    Ok(search)
}
