//! Questions for help: runs of a program with `--help` and its other spellings, and of `man`, each
//! bounded, in a sandbox, without network or a place to write.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use mcpd_exec::{Command, Executor, Level, Limits, Network, Sandbox};
use mcpd_scriptspec::adopt::{CommandLine, Form};

/// Time limit of one question.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Maximum size of an answer per stream, in bytes.
const MAX_OUTPUT: usize = 1 << 20;

/// Questions for help, best first.
const QUESTIONS: &[&[&str]] = &[&["--help"], &["-h"], &["-help"], &["help"]];

/// Phrases in a help text that show the question for a longer one.
const LONGER: &[(&str, &[&str])] = &[
    ("\"--help all\"", &["--help", "all"]),
    ("'--help all'", &["--help", "all"]),
    ("-h long", &["-h", "long"]),
];

/// Variables that keep an answer plain and whole.
const VARIABLES: &[(&str, &str)] = &[
    ("COLUMNS", "100"),
    ("GIT_PAGER", "cat"),
    ("LC_ALL", "C.UTF-8"),
    ("MANPAGER", "cat"),
    ("MANROFFOPT", "-rHY=0"),
    ("MANWIDTH", "100"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("TERM", "dumb"),
];

/// An answer, and what was read in it.
#[derive(Debug)]
pub(super) struct Help {
    pub(super) text: Vec<u8>,
    pub(super) read: CommandLine,
}

/// Runner of questions.
#[derive(Debug)]
pub(super) struct Prober(Executor);

impl Prober {
    pub(super) fn new(executor: Executor) -> Self {
        Self(executor)
    }

    /// The help of a program, or of its sub-command; none if no answer has anything of a command
    /// line.
    pub(super) async fn help(
        &self,
        program: &Path,
        words: &[&str],
    ) -> anyhow::Result<Option<Help>> {
        let mut best: Option<Help> = None;
        for question in QUESTIONS {
            let Some(help) = self.ask(program, words, question).await? else {
                continue;
            };
            let is_done = !help.read.flags.is_empty();
            if best.as_ref().is_none_or(|best| is_better(&help, best)) {
                best = Some(help);
            }
            if is_done {
                break;
            }
        }
        let text = best
            .as_ref()
            .map(|best| String::from_utf8_lossy(&best.text).into_owned());
        let longer = LONGER
            .iter()
            .filter(|(phrase, _)| text.as_ref().is_some_and(|text| text.contains(phrase)));
        for (_, question) in longer {
            if let Some(help) = self.ask(program, words, question).await?
                && best.as_ref().is_none_or(|best| is_better(&help, best))
            {
                best = Some(help);
            }
        }
        Ok(best)
    }

    /// The manual page of a program, or of its sub-command, as `man` renders it; none without a
    /// page that has anything of a command line.
    pub(super) async fn manual(
        &self,
        program: &Path,
        words: &[&str],
    ) -> anyhow::Result<Option<Help>> {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let page = [&[&*name], words].concat().join("-");
        // A script of the same name as a program is not what its page is about.
        let is_in_path = find(&name).is_ok_and(|found| found == program);
        let (true, Ok(man)) = (is_in_path, find("man")) else {
            return Ok(None);
        };
        self.read(Command::new(man).args(["--", &page])).await
    }

    /// A manual page, rendered from its source by `man`.
    pub(super) async fn render(&self, source: Vec<u8>) -> anyhow::Result<Option<Help>> {
        let man = Command::new(find("man")?).args(["-l", "-"]);
        self.read(man.stdin(source)).await
    }

    async fn ask(
        &self,
        program: &Path,
        words: &[&str],
        question: &[&str],
    ) -> anyhow::Result<Option<Help>> {
        let program = std::path::absolute(program)?;
        self.read(Command::new(program).args(words).args(question))
            .await
    }

    /// Runs a command within all limits, and reads the stream with the better help.
    async fn read(&self, command: Command) -> anyhow::Result<Option<Help>> {
        let mut limits = Limits::default();
        limits.wall = TIME_LIMIT;
        limits.capture_head = MAX_OUTPUT;
        limits.capture_tail = 0;
        limits.output_hard = MAX_OUTPUT as u64;
        let sandbox = Sandbox::at(Level::Guarded).network(Network::Off);
        let mut command = command
            .limits(limits)
            .sandbox(sandbox)
            .start_in_temporary_directory();
        for (name, value) in VARIABLES {
            command = command.env(name, value);
        }
        let program = command.program().to_owned();
        let outcome = self.0.run(command).await;
        let outcome = outcome.with_context(|| format!("run `{}`", program.display()))?;
        let streams = [outcome.stdout.head, outcome.stderr.head];
        let answers = streams.into_iter().map(|text| Help {
            read: CommandLine::read(Form::Help, &text),
            text: text.to_vec(),
        });
        let answers = answers.filter(|help| !help.read.is_empty());
        Ok(answers.reduce(|best, help| if is_better(&help, &best) { help } else { best }))
    }
}

fn is_better(help: &Help, than: &Help) -> bool {
    let found = |help: &Help| {
        (
            help.read.flags.len(),
            help.read.operands.len() + help.read.commands.len(),
        )
    };
    found(help) > found(than)
}

/// Finds a program in `PATH`, or at a path.
pub(super) fn find(name: &str) -> anyhow::Result<PathBuf> {
    let places: Vec<_> = match name.contains('/') {
        true => vec![PathBuf::from(name)],
        false => {
            let path = env::var_os("PATH").unwrap_or_default();
            env::split_paths(&path)
                .map(|directory| directory.join(name))
                .collect()
        }
    };
    match places.into_iter().find(|place| is_executable(place)) {
        Some(found) => Ok(found),
        None => bail!("find the program `{name}`: it is not in PATH"),
    }
}

/// Returns whether a file may be executed.
#[cfg(unix)]
pub(super) fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata()
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// This system has no execute permission.
#[cfg(not(unix))]
pub(super) fn is_executable(file: &Path) -> bool {
    file.is_file()
}
