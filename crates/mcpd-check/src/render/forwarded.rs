//! Clients' views of a list of tools, as text for people.

use std::fmt::Write as _;

use super::printable;
use crate::clients::{Forwarded, ForwardedTool, Remark};

/// Renders one client after the other, each with all tools.
#[must_use]
pub fn forwarded(clients: &[Forwarded]) -> String {
    let mut text = String::new();
    for client in clients {
        if !text.is_empty() {
            text.push('\n');
        }
        writeln!(text, "{}", client.name).expect(STRING);
        remarks(&mut text, "  ", &client.remarks);
        for tool in &client.tools {
            describe(&mut text, tool);
        }
    }
    text
}

/// Writing into a string can't fail.
const STRING: &str = "a string takes everything";

fn describe(text: &mut String, tool: &ForwardedTool) {
    writeln!(
        text,
        "  {} as {}",
        printable(&tool.path),
        printable(&tool.name)
    )
    .expect(STRING);
    remarks(text, "    ", &tool.remarks);
    writeln!(text, "    {}", printable(&tool.input_schema.to_string())).expect(STRING);
}

fn remarks(text: &mut String, indent: &str, remarks: &[Remark]) {
    for remark in remarks {
        writeln!(
            text,
            "{indent}{}: {} ({})",
            remark.effect.words(),
            printable(&remark.what),
            remark.why
        )
        .expect(STRING);
    }
}
