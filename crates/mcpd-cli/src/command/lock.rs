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
        output::error(&format!(
            "`{place}` notes these directories already, and {differing} of their entries differ; \
             see them and approve them with `mcpd approve`"
        ));
        return Ok(ExitCode::Failure);
    }
    note_faulty(&review);
    let count = |number: usize, one: &str, many: &str| match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    };
    let entries = count(
        review.total,
        "tool, prompt or resource",
        "tools, prompts and resources",
    );
    let files = count(review.files.len(), "other file", "other files");
    review.take()?;
    output::write_text(&format!("locked {entries} and {files} in `{place}`\n"))?;
    Ok(ExitCode::Success)
}
