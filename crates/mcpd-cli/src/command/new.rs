//! `mcpd new`: a script that works, to begin from.

use mcpd_author::script::NewScript;
use mcpd_check::Finding;
use mcpd_config::{File, tolerate_faults};
use mcpd_scriptspec::template::Kind;

use super::check;
use crate::args::{Confinement, New};
use crate::exit_code::ExitCode;
use crate::output;

/// Creates the script, says how to use it, and what keeps it from running here.
pub(crate) async fn run(args: &New) -> anyhow::Result<ExitCode> {
    let kind = match (args.prompt, args.resource) {
        (true, _) => Kind::Prompt,
        (_, true) => Kind::Resource,
        _ => Kind::Tool,
    };
    let script = NewScript::create(&args.path, args.lang, kind)?;
    let mut text = String::new();
    for file in [Some(&script.file), script.cases.as_ref()]
        .into_iter()
        .flatten()
    {
        text += &format!("created {}\n", file.display());
    }
    output::write_text(&format!("{text}{}\n", script.command()))?;
    let created = [script.file];
    let (confinement, file) = (Confinement::default(), File::default());
    let examined = check::examine(&created, &confinement, &file, false, tolerate_faults).await?;
    if let Some(catalog) = examined {
        let findings = Finding::all(&catalog);
        if !findings.is_empty() {
            output::note_styled(&check::human(&findings, &catalog));
        }
    }
    Ok(ExitCode::Success)
}
