//! Input files of a run: the values that are too large or too private for a variable. They live as
//! long as the run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcpd_exec::{Command, RunAs};
use scopeguard::ScopeGuard;
use serde::Serialize;
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Handle;

use super::Purpose;
use crate::client::request::context::Context;
use crate::execution::engine::Engine;
use crate::execution::input_rounds::RoundInput;
use crate::remote::InputFile;
use crate::script::Script;
use crate::support::private_dir;

/// Files that live as long as the run, and the variables that name them.
pub(crate) struct InputFiles {
    variables: Vec<(String, PathBuf)>,
    directory: ScopeGuard<TempDir, fn(TempDir)>,
}

/// Removes the files on the thread pool, because removal blocks.
fn remove_in_background(directory: TempDir) {
    if let Ok(runtime) = Handle::try_current() {
        drop(runtime.spawn_blocking(move || drop(directory)));
    }
}

impl InputFiles {
    /// Adds the variables, and makes the directory visible in the sandbox.
    pub(crate) fn add_to(&self, command: Command) -> Command {
        let command = command.visible(self.directory.path());
        let variables = self.variables.iter();
        variables.fold(command, |command, (name, path)| command.env(name, path))
    }
}

/// Returns the files for a run of `script`; none for most runs.
///
/// # Errors
///
/// A value cannot be encoded.
pub(crate) fn contents(
    script: &Script,
    purpose: Purpose<'_>,
    round: &RoundInput,
    context: &Context,
) -> std::io::Result<Vec<InputFile>> {
    let [responses, state, caller] = InputFile::VARIABLES;
    let mut files = Vec::new();
    if let Some(answers) = &round.responses {
        files.push(InputFile::new(responses, encode(answers)?));
    }
    if let Some(kept) = &round.state {
        files.push(InputFile::new(state, kept.get().as_bytes().to_vec()));
    }
    if script.spec.context {
        let described = encode(&caller_context(purpose, context))?;
        files.push(InputFile::new(caller, described));
    }
    Ok(files)
}

/// Writes the files of a run, if it has any.
///
/// # Errors
///
/// Fails if one cannot be written.
pub(crate) async fn write_input_files(
    engine: &Arc<Engine>,
    run_as: Option<RunAs>,
    files: Vec<InputFile>,
) -> std::io::Result<Option<InputFiles>> {
    if files.is_empty() {
        return Ok(None);
    }
    let inputs = Arc::clone(&engine.inputs);
    let write = move || write(inputs.path()?, files, run_as).map(Some);
    tokio::task::spawn_blocking(write).await?
}

fn write(
    inputs: &Path,
    files: Vec<InputFile>,
    run_as: Option<RunAs>,
) -> std::io::Result<InputFiles> {
    if run_as.is_some() {
        // Scripts of any user enter this directory.
        private_dir::set_mode(inputs, 0o711)?;
    }
    // Created for this user alone, so that no other user can read or plant anything in it.
    let directory = private_dir::create_in(inputs, "")?;
    let mut variables = Vec::with_capacity(files.len());
    for InputFile { variable, content } in files {
        let path = directory
            .path()
            .join(format!("{}.json", variable.to_ascii_lowercase()));
        std::fs::write(&path, content)?;
        change_owner(&path, run_as)?;
        variables.push((variable, path));
    }
    change_owner(directory.path(), run_as)?;
    Ok(InputFiles {
        variables,
        directory: scopeguard::guard(directory, remove_in_background),
    })
}

/// Changes the owner of a file to the user that the script runs as, if that is another one.
#[cfg(unix)]
pub(crate) fn change_owner(path: &Path, run_as: Option<RunAs>) -> std::io::Result<()> {
    match run_as {
        Some(run_as) => std::os::unix::fs::chown(path, Some(run_as.user), Some(run_as.group)),
        None => Ok(()),
    }
}

/// Does nothing: on this system scripts run as the same user.
#[cfg(not(unix))]
pub(crate) fn change_owner(_: &Path, _: Option<RunAs>) -> std::io::Result<()> {
    Ok(())
}

fn encode(value: &impl Serialize) -> std::io::Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(std::io::Error::other)
}

/// Context of the caller for scripts that declare `context`.
fn caller_context(purpose: Purpose<'_>, context: &Context) -> serde_json::Value {
    let principal = &context.peer.principal;
    let grant = principal.grant();
    json!({
        "method": purpose.method,
        "name": purpose.name,
        "principal": principal.name(),
        "scopes": grant.map(|grant| &grant.scopes),
        "claims": grant.map(|grant| &grant.claims),
        "protocolVersion": context.version,
        "clientCapabilities": context.capabilities,
        "clientInfo": context.client,
        "logLevel": context.side.log_level(),
        "progress": context.side.wants_progress(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::runtime::Builder;
    use tokio::task::spawn_blocking;

    use super::*;

    #[test]
    fn input_files_are_removed_in_the_background() {
        let inputs = tempfile::tempdir().unwrap();
        let files = write(inputs.path(), vec![InputFile::new("A", "{}")], None).unwrap();
        let file = files.variables[0].1.clone();
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(1)
            .build()
            .unwrap();
        runtime.block_on(async {
            let (release, released) = mpsc::channel::<()>();
            let busy = spawn_blocking(move || released.recv());
            drop(files);
            assert!(file.exists());
            drop(release);
            busy.await.unwrap().unwrap_err();
            // Queued behind the removal.
            spawn_blocking(|| {}).await.unwrap();
            assert!(!file.exists());
        });
    }
}
