//! Description of a run, as plain data. Nothing is checked or started here.

use std::any::Any;
use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::egress::{Connection, ConnectionObserver};
use crate::error::StartError;
use crate::limits::Limits;
use crate::sandbox::Sandbox;
use crate::variables::Variables;
use crate::warm::WarmStart;

/// A program with its arguments, environment, directory, input and limits.
///
/// A program without a slash is looked up in the `PATH` that the process will see. A relative
/// path is relative to the caller's directory, not to [`current_dir`](Self::current_dir). No
/// shell is involved.
///
/// ```
/// let command = mcpd_exec::Command::new("/usr/bin/sort")
///     .arg("-r")
///     .env("LC_ALL", "C")
///     .stdin("a\nb\n");
/// ```
#[derive(Clone)]
pub struct Command {
    /// On the heap: a command passes many methods and futures, each of which would copy it.
    pub(crate) parts: Box<Parts>,
}

/// Parts of a [`Command`].
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    /// The variables to start from. `None` inherits those of this process when the run starts.
    pub(crate) inherited: Option<Variables>,
    /// `None` removes the name.
    pub(crate) changes: BTreeMap<OsString, Option<OsString>>,
    pub(crate) current_dir: Option<PathBuf>,
    pub(crate) has_fixed_directory: bool,
    pub(crate) starts_in_temporary: bool,
    pub(crate) stdin: Option<Bytes>,
    pub(crate) limits: Limits,
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) visible: Vec<PathBuf>,
    /// Names of variables.
    pub(crate) temporary: Vec<&'static str>,
    pub(crate) held: Option<HeldValue>,
    pub(crate) observer: Option<ConnectionObserver>,
    pub(crate) precondition: Option<Precondition>,
    pub(crate) warm: Option<WarmStart>,
}

/// Value that a caller keeps alive as long as anything of a run is left.
pub(crate) type HeldValue = Arc<dyn Any + Send + Sync>;

/// Check that a process must pass before its start.
#[derive(Clone)]
pub(crate) struct Precondition(Arc<dyn Fn() -> Result<(), String> + Send + Sync>);

impl Precondition {
    pub(crate) fn check(&self) -> Result<(), StartError> {
        (self.0)().map_err(|reason| StartError::Refused { reason })
    }
}

impl fmt::Debug for Precondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Precondition")
    }
}

impl Command {
    /// Creates a command without arguments or input, with the caller's environment and directory.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let parts = Parts {
            program: PathBuf::from(program.as_ref()),
            args: Vec::new(),
            inherited: None,
            changes: BTreeMap::new(),
            current_dir: None,
            has_fixed_directory: false,
            starts_in_temporary: false,
            stdin: None,
            limits: Limits::default(),
            sandbox: Arc::default(),
            visible: Vec::new(),
            temporary: Vec::new(),
            held: None,
            observer: None,
            precondition: None,
            warm: None,
        };
        Self {
            parts: Box::new(parts),
        }
    }

    /// Program as it was given.
    pub fn program(&self) -> &Path {
        &self.parts.program
    }

    /// Arguments, in order.
    pub fn arguments(&self) -> impl Iterator<Item = &OsStr> {
        self.parts.args.iter().map(OsString::as_os_str)
    }

    /// Variables that this command sets, by name; `None` removes one.
    pub fn changed_variables(&self) -> impl Iterator<Item = (&OsStr, Option<&OsStr>)> {
        let changes = self.parts.changes.iter();
        changes.map(|(name, value)| (name.as_os_str(), value.as_deref()))
    }

    /// Names of the variables that the process inherits, and this command does not change.
    pub fn inherited_variables(&self) -> Vec<OsString> {
        let inherited = self.base_variables();
        let names = inherited.iter().map(|(name, _)| name);
        names
            .filter(|name| !self.parts.changes.contains_key(*name))
            .map(OsStr::to_owned)
            .collect()
    }

    /// Bytes on the standard input of the process, if it has any.
    pub fn input(&self) -> Option<&[u8]> {
        self.parts.stdin.as_deref()
    }

    /// Appends an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.parts.args.push(arg.as_ref().to_owned());
        self
    }

    /// Appends arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.parts
            .args
            .extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets a variable, inherited or not.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.parts
            .changes
            .insert(name.as_ref().to_owned(), Some(value.as_ref().to_owned()));
        self
    }

    /// Removes a variable, inherited or not.
    #[must_use]
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.parts.changes.insert(name.as_ref().to_owned(), None);
        self
    }

    /// Inherits no variables. Those set with [`env`](Self::env), before or after, stay.
    #[must_use]
    pub fn env_clear(self) -> Self {
        self.inherit(&Variables::default())
    }

    /// Inherits these variables and no others. Changes made with [`env`](Self::env) and
    /// [`env_remove`](Self::env_remove), before or after, stay.
    #[must_use]
    pub fn inherit(mut self, variables: &Variables) -> Self {
        self.parts.inherited = Some(variables.clone());
        self
    }

    /// Sets the directory the process starts in.
    #[must_use]
    pub fn current_dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.parts.current_dir = Some(dir.as_ref().to_owned());
        self
    }

    /// Refuses to run if the directory that the process starts in is a link, or lies behind one:
    /// when it was chosen it was none, and another process has replaced it.
    #[must_use]
    pub fn fixed_directory(mut self) -> Self {
        self.parts.has_fixed_directory = true;
        self
    }

    /// Starts the process in its temporary directory, which is empty, if the sandbox gives it
    /// one. At [`Level::None`](crate::Level::None) it starts in
    /// [`current_dir`](Self::current_dir).
    #[must_use]
    pub fn start_in_temporary_directory(mut self) -> Self {
        self.parts.starts_in_temporary = true;
        self
    }

    /// Sets the bytes on the standard input of the process. Without it, standard input is the
    /// null device.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Bytes>) -> Self {
        self.parts.stdin = Some(bytes.into());
        self
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.parts.limits = limits;
        self
    }

    /// Sets the confinement of the process; without it there is none. Pass an [`Arc`] if many
    /// commands share one: a sandbox is long, and results derived from it are cached per `Arc`.
    #[must_use]
    pub fn sandbox(mut self, sandbox: impl Into<Arc<Sandbox>>) -> Self {
        self.parts.sandbox = sandbox.into();
        self
    }

    /// Adds a file or directory that the process must be able to read, even if the sandbox
    /// replaces the temporary directory that it lies in, or hides the [home](Sandbox::homes) that
    /// it lies in. The program, its directory and the starting directory are always visible. It
    /// does not open a path that is [hidden](Sandbox::hidden) by name.
    #[must_use]
    pub fn visible(mut self, path: impl AsRef<Path>) -> Self {
        self.parts.visible.push(path.as_ref().to_owned());
        self
    }

    /// Names a variable that points a confined process to its temporary directory, unless the
    /// variable has another value. It is for directories that a program must write and that may
    /// vanish afterwards. `TMPDIR` is always one.
    #[must_use]
    pub fn temporary(mut self, variable: &'static str) -> Self {
        self.parts.temporary.push(variable);
        self
    }

    /// Keeps `what`, such as a slot of a queue, until nothing is left of the run. A run that was
    /// dropped may go on for its [`grace`](Limits::grace), and holds `what` for as long.
    #[must_use]
    pub fn hold(mut self, what: Arc<dyn Any + Send + Sync>) -> Self {
        self.parts.held = Some(what);
        self
    }

    /// Calls `observe` with every connection of the run, when it is over, if the sandbox limits
    /// the [destinations](Sandbox::destinations). It is called on threads of the runtime, and must
    /// not block.
    #[must_use]
    pub fn on_connection(mut self, observe: Arc<dyn Fn(Connection) + Send + Sync>) -> Self {
        self.parts.observer = Some(ConnectionObserver(observe));
        self
    }

    /// Starts the process only if `check` passes, and otherwise fails with
    /// [`StartError::Refused`] and the reason that it returns. It is called right before the
    /// start, on the thread that starts the process. It may block, but other processes may wait
    /// for this thread meanwhile; it must not panic.
    #[must_use]
    pub fn precondition(
        mut self,
        check: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
    ) -> Self {
        self.parts.precondition = Some(Precondition(check));
        self
    }

    /// Starts the process as a fork of an interpreter that has started already, if that is
    /// possible. What it was is in [`Outcome::warmth`](crate::Outcome::warmth).
    #[must_use]
    pub fn warm(mut self, warm: WarmStart) -> Self {
        self.parts.warm = Some(warm);
        self
    }

    /// Returns the paths that the run must be able to read, even where their location is hidden:
    /// the program at `program` and its directory, the starting directory, and what is
    /// [visible](Self::visible).
    ///
    /// # Errors
    ///
    /// The directory of this process can't be determined.
    pub(crate) fn needed_paths(&self, program: &Path) -> io::Result<Vec<PathBuf>> {
        let start = match &self.parts.current_dir {
            // A directory that it does not start in need not be visible.
            _ if self.parts.starts_in_temporary => None,
            Some(directory) => Some(std::path::absolute(directory)?),
            None => Some(env::current_dir()?),
        };
        let beside = program.parent().map(Path::to_owned);
        let own = [program.to_owned()].into_iter().chain(start);
        Ok(own
            .chain(beside)
            .chain(self.parts.visible.iter().cloned())
            .collect())
    }

    /// Returns the variables that the process starts from.
    pub(crate) fn base_variables(&self) -> Variables {
        let inherited = self.parts.inherited.as_ref();
        inherited.map_or_else(|| Variables::of_this_process(|_| true), Clone::clone)
    }

    /// Starting directory of the process, if it is not that of this process.
    pub fn directory(&self) -> Option<&Path> {
        self.parts.current_dir.as_deref()
    }

    /// Names of the variables among [`temporary`](Self::temporary) that have no value of their
    /// own.
    pub(crate) fn temporary_variables(&self) -> impl Iterator<Item = &'static str> {
        let names = self.parts.temporary.iter().copied();
        names.filter(|name| self.variable(name).is_none_or(|value| value.is_empty()))
    }

    /// Returns the value that `name` will have in the process.
    pub fn variable(&self, name: &str) -> Option<OsString> {
        match (
            self.parts.changes.get(OsStr::new(name)),
            &self.parts.inherited,
        ) {
            (Some(change), _) => change.clone(),
            (None, Some(inherited)) => inherited.get(name).map(OsStr::to_owned),
            (None, None) => env::var_os(name),
        }
    }
}

/// Shows no argument, no value and no input: they may hold secrets, and `Debug` output ends up in
/// logs.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.parts.program)
            .field("args", &self.parts.args.len())
            .field("inherited", &self.parts.inherited)
            .field("env", &self.parts.changes.keys())
            .field("current_dir", &self.parts.current_dir)
            .field("starts_in_temporary", &self.parts.starts_in_temporary)
            .field("stdin", &self.parts.stdin.as_ref().map(Bytes::len))
            .field("limits", &self.parts.limits)
            .field("sandbox", &self.parts.sandbox)
            .field("visible", &self.parts.visible)
            .finish()
    }
}
