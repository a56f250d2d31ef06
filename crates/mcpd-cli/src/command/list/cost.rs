//! `mcpd list --cost`: what a list of tools costs a model, in tokens.

use mcpd_check::cost::{ListCost, ToolCost};
use mcpd_check::terminal;
use mcpd_server::Catalog;

use crate::exit_code::ExitCode;
use crate::output;

/// Tokens from which on the hint at the search is worth its line.
const DEAR_LIST: usize = 5000;

/// Prints the cost of each tool, and of all together.
pub(super) fn list(catalog: &Catalog, is_json: bool) -> anyhow::Result<ExitCode> {
    let cost = ListCost::of(catalog);
    if is_json {
        output::write_json(&cost)?;
        return Ok(ExitCode::Success);
    }
    output::write_text(&table(&cost))?;
    if cost.total > DEAR_LIST {
        output::note("with `--search` the list has only two tools, and those of `always_listed`\n");
    }
    Ok(ExitCode::Success)
}

/// Formats the costs as a table, with the sums in the last row.
fn table(cost: &ListCost) -> String {
    let sum = |part: fn(&ToolCost) -> usize| cost.tools.iter().map(part).sum();
    let row = |total, name, description, schema, what: &str| {
        format!("{total:>7} {name:>7} {description:>12} {schema:>7}  {what}\n")
    };
    let mut table = format!(
        "{:>7} {:>7} {:>12} {:>7}  tool\n",
        "tokens", "name", "description", "schema"
    );
    for tool in &cost.tools {
        let path = terminal::printable(&tool.path);
        table += &row(tool.total, tool.name, tool.description, tool.schema, &path);
    }
    let tools = match cost.tools.len() {
        1 => "1 tool".to_owned(),
        number => format!("{number} tools"),
    };
    table
        + &row(
            cost.total,
            sum(|tool| tool.name),
            sum(|tool| tool.description),
            sum(|tool| tool.schema),
            &tools,
        )
}
