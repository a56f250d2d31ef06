//! `mcpd lock`: notes what is there as approved.

use std::path::PathBuf;

use mcpd_config::File;

use super::approve::{note_faulty, review};
use crate::args::Lock;
use crate::exit_code::ExitCode;
use crate::output;

/// Notes every tool, unless some are noted already and differ.
pub(crate) async fn run(args: Lock, file: &File) -> anyhow::Result<ExitCode> {
    let roots: Vec<PathBuf> = args.roots.all().cloned().collect();
    let Some(review) = review(file, &args.locking, &roots, &args.except, &args.confinement).await?
    else {
        return Ok(ExitCode::Interrupted);
    };
    let place = review.lock.path().display().to_string();
    let differing = review.entries.len() + review.files.len();
    if !review.is_first && differing > 0 {
        let differ = match differing {
            1 => "1 entry differs".to_owned(),
            _ => format!("{differing} entries differ"),
        };
        let roots = roots.iter().map(|root| root.to_string_lossy());
        let flags = roots.flat_map(|root| ["--root-directory".into(), root]);
        let words: Vec<_> = ["mcpd".into(), "approve".into()]
            .into_iter()
            .chain(flags)
            .collect();
        let approve = output::shell_command(words.iter().map(|word| &**word));
        output::error(&format!(
            "`{place}` covers these directories already, and {differ} from it; review it with `{approve}`"
        ));
        return Ok(ExitCode::Failure);
    }
    note_faulty(&review);
    let count = |number: usize, one: &str, many: &str| match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    };
    let entries = count(review.total, "entry", "entries");
    let files = count(review.total_files, "other file", "other files");
    review.approve_all()?;
    output::write_text(&format!(
        "locked {entries} (tools, prompts, resources) and {files} in `{place}`\n"
    ))?;
    Ok(ExitCode::Success)
}
