//! Run whose namespaces a program outside of this one makes: its command line, and the report of
//! our first process if that runs inside.

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use super::filter::Filter;
use super::launcher::{self, Launch};
use super::path_watch::PathWatch;
use super::pipe;
use super::raw::init::{self, StatusPipe};
use super::view::{Mounts, Proc, View};
use crate::backend::Backend;
use crate::command::Command;
use crate::error::{StartError, diagnosis};
use crate::outcome::Usage;

/// Variables besides `LD_*` by which the C library loads code or data into any program.
const LOADER_VARIABLES: &[&str] = &["GCONV_PATH", "LOCPATH", "GLIBC_TUNABLES", "MALLOC_TRACE"];

/// Part that a program outside of this one has in a run.
#[derive(Debug)]
pub(crate) struct Outside {
    backend: Backend,
    /// The program and its arguments.
    words: Vec<OsString>,
    directory: PathBuf,
    skipped: Vec<String>,
    /// Present if our first process runs inside.
    inside: Option<Inside>,
}

/// Channels of our first process.
#[derive(Debug)]
struct Inside {
    status: StatusPipe,
    /// Other end of the report, until the program has started.
    theirs: Option<OwnedFd>,
    /// Filter of the run, in the kernel's form.
    filter: OwnedFd,
}

impl Outside {
    /// Plans a run of `command`, whose program is at `program`, with the programs of a backend.
    /// The filter is for a backend that is transparent.
    ///
    /// # Errors
    ///
    /// No descriptor can be had, or the view can't be arranged. The inner error says what the
    /// backend can't do.
    pub(crate) fn plan(
        backend: Backend,
        programs: &[PathBuf],
        command: &Command,
        program: &Path,
        filter: Option<&Filter>,
    ) -> io::Result<Result<Self, String>> {
        if let Some(name) = loader_variable(command) {
            return Ok(Err(format!(
                "the variable `{name}` would act on `{backend}` itself, outside of the confinement; set it in the script"
            )));
        }
        let directory = match &command.parts.current_dir {
            _ if command.parts.starts_in_temporary => PathBuf::from("/tmp"),
            Some(directory) => std::path::absolute(directory)?,
            None => env::current_dir()?,
        };
        let needed = command.needed_paths(program)?;
        let visible: Vec<&Path> = needed.iter().map(PathBuf::as_path).collect();
        let view = View {
            sandbox: &command.parts.sandbox,
            visible: &visible,
        };
        let (mounts, skipped) = Mounts::of(&view, Proc::Own, &mut PathWatch::new())?;
        let own = [program.as_os_str().to_owned()];
        let launch = Launch {
            programs,
            words: &[&own, &command.parts.args[..]].concat(),
            directory: &directory,
            network: command.parts.sandbox.network,
            variables: &variables(command),
            layers: &mounts.layers()?,
        };
        let arguments = match launcher::of(backend).arguments(&launch) {
            Ok(arguments) => arguments,
            Err(reason) => return Ok(Err(reason)),
        };
        Ok(Ok(Self {
            backend,
            words: (programs.iter().take(1).map(OsString::from))
                .chain(arguments)
                .collect(),
            directory,
            skipped,
            inside: filter.map(Inside::new).transpose()?,
        }))
    }

    /// The program of the backend and its arguments.
    pub(crate) fn words(&self) -> &[OsString] {
        &self.words
    }

    /// Directory that the run starts in.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Paths that were to be writable and are not, each as a sentence.
    pub(crate) fn skipped_paths(&self) -> &[String] {
        &self.skipped
    }

    /// Returns whether the run is made of ordinary processes, with our first one.
    pub(crate) fn is_transparent(&self) -> bool {
        self.inside.is_some()
    }

    /// Returns whether the backend has to install our filter.
    pub(crate) fn needs_filter(&self) -> bool {
        launcher::of(self.backend).is_transparent()
    }

    /// Returns the descriptors that the backend gets besides standard streams, in order.
    ///
    /// # Errors
    ///
    /// The first process can't be created on this system.
    pub(crate) fn handed(&self) -> io::Result<Vec<BorrowedFd<'_>>> {
        let Some(inside) = &self.inside else {
            return Ok(Vec::new());
        };
        let status = inside.theirs.as_ref().map(OwnedFd::as_fd);
        let status = status.ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(vec![status, init::image()?, inside.filter.as_fd()])
    }

    /// Waits until the program has started.
    ///
    /// # Errors
    ///
    /// The program can't be executed, or the backend has ended before, with the error kind
    /// `UnexpectedEof`.
    pub(crate) fn wait_for_start(&mut self) -> io::Result<()> {
        let inside = self.inside.as_mut();
        match inside.and_then(|inside| Some((inside.theirs.take()?, inside))) {
            Some((theirs, inside)) => inside.status.wait_for_start(theirs),
            None => Ok(()),
        }
    }

    /// Returns how the program ended. `None` if our first process was killed before, or did not
    /// run inside.
    pub(crate) fn read_ending(self) -> Option<(ExitStatus, Usage)> {
        self.inside?.status.read_ending()
    }
}

impl Inside {
    fn new(filter: &Filter) -> io::Result<Self> {
        let (status, theirs) = StatusPipe::new()?;
        let (read, write) = pipe::pipe()?;
        // It is a few kilobytes, and fits into the pipe.
        File::from(write).write_all(&filter.to_bytes())?;
        Ok(Self {
            status,
            theirs: Some(theirs),
            filter: read,
        })
    }
}

/// Names of the variables of a run.
fn variables(command: &Command) -> Vec<OsString> {
    let changes = command.changed_variables();
    let set = changes.filter_map(|(name, value)| value.map(|_| name.to_owned()));
    let temporary = command.temporary_variables().chain(["TMPDIR"]);
    let inherited = command.inherited_variables().into_iter();
    let all = inherited.chain(set).chain(temporary.map(OsString::from));
    let all: BTreeSet<_> = all.collect();
    all.into_iter().collect()
}

/// Looks for reasons that would keep the program from starting, if the backend could not report
/// them.
///
/// # Errors
///
/// The first reason that was found.
pub(crate) fn inspect(command: &Command, program: &Path) -> Result<(), StartError> {
    match command.parts.sandbox.backend {
        Some(backend) if !launcher::of(backend).is_transparent() => {
            diagnosis::inspect(command, program)
        }
        _ => Ok(()),
    }
}

/// Returns what a backend that has ended said, from its standard error.
pub(crate) fn last_words(stderr: OwnedFd) -> String {
    const MAX_LAST_WORDS: u64 = 4096;
    let mut said = Vec::new();
    File::from(stderr)
        .take(MAX_LAST_WORDS)
        .read_to_end(&mut said)
        .ok();
    let said = String::from_utf8_lossy(&said);
    match said.trim() {
        "" => "it ended before the program started".to_owned(),
        said => said.escape_debug().to_string(),
    }
}

/// Returns the name of a variable that would make the backend, which is not confined, load other
/// code. Values that this process has as well are trusted.
fn loader_variable(command: &Command) -> Option<String> {
    let is_loader = |name: &&OsStr| {
        let name = name.to_string_lossy();
        name.starts_with("LD_") || LOADER_VARIABLES.contains(&&*name)
    };
    let inherited = command.parts.inherited.iter().flat_map(|base| base.iter());
    let changes = command.parts.changes.iter();
    let set = changes.filter_map(|(name, value)| Some((name.as_os_str(), value.as_deref()?)));
    let all = inherited.chain(set);
    let mut foreign = all.filter(|(name, value)| env::var_os(name).as_deref() != Some(*value));
    let found = foreign.find(|(name, _)| is_loader(name));
    found.map(|(name, _)| name.to_string_lossy().into_owned())
}
