//! `mcpd doctor`: prints what an examination of this machine finds, and corrects what is safe.

use mcpd_check::terminal;
use mcpd_clients::Client;
use mcpd_config::File;
use mcpd_doctor::correction::Correction;
use mcpd_doctor::entry;
use mcpd_doctor::report::Examination;
use mcpd_doctor::scripts::Scripts;

use super::install::{change, request};
use crate::args::Doctor;
use crate::exit_code::ExitCode;
use crate::output;

pub(crate) async fn run(options: Doctor, file: &File) -> anyhow::Result<ExitCode> {
    #[cfg(feature = "cluster")]
    if let Some(urls) = &options.cluster {
        return examine_cluster(urls, &options, file).await;
    }
    let configuration = options.configuration.named();
    let scripts = Scripts::new(options.directories.clone(), configuration.map(Into::into));
    let client = options.client.as_deref().and_then(Client::find);
    let examination = Examination::new(options.cgroup, scripts, client)?;
    if options.fix {
        return correct(&examination.corrections().await?, options.yes);
    }
    let report = examination.report(file).await?;
    match options.json {
        true => output::write_json(&report)?,
        false => output::write_text(&terminal::printable(&report.to_string()))?,
    }
    Ok(ExitCode::Success)
}

/// Examines the cluster, and says with the exit code whether something must be corrected.
#[cfg(feature = "cluster")]
async fn examine_cluster(
    urls: &[String],
    options: &Doctor,
    file: &File,
) -> anyhow::Result<ExitCode> {
    let settings = mcpd_config::examined_cluster(urls, options.node.as_deref(), file)?;
    let examination = mcpd_cluster::examine(&settings).await?;
    match options.json {
        true => output::write_json(&examination)?,
        false => output::write_text(&terminal::printable(&examination.to_string()))?,
    }
    Ok(match examination.has_faults() {
        true => ExitCode::Failure,
        false => ExitCode::Success,
    })
}

/// Shows the corrections, asks for them once, and makes them.
fn correct(corrections: &[Correction], is_agreed: bool) -> anyhow::Result<ExitCode> {
    if corrections.is_empty() {
        output::write_text("nothing to correct")?;
        return Ok(ExitCode::Success);
    }
    if corrections.iter().any(Correction::names_program) {
        request::warn_of_build_directory(&entry::stable_program()?);
    }
    for correction in corrections {
        output::note_foreign(&format!("{}\n{}", correction.text(), correction.diff()));
    }
    let paths = corrections.iter().map(|correction| &*correction.file);
    if !is_agreed && !change::confirm(&paths.collect::<Vec<_>>())? {
        return Ok(ExitCode::Failure);
    }
    let mut code = ExitCode::Success;
    for correction in corrections {
        match correction.apply() {
            Ok(()) => output::write_text(&format!("corrected `{}`", correction.file.display()))?,
            Err(error) => {
                output::error(&format!("failed to {error:#}"));
                code = ExitCode::Failure;
            }
        }
    }
    Ok(code)
}
