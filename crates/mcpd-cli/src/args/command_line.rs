//! The command line, read twice: first to find out which configuration is meant, then with what
//! that says in the place of defaults. So a flag goes before its variable, and both go before the
//! file.

use std::any::TypeId;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::{BoolishValueParser, PathBufValueParser, TypedValueParser as _};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory as _, FromArgMatches as _};

use super::{Args, with_command};
use crate::config::Setting;

/// One of these is needed where scripts are served.
const ROOTS: &str = "Roots";

/// What mcpd was called with.
#[derive(Debug)]
pub(crate) struct CommandLine {
    words: Vec<OsString>,
    /// The names of the command and of what follows it, such as `token rotate`.
    command: Vec<String>,
    /// Those of the last of them.
    matches: ArgMatches,
}

/// Who has the word on a setting.
#[derive(Debug)]
pub(crate) enum Chosen {
    /// A flag, by its name.
    Flag(String),
    /// A variable, by its name.
    Variable(String),
    /// None of them.
    Nobody,
}

impl CommandLine {
    /// Reads it for the first time.
    ///
    /// # Errors
    ///
    /// What is wrong with it; also the text of `--help` and `--version`.
    pub(crate) fn read(words: impl Iterator<Item = OsString>) -> Result<Self, clap::Error> {
        let words = with_command(words.collect());
        let mut definition = first_reading();
        let matches = definition.try_get_matches_from_mut(&words);
        let matches = matches.map_err(|error| with_variable(error, &definition, &words))?;
        let (command, matches) = last_command(matches);
        let line = Self {
            words,
            command,
            matches,
        };
        // Nothing for clap to find, to which a variable is as good as a flag: either flag goes
        // before that of the other.
        if line.is_given("no_auth") && line.is_given("token_file") {
            let what = "the argument '--no-auth' cannot be used with '--token-file <FILE>'";
            return Err(definition.error(ErrorKind::ArgumentConflict, what));
        }
        Ok(line)
    }

    /// Whether the command reads a configuration.
    pub(crate) fn is_configured(&self) -> bool {
        self.matches.try_contains_id("config").is_ok()
    }

    /// The configuration that is named.
    pub(crate) fn configuration(&self) -> Option<&Path> {
        let named = self.matches.try_get_one::<PathBuf>("config").ok()?;
        named.map(PathBuf::as_path)
    }

    /// The name of the command.
    pub(crate) fn command(&self) -> &str {
        &self.command[0]
    }

    /// Reads it again, with `settings` as the defaults.
    ///
    /// # Errors
    ///
    /// What is still missing.
    pub(crate) fn with(&self, settings: &[Setting]) -> Result<Args, clap::Error> {
        let definition = self.definition(settings);
        Args::from_arg_matches(&definition.try_get_matches_from(&self.words)?)
    }

    /// What one of `settings` comes to, as words of the command line, and who says so.
    ///
    /// # Errors
    ///
    /// What is still missing.
    pub(crate) fn chosen(
        &self,
        setting: &Setting,
        settings: &[Setting],
    ) -> Result<(Vec<OsString>, Chosen), clap::Error> {
        let definition = self.definition(settings);
        let (_, matches) = last_command(definition.clone().try_get_matches_from(&self.words)?);
        let words = match matches.try_get_one::<bool>(setting.argument) {
            Ok(Some(flag)) => vec![flag.to_string().into()],
            _ => {
                let words = matches.try_get_raw(setting.argument).ok().flatten();
                words.into_iter().flatten().map(ToOwned::to_owned).collect()
            }
        };
        let argument = argument(&definition, &self.command, setting.argument);
        let chosen = match (matches.value_source(setting.argument), argument) {
            (Some(ValueSource::CommandLine), Some(argument)) => Chosen::Flag(spelling(argument)),
            (Some(ValueSource::EnvVariable), Some(argument)) => {
                let name = argument.get_env().unwrap_or_default();
                Chosen::Variable(name.to_string_lossy().into_owned())
            }
            _ => Chosen::Nobody,
        };
        Ok((words, chosen))
    }

    fn definition(&self, settings: &[Setting]) -> Command {
        let mut definition = commands();
        if self.command() == "config" {
            definition = everywhere(definition, &without_need_of_roots);
        }
        for setting in settings {
            let Some(words) = &setting.words else {
                continue;
            };
            // These are no different from the others that it names.
            if setting.argument == "directories" && self.is_given("root_directories") {
                continue;
            }
            let set = |command| with_default(command, setting.argument, words);
            definition = everywhere(definition, &set);
            if ["directories", "enable"].contains(&setting.argument) {
                definition = everywhere(definition, &without_need_of_roots);
            }
        }
        definition
    }

    fn is_given(&self, argument: &str) -> bool {
        let is_known = self.matches.try_contains_id(argument).is_ok();
        is_known && self.matches.value_source(argument) == Some(ValueSource::CommandLine)
    }
}

/// The same error, of the variable if the value that it is about comes from one.
fn with_variable(mut error: clap::Error, definition: &Command, words: &[OsString]) -> clap::Error {
    let flag = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(shown)) => shown.split([' ', '[', '=']).next(),
        _ => None,
    };
    let Some(name) = flag.and_then(|flag| flag.strip_prefix("--")) else {
        return error;
    };
    let is_given = words.iter().any(|word| {
        let flag = word.to_str().and_then(|word| word.split('=').next());
        flag.and_then(|flag| flag.strip_prefix("--")) == Some(name)
    });
    let mut arguments = all_arguments(definition).into_iter();
    let argument = arguments.find(|argument| argument.get_long() == Some(name));
    let variable = argument.and_then(Arg::get_env);
    if let Some(variable) = variable.filter(|name| !is_given && env::var_os(name).is_some()) {
        let variable = variable.to_string_lossy().into_owned();
        error.insert(ContextKind::InvalidArg, ContextValue::String(variable));
    }
    error
}

/// The names of the commands in `matches`, and the matches of the last.
fn last_command(mut matches: ArgMatches) -> (Vec<String>, ArgMatches) {
    let mut names = Vec::new();
    while let Some((name, inner)) = matches.remove_subcommand() {
        names.push(name);
        matches = inner;
    }
    (names, matches)
}

/// As people write it.
fn spelling(argument: &Arg) -> String {
    match argument.get_long() {
        Some(long) => format!("--{long}"),
        None => "the command line".to_owned(),
    }
}

fn argument<'a>(definition: &'a Command, command: &[String], name: &str) -> Option<&'a Arg> {
    let commands = command.iter().scan(definition, |outer, name| {
        *outer = outer.find_subcommand(name)?;
        Some(*outer)
    });
    let mut arguments = std::iter::once(definition)
        .chain(commands)
        .flat_map(Command::get_arguments);
    arguments.find(|argument| argument.get_id() == name)
}

/// All commands. None shows the values of variables, which may be secrets. A
/// variable that stands for a flag without a value may say `1` as well as `true`. In paths `~/` is
/// the home directory: clients start programs without a shell that would see to that.
pub(super) fn commands() -> Command {
    everywhere(Args::command(), &|command| {
        command.mut_args(|argument| {
            let argument = argument.hide_env_values(true);
            if argument.get_value_parser().type_id() == TypeId::of::<PathBuf>() {
                let read = |path: PathBuf| mcpd_exec::expand_home(&path);
                return argument.value_parser(PathBufValueParser::new().map(read));
            }
            match (argument.get_action(), argument.get_env()) {
                (ArgAction::SetTrue, Some(_)) => argument.value_parser(BoolishValueParser::new()),
                _ => argument,
            }
        })
    })
}

/// All commands for the first reading, before it is known whether a configuration has roots.
/// It is what prints help.
pub(super) fn first_reading() -> Command {
    everywhere(commands(), &without_need_of_roots)
}

/// Changes a command and all below it.
fn everywhere(command: Command, change: &impl Fn(Command) -> Command) -> Command {
    change(command).mut_subcommands(|below| everywhere(below, change))
}

/// The names of all variables that stand for flags.
pub(crate) fn variables() -> Vec<String> {
    let definition = Args::command();
    let variables = all_arguments(&definition)
        .into_iter()
        .filter_map(Arg::get_env);
    variables
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

/// Those of a command and of all below it.
fn all_arguments(command: &Command) -> Vec<&Arg> {
    let below = command.get_subcommands().flat_map(all_arguments);
    command.get_arguments().chain(below).collect()
}

fn with_default(command: Command, argument: &str, words: &[OsString]) -> Command {
    command.mut_args(|known| match known.get_id() == argument {
        true => known.default_values(words),
        false => known,
    })
}

fn without_need_of_roots(command: Command) -> Command {
    let has_roots = command.get_groups().any(|group| group.get_id() == ROOTS);
    match has_roots {
        true => command.mut_group(ROOTS, |roots| roots.required(false)),
        false => command,
    }
}
