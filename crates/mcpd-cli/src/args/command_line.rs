//! Two-pass parser of the command line. The first pass finds the configuration file; the second
//! takes the settings of that file as defaults. So a flag overrides its variable, and both override
//! the file.

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

/// Group of arguments of which commands that serve scripts need at least one.
const ROOTS: &str = "Roots";

/// Arguments of this process.
#[derive(Debug)]
pub(crate) struct CommandLine {
    words: Vec<OsString>,
    /// Names of the command and of its subcommands, such as `token rotate`.
    command: Vec<String>,
    /// Matches of the last of these commands.
    matches: ArgMatches,
}

/// Source of the value of a setting on the command line.
#[derive(Debug)]
pub(crate) enum SettingSource {
    /// A flag, by its name.
    Flag(String),
    /// A variable, by its name.
    Variable(String),
    /// Neither a flag nor a variable.
    Unset,
}

impl CommandLine {
    /// Parses the command line for the first time.
    ///
    /// # Errors
    ///
    /// Returns the usage error, or the text of `--help` or `--version`.
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
        // clap can't detect this conflict: it treats a variable like a flag, while here each flag
        // overrides the variable of the other.
        if line.is_given("no_auth") && line.is_given("token_file") {
            let what = "the argument '--no-auth' cannot be used with '--token-file <FILE>'";
            return Err(definition.error(ErrorKind::ArgumentConflict, what));
        }
        Ok(line)
    }

    /// Returns whether the command reads a configuration.
    pub(crate) fn is_configured(&self) -> bool {
        self.matches.try_contains_id("config").is_ok()
    }

    /// Path of the configuration from the flag or its variable.
    pub(crate) fn configuration(&self) -> Option<&Path> {
        let named = self.matches.try_get_one::<PathBuf>("config").ok()?;
        named.map(PathBuf::as_path)
    }

    /// Name of the command.
    pub(crate) fn command(&self) -> &str {
        &self.command[0]
    }

    /// Parses the command line again, with `settings` as defaults.
    ///
    /// # Errors
    ///
    /// Returns the usage error if a required argument is still missing.
    pub(crate) fn with(&self, settings: &[Setting]) -> Result<Args, clap::Error> {
        let definition = self.definition(settings);
        Args::from_arg_matches(&definition.try_get_matches_from(&self.words)?)
    }

    /// Returns the value of one of `settings`, as words of the command line, and its source.
    ///
    /// # Errors
    ///
    /// Returns the usage error if a required argument is still missing.
    pub(crate) fn resolve_setting(
        &self,
        setting: &Setting,
        settings: &[Setting],
    ) -> Result<(Vec<OsString>, SettingSource), clap::Error> {
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
        let source = match (matches.value_source(setting.argument), argument) {
            (Some(ValueSource::CommandLine), Some(argument)) => {
                SettingSource::Flag(spelling(argument))
            }
            (Some(ValueSource::EnvVariable), Some(argument)) => {
                let name = argument.get_env().unwrap_or_default();
                SettingSource::Variable(name.to_string_lossy().into_owned())
            }
            _ => SettingSource::Unset,
        };
        Ok((words, source))
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
            // A root directory given by flag replaces the directories of the configuration, too.
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

/// Names the variable instead of the flag in `error`, if the invalid value comes from the variable.
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

/// Returns the names of the commands in `matches`, and the matches of the last.
fn last_command(mut matches: ArgMatches) -> (Vec<String>, ArgMatches) {
    let mut names = Vec::new();
    while let Some((name, inner)) = matches.remove_subcommand() {
        names.push(name);
        matches = inner;
    }
    (names, matches)
}

/// Returns the flag as users write it.
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

/// Returns the definition of all commands. The help never shows the values of variables, which may
/// be secrets. The variable of a flag without a value accepts `1` as well as `true`. In paths, `~/`
/// is the home directory: clients start programs without a shell that would expand it.
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

/// Returns the definition for the first pass, which requires no roots: the configuration may have
/// some. It also prints the help.
pub(super) fn first_reading() -> Command {
    everywhere(commands(), &without_need_of_roots)
}

/// Applies `change` to a command and all its subcommands.
fn everywhere(command: Command, change: &impl Fn(Command) -> Command) -> Command {
    change(command).mut_subcommands(|below| everywhere(below, change))
}

/// Returns the names of all variables that set flags.
pub(crate) fn variables() -> Vec<String> {
    let definition = Args::command();
    let variables = all_arguments(&definition)
        .into_iter()
        .filter_map(Arg::get_env);
    variables
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

/// Returns the arguments of a command and of all its subcommands.
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
