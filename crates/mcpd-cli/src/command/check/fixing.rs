//! Fixes of `mcpd check --fix`, and their diff.

use anyhow::Context as _;
use mcpd_check::fix;
use mcpd_check::ignore::IgnoreComments;
use mcpd_check::terminal;
use mcpd_check::{Selection, render};
use mcpd_server::Catalog;

use super::select;
use crate::args::Check;
use crate::exit_code::ExitCode;
use crate::output;

/// Writes all fixes, with a line for each, and returns their number.
pub(super) fn fix(catalog: &Catalog, args: &Check, selection: &Selection) -> anyhow::Result<usize> {
    let comments = IgnoreComments::read(catalog);
    let findings = select(catalog, &comments, args, selection);
    let here = render::base_directory();
    let mut count = 0;
    for fixed in fix::plan(&findings).context("fix a file")? {
        fixed.write().context("write a file")?;
        let name = render::display_path(&fixed.file, &here);
        for change in &fixed.changes {
            output::note(&format!(
                "fixed {}\n",
                terminal::printable(&format!("{name}: {change}"))
            ));
        }
        count += fixed.changes.len();
    }
    Ok(count)
}

/// Prints what `fix` would write first.
pub(super) fn show(
    catalog: &Catalog,
    args: &Check,
    selection: &Selection,
) -> anyhow::Result<ExitCode> {
    let comments = IgnoreComments::read(catalog);
    let findings = select(catalog, &comments, args, selection);
    let planned = fix::plan(&findings).context("fix a file")?;
    let here = render::base_directory();
    for fixed in &planned {
        output::write(
            fixed
                .diff(&render::display_path(&fixed.file, &here))
                .as_bytes(),
        )?;
    }
    Ok(if planned.is_empty() {
        ExitCode::Success
    } else {
        ExitCode::Failure
    })
}
